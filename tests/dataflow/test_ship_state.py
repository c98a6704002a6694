"""How far each capture was shipped is kept, at most once a second, and what is no such file is begun anew."""

from pathlib import Path

from dataflow.ship_state import Places, new_session
from tests.dataflow.shipments import JOB, TOPICS


class Clock:
    at = 0.0

    def __call__(self) -> float:
        return self.at


def places(folder: Path, notes: list[str] | None = None, clock: Clock | None = None) -> Places:
    return Places(folder, [] if notes is None else notes, clock or Clock())


def test_what_was_kept_is_read_and_each_capture_has_its_own(tmp_path: Path) -> None:
    one, other = new_session("a/run", JOB, TOPICS), new_session("b/run", JOB, TOPICS)
    assert one.session != other.session
    kept = places(tmp_path)
    kept.keep("a/run", one)
    kept.keep("b/run", other)
    kept.save()
    again = places(tmp_path)
    assert (again.read("a/run"), again.read("b/run"), again.read("c/run")) == (one, other, None)


def test_it_is_written_at_most_once_a_second_and_at_once_at_the_end(tmp_path: Path) -> None:
    clock, sessions = Clock(), [new_session("run", JOB, TOPICS) for _ in range(3)]
    kept = places(tmp_path, clock=clock)
    for number, session in enumerate(sessions):
        kept.keep("run", session)
        kept.save()
        assert places(tmp_path).read("run") == sessions[0], number
    clock.at = 1.1
    kept.save()
    assert places(tmp_path).read("run") == sessions[2]
    kept.keep("run", sessions[1])
    kept.save(at_once=True)
    assert places(tmp_path).read("run") == sessions[1]


def test_what_is_no_such_file_is_told_and_begun_anew(tmp_path: Path) -> None:
    kept = places(tmp_path)
    kept.keep("run", new_session("run", JOB, TOPICS))
    kept.save()
    (file,) = tmp_path.iterdir()
    for content in (b"", b"\xc1torn", file.read_bytes()[:-5]):
        file.write_bytes(content)
        notes: list[str] = []
        assert places(tmp_path, notes).read("run") is None
        assert "run is sent anew" in notes[0]


def test_folder_that_cannot_be_written_is_told_once_and_tried_again(tmp_path: Path) -> None:
    notes: list[str] = []
    kept = places(tmp_path / "gone", notes)
    session = new_session("run", JOB, TOPICS)
    kept.keep("run", session)
    for _ in range(3):
        kept.save(at_once=True)
    assert len(notes) == 1
    assert "can't be written" in notes[0]
    (tmp_path / "gone").mkdir()
    kept.save(at_once=True)
    assert notes[1:] == [f"{tmp_path / 'gone'}: can be written again"]
    assert places(tmp_path / "gone").read("run") == session


def test_name_of_any_capture_makes_a_file(tmp_path: Path) -> None:
    kept = places(tmp_path)
    for name in ("\udcff" * 9, "ü" * 200, "x" * 255, "a b\n"):
        kept.keep(name, new_session(name.encode("utf-8", "replace").decode(), JOB, TOPICS))
    kept.save()
    assert len(list(tmp_path.iterdir())) == 4
