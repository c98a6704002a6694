"""A job whose lines come from shippers: what a feed over its files says, whatever happens on the way."""

import random
from collections import deque
from pathlib import Path

import pytest

from dataflow.feed import open_feed
from dataflow.kafka import BrokerError
from dataflow.kafka_follower import Message
from dataflow.shipped_job import FORGET_SECONDS
from dataflow.shipped_live import SILENT_SECONDS
from dataflow.shipped_recordings import PATIENCE_SECONDS
from dataflow.wire_words import FolderSeen, Stopped, TrialSeen
from extractors.harbor_trials import TrialStarted
from extractors.record import (
    Beat,
    HeardAgain,
    Observation,
    SourceFailed,
    SourceKind,
    SourceResumed,
    SourceSeen,
    Tick,
    Unheard,
)
from state.trackers.facts import JobDeclared
from tests.dataflow.live_feeds import SECOND_US, START_US, Watched, bar, bars
from tests.dataflow.shipped_streams import CAPTURED, Sender, Taken

NAME = "finelog.log"
GPU = "polls/gpu.jsonl"


def failed_poll(second: int) -> bytes:
    """A poll that its tool refused."""
    head = f'{{"at":"2026-05-04T08:{second // 60:02}:{second % 60:02}.000Z","probe":"gpu","target":"pod-1",'
    return f'{head}"command":["nvidia-smi"],"exit":1,"elapsed_ms":1,"stdout":"","stderr":"no"}}'.encode()


def told(observations: list[Observation], *kinds: type) -> list[object]:
    return [each.signal for each in observations if isinstance(each.signal, kinds)]


def undeclared(beats: list[Beat]) -> list[tuple[Tick, list[Observation]]]:
    """Beats without the launcher's facts, which name the capture."""
    return [(beat.tick, [e for e in beat.observations if type(e.signal) is not JobDeclared]) for beat in beats]


def sent(sender: Sender, seconds: int) -> list[object]:
    """A bar a second, each with its tick."""
    messages = [sender.begun(), sender.listed(NAME)]
    for second in range(seconds):
        messages += [sender.lines(NAME, bar(second)), sender.tick(second + 0.5)]
    return messages


def test_what_is_shipped_gives_the_beats_of_the_feed_over_its_files(tmp_path: Path) -> None:
    folder = tmp_path / "runs"
    folder.mkdir()
    here, there = Watched(folder), Taken(tmp_path)
    sender = Sender()
    there.take(sender.begun(), sender.listed(NAME))
    for second in range(90):
        with (folder / NAME).open("ab") as file:
            file.write(bar(second))
        here.now_us = START_US + second * SECOND_US + 500_000
        here.beats += here.feed.poll(here.now_us)
        there.take(sender.lines(NAME, bar(second)), sender.tick(second + 0.5))
    assert undeclared(there.beats) == undeclared(here.beats)
    assert len(there.beats) >= 8
    assert there.beats[0].fresh
    assert there.job.feed is not None
    assert there.observations[0].signal.captured == CAPTURED


@pytest.mark.parametrize("seed", range(8))
def test_whatever_comes_twice_and_wherever_it_is_restarted_the_beats_are_the_same(tmp_path: Path, seed: int) -> None:
    chance = random.Random(seed)
    messages = sent(Sender(), 60)
    plain, odd = Taken(tmp_path / "a"), Taken(tmp_path / "b")
    plain.take(*messages)
    place = 0
    while place < len(messages):
        odd.take(messages[place])
        place += 1
        if chance.random() < 0.1:
            odd.restart()
        if chance.random() < 0.1:
            place = max(0, place - chance.randrange(9))
    assert [(each.tick, each.observations) for each in odd.beats] == [(e.tick, e.observations) for e in plain.beats]


def polled(sender: Sender, seconds: int) -> tuple[list[Message], list[Message]]:
    """A bar each five seconds and a poll each ten, with their ticks: what stands in the two topics."""
    lines, polls, counted = [sender.begun(), sender.listed(NAME), sender.listed(GPU, SourceKind.POLL)], [], {}
    for second in range(0, seconds, 5):
        lines.append(sender.lines(NAME, bar(second)))
        if second % 10 == 0:
            polls.append(sender.poll(GPU, failed_poll(second)))
            counted = {GPU: (0, sender.places[GPU][0])}
        lines.append(sender.tick(second + 0.5, polls=counted, anchor_us=START_US))
    return lines, polls


@pytest.mark.parametrize("seed", range(8))
def test_however_far_one_topic_is_ahead_of_the_other_the_beats_are_the_same(tmp_path: Path, seed: int) -> None:
    chance, orders = random.Random(seed), []
    for number, share in enumerate((0.5, 0.0, 1.0, chance.random())):
        lines, polls = (deque(each) for each in polled(Sender(), 300))
        taken = Taken(tmp_path / str(number))
        while lines or polls:
            topic = lines if lines and (not polls or chance.random() < share) else polls
            taken.take(topic.popleft())
            if chance.random() < 0.05:
                taken.restart()
        orders.append([(each.tick, each.observations) for each in taken.beats])
        assert taken.job.feed.lag.late == 0
    assert all(each == orders[0] for each in orders)
    assert len(orders[0]) > 20


def test_nothing_is_released_beyond_a_file_that_is_behind(tmp_path: Path) -> None:
    sender, taken = Sender(), Taken(tmp_path)
    other = "pod_logs/pod-1.log"
    taken.take(sender.begun(), sender.listed(NAME), sender.listed(other, SourceKind.POD))
    taken.take(sender.lines(NAME, bars(0, 50)), sender.tick(60, behind=[other]))
    assert taken.beats == []
    taken.take(sender.lines(other, bars(0, 30)), sender.tick(61, behind=[other]))
    assert 0 < taken.beats[-1].tick.at_us <= START_US + 29 * SECOND_US
    taken.take(sender.tick(62))
    assert taken.beats[-1].tick.at_us > START_US + 40 * SECOND_US


def test_a_tick_waits_for_the_polls_that_travel_on_the_other_topic(tmp_path: Path) -> None:
    sender, taken = Sender(), Taken(tmp_path)
    poll = sender.poll(GPU, failed_poll(1))
    place = {GPU: (0, sender.places[GPU][0])}
    ticks = [sender.tick(second, polls=place) for second in (60, 61)]
    taken.take(sender.begun(), sender.lines(NAME, bars(0, 40)), *ticks)
    assert taken.beats == []
    taken.restart()
    taken.take(poll, sender.tick(62, polls=place))
    assert taken.beats
    assert GPU in {each.evidence.source for each in taken.observations}


def test_silence_is_told_at_the_time_that_stands_still_and_taken_back(tmp_path: Path) -> None:
    sender, taken = Sender(), Taken(tmp_path)
    taken.take(*sent(sender, 30))
    before = taken.beats[-1].tick.at_us
    taken.now += SILENT_SECONDS + 1
    (beat,) = taken.job.silence(None)
    assert (
        "nothing came from its shipper on node-1 since 2026-05-04T08:00:29.5"
        in told(list(beat.observations), Unheard)[0].why
    )
    assert before <= beat.tick.at_us < START_US + 25 * SECOND_US
    assert taken.job.silence(None) == []
    taken.restart()
    back, *rest = taken.take(sender.lines(NAME, bars(30, 15)), sender.tick(60))
    assert told(list(back.observations), HeardAgain)
    assert back.tick.at_us > beat.tick.at_us
    assert not rest[0].fresh
    assert taken.job.feed.lag.late == 0


def test_a_shipper_that_was_stopped_is_told_as_that(tmp_path: Path) -> None:
    sender, taken = Sender(), Taken(tmp_path)
    taken.take(*sent(sender, 30), sender.word(Stopped(START_US + 40 * SECOND_US)))
    taken.now += SILENT_SECONDS + 1
    (beat,) = taken.job.silence(None)
    assert "(it was stopped at 2026-05-04T08:00:40.000Z)" in told(list(beat.observations), Unheard)[0].why


def test_a_job_of_which_nothing_was_heard_for_a_day_is_forgotten_and_begins_anew_when_it_is_back(
    tmp_path: Path,
) -> None:
    sender, taken = Sender(), Taken(tmp_path)
    taken.take(*sent(sender, 30))
    taken.now += FORGET_SECONDS + 1
    (beat,) = taken.job.silence(None)
    assert beat.forgotten
    assert taken.job.silence(None) == []
    begun = len(taken.beats)
    taken.take(sender.begun(), sender.lines(NAME, bars(30, 30)), sender.tick(70))
    assert taken.beats[begun].fresh
    assert "never came" in " ".join(taken.notes)


def test_brokers_that_are_away_are_told_with_what_they_answered(tmp_path: Path) -> None:
    taken = Taken(tmp_path)
    taken.take(*sent(Sender(), 30))
    (beat,) = taken.job.silence(BrokerError("kafka:9092", "nothing listens there (connection refused)"))
    unheard = told(list(beat.observations), Unheard)[0]
    assert unheard.command == ("wedgewatch", "watch", "--brokers", "kafka:9092")
    assert "connection refused" in unheard.output


def test_of_two_shippers_the_one_that_is_further_behind_says_how_far_all_is_known(tmp_path: Path) -> None:
    one, two, taken = Sender(), Sender(host="node-2", session="s2"), Taken(tmp_path)
    taken.take(one.begun(), two.begun(), one.lines(NAME, bars(0, 50)), one.tick(60))
    assert taken.beats == []
    taken.take(two.lines(NAME, bars(0, 20)), two.tick(25))
    assert taken.beats[-1].tick.at_us <= START_US + 20 * SECOND_US
    assert {each.evidence.source for each in taken.observations} >= {NAME, f"node-2:{NAME}"}
    taken.now += SILENT_SECONDS + 1
    taken.take(one.tick(70))
    taken.beats += taken.job.silence(None)
    taken.take(one.tick(80), one.tick(95))
    assert taken.beats[-1].tick.at_us >= START_US + 70 * SECOND_US
    failed = [each for each in taken.observations if type(each.signal) is SourceFailed]
    assert [(each.evidence.source, each.signal.whole) for each in failed] == [(f"node-2:{NAME}", False)]
    assert taken.notes[-1].endswith("; it is judged without what that one sends")
    taken.take(two.lines(NAME, bars(20, 10)), two.tick(120), one.tick(120))
    (resumed,) = told(taken.observations, SourceResumed)
    assert resumed.why == failed[0].signal.why


def test_a_shipper_that_lost_its_memory_is_the_job_anew(tmp_path: Path) -> None:
    taken = Taken(tmp_path)
    taken.take(*sent(Sender(), 30))
    begun = len(taken.beats)
    taken.take(*sent(Sender(session="s2"), 30))
    again = taken.beats[begun:]
    assert again[0].fresh
    assert [each.observations for each in again] == [each.observations for each in taken.beats[:begun]]
    assert taken.take(*sent(Sender(), 40)) == []


@pytest.mark.parametrize("host", ["", "node-9"])
def test_lines_that_no_shipper_of_ours_sent_are_judged_by_this_machines_clock(tmp_path: Path, host: str) -> None:
    sender, taken = Sender(host=host, session=""), Taken(tmp_path)
    taken.take(sender.lines(NAME, bars(0, 20)), sender.lines("odd name", bars(0, 20)))
    assert taken.beats == []
    taken.beats += taken.job.turn(START_US + 40 * SECOND_US, True)
    assert {each.evidence.source for each in taken.observations if type(each.signal) is SourceSeen} == {
        NAME,
        "odd name",
    }


def recorded(folder: Path) -> dict[str, bytes]:
    """A small recorded capture, on disk and by its names."""
    trial = "trace_jobs/task__abcdefg"
    files = {
        NAME: bars(0, 70) + bar(70).rstrip(b"\n"),
        "job.toml": b'[job]\nid = "/kim/rl"\nmodel = "Tiny-1B"\n',
        "pod_logs/pod-0.log": b"",
        f"{trial}/config.json": b'{"trial_name": "task__abcdefg"}',
    }
    for name, content in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_bytes(content)
    return files


def shipped(sender: Sender, files: dict[str, bytes]) -> list[object]:
    """The same, as a shipper sends it."""
    messages = [sender.begun(files["job.toml"].decode(), recorded=True)]
    for name, content in files.items():
        if name == NAME:
            messages += [sender.lines(name, content[:1_000]), sender.lines(name, content[1_000:])]
        elif content:
            messages.append(sender.part(name, 0, content, len(content), 1_700_000_000_000_000_000))
    messages.append(sender.word(FolderSeen("trace_jobs/empty")))
    return [*messages, sender.ended({name: len(content) for name, content in files.items()})]


@pytest.mark.parametrize("restarts", [False, True])
def test_a_recorded_capture_gives_the_very_beats_of_its_replay(tmp_path: Path, restarts: bool) -> None:
    folder = tmp_path / "runs/rl"
    files = recorded(folder)
    (folder / "trace_jobs/empty").mkdir()
    taken = Taken(tmp_path)
    for message in shipped(Sender(), files):
        assert taken.take(message, message) == []
        if restarts:
            taken.restart()
    mine = list(open_feed(str(folder)).beats())
    *beats, last = taken.replayed()
    assert last.forgotten
    assert beats[0].fresh
    assert [each.tick for each in beats] == [each.tick for each in mine]
    assert beats[-1].tick.final
    assert [e for beat in beats[1:] for e in beat.observations] == [e for beat in mine[1:] for e in beat.observations]
    assert beats[0].observations[0].signal.facts == mine[0].observations[0].signal.facts
    for _ in range(3):
        taken.restart()
        taken.job.sweep()
    assert list((tmp_path / "spool").rglob("*")) == []
    assert taken.take(*shipped(Sender(), files)) == []
    assert taken.replayed() == []


def test_a_recorded_capture_of_which_something_never_came_is_replayed_with_that_as_evidence(tmp_path: Path) -> None:
    files = recorded(tmp_path / "runs/rl")
    taken = Taken(tmp_path)
    messages = shipped(Sender(), files)
    taken.take(*messages[:1], *messages[2:])
    assert taken.replayed() == []
    taken.now += PATIENCE_SECONDS + 1
    taken.replayed()
    failed = [each for each in taken.observations if type(each.signal) is SourceFailed]
    assert ("finelog.log", "bytes 0 to 1000 never came") in [(e.evidence.source, e.signal.why) for e in failed]


def test_a_trial_that_was_sent_is_read_when_its_word_comes(tmp_path: Path) -> None:
    sender, taken = Sender(), Taken(tmp_path)
    trial = "trace_jobs/task__abcdefg"
    taken.take(sender.begun(), sender.lines(NAME, bars(0, 40)))
    taken.take(sender.part(f"{trial}/config.json", 0, b'{"trial_name": "task__abcdefg"}', 32, START_US * 1000))
    taken.take(sender.word(TrialSeen("task__abcdefg", trial, False)), sender.tick(60))
    (started,) = told(taken.observations, TrialStarted)
    assert started.trial == "task__abcdefg"
