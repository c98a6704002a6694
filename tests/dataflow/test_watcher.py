"""What other commands take of what a watch says of itself."""

from pathlib import Path

import pytest

from dataflow.watcher import watched_jobs


@pytest.mark.parametrize("said", ["", "{", "null", "[]", "{}", '{"jobs": []}', '{"jobs": {"/a": 7}}'])
def test_a_health_file_that_is_none_tells_of_no_job(tmp_path: Path, said: str) -> None:
    (tmp_path / "watch").mkdir()
    (tmp_path / "watch" / "health.json").write_text(said)
    assert watched_jobs(tmp_path) == {}


def test_an_entry_that_is_none_costs_no_other(tmp_path: Path) -> None:
    (tmp_path / "watch").mkdir()
    good = '{"captured": "runs/b", "lag": null, "sync": {"good": null, "fails": ""}}'
    bad = '"/a": {"lag": "5 s"}, "/c": {"sync": "works"}, "/d": {"captured": 7}'
    (tmp_path / "watch" / "health.json").write_text(f'{{"jobs": {{{bad}, "/b": {good}}}}}')
    assert list(watched_jobs(tmp_path)) == ["/b"]
