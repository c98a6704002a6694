"""A live trial is read twice: its start when its config stands, all of it when its result does."""

from pathlib import Path

from dataflow.live_trials import LiveTrials
from dataflow.trial_watch import TrialSeen
from extractors.harbor_trials import TrialStarted

TRIAL = "trace_jobs/task__abcdefg"


def test_result_that_is_being_written_when_its_trial_begins_is_not_told_as_empty(tmp_path: Path) -> None:
    folder = tmp_path / TRIAL
    folder.mkdir(parents=True)
    (folder / "config.json").write_text('{"trial_name": "task__abcdefg"}')
    (folder / "result.json").write_text("")
    trials = LiveTrials([])
    begun = trials.seen(TrialSeen("task__abcdefg", TRIAL, str(folder), False), 1_000_000)
    assert [type(each.signal) for each in begun] == [TrialStarted]
    ended = trials.seen(TrialSeen("task__abcdefg", TRIAL, str(folder), True), 2_000_000)
    assert [each for each in ended if each.evidence.source.endswith("result.json")]
