"""A Harbor job as a whole: its own result.json, and what its run prints of itself (bars, live rows, retries).

Counts that nobody opened prove nothing of rewards (gate C), and what a terminal redraws proves no freshness. Formats of
Harbor 0.1.45 (`n_trials`, `n_errors`) to 0.26 (`n_completed_trials`, `n_errored_trials`).
"""

from typing import Any

import msgspec

from extractors.clocks import parse_iso
from extractors.pattern import Nature, pattern
from extractors.polls import TrialsListed
from extractors.signal import Benign


class _Stats(msgspec.Struct):
    n_completed_trials: int | None = None
    n_trials: int | None = None
    n_running_trials: int | None = None


class _Job(msgspec.Struct):
    n_total_trials: int
    stats: _Stats
    updated_at: str | None = None
    finished_at: str | None = None


_DECODER = msgspec.json.Decoder(_Job)


def read_job_result(raw: bytes) -> TrialsListed | None:
    """How many trials of the job started and ended, by its own count; None where the file is no whole job's."""
    try:
        job = _DECODER.decode(raw)
    except (msgspec.DecodeError, UnicodeDecodeError):
        return None
    stats = job.stats
    ended = stats.n_completed_trials if stats.n_completed_trials is not None else stats.n_trials
    if ended is None:
        return None
    newest = job.finished_at or job.updated_at
    return TrialsListed(ended + (stats.n_running_trials or 0), ended, parse_iso(newest) if newest else None)


@pattern(
    "harbor",
    Nature.BENIGN,
    hints=(
        ": starting environment...",
        ": running agent...",
        ": running verifier...",
        ": retrying (attempt ",
        ": canceling trial; this may take",
        "Running trials...",
        " Mean: ",
    ),
    regex=r"\s*[⠀-⣿]?\s*(?:[\w.-]+__\w{7}: (?:starting environment\.\.\.|running agent\.\.\.|running verifier\.\.\."
    r"|retrying \(attempt \d+\)\.\.\.|canceling trial; this may take)"
    r"|(?: *\d+/\d+ )?Running trials\.\.\."
    r"| *\d+/\d+ [A-Z][\w ]{0,40}: (?:-?\d+\.\d{3}|nan|-)\s+[━╸╺ ]*[\d:-]+)",
    samples={
        "⠹   1129/1573 Mean: 0.429 ━━━━━╺━━━ 5:12:33 2:08:11": Benign("harness-bar"),
        "⠧      0/1573 Mean: 0.000 ━━━━━━━━━ 0:00:33 -:--:--": Benign("harness-bar"),
        "⠋ 0/64 Running trials... ━━━━━━━ 0:00:03 -:--:--": Benign("harness-bar"),
        "fix-git-merge__aB3dE9x: starting environment...": Benign("harness-bar"),
        "⠙ fix-git-merge__aB3dE9x: running agent... 0:03:10": Benign("harness-bar"),
        "fix-git-merge__aB3dE9x: running verifier...": Benign("harness-bar"),
        "fix-git-merge__aB3dE9x: retrying (attempt 1)...": Benign("harness-bar"),
        "fix-git-merge__aB3dE9x: canceling trial; this may take up to a minute...": Benign("harness-bar"),
    },
    rejects=("the agent says: running agent...", "loss 12/40 Mean: high", "worker 3: starting environment..."),
)
def harness_bar(found: Any) -> Benign:
    """A harness job redraws its bar and its trials' rows (datagen and evaluation; RL runs are quiet). A frozen row
    proves nothing, and `canceling` is one trial's."""
    return Benign("harness-bar")


@pattern(
    "harbor",
    Nature.BENIGN,
    hints=(" failed with exception ",),
    regex=r"Trial [\w.-]+ failed with exception \w+\. Retrying in [\d.]+ seconds",
    samples={
        "Trial fix-git-merge__aB3dE9x failed with exception DaytonaError. Retrying in 4.00 seconds...": (
            Benign("trial-retried")
        ),
    },
    rejects=("The upload failed with exception OSError. Retrying in 4.00 seconds...",),
)
def trial_retried(found: Any) -> Benign:
    """A trial failed in a way that its queue tries again (Harbor, at DEBUG). Its folder is made anew."""
    return Benign("trial-retried")


@pattern(
    "harbor",
    Nature.BENIGN,
    hints=("Unknown Harbor exception type ",),
    regex=r"Unknown Harbor exception type \w+; applying explicit default_error_treatment=\w+",
    samples={
        "Unknown Harbor exception type VerifierTimeoutError; applying explicit default_error_treatment=zero": (
            Benign("exception-without-treatment")
        ),
    },
    rejects=("Unknown Harbor exception type in the table",),
)
def exception_without_treatment(found: Any) -> Benign:
    """The generator's table has no treatment for an exception and takes its default. Whose trouble it is, is told by
    the trials."""
    return Benign("exception-without-treatment")


PATTERNS = (harness_bar, trial_retried, exception_without_treatment)
