"""What was malformed or skipped stands in the missing evidence of its gate, whatever the gate says."""

import pytest

from extractors.metrics import MetricsUnreadable
from extractors.polls import PollFailed
from extractors.record import SourceEnded, SourceFailed, SourceKind
from state.gate import Status
from state.skipped import GAPS_SHOWN, skipped
from state.verdict import judge
from tests.builders import ACTOR_LOG, both_homes, case_after, in_time, polls, saw, started

ALIVE = [*both_homes(), started(10, "generate"), *polls("running", until=120)]


def gaps(letter, *observations):
    return skipped(case_after(*in_time(*ALIVE, *observations)), letter)


def torn_poll(probe):
    failed = SourceFailed(SourceKind.POLL, "line 7: malformed JSON at byte 3", whole=False)
    return saw(60, failed, source=f"polls/{probe}.jsonl", quote='{"at": "2026-')


@pytest.mark.parametrize(
    ("probe", "letter"),
    [("state", "A"), ("pods", "A"), ("sync", "A"), ("gpu", "B"), ("procs", "B"), ("stacks", "B"), ("trials", "C")],
)
def test_torn_poll_is_missing_evidence_of_its_gate(probe, letter):
    (gap,) = gaps(letter, torn_poll(probe))
    assert f"polls/{probe}.jsonl" in gap.what
    assert (gap.why, gap.output) == ("line 7: malformed JSON at byte 3", '{"at": "2026-')
    assert not any(gaps(other, torn_poll(probe)) for other in "ABCD" if other != letter)


def test_skipped_pieces_of_one_source_are_counted():
    (gap,) = gaps("A", torn_poll("state"), torn_poll("state"))
    assert "2 such pieces" in gap.why


def test_poll_whose_output_says_nothing_gives_its_command_and_output():
    failed = PollFailed("gpu", "pod-0", ("nvidia-smi", "-q"), 0, "garbled", "no GPU was found in the output")
    (gap,) = gaps("B", saw(60, failed, source="polls/gpu.jsonl"))
    assert (gap.command, gap.exit, gap.output) == (("nvidia-smi", "-q"), 0, "garbled")


def test_probe_that_was_refused_is_for_its_gate_to_name():
    failed = PollFailed("gpu", "pod-0", ("nvidia-smi", "-q"), 1, "denied", "exit 1")
    assert not gaps("B", saw(60, failed, source="polls/gpu.jsonl"))


def test_unreadable_trial_archive_and_metrics_record_go_to_their_gates():
    archive = saw(60, SourceFailed(SourceKind.TRIAL, "a link: not followed", whole=False), source="trace_jobs.tar!/x")
    metrics = saw(60, MetricsUnreadable(4, "cut at column 4000"))
    assert [len(gaps(letter, archive, metrics)) for letter in "ABCD"] == [0, 0, 1, 1]


def test_torn_lines_of_a_log_are_counted_for_liveness():
    ended = saw(119, SourceEnded(SourceKind.ACTOR, 900, 64_000, unparsed=3, complete=True), source=ACTOR_LOG)
    (gap,) = gaps("A", ended)
    assert gap.what == f"3 lines of {ACTOR_LOG}"


def test_passing_gate_keeps_its_status_and_tells_what_was_skipped():
    verdict = judge(case_after(*in_time(*ALIVE, torn_poll("state"))))
    assert (verdict.rulings["A"].status, verdict.rulings["A"].condition) == (Status.PASS, "ALIVE")
    assert [gap.what for gap in verdict.rulings["A"].missing] == ["what was skipped of polls/state.jsonl"]


def test_many_skipped_sources_are_listed_in_part():
    broken = [
        saw(60, SourceFailed(SourceKind.ACTOR, "a damaged tail", whole=False), source=f"ray_session_logs/{number}.err")
        for number in range(20)
    ]
    told = gaps("A", *broken)
    assert len(told) == GAPS_SHOWN + 1
    assert told[-1].what == "12 further sources"
