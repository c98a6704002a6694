"""Two shippers of one job, with polls, trials, a rotation, and a recorded capture of it amid that: whatever comes
twice, in whichever order the topics are read, and wherever it is gone back to a snapshot, all is said once and alike.
"""

import random
from pathlib import Path
from typing import Any

import pytest

from dataflow.kafka_follower import Message
from dataflow.turns import How, Rotated
from dataflow.wire_words import TrialSeen
from tests.dataflow.live_feeds import START_US, bar
from tests.dataflow.shipped_streams import Sender, Taken
from tests.dataflow.test_shipped_apart import Once
from tests.dataflow.test_shipped_job import GPU, NAME, failed_poll, recorded, shipped

SECONDS = 240
OTHER = "pod_logs/pod-2.log"


def topics(folder: Path) -> tuple[list[Message], list[Message]]:
    """What stands in the topics of lines and of polls."""
    one, two = Sender(), Sender(host="node-2", session="s2")
    lines, polls, counted, generation = [one.begun(), two.begun(), one.listed(NAME)], [], {}, 0
    once = shipped(Once(session="s3"), recorded(folder))
    for second in range(0, SECONDS, 2):
        lines += [one.lines(NAME, bar(second), generation), two.lines(OTHER, bar(second))]
        if second == 100:
            offset, line = one.places.pop(NAME)
            generation = 1
            lines.append(one.told(Rotated(NAME, How.ROTATED, generation, offset, line, 0)))
        if second % 10 == 0:
            polls.append(one.poll(GPU, failed_poll(second)))
            counted = {GPU: (0, one.places[GPU][0])}
        if second in (30, 90):
            trial, content = f"trace_jobs/task__{second}", b'{"trial_name": "task__%d"}' % second
            lines.append(one.part(f"{trial}/config.json", 0, content, len(content), START_US * 1000))
            lines.append(one.word(TrialSeen(f"task__{second}", trial, False)))
        lines += [one.tick(second + 0.5, polls=counted, anchor_us=START_US), two.tick(second + 0.5)]
        lines += [once.pop(0)] if once and second > 40 else []
    return [*lines, *once], polls


def said(taken: Taken) -> tuple[list[Any], list[Any]]:
    """What was said of the job live, and as recorded."""
    live = [(each.tick, each.observations) for each in taken.beats]
    return live, [(each.tick, each.observations) for each in taken.replayed()]


def disturbed(taken: Taken, lines: list[Message], polls: list[Message], chance: random.Random) -> None:
    """Takes both topics, with restarts, repeats, and kills that lead back to the last snapshot."""
    line = poll = 0
    kept: tuple[bytes, int, int, int] | None = None
    while line < len(lines) or poll < len(polls):
        if poll < len(polls) and (line >= len(lines) or chance.random() < 0.15):
            taken.take(polls[poll])
            poll += 1
        else:
            taken.take(lines[line])
            line += 1
        happens = chance.random()
        if happens < 0.05:
            taken.restart()
        elif happens < 0.10:
            line = max(0, line - chance.randrange(6))
        elif happens < 0.15:
            kept = taken.job.snapshot(), len(taken.beats), line, poll
        elif happens < 0.19 and kept is not None:
            snapshot, beats, line, poll = kept
            taken.job.close()
            taken.job = taken._made()
            taken.job.restore(snapshot)
            del taken.beats[beats:]


@pytest.mark.parametrize("seed", range(8))
def test_whatever_disturbs_it_the_same_is_said(tmp_path: Path, seed: int) -> None:
    lines, polls = topics(tmp_path / "runs/rl")
    plain, odd = Taken(tmp_path / "a"), Taken(tmp_path / "b")
    plain.take(*polls, *lines)
    disturbed(odd, lines, polls, random.Random(seed))
    assert said(odd) == said(plain)
    assert plain.beats[-2].tick.final
