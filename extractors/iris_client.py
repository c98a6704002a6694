"""The Iris client's own lines in a log that it fetched or followed: how the job was launched, fetches that are retried.

The state polls are read in `iris`; a line of a log is never the authoritative state (gate A rule 1).
"""

from typing import Any

from extractors.facts import ConfigFact
from extractors.pattern import Nature, pattern
from extractors.signal import Benign, Noted


@pattern(
    "iris",
    Nature.FACT,
    hints=(" --max-retries ", " --max-retries="),
    regex=r"(?:\+ +)?(?:\S{0,200}python3? )?\S{0,200}\biris\S{0,80} [^\n]{0,2000}? --max-retries[ =](\d{1,4})\b",
    samples={
        "+ iris job run --max-retries 2 --gpu 8 -- python train.py": ConfigFact("max_retries", "2"),
        "iris --config cluster.yaml job run --max-retries=1 -- bash run.sh": ConfigFact("max_retries", "1"),
        "python scripts/iris/launch_rl.py --job rl-14b --max-retries 3": ConfigFact("max_retries", "3"),
    },
    rejects=("pip download --max-retries 3 wheel", "try iris job run --max-retries 2"),
)
def retries_allowed(found: Any) -> ConfigFact:
    """The launcher's command line, echoed by a shell: how many failures the controller will let pass."""
    return ConfigFact("max_retries", found[1])


@pattern(
    "iris",
    Nature.FACT,
    hints=(", draining logs (total_lines=",),
    regex=r"[\w:.,\[\] -]{0,120}?\bjob=\S{1,400} finished with state=\w+, draining logs \(total_lines=\d+\)",
    samples={
        "I20260304 13:00:00 4242 iris.client job=/bob/rl-14b finished with state=succeeded, draining logs "
        "(total_lines=81234)": Noted("job-finished-in-log"),
        "job=/bob/rl-14b finished with state=failed, draining logs (total_lines=81234)": Noted("job-finished-in-log"),
    },
    rejects=("The 'job=/bob/rl-14b finished with state=failed, draining logs (total_lines=3)' line",),
)
def followed_job_finished(found: Any) -> Noted:
    """The following client saw the job end. It is said in passing: the state poll says how it ended."""
    return Noted("job-finished-in-log")


@pattern(
    "iris",
    Nature.BENIGN,
    hints=("Failed to fetch logs for ",),
    regex=r"[\w:.,\[\] -]{0,120}?\bFailed to fetch logs for /?\S{1,400}, will retry: ",
    samples={
        "W20260304 13:00:00 4242 iris.client Failed to fetch logs for /bob/rl-14b, will retry: deadline exceeded": (
            Benign("log-fetch-retry")
        ),
        "Failed to fetch logs for /bob/rl-14b, will retry: connection reset": Benign("log-fetch-retry"),
    },
    rejects=("Failed to fetch logs for /bob/rl-14b: gone",),
)
def log_fetch_retried(found: Any) -> Benign:
    """The client's connection to the controller failed, not the job; lines may be missing around it."""
    return Benign("log-fetch-retry")


PATTERNS = (retries_allowed, followed_job_finished, log_fetch_retried)
