"""Files that come in pieces: as they were, whatever comes twice or out of order; what is missing is known."""

import os
import random
from itertools import pairwise
from pathlib import Path

import pytest

from dataflow.shelf import Shelf, ShelfError


@pytest.mark.parametrize("seed", range(10))
def test_pieces_in_any_order_make_the_file(tmp_path: Path, seed: int) -> None:
    chance = random.Random(seed)
    data = chance.randbytes(5_000)
    cuts = [0, *sorted(chance.sample(range(1, 5_000), 7)), 5_000]
    pieces = list(pairwise(cuts)) * 2
    chance.shuffle(pieces)
    shelf = Shelf(tmp_path)
    for number, (begin, end) in enumerate(pieces):
        shelf.put("a/b.bin", begin, data[begin:end], mtime_ns=1_700_000_000_000_000_000)
        if number == 3:
            kept = shelf.snapshot()
            shelf = Shelf(tmp_path)
            shelf.restore(kept, {})
    assert shelf.missing({"a/b.bin": 5_000}) == {}
    assert (tmp_path / "a/b.bin").read_bytes() == data
    assert os.stat(tmp_path / "a/b.bin").st_mtime == 1_700_000_000


def test_the_first_hole_of_each_file_is_known(tmp_path: Path) -> None:
    shelf = Shelf(tmp_path)
    shelf.put("a", 0, b"12")
    shelf.put("a", 5, b"67")
    shelf.put("b", 0, b"12")
    assert shelf.missing({"a": 7, "b": 2, "c": 0, "d": 4}) == {"a": (2, 5), "d": (0, 4)}


def test_what_was_put_there_and_is_gone_is_noticed_when_it_is_gone_back_to(tmp_path: Path) -> None:
    shelf = Shelf(tmp_path)
    shelf.put("a", 0, b"12345")
    shelf.put("b", 0, b"12")
    kept = shelf.snapshot()
    os.truncate(tmp_path / "a", 4)
    Shelf(tmp_path).restore(kept, {"a": 4})
    with pytest.raises(ShelfError, match="has 4 of 5 bytes"):
        Shelf(tmp_path).restore(kept, {})
    (tmp_path / "b").unlink()
    with pytest.raises(ShelfError, match="No such file"):
        Shelf(tmp_path).restore(kept, {"a": 4})


def test_a_file_gets_its_size_at_the_end_be_it_empty_or_without_its_last_newline(tmp_path: Path) -> None:
    shelf = Shelf(tmp_path)
    shelf.put("polls/gpu.jsonl", 0, b"{}\n")
    os.utime(tmp_path / "polls/gpu.jsonl", (5, 5))
    shelf.finish({"polls/gpu.jsonl": 2, "logs/empty.log": 0})
    assert (tmp_path / "polls/gpu.jsonl").read_bytes() == b"{}"
    assert os.stat(tmp_path / "polls/gpu.jsonl").st_mtime == 5
    assert (tmp_path / "logs/empty.log").read_bytes() == b""


def test_a_link_is_made_that_leads_nowhere_and_nothing_is_written_through_one(tmp_path: Path) -> None:
    shelf = Shelf(tmp_path / "shelf")
    shelf.link("trace_jobs/x")
    shelf.link("trace_jobs/x")
    assert not (tmp_path / "shelf/trace_jobs/x").exists()
    with pytest.raises(OSError, match="symbolic links"):
        shelf.put("trace_jobs/x", 0, b"1")
