"""Blocks hold whole lines, and what they hold depends on the file's bytes alone."""

import gzip
import os
import resource
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
import zstandard
from hypothesis import given
from hypothesis import strategies as st

from dataflow.blocks import BLOCK_BYTES, LINE_BYTES, Cutter, LineCut, block_bytes_of, blocks
from dataflow.capture import Source, open_capture
from dataflow.opened import Damage
from dataflow.reads import Compression, Limits
from extractors.record import Block, SourceEnded, SourceFailed, SourceKind

CHATTER = b"[08:00:01] task=/bob/rl-toy/0 | (Actor pid=11) still here %d\n"


def source(path: Path) -> Source:
    return open_capture(str(path)).sources[0]


def written(path: Path, content: bytes) -> Source:
    path.write_bytes(content)
    return source(path)


def read(of: Source, read_size: int = 262_144, limits: Limits | None = None) -> tuple[list[Block], list, SourceEnded]:
    """The blocks, what was said between them and the end, and the end."""
    *given, ended = blocks(of, read_size, limits or Limits())
    assert isinstance(ended, SourceEnded)
    return [b for b in given if isinstance(b, Block)], [b for b in given if not isinstance(b, Block)], ended


def chatter(size: int) -> bytes:
    lines: list[bytes] = []
    while size > 0:
        lines.append(CHATTER % len(lines))
        size -= len(lines[-1])
    return b"".join(lines)


def cut(content: bytes, pieces: list[int], block_bytes: int = 16, line_bytes: int = 24) -> list[Block | LineCut]:
    """What a cutter with small bounds makes of this content, fed in pieces of these sizes in turn."""
    cutter, out, at, turn = Cutter("a.log", block_bytes, line_bytes), [], 0, 0
    while at < len(content):
        size = pieces[turn % len(pieces)]
        out += cutter.feed(content[at : at + size])
        at, turn = at + size, turn + 1
    return [*out, *cutter.end()]


def expected(content: bytes, block_bytes: int = 16, line_bytes: int = 24) -> list[Block | LineCut]:
    """The definition, line by line: what blocks.py says a block is."""
    out: list[Block | LineCut] = []
    data, start, first, at = b"", 0, 1, 0
    for number, line in enumerate(content.splitlines(keepends=True) if content else [], 1):
        if data and at // block_bytes != start // block_bytes:
            out.append(Block("a.log", start, first, data))
            data = b""
        if not data:
            start, first = at, number
        length = len(line.removesuffix(b"\n"))
        data += line if length <= line_bytes else line[:line_bytes]
        at += len(line)
        if length > line_bytes:
            out += [Block("a.log", start, first, data), LineCut("a.log", number, at - len(line), length)]
            data = b""
    return [*out, Block("a.log", start, first, data)] if data else out


@given(
    st.lists(st.integers(0, 70), max_size=12).map(lambda sizes: b"\n".join(b"x" * size for size in sizes)),
    st.lists(st.integers(1, 90), min_size=1, max_size=4),
)
def test_any_split_into_reads_gives_the_blocks_of_the_definition(content: bytes, pieces: list[int]) -> None:
    assert cut(content, pieces) == expected(content)


def test_a_block_holds_the_lines_that_start_in_its_window(tmp_path: Path) -> None:
    content = chatter(3 * BLOCK_BYTES)
    got, said, ended = read(written(tmp_path / "finelog.log", content))
    assert b"".join(block.data for block in got) == content
    assert [block.offset // BLOCK_BYTES for block in got] == list(range(len(got)))
    assert [block.line for block in got] == [content.count(b"\n", 0, block.offset) + 1 for block in got]
    assert all(content[block.offset - 1 : block.offset] in (b"", b"\n") for block in got)
    assert (said, ended.lines, ended.size, ended.complete) == ([], content.count(b"\n"), len(content), True)


@pytest.mark.parametrize("read_size", [7, 4096, 262_143, 1_000_000])
@pytest.mark.parametrize("name", ["a.log", "a.log.gz", "a.log.zst"])
def test_boundaries_do_not_depend_on_read_size_or_packing(tmp_path: Path, name: str, read_size: int) -> None:
    content = chatter(BLOCK_BYTES + 5000)
    packed = {".gz": gzip.compress, "zst": zstandard.compress}.get(name[-3:], bytes)(content)
    of = written(tmp_path / name, packed)
    plain = [(b.offset, b.line, b.data) for b in read(written(tmp_path / "plain.log", content))[0]]
    got, said, ended = read(of, read_size)
    assert [(b.offset, b.line, b.data) for b in got] == plain
    assert {b.source for b in got} == {name}
    assert (said, ended.size, ended.complete) == ([], len(content), True)


def test_an_empty_file_is_read_to_its_end(tmp_path: Path) -> None:
    assert read(written(tmp_path / "a.log", b"")) == ([], [], SourceEnded(SourceKind.AGGREGATED, 0, 0, 0, True))


def test_a_last_line_without_newline_is_given_and_the_end_is_not_complete(tmp_path: Path) -> None:
    got, said, ended = read(written(tmp_path / "a.log", b"first\nsecond, to"))
    assert [b.data for b in got] == [b"first\nsecond, to"]
    assert (said, ended.lines, ended.complete) == ([], 2, False)
    assert "line 2" in ended.gap


def test_nul_bytes_and_invalid_utf8_pass_through(tmp_path: Path) -> None:
    content = b"\x00\x00\xff\xfe\n\xc3(\r\n\x00\n"
    got, _, ended = read(written(tmp_path / "a.log", content))
    assert [b.data for b in got] == [content]
    assert ended.lines == 3


def test_a_line_of_exactly_the_limit_is_whole(tmp_path: Path) -> None:
    content = b"a" * LINE_BYTES + b"\nnext\n"
    got, said, _ = read(written(tmp_path / "a.log", content))
    assert (b"".join(b.data for b in got), said) == (content, [])


def test_a_longer_line_is_cut_and_what_follows_stands_at_its_true_place(tmp_path: Path) -> None:
    long = b"b" * (LINE_BYTES + 700_000)
    got, said, ended = read(written(tmp_path / "a.log", b"first\n" + long + b"\nafter\n"), 10_000)
    assert [(b.offset, b.line, len(b.data)) for b in got] == [(0, 1, 6 + LINE_BYTES), (6 + len(long) + 1, 3, 6)]
    assert said == [LineCut("a.log", 2, 6, len(long))]
    assert (ended.lines, ended.size, ended.complete) == (3, 6 + len(long) + 7, True)


def test_a_line_of_100_mb_is_never_held_whole(tmp_path: Path) -> None:
    path = tmp_path / "a.log"
    with path.open("wb") as file:
        for _ in range(100):
            file.write(b"c" * 1_000_000)
        file.write(b"\nafter\n")
    script = (
        "import sys, resource\n"
        "from dataflow.blocks import blocks\nfrom dataflow.capture import open_capture\n"
        "before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss\n"
        "sizes = [len(b.data) for b in blocks(open_capture(sys.argv[1]).sources[0]) if hasattr(b, 'data')]\n"
        "print(*sizes, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before)"
    )
    run = subprocess.run([sys.executable, "-c", script, str(path)], capture_output=True, text=True, check=True)
    first, last, grown_kib = map(int, run.stdout.split())
    assert (first, last) == (LINE_BYTES, 6)
    assert grown_kib < 16 * 1024, resource.getpagesize()


def test_a_torn_gzip_keeps_its_good_part_and_names_the_offset(tmp_path: Path) -> None:
    content = chatter(3 * BLOCK_BYTES)
    packed = gzip.compress(content)
    got, said, ended = read(written(tmp_path / "a.log.gz", packed[: len(packed) // 2]))
    good = b"".join(b.data for b in got)
    assert content.startswith(good)
    assert len(good) > len(content) // 4
    assert [type(each) for each in said] == [SourceFailed]
    assert f"byte {len(good)}" in said[0].why
    assert "torn" in said[0].why
    assert (said[0].whole, ended.complete) == (False, False)


def test_a_damaged_gzip_tail_keeps_every_byte_before_the_checksum(tmp_path: Path) -> None:
    content = chatter(50_000)
    packed = bytearray(gzip.compress(content))
    packed[-6] ^= 0xFF
    got, said, ended = read(written(tmp_path / "a.log.gz", bytes(packed)), 11)
    assert b"".join(b.data for b in got) == content
    assert f"byte {len(content)}" in said[0].why
    assert not ended.complete


def test_gzip_members_follow_each_other_and_zero_padding_is_no_damage(tmp_path: Path) -> None:
    packed = gzip.compress(b"one\n") + gzip.compress(b"two\n") + bytes(512)
    got, said, _ = read(written(tmp_path / "a.log.gz", packed))
    assert (b"".join(b.data for b in got), said) == (b"one\ntwo\n", [])


def test_other_bytes_after_a_gzip_are_named(tmp_path: Path) -> None:
    got, said, ended = read(written(tmp_path / "a.log.gz", gzip.compress(b"one\n") + b"garbage that is no gzip"))
    assert b"".join(b.data for b in got) == b"one\n"
    assert "follow" in said[0].why
    assert not ended.complete


@pytest.mark.parametrize("name", ["a.log.gz", "a.log.zst"])
@pytest.mark.parametrize("content", [b"", b"plain text, misnamed\n"])
def test_what_is_not_packed_as_named_is_unreadable(tmp_path: Path, name: str, content: bytes) -> None:
    got, said, ended = read(written(tmp_path / name, content))
    assert got == []
    assert [each.whole for each in said] == [True]
    assert not ended.complete


def test_a_torn_zstd_keeps_its_good_part(tmp_path: Path) -> None:
    content = b"".join(CHATTER % (number * 7919 % 100_003) for number in range(20_000))
    packed = zstandard.compress(content)
    got, said, _ = read(written(tmp_path / "a.log.zst", packed[: len(packed) // 2]))
    good = b"".join(b.data for b in got)
    assert good
    assert content.startswith(good)
    assert "torn" in said[0].why


def test_zstd_frames_follow_each_other(tmp_path: Path) -> None:
    packed = zstandard.compress(b"one\n") + zstandard.compress(b"two\n")
    got, said, _ = read(written(tmp_path / "a.log.zst", packed))
    assert (b"".join(b.data for b in got), said) == (b"one\ntwo\n", [])


@pytest.mark.parametrize(("name", "pack"), [("a.log.gz", gzip.compress), ("a.log.zst", zstandard.compress)])
def test_a_decompression_bomb_is_bounded_and_named(tmp_path: Path, name: str, pack) -> None:
    of = written(tmp_path / name, pack(bytes(80_000_000)))
    _, said, ended = read(of, limits=Limits(ratio_from=1_000_000))
    assert any("bomb" in each.why for each in said if isinstance(each, SourceFailed))
    assert 1_000_000 < ended.size < 40_000_000
    assert not ended.complete


def test_more_than_the_total_cap_is_not_unpacked(tmp_path: Path) -> None:
    of = written(tmp_path / "a.log.gz", gzip.compress(chatter(900_000)))
    _, said, ended = read(of, limits=Limits(total=300_000))
    assert "300000" in said[0].why
    assert 300_000 < ended.size < 900_000


def while_reading(of: Source, happens) -> tuple[list[Block], list[SourceFailed], SourceEnded]:
    """Reads the first block, lets something happen to the file, reads on."""
    stream: Iterator = blocks(of, 100_000)
    first = next(stream)
    happens()
    *rest, ended = stream
    return [first, *(b for b in rest if isinstance(b, Block))], [f for f in rest if not isinstance(f, Block)], ended


def test_a_file_truncated_while_read_keeps_what_was_read(tmp_path: Path) -> None:
    path = tmp_path / "a.log"
    of = written(path, chatter(2_000_000))
    got, said, ended = while_reading(of, lambda: os.truncate(path, 10))
    assert got[0].offset == 0
    assert "truncated" in said[0].why
    assert (said[0].whole, ended.complete) == (False, False)


def test_a_file_replaced_while_read_is_the_earlier_one_and_is_named(tmp_path: Path) -> None:
    path, other = tmp_path / "a.log", tmp_path / "b"
    content = chatter(2_000_000)
    of = written(path, content)
    other.write_bytes(b"another\n")
    got, said, ended = while_reading(of, lambda: os.replace(other, path))
    assert b"".join(b.data for b in got) == content
    assert "replaced" in said[0].why
    assert not ended.complete


def test_a_file_that_grows_while_read_is_complete(tmp_path: Path) -> None:
    path = tmp_path / "a.log"
    content = chatter(1_000_000)
    of = written(path, content)

    def grow() -> None:
        with path.open("ab") as file:
            file.write(b"one more\n")

    got, said, ended = while_reading(of, grow)
    assert b"".join(b.data for b in got) == content + b"one more\n"
    assert (said, ended.complete) == ([], True)


def test_a_file_that_is_gone_is_a_failure_and_an_end(tmp_path: Path) -> None:
    of = written(tmp_path / "a.log", b"x\n")
    (tmp_path / "a.log").unlink()
    got, said, ended = read(of)
    assert (got, said[0].whole, ended.complete) == ([], True, False)
    assert "No such file" in said[0].why


def test_a_read_error_in_the_middle_keeps_what_came_before() -> None:
    broken = Source(
        "-", "-", SourceKind.AGGREGATED, Compression.NONE, head=b"one\n", stream=iter([b"two\n", Damage("I/O error")])
    )
    got, said, ended = read(broken)
    assert b"".join(b.data for b in got) == b"one\ntwo\n"
    assert (said[0].why, ended.complete) == ("I/O error", False)


def test_blocks_shrink_where_thousands_of_files_are_merged() -> None:
    assert [block_bytes_of(files) for files in (0, 1, 256, 512, 100_000)] == [
        262_144,
        262_144,
        262_144,
        131_072,
        16_384,
    ]
    assert all(block_bytes_of(files) % 4_096 == 0 for files in range(1, 6_000, 7))


def test_newlines_that_a_reader_has_counted_are_not_counted_again() -> None:
    asked: list[int] = []

    def counted(block: Block) -> int:
        asked.append(block.line)
        return block.data.count(b"\n")

    cutter = Cutter("a.log", 16, 24, counted)
    content = chatter(100)
    found = [*cutter.feed(content), *cutter.end()]
    assert found == expected(content)
    assert cutter.lines == content.count(b"\n")
    assert asked == [each.line for each in found if isinstance(each, Block)]
