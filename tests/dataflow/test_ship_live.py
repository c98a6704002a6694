"""A live capture is sent as it grows: each byte, in order, and how far all is; a kill costs repeats and no line."""

import os
import random
from pathlib import Path

import msgspec
import pytest

from dataflow.ship_state import Kept
from dataflow.turns import Continued, Held, Rotated, TailFailed
from dataflow.wire import Part, PollLine
from dataflow.wire_words import ArchiveSeen, Begun, DumpSeen, Failed, Listed, Stopped, Tick, Told, TrialSeen
from extractors.record import Block
from tests.dataflow.live_feeds import bars
from tests.dataflow.shipments import JOB, Shipped, laid_out
from tests.dataflow.tails import append
from tests.dataflow.test_ship_recorded import POLL, trials, write


@pytest.fixture
def run(tmp_path: Path) -> Path:
    return write(tmp_path / "run", {"finelog.log": bars(0, 5), "polls/state.jsonl": POLL % 1 + b"\n"})


def test_first_round_says_what_it_is_and_what_is_there_and_how_far_all_is(run: Path) -> None:
    shipped = Shipped(run)
    shipped.rounds(1)
    begun, *listed = shipped.taken.sent[:3]
    assert begun == Begun(str(run), None, recorded=False, lateness_us=1_600_000)
    assert {each.relative for each in listed if isinstance(each, Listed)} == {"finelog.log", "polls/state.jsonl"}
    assert laid_out(shipped.taken.sent)[("finelog.log", 0)] == bars(0, 5)
    (tick,) = shipped.taken.words(Tick)
    assert tick is shipped.taken.sent[-1]
    assert (tick.now_us, tick.behind, tick.stands) == (shipped.now_us, [], True)
    assert tick.polls == {"polls/state.jsonl": (0, len(POLL % 1) + 1)}
    assert {each.job for each in shipped.taken.arrived} == {JOB}


def test_line_without_its_end_is_not_sent_before_it_ends(run: Path) -> None:
    shipped = Shipped(run)
    append(run / "finelog.log", b"half")
    shipped.rounds(3)
    assert laid_out(shipped.taken.sent)[("finelog.log", 0)] == bars(0, 5)
    append(run / "finelog.log", b" and whole\n")
    shipped.rounds(3)
    assert laid_out(shipped.taken.sent)[("finelog.log", 0)] == bars(0, 5) + b"half and whole\n"


def test_bar_without_end_is_sent_as_held(run: Path) -> None:
    shipped = Shipped(run)
    for second in range(90):
        append(run / "finelog.log", b"\rGeneration Buffer Progress: %d/64" % second)
        shipped.rounds(1)
    held = [each.piece for each in shipped.taken.words(Told) if isinstance(each.piece, Held)]
    assert held
    assert b"Progress: 8" in held[-1].data
    assert laid_out(shipped.taken.sent)[("finelog.log", 0)] == bars(0, 5)


def test_polls_go_line_by_line_and_blank_lines_not(run: Path) -> None:
    append(run / "polls" / "state.jsonl", b"\n\n" + POLL % 2 + b"\n\n")
    shipped = Shipped(run)
    shipped.rounds(2)
    polls = shipped.taken.words(PollLine)
    assert [(each.line, each.data) for each in polls] == [(1, POLL % 1), (4, POLL % 2)]
    assert shipped.taken.words(Tick)[-1].polls == {"polls/state.jsonl": (0, polls[-1].offset + len(POLL % 2) + 1)}


def test_capture_is_heard_of_every_two_seconds_though_nothing_is_new(run: Path) -> None:
    shipped = Shipped(run)
    shipped.rounds(1)
    before = len(shipped.taken.sent)
    shipped.rounds(20)
    quiet = shipped.taken.sent[before:]
    assert len(quiet) == 10
    assert all(isinstance(each, Tick) for each in quiet)


def test_nothing_is_piled_up_for_brokers_that_are_away(run: Path) -> None:
    shipped = Shipped(run)
    shipped.rounds(1)
    before = len(shipped.taken.sent)
    shipped.taken.trouble = "nothing listens there"
    shipped.rounds(20)
    assert len(shipped.taken.sent) == before
    append(run / "finelog.log", bars(5, 1))
    shipped.taken.is_full = True
    shipped.rounds(20)
    assert len(shipped.taken.sent) == before
    shipped.taken.is_full, shipped.taken.trouble = False, ""
    shipped.rounds(2)
    assert laid_out(shipped.taken.sent)[("finelog.log", 0)] == bars(0, 6)


def test_what_a_capture_is_and_has_is_said_again_for_who_comes_late(run: Path) -> None:
    shipped = Shipped(run)
    shipped.rounds(1)
    shipped.rounds(70, seconds=10)
    assert len(shipped.taken.words(Begun)) == 2
    assert len(shipped.taken.words(Listed)) == 4
    shipped.shipment.declare('[job]\nid = "x"\n')
    shipped.rounds(1)
    assert shipped.taken.words(Begun)[-1].job_toml == '[job]\nid = "x"\n'


def test_trials_are_sent_when_they_begin_and_end_each_behind_its_files(run: Path) -> None:
    shipped = Shipped(run)
    shipped.rounds(1)
    trials(run / "trace_jobs", ["sum__Ab3dE9x"])
    result = (run / "trace_jobs" / "sum__Ab3dE9x" / "result.json").read_bytes()
    (run / "trace_jobs" / "sum__Ab3dE9x" / "result.json").unlink()
    shipped.rounds(5)
    begun = shipped.taken.sent.index(TrialSeen("sum__Ab3dE9x", "trace_jobs/sum__Ab3dE9x", ended=False))
    assert any(isinstance(each, Part) and each.source.endswith("config.json") for each in shipped.taken.sent[:begun])
    write(run, {"trace_jobs/sum__Ab3dE9x/result.json": result})
    shipped.rounds(5)
    ended = shipped.taken.sent.index(TrialSeen("sum__Ab3dE9x", "trace_jobs/sum__Ab3dE9x", ended=True))
    assert laid_out(shipped.taken.sent[:ended])[("trace_jobs/sum__Ab3dE9x/result.json", 0)] == result
    part = next(each for each in shipped.taken.words(Part) if each.source.endswith("result.json"))
    found = os.stat(run / "trace_jobs/sum__Ab3dE9x/result.json")
    assert (part.size, part.mtime_ns) == (found.st_size, found.st_mtime_ns)


def test_archives_and_dumps_are_sent_once_whole_also_after_a_kill(run: Path) -> None:
    shipped = Shipped(run)
    write(run, {"x_trace_jobs.tar": b"t" * 1_200_000, "flight_recorder/rank_0.json": b'{"entries": []}'})
    shipped.rounds(6)
    assert [each.relative for each in shipped.taken.words(ArchiveSeen)] == ["x_trace_jobs.tar"]
    assert [each.relative for each in shipped.taken.words(DumpSeen)] == ["flight_recorder/rank_0.json"]
    assert laid_out(shipped.taken.sent)[("x_trace_jobs.tar", 0)] == b"t" * 1_200_000
    shipped.killed()
    shipped.rounds(6)
    assert len(shipped.taken.words(ArchiveSeen, DumpSeen)) == 2
    write(run, {"x_trace_jobs.tar": b"u" * 1_000})
    shipped.rounds(6)
    assert len(shipped.taken.words(ArchiveSeen)) == 2
    assert shipped.taken.words(Part)[-1].data == b"u" * 1_000


def test_what_waits_to_be_sent_whole_is_behind(run: Path) -> None:
    write(run, {"x_trace_jobs.tar": b"t" * 1_200_000})
    shipped = Shipped(run)
    shipped.rounds(1)
    shipped.seconds = iter(range(1_000_000)).__next__
    shipped.rounds(2)
    assert shipped.taken.words(Tick)[-1].behind == ["x_trace_jobs.tar"]


def test_files_and_folders_that_cannot_be_read_are_told(run: Path) -> None:
    os.symlink("/etc", run / "pod_logs")
    shipped = Shipped(run)
    shipped.rounds(2)
    assert [each.relative for each in shipped.taken.words(Failed)] == ["pod_logs"]
    assert shipped.notes == ["pod_logs: a link that leaves the capture: not followed"]
    (run / "finelog.log").unlink()
    shipped.rounds(10)
    failed = [each.piece for each in shipped.taken.words(Told) if isinstance(each.piece, TailFailed)]
    assert [each.source for each in failed] == ["finelog.log"]


@pytest.mark.parametrize("kill", [False, True])
def test_log_that_is_rotated_goes_on_under_its_new_name(run: Path, kill: bool) -> None:
    shipped = Shipped(run)
    append(run / "finelog.log", bars(5, 40))
    shipped.rounds(3)
    if kill:
        shipped.killed()
    append(run / "finelog.log", bars(45, 3))
    (run / "finelog.log").rename(run / "finelog.log.1")
    append(run / "finelog.log", bars(48, 20))
    shipped.rounds(10)
    told = [each.piece for each in shipped.taken.words(Told)]
    assert [each.generation for each in told if isinstance(each, Rotated)] == [1]
    continued = [each for each in told if isinstance(each, Continued)]
    assert continued == [Continued("finelog.log.1", "finelog.log", 0, 0)]
    files = laid_out(shipped.taken.sent)
    assert files[("finelog.log.1", 0)] == bars(0, 48)
    assert files[("finelog.log", 1)] == bars(48, 20)


def test_kills_at_any_time_lose_nothing(run: Path) -> None:
    chance = random.Random(11)
    shipped = Shipped(run)
    written = 5
    for _ in range(60):
        count = chance.randrange(4_000)
        append(run / "finelog.log", bars(written, count))
        append(run / "polls" / "state.jsonl", POLL % (written % 60) + b"\n")
        written += count
        shipped.rounds(chance.randrange(1, 4), seconds=0.25)
        if chance.random() < 0.3 and shipped.taken.notes:
            shipped.killed()
    shipped.rounds(10)
    files = laid_out(shipped.taken.sent)
    assert files[("finelog.log", 0)] == bars(0, written)
    assert files[("polls/state.jsonl", 0)] == (run / "polls" / "state.jsonl").read_bytes()
    assert len({each.session for each in shipped.taken.arrived}) == 1


def test_what_was_lost_is_sent_anew_from_the_beginning_in_the_same_session(run: Path) -> None:
    shipped = Shipped(run)
    append(run / "finelog.log", bars(5, 40))
    shipped.rounds(3)
    (run / "finelog.log").rename(run / "finelog.log.1")
    append(run / "finelog.log", bars(45, 30))
    shipped.rounds(10)
    session, before = shipped.taken.arrived[0].session, len(shipped.taken.sent)
    kept = shipped.shipment.how_far(shipped.now_us)
    shipped.shipment.close()
    shipped.begin(kept.begun_anew({"wedgewatch.lines": "c", "wedgewatch.polls": "d"}))
    shipped.rounds(5)
    anew = shipped.taken.sent[before:]
    assert isinstance(anew[0], Begun)
    assert anew[0].anew == 1
    files = laid_out(anew)
    assert files[("finelog.log", 1)] == bars(45, 30)
    assert files[("finelog.log.1", 0)] == bars(0, 45)
    assert files[("polls/state.jsonl", 0)] == POLL % 1 + b"\n"
    assert shipped.taken.arrived[-1].session == session


def test_end_in_order_is_said_with_how_far_all_is(run: Path) -> None:
    shipped = Shipped(run)
    shipped.rounds(1)
    shipped.shipment.stop(shipped.now_us)
    assert shipped.taken.sent[-1] == Stopped(shipped.now_us)
    path, kept = shipped.taken.notes[-1]
    assert path == str(run)
    assert kept.files["finelog.log"].mark.offset == len(bars(0, 5))
    assert msgspec.msgpack.decode(msgspec.msgpack.encode(kept), type=Kept) == kept


def test_bare_log_is_shipped(tmp_path: Path) -> None:
    append(tmp_path / "run.log", bars(0, 5))
    shipped = Shipped(tmp_path / "run.log")
    shipped.rounds(2)
    assert shipped.taken.words(Begun)[0].bare
    assert [type(each) for each in shipped.taken.sent if isinstance(each, Block)] == [Block]
    assert laid_out(shipped.taken.sent) == {("run.log", 0): bars(0, 5)}


def rotated(run: Path) -> tuple[Shipped, int]:
    """A log that was shipped and is renamed, and how many notes were kept of it before."""
    shipped = Shipped(run)
    append(run / "finelog.log", bars(5, 40))
    shipped.rounds(3)
    known = len(shipped.taken.notes)
    (run / "finelog.log").rename(run / "finelog.log.1")
    return shipped, known


def test_log_that_is_rotated_while_nobody_ships_goes_on_where_the_last_word_that_arrived_stood(run: Path) -> None:
    shipped = Shipped(run)
    append(run / "finelog.log", bars(5, 40))
    shipped.rounds(3)
    append(run / "finelog.log", bars(45, 10))
    shipped.rounds(1)
    assert laid_out(shipped.taken.sent)[("finelog.log", 0)] == bars(0, 55)
    shipped.taken.notes.pop()
    assert shipped.taken.notes[-1][1].files["finelog.log"].mark.offset == len(bars(0, 45))
    append(run / "finelog.log", bars(55, 5))
    (run / "finelog.log").rename(run / "finelog.log.1")
    append(run / "finelog.log", bars(60, 20))
    shipped.killed()
    shipped.rounds(10)
    files = laid_out(shipped.taken.sent)
    assert files[("finelog.log.1", 0)] == bars(0, 60)
    assert files[("finelog.log", 1)] == bars(60, 20)


def test_kill_before_anything_is_known_to_have_arrived_makes_no_second_content_of_it(run: Path) -> None:
    shipped = Shipped(run)
    shipped.rounds(1)
    shipped.taken.notes.clear()
    shipped.killed()
    append(run / "finelog.log", bars(5, 9))
    shipped.rounds(3)
    files = laid_out(shipped.taken.sent)
    assert files[("finelog.log", 0)] == bars(0, 14)
    assert {generation for _, generation in files} == {0}


def test_number_of_a_content_that_was_begun_before_a_kill_is_never_that_of_another(run: Path) -> None:
    shipped, known = rotated(run)
    append(run / "finelog.log", bars(45, 20))
    shipped.rounds(2)
    del shipped.taken.notes[known:]
    (run / "finelog.log.1").rename(run / "finelog.log.2")
    (run / "finelog.log").rename(run / "finelog.log.1")
    append(run / "finelog.log", bars(65, 30))
    shipped.killed()
    shipped.rounds(10)
    files = laid_out(shipped.taken.sent)
    assert files[("finelog.log", 1)] == bars(45, 20)
    assert files[("finelog.log", 2)] == bars(65, 30)


def test_content_that_was_begun_before_a_kill_keeps_its_number(run: Path) -> None:
    shipped, known = rotated(run)
    append(run / "finelog.log", bars(45, 20))
    shipped.rounds(3)
    del shipped.taken.notes[known:]
    append(run / "finelog.log", bars(65, 30))
    shipped.killed()
    shipped.rounds(10)
    files = laid_out(shipped.taken.sent)
    assert files[("finelog.log", 1)] == bars(45, 50)
    assert files[("finelog.log.1", 0)] == bars(0, 45)
    assert {generation for name, generation in files if name == "finelog.log"} == {0, 1}


@pytest.mark.parametrize("seed", range(6))
def test_kills_and_rotations_at_any_time_lose_nothing_and_confuse_nothing(run: Path, seed: int) -> None:
    chance = random.Random(seed)
    shipped = Shipped(run)
    written = 5
    for _ in range(80):
        count = chance.randrange(60)
        append(run / "finelog.log", bars(written, count))
        written += count
        if chance.random() < 0.15:
            for number in range(8, 0, -1):
                if (run / f"finelog.log.{number}").exists():
                    (run / f"finelog.log.{number}").rename(run / f"finelog.log.{number + 1}")
            (run / "finelog.log").rename(run / "finelog.log.1")
        shipped.rounds(chance.randrange(0, 4), seconds=0.5)
        if chance.random() < 0.25:
            del shipped.taken.notes[max(0, len(shipped.taken.notes) - chance.randrange(3)) :]
            shipped.killed()
    shipped.rounds(20)
    sent = b"".join(laid_out(shipped.taken.sent).values())
    assert set(bars(0, written).splitlines()) <= set(sent.splitlines())
