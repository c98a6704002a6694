"""A job of which nothing is heard: ERROR at once, in words; once it is heard again, all is as if nothing had been."""

from typing import Any

import msgspec
import pytest

from extractors.polls import JobState
from extractors.record import Beat, Observation, SourceKind, Tick, Unheard
from extractors.signal import BringUp
from state.decision import GATES, Decision
from state.gate import Ruling, Status
from state.judge import Judge
from state.policy import SECOND_US
from state.report import encode
from state.track import TRACKS, Track
from state.trackers.coverage import CoverageTracker
from state.verdict import judge
from state.weighed.report import explanation, explanation_text
from state.weighed.trace import Came, Kind, trace
from tests.builders import JOB, both_homes, case_after, polled, polls, reading, saw, started, us
from tests.captures import contract
from tests.state.outages import AGAIN, AWAY, is_part, newest, outage, short, told
from tests.state.streams import beats, running, said
from tests.state.test_restarts import SHAPE, life

TEN_MINUTES_US = 600 * SECOND_US


def living(now: float = 90) -> list[Observation]:
    return [*both_homes(), started(0, "step"), *polls("running", until=now), started(now, "generate")]


def rulings(*observations: Observation) -> dict[str, Ruling]:
    case = case_after(*observations)
    return {gate.letter: gate.judge(case) for gate in GATES}


@pytest.mark.parametrize("letter", "ABCD")
def test_every_gate_misses_the_lines_and_polls_and_says_since_when(letter: str) -> None:
    ruling = rulings(*living(), saw(95, AWAY))[letter]
    assert (ruling.status, ruling.condition) == (Status.ERROR, "INCOMPLETE")
    assert ruling.reason == (
        "Nothing is heard of the job: no broker of kafka-1:9092 answers; its newest line or poll is of 08:01:30Z"
    )
    [gap] = ruling.missing
    assert (gap.what, gap.why) == ("lines and polls of the job", "no broker of kafka-1:9092 answers")
    assert (gap.command, gap.output) == (("wedgewatch", "topics"), "timed out after 5 s")
    assert [place.line for place in ruling.evidence] == [901]


def test_a_job_that_is_heard_again_is_judged_as_before() -> None:
    ruled = rulings(*living(), saw(95, AWAY), saw(95, AGAIN))
    assert (ruled["A"].condition, ruled["D"].condition) == ("ALIVE", "INSUFFICIENT")
    assert "lines and polls" not in str(ruled)


def test_a_job_that_is_over_keeps_its_answers() -> None:
    over = [*living(), polled(92, JobState.FAILED, exit_code=1)]
    assert rulings(*over, saw(95, AWAY)) == rulings(*over, saw(95, AGAIN))
    assert rulings(*over, saw(95, AWAY))["B"].condition == "OVER"


def test_an_unheard_job_is_never_killed() -> None:
    doomed = [
        *life(0, begins=0, dies_of=SHAPE),
        *life(1, begins=600, dies_of=SHAPE),
        saw(1200, BringUp("staging"), attempt=2),
    ]
    assert judge(case_after(*doomed)).decision is Decision.KILL
    verdict = judge(case_after(*doomed, saw(1210, AWAY)))
    assert (verdict.decision, verdict.deciding, verdict.cause) == (Decision.ERROR, "A", None)
    assert verdict.reasoning.startswith("Nothing is heard of the job: ")


def test_the_verdict_says_what_to_look_at_once() -> None:
    verdict = judge(case_after(*living(), saw(95, AWAY)))
    assert verdict.decision is Decision.ERROR
    assert verdict.reasoning.count("Nothing is heard") == 1
    steps = " ".join(verdict.next_steps)
    assert "no broker of kafka-1:9092 answers, ran: wedgewatch topics" in steps
    assert "shipper" in steps
    assert "brokers" in steps
    assert verdict.flip is not None
    assert verdict.flip.says == "gate A no longer misses: lines and polls of the job"


def test_the_explanation_weighs_it_as_the_first_requirement_of_every_gate() -> None:
    for gate in GATES:
        case = case_after(*living(), saw(95, AWAY))
        step = trace(gate, case).steps[0]
        assert (step.clause.__name__, step.kind, step.came) == ("the_lines_and_polls", Kind.REQUIREMENT, Came.FIRED)
        text = explanation_text(explanation(case, trace(gate, case)), 140)
        assert "missing: lines and polls of the job — no broker of kafka-1:9092 answers" in text
        met = trace(gate, case_after(*living())).steps[0]
        assert (met.came, met.why.says) == (Came.MET, "nothing says that lines and polls of the job don't arrive")


def test_the_requirement_is_met_by_a_job_that_is_over() -> None:
    case = case_after(*living(), polled(92, JobState.FAILED), saw(95, AWAY))
    met = trace(GATES[0], case).steps[0]
    assert met.came is Came.MET
    assert met.why.says == "nothing is heard of the job, but a record shows the job over"


def test_the_tracker_comes_back_from_a_snapshot_unheard() -> None:
    tracker = CoverageTracker()
    for observation in (*living(), saw(95, AWAY)):
        CoverageTracker._every(tracker, (observation,))
        if (fold := tracker.FOLDS.get(type(observation.signal))) is not None:
            fold(tracker, observation)
    restored = CoverageTracker.restore(tracker.snapshot())
    assert restored.view() == tracker.view()
    assert restored.view().unheard is not None
    assert restored.view().unheard.signal == AWAY


def test_the_first_error_of_all_is_said_at_once() -> None:
    stream = beats(*running(60), until=60)
    records, _ = said(Judge(), outage(stream, 0, again=False)[:1])
    assert [short(each) for each in records] == [*(f"{letter} ERROR INCOMPLETE" for letter in "ABCD"), "ERROR"]


def test_it_is_said_once_and_anew_for_another_reason() -> None:
    stream = outage(beats(*running(1800), until=1800), 100, again=False)
    shipper = Unheard("its shipper is silent for 15 s")
    more = [Beat(JOB, Tick(stream[100].tick.at_us + 1), (told(each, us(0)),)) for each in (AWAY, shipper)]
    records, _ = said(Judge(), stream[:101])
    with_more, _ = said(Judge(), [*stream[:101], *more])
    added = with_more[len(records) :]
    assert [short(each) for each in added] == [*(f"{letter} ERROR INCOMPLETE" for letter in "ABCD"), "ERROR"]
    assert "its shipper is silent for 15 s" in added[-1]["reasoning"]


def test_once_it_is_heard_again_all_gates_and_the_verdict_say_so() -> None:
    stream = beats(*running(1800), until=1800)
    broken = outage(stream, 100)
    before, _ = said(Judge(), broken[:100])
    away, _ = said(Judge(), broken[:101])
    back, _ = said(Judge(), broken[:102])
    assert [short(each) for each in away[len(before) :]] == [*(f"{each} ERROR INCOMPLETE" for each in "ABCD"), "ERROR"]
    again = back[len(away) :]
    assert [each["kind"] for each in again] == ["gate"] * 4 + ["verdict"]
    assert all(each["reason"].endswith("the job is heard again: kafka-1:9092 answers") for each in again[:4])
    assert "(evidence_arrived) fired" in again[-1]["reasoning"]
    assert short(again[0]) == "A PASS ALIVE"
    assert not contract.faults(back)


@pytest.mark.parametrize("heartbeat_us", [None, TEN_MINUTES_US])
@pytest.mark.parametrize("place", [1, 2, 30, 59, 60, 61, 149, 150, 151, 300])
@pytest.mark.parametrize("gathered", [0, 1])
def test_all_else_is_what_it_would_have_been(place: int, gathered: int, heartbeat_us: int | None) -> None:
    late = [each for each in running(4000) if type(each.signal).__name__ != "StatePolled" or each.at_us >= us(1500)]
    stream = beats(*late, until=4000)
    without, _ = said(Judge(heartbeat_us), stream)
    records, _ = said(Judge(heartbeat_us), outage(stream, place, min(gathered, len(stream[place].observations))))
    assert is_part([encode(each) for each in without], [encode(each) for each in records])
    assert len(records) >= len(without) + 2


def test_a_judge_that_comes_back_from_a_snapshot_says_that_it_is_heard_again() -> None:
    broken = outage(beats(*running(1800), until=1800), 100)
    whole, _ = said(Judge(), broken)
    tracks, records, speaking = [Track(step) for step in TRACKS], [], Judge()
    for place, beat in enumerate(broken):
        if place == 101:
            speaking = msgspec.msgpack.decode(speaking.snapshot(), type=Judge)
            tracks = [Track(track.step, track.snapshots()) for track in tracks]
        views: dict[str, Any] = {}
        for track in tracks:
            views = track.fold(beat, views)
        records += speaking.weigh(beat, views)
    assert records == whole


def with_more(stream: list[Beat], *more: Observation) -> tuple[list[Beat], int]:
    """The stream with more in it, and the place of the beat that got the first of it."""
    place = next(place for place, beat in enumerate(stream) if beat.tick.at_us > more[0].at_us)
    ends = [0, *(beat.tick.at_us for beat in stream)]
    return [
        Beat(JOB, beat.tick, in_order(beat.observations, *(each for each in more if from_us <= each.at_us < end_us)))
        for beat, from_us, end_us in zip(stream, ends, ends[1:], strict=False)
    ], place


def in_order(observations: tuple[Observation, ...], *more: Observation) -> tuple[Observation, ...]:
    return tuple(sorted((*observations, *more), key=lambda each: each.at_us))


def test_an_answer_that_held_only_when_it_was_heard_again_is_taken_back() -> None:
    """What came before the outage ended the job; the rest of the beat revived it, so that the judge has nothing to
    say of either."""
    succeeded, revived = polled(1003, JobState.SUCCEEDED), polled(1008, JobState.RUNNING)
    stream, place = with_more(beats(*running(1800), until=1800), succeeded, revived)
    without, _ = said(Judge(), stream)
    records, _ = said(Judge(), outage(stream, place, stream[place].observations.index(succeeded) + 1))
    assert is_part([encode(each) for each in without], [encode(each) for each in records])
    assert "N/A OVER" in {short(each)[2:] for each in records}
    assert newest(records) == newest(without)


def test_a_beat_whose_news_came_with_the_outage_is_judged_at_its_time() -> None:
    """The rest of the beat holds nothing that changes an answer, and the next beat takes the news back."""
    succeeded, revived = polled(1000.5, JobState.SUCCEEDED), polled(1015, JobState.RUNNING)
    stream, place = with_more(beats(*running(1800), until=1800), succeeded, revived)
    without, _ = said(Judge(), stream)
    assert any(each.get("terminal") for each in without)
    records, _ = said(Judge(), outage(stream, place, stream[place].observations.index(succeeded) + 1))
    assert is_part([encode(each) for each in without], [encode(each) for each in records])


def test_how_far_a_source_was_read_is_told_as_without_the_outage() -> None:
    lines = [started(at, "generate", source="pod_logs/a.log") for at in (1002, 1003, 1004)]
    begun = reading(SourceKind.POD, "pod_logs/a.log", at_seconds=1001)
    stream, place = with_more(beats(*running(1800), until=1800), begun, *lines)
    without, _ = said(Judge(TEN_MINUTES_US), stream)
    assert "pod_logs/a.log" in without[-1]["coverage"]
    records, _ = said(Judge(TEN_MINUTES_US), outage(stream, place, stream[place].observations.index(lines[0]) + 1))
    assert is_part([encode(each) for each in without], [encode(each) for each in records])
