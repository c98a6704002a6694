"""Several senders of one job: recorded captures beside each other and beside what is shipped live, and senders that are
no shippers of ours."""

import errno
from pathlib import Path

import pytest

from dataflow.kafka_follower import Message
from dataflow.shelf import Shelf, ShelfError
from dataflow.shipped_live import SILENT_SECONDS
from dataflow.shipped_recordings import FORGOTTEN_SECONDS, PATIENCE_SECONDS
from dataflow.wire import PollLine, Wire
from dataflow.wire_words import Stopped
from extractors.polls import PollFailed
from extractors.record import Beat, SourceFailed, SourceKind, Unheard
from tests.dataflow.live_feeds import SECOND_US, START_US, bar, bars
from tests.dataflow.shipped_streams import JOB, LINES, POLLS, Sender, Taken
from tests.dataflow.test_shipped_job import GPU, NAME, failed_poll, recorded, sent, shipped, told


class Once(Sender):
    """A shipper of a recorded capture."""

    @property
    def wire(self) -> Wire:
        return Wire(self.host, self.session, recorded=True)


def routed(offset: int, data: bytes, host: bytes = b"node-7") -> Message:
    """Lines with the headers of the contract and no more."""
    line = offset // len(bar(0)) + 1
    place = (("source", b"finelog.log"), ("offset", str(offset).encode()), ("line", str(line).encode()))
    return Message(LINES, 0, 0, JOB.encode(), data, (*place, ("host", host), ("encoding", b"identity")))


def marks(beats: list[Beat]) -> list[object]:
    return [(each.tick, each.observations) for each in beats]


def test_two_recorded_captures_that_are_sent_at_once_are_both_replayed(tmp_path: Path) -> None:
    files, taken = recorded(tmp_path / "runs/rl"), Taken(tmp_path)
    one, two = shipped(Once(), files), shipped(Once(host="node-2", session="s2"), files)
    for pair in zip(one, two, strict=True):
        assert taken.take(*pair) == []
    first = taken.replayed()
    second = taken.replayed()
    assert first[-2].tick.final
    assert marks(second) == marks(first)
    assert all(each.recorded for each in (*first, *second))


def test_a_recorded_capture_changes_nothing_of_the_same_job_live(tmp_path: Path) -> None:
    alone, beside = Taken(tmp_path / "a"), Taken(tmp_path / "b")
    alone.take(*sent(Sender(), 90))
    files = recorded(tmp_path / "runs/rl")
    live, once = sent(Sender(), 90), shipped(Once(session="s2"), files)
    beside.take(*live[:80], *once[:3], *live[80:120], *once[3:])
    assert beside.job.recordings.replays is False
    lived = len(beside.beats)
    assert beside.replayed()[-2].tick.final
    final = len(beside.beats)
    beside.restart()
    beside.take(*live[120:])
    assert marks(beside.beats[:lived] + beside.beats[final:]) == marks(alone.beats)


def test_polls_that_come_before_the_first_word_belong_to_the_recorded_capture(tmp_path: Path) -> None:
    files = recorded(tmp_path / "runs/rl") | {GPU: failed_poll(1) + b"\n\n" + failed_poll(2)}
    (tmp_path / "runs/rl/polls").mkdir()
    (tmp_path / "runs/rl" / GPU).write_bytes(files[GPU])
    sender, taken = Once(), Taken(tmp_path)
    first, last = sender.poll(GPU, failed_poll(1)), len(failed_poll(1)) + 2
    second = sender.message(sender.wire.poll(PollLine(GPU, last, 3, failed_poll(2))), POLLS)
    begun, *rest = shipped(sender, {name: each for name, each in files.items() if name != GPU})
    ended = sender.ended({name: len(each) for name, each in files.items()})
    taken.take(second, first, begun, *rest[:-1])
    taken.take(sender.part(GPU, last - 1, b"\n", 0))
    taken.take(ended)
    assert taken.replayed()[-2].tick.final
    assert len(told(taken.observations, PollFailed)) == 2


def test_a_poll_that_was_removed_by_age_is_no_blank_line(tmp_path: Path) -> None:
    files, sender, taken = recorded(tmp_path / "runs/rl"), Once(), Taken(tmp_path)
    sender.poll(GPU, failed_poll(1))
    late = sender.poll(GPU, failed_poll(2))
    begun, *rest = shipped(sender, files)
    taken.take(late, begun, *rest[:-1])
    taken.take(sender.ended({name: len(each) for name, each in files.items()} | {GPU: sender.places[GPU][0]}))
    taken.replayed()
    taken.now += PATIENCE_SECONDS + 1
    taken.replayed()
    failed = [each for each in taken.observations if type(each.signal) is SourceFailed]
    assert (GPU, f"bytes 0 to {len(failed_poll(1)) + 1} never came") in [
        (each.evidence.source, each.signal.why) for each in failed
    ]


def test_the_rest_of_a_recorded_capture_is_waited_for_while_the_brokers_have_more(tmp_path: Path) -> None:
    files, taken = recorded(tmp_path / "runs/rl"), Taken(tmp_path)
    messages = shipped(Once(), files)
    taken.take(*messages[:1], *messages[2:])
    for _ in range(3):
        assert taken.job.turn(0, False) == []
        taken.now += PATIENCE_SECONDS
    assert not taken.job.recordings.replays
    taken.take(messages[1])
    taken.replayed()
    assert "never came" not in str([each.signal for each in taken.observations if type(each.signal) is SourceFailed])


def test_a_recorded_capture_whose_first_word_is_gone_is_judged_by_what_is_left(tmp_path: Path) -> None:
    files, taken = recorded(tmp_path / "runs/rl"), Taken(tmp_path)
    messages = shipped(Once(), files)
    taken.take(*messages[2:])
    assert taken.job.feed is None
    taken.replayed()
    taken.now += PATIENCE_SECONDS + 1
    assert taken.replayed()[-2].tick.final
    failed = [each.signal.why for each in taken.observations if type(each.signal) is SourceFailed]
    assert "bytes 0 to 1000 never came" in failed


def test_a_recorded_capture_of_which_no_end_comes_is_told_and_let_go(tmp_path: Path) -> None:
    taken = Taken(tmp_path)
    taken.take(*shipped(Once(), recorded(tmp_path / "runs/rl"))[:-1])
    taken.now += FORGOTTEN_SECONDS + 1
    taken.job.turn(0, True)
    assert taken.notes == [f"{JOB}: the rest of runs/rl never came from its shipper"]
    for _ in range(3):
        taken.restart()
        taken.job.sweep()
    assert list((tmp_path / "spool").rglob("*")) == []


def test_a_snapshot_from_before_the_end_of_a_replay_is_replayed_again(tmp_path: Path) -> None:
    taken = Taken(tmp_path)
    taken.take(*shipped(Once(), recorded(tmp_path / "runs/rl")))
    before = taken.job.snapshot()
    first = taken.replayed()
    taken.job.snapshot()
    taken.job.sweep()
    taken.job = taken._made()
    taken.job.restore(before)
    assert marks(taken.replayed()) == marks(first)


def test_a_snapshot_whose_files_are_gone_is_not_gone_on_with(tmp_path: Path) -> None:
    taken = Taken(tmp_path)
    taken.take(*shipped(Once(), recorded(tmp_path / "runs/rl"))[:-1])
    before = taken.job.snapshot()
    Shelf(tmp_path / "spool").remove()
    taken.job = taken._made()
    with pytest.raises(ShelfError):
        taken.job.restore(before)


def test_a_disk_that_is_full_as_a_replay_begins_delays_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    taken = Taken(tmp_path)
    taken.take(*shipped(Once(), recorded(tmp_path / "runs/rl")))

    def full(*_: object) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    with monkeypatch.context() as patched:
        patched.setattr(Shelf, "finish", full)
        with pytest.raises(OSError, match="No space"):
            taken.replayed()
    assert taken.replayed()[-2].tick.final


def test_a_disk_that_is_full_amid_what_waited_costs_no_beat(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    expected: list[object] = []
    for is_full in (False, True):
        sender, taken = Sender(), Taken(tmp_path / str(is_full))
        poll = sender.poll(GPU, failed_poll(1))
        ticks = [sender.tick(second, polls={GPU: (0, sender.places[GPU][0])}) for second in (40, 60)]
        part = sender.part("trace_jobs/t__1/config.json", 0, b"{}", 2)
        taken.take(sender.begun(), sender.lines(NAME, bars(0, 40)), *ticks, part)
        with monkeypatch.context() as patched:
            if is_full:
                patched.setattr(Shelf, "begin", _full)
                with pytest.raises(OSError, match="No space"):
                    taken.take(poll)
        taken.take(poll, sender.tick(80))
        expected.append(marks(taken.beats))
    assert expected[0] == expected[1]


def _full(*_: object) -> None:
    raise OSError(errno.ENOSPC, "No space left on device")


def test_a_file_that_can_never_be_kept_is_a_failure_of_that_file(tmp_path: Path) -> None:
    sender, taken = Sender(), Taken(tmp_path)
    taken.take(sender.begun(), sender.lines(NAME, bars(0, 40)), sender.part("trace_jobs/x", 0, b"1", 1))
    taken.take(sender.part("trace_jobs/x/t__1/config.json", 0, b"{}", 2), sender.tick(60))
    failed = [each for each in taken.observations if type(each.signal) is SourceFailed]
    assert [each.signal.why for each in failed] == ["what came of it can't be kept: Not a directory"]


def test_polls_that_are_gone_are_waited_for_and_then_a_gap(tmp_path: Path) -> None:
    sender, taken = Sender(), Taken(tmp_path)
    sender.poll(GPU, failed_poll(1))
    place = {GPU: (0, sender.places[GPU][0])}
    taken.take(sender.begun(), sender.lines(NAME, bars(0, 40)), sender.tick(60, polls=place), sender.tick(61))
    taken.job.turn(0, False)
    taken.now += 100
    assert taken.job.turn(0, True) == []
    taken.now += PATIENCE_SECONDS + 1
    taken.beats += taken.job.turn(0, True)
    taken.take(sender.tick(75))
    assert taken.beats
    failed = [each.signal.why for each in taken.observations if type(each.signal) is SourceFailed]
    assert failed == [f"{place[GPU][1]} bytes from byte 0 on never came"]


def test_polls_that_are_gone_before_others_are_a_gap(tmp_path: Path) -> None:
    sender, taken = Sender(), Taken(tmp_path)
    sender.poll(GPU, failed_poll(1))
    taken.take(sender.begun(), sender.lines(NAME, bars(0, 40)), sender.poll(GPU, failed_poll(2)))
    taken.take(sender.tick(60, polls={GPU: (0, sender.places[GPU][0])}))
    assert [each.kind for each in told(taken.observations, SourceFailed)] == [SourceKind.POLL]


def test_lines_with_the_headers_of_the_contract_alone_are_judged(tmp_path: Path) -> None:
    taken = Taken(tmp_path)
    taken.take(routed(0, bars(0, 20)), routed(0, bars(0, 20), b"node-8"))
    taken.beats += taken.job.turn(START_US + 40 * SECOND_US, True)
    assert {each.evidence.source for each in taken.observations} >= {NAME, f"node-8:{NAME}"}


def test_what_others_send_beside_a_shipper_on_the_same_host_does_not_silence_it(tmp_path: Path) -> None:
    taken, sender = Taken(tmp_path), Sender(host="node-7")
    messages = sent(sender, 60)
    taken.take(*messages[:40], routed(0, bars(0, 20)), *messages[40:])
    taken.beats += taken.job.turn(START_US + 70 * SECOND_US, True)
    assert taken.beats[-1].tick.at_us > START_US + 40 * SECOND_US
    assert {each.evidence.source for each in taken.observations} >= {NAME, f"node-7:{NAME}"}


def test_polls_whose_sender_says_no_place_are_each_read(tmp_path: Path) -> None:
    taken = Taken(tmp_path)
    polls = [Message(POLLS, 0, at, JOB.encode(), failed_poll(at), ()) for at in range(5)]
    taken.take(routed(0, bars(0, 20)), *polls[:2])
    taken.beats += taken.job.turn(START_US + 10 * SECOND_US, True)
    taken.restart()
    taken.take(*polls[2:])
    taken.beats += taken.job.turn(START_US + 40 * SECOND_US, True)
    assert len(told(taken.observations, PollFailed)) == 5


def test_a_log_that_another_program_sends_anew_after_a_rotation_is_read(tmp_path: Path) -> None:
    taken = Taken(tmp_path)
    taken.take(routed(0, bars(0, 20)), routed(0, bars(0, 20)))
    taken.beats += taken.job.turn(START_US + 25 * SECOND_US, True)
    taken.take(routed(0, bars(30, 3)))
    taken.beats += taken.job.turn(START_US + 60 * SECOND_US, True)
    late = [each for each in taken.observations if each.at_us >= START_US + 30 * SECOND_US]
    offsets = sorted({each.evidence.offset for each in late if each.evidence.source == NAME})
    assert offsets[0] == 0
    assert len(offsets) == 3


def test_lines_of_a_shipper_that_is_far_ahead_keep_their_time(tmp_path: Path) -> None:
    """Its own clock says that they are of now; another one's shipper comes behind."""
    one, two, taken = Sender(), Sender(host="node-2", session="s2"), Taken(tmp_path)
    taken.take(one.begun(), two.begun(), one.lines(NAME, bars(0, 10)), one.tick(10), two.tick(10))
    taken.take(one.lines(NAME, bars(10, 290)), one.tick(300))
    for second in (20, 40, 300, 320):
        taken.take(two.tick(second))
    taken.take(one.tick(320), two.tick(321), one.tick(321))
    alone = Taken(tmp_path / "alone")
    alone.take(*sent(Sender(), 300), Sender().tick(320))
    times = [each.at_us for each in taken.observations if each.evidence.source == NAME]
    assert times == [each.at_us for each in alone.observations if each.evidence.source == NAME]


def test_two_shippers_under_one_name_are_told(tmp_path: Path) -> None:
    one, two, taken = Sender(), Sender(session="s2"), Taken(tmp_path)
    taken.take(one.begun(), one.tick(10), two.begun(), two.tick(11), one.tick(12), one.tick(14), two.tick(15))
    assert [note for note in taken.notes if "two shippers" in note] == [
        f"{JOB}: two shippers send it under the name node-1, and only what the newer one sends is judged; "
        "name them apart with --host"
    ]


def test_a_job_that_was_stopped_and_shipped_as_recorded_is_over(tmp_path: Path) -> None:
    sender, taken = Sender(), Taken(tmp_path)
    taken.take(*sent(sender, 30), sender.word(Stopped(START_US + 40 * SECOND_US)))
    taken.take(*shipped(Once(session="s2"), recorded(tmp_path / "runs/rl")))
    assert taken.replayed()[-2].tick.final
    taken.now += SILENT_SECONDS + 1
    assert taken.job.silence(None) == []
    taken.take(sender.lines(NAME, bars(30, 10)), sender.tick(60))
    taken.now += SILENT_SECONDS + 1
    assert told([e for beat in taken.job.silence(None) for e in beat.observations], Unheard)


@pytest.mark.parametrize("ahead", [3600, -3600])
def test_a_host_whose_clock_is_an_hour_off_holds_no_other_up(tmp_path: Path, ahead: int) -> None:
    one, two, taken = Sender(), Sender(host="node-2", session="s2"), Taken(tmp_path)
    taken.take(one.begun(), two.begun())
    for second in range(0, 200, 5):
        taken.take(one.lines(NAME, bar(second)), two.lines("pod_logs/pod-2.log", bar(second + ahead)))
        taken.take(one.tick(second + 1), two.tick(second + 1 + ahead))
    sources = {each.evidence.source for each in taken.observations if each.pattern != "source_seen"}
    assert sources >= {NAME, "pod_logs/pod-2.log"}
