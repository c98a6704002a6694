"""Which home of a job's logs a path belongs to, and what its name says of who wrote it (CONTRACT §1)."""

import re
from datetime import UTC, datetime
from functools import lru_cache

import msgspec

from dataflow.reads import unpacked_name
from extractors.record import SourceKind

RAY_HOMES = frozenset({"ray_session_logs", "ray_vllm_logs", "ray_logs"})
ARTIFACTS = frozenset({"term_artifacts", "debug_artifacts"})
"""What a supervisor keeps of a process' end, beside its Ray logs."""
FLIGHTS = "flight_recorder"
HOMES = RAY_HOMES | ARTIFACTS | {"logs", "pod_logs", "slurm_logs", "polls", FLIGHTS}
"""Folders at the top of a capture that hold logs or polls."""
_HOME_OF_FOLDER = {
    "logs": SourceKind.AGGREGATED,
    "pod_logs": SourceKind.POD,
    "slurm_logs": SourceKind.SLURM,
    "polls": SourceKind.POLL,
    "term_artifacts": SourceKind.ARTIFACT,
    "debug_artifacts": SourceKind.ARTIFACT,
    FLIGHTS: SourceKind.FLIGHT,
}
TRIALS_FOLDER = "trace_jobs"
JOB_FILE = "job.toml"
MANIFEST = "manifest.json"

_KNOWN_OTHERS = frozenset({JOB_FILE, MANIFEST, "MANIFEST.md"})
_AGGREGATED = re.compile(r"finelog\.log(\.\d+)?")
_PEEK_AGGREGATED = re.compile(r"iris_finelog\.log(\.\d+)?")
_PEEK_POD = re.compile(r"pod_rank.*\.(log|out|err|txt)(\.\d+)?")
_SLURM = re.compile(r"(slurm-.+|.+_\d+)\.(out|err)")
_TRIAL_ARCHIVE = re.compile(r"(.*_)?trace_jobs\.(tar|tar\.gz|tgz|tar\.zst)")
_LOG_SUFFIX = re.compile(r"\.(log|out|err|txt)(\.\d+)?$")
_NOT_A_LOG = re.compile(
    r"\.(jsonl?|md|toml|ya?ml|csv|html?|xml|png|svg|pdf|pkl|pt|npz?|bin|so|db|py[co]?|sh|tar|tgz|zip|7z|bz2|xz|lock|tmp|swp)$"
)
_FLIGHT = re.compile(r"(?:_dump|(?:[\w.-]*_)?rank)_?\d{1,6}(?P<json>\.json)?")
_RECEIPT = re.compile(r".*\.(json|jsonl)")
_WRITTEN = re.compile(r".*_(\d{10})\.txt")
_WORKER = re.compile(r"worker-(?P<worker>[0-9a-f]+)-(?P<job>[0-9a-f]+)-(?P<pid>\d{1,10})\.(out|err)(\.\d+)?")
_DAEMON = re.compile(
    r"(python-|raylet|gcs_server|monitor|dashboard|log_monitor|runtime_env|agent[-_.]|io_worker|event_|ray_client|debug_)"
)
_DAEMON_PID = re.compile(r"python-[a-z-]+-(?P<worker>[0-9a-f]+)_(?P<pid>\d{1,10})\.log")
_SESSION = re.compile(r"session_(\d{4}-\d\d-\d\d_\d\d-\d\d-\d\d)_\d+.*")
_NODE = re.compile(r"rank(?P<rank>\d{1,6})-(?P<host>.+)")
_POD_RANK = re.compile(r"pod_rank(?P<rank>\d{1,6})\b")
_RAY_OWN_FOLDERS = frozenset({"logs", "events", "old", "sockets", "export_events", "session_latest"})


class Writer(msgspec.Struct, frozen=True):
    """Who wrote a file, as far as its path says. Empty, 0 and None mean not said.

    host is the node's name (of a folder `rank3-node7`, `node7`) or the pod's (of its folder or file), node_rank the 3
    of it; session_start_us the start of the Ray session by the node's clock, read as UTC; written_us when a file was
    written whose lines have no time.
    """

    host: str = ""
    node_rank: int | None = None
    pid: int = 0
    worker: str = ""
    session_start_us: int | None = None
    written_us: int | None = None


NOBODY = Writer()


class Unread(msgspec.Struct, frozen=True):
    """A file that is no log. why is empty where it is known and needs no mention."""

    why: str = ""


def home_of(relative: str) -> SourceKind | Unread:
    """The home of a file at this path of a capture, or why it is not read."""
    folder, _, rest = relative.partition("/")
    name = unpacked_name(relative.rsplit("/", 1)[-1])
    if name.startswith("."):
        return Unread()
    if not rest:
        return _at_the_top(name)
    if folder in RAY_HOMES:
        return _in_ray(folder, name)
    if folder == "logs":
        return _in_peek(name)
    if folder == FLIGHTS:
        return _as_flight(name) or Unread("not a flight recorder's dump by its name")
    if folder in ARTIFACTS:
        return _as_flight(name) or _in_artifacts(name)
    if folder == "polls":
        return SourceKind.POLL if name.endswith(".jsonl") else Unread("not a .jsonl file of polls")
    if folder in ("pod_logs", "slurm_logs"):
        kind = SourceKind.POD if folder == "pod_logs" else SourceKind.SLURM
        return Unread("not a log by its name") if _NOT_A_LOG.search(name) else kind
    return Unread("not in a folder of logs")


def _at_the_top(name: str) -> SourceKind | Unread:
    if _AGGREGATED.fullmatch(name):
        return SourceKind.AGGREGATED
    if _SLURM.fullmatch(name):
        return SourceKind.SLURM
    if (flight := _as_flight(name)) is not None:
        return flight
    known = name in _KNOWN_OTHERS or name.endswith(".stderr")
    return Unread("" if known else "not a log that is known here")


def _as_flight(name: str) -> SourceKind | Unread | None:
    """A dump of PyTorch's flight recorder; torch itself writes it pickled, and without an ending."""
    found = _FLIGHT.fullmatch(name)
    if found is None:
        return None
    return SourceKind.FLIGHT if found["json"] else Unread("a pickled flight recorder's dump: its JSON form is read")


def _in_artifacts(name: str) -> SourceKind | Unread:
    """What was kept of an end: a log, or receipts of processes. A manifest tells of files alone."""
    if "manifest" in name:
        return Unread()
    known = _LOG_SUFFIX.search(name) or _RECEIPT.fullmatch(name)
    return SourceKind.ARTIFACT if known else Unread("not a log by its name")


def _in_peek(name: str) -> SourceKind | Unread:
    if _PEEK_AGGREGATED.fullmatch(name):
        return SourceKind.AGGREGATED
    if _PEEK_POD.fullmatch(name):
        return SourceKind.POD
    if _SLURM.fullmatch(name):
        return SourceKind.SLURM
    return Unread("" if name.endswith(".stderr") else "not a log that is known here")


def _in_ray(folder: str, name: str) -> SourceKind | Unread:
    if _WORKER.fullmatch(name):
        return SourceKind.ACTOR
    if not _LOG_SUFFIX.search(name):
        return Unread("not a log by its name")
    if _DAEMON.match(name) or folder != "ray_vllm_logs":
        return SourceKind.DAEMON
    return SourceKind.ACTOR


def is_trial_archive(name: str) -> bool:
    """Whether a file at the top of a capture is an archive of trials."""
    return _TRIAL_ARCHIVE.fullmatch(name) is not None


def home_of_failure(relative: str) -> SourceKind:
    """The home that a file or folder would have been of, had it been readable; a daemon's, where no folder tells."""
    folder = relative.split("/", 1)[0]
    if folder == TRIALS_FOLDER or is_trial_archive(folder):
        return SourceKind.TRIAL
    home = home_of(relative)
    if isinstance(home, SourceKind):
        return home
    return SourceKind.ACTOR if folder in RAY_HOMES else _HOME_OF_FOLDER.get(folder, SourceKind.DAEMON)


def writer_of(relative: str) -> Writer:
    """Who wrote the file at this path of a capture."""
    folders = relative.split("/")
    name = unpacked_name(folders.pop())
    if folders and folders[0] in RAY_HOMES:
        return _ray_writer(folders[1:], name)
    if home_of(relative) is SourceKind.POD:
        ranked = _POD_RANK.match(name)
        return Writer(host=_LOG_SUFFIX.sub("", name), node_rank=int(ranked["rank"]) if ranked else None)
    if (written := _WRITTEN.fullmatch(name)) and home_of(relative) is SourceKind.ARTIFACT:
        return Writer(written_us=int(written[1]) * 1_000_000)
    return Writer()


def _ray_writer(folders: list[str], name: str) -> Writer:
    host, rank, session_us = _ray_folder(tuple(folders))
    process = _WORKER.fullmatch(name) or _DAEMON_PID.fullmatch(name)
    pid, worker = (int(process["pid"]), process["worker"]) if process else (0, "")
    return Writer(host, rank, pid, worker, session_us)


@lru_cache(maxsize=4_096)
def _ray_folder(folders: tuple[str, ...]) -> tuple[str, int | None, int | None]:
    """What the folders of a node's files tell: its name, its rank, and the start of the session. Thousands of files lie
    in each."""
    own = folders[0] if folders and not _SESSION.fullmatch(folders[0]) and folders[0] not in _RAY_OWN_FOLDERS else ""
    node = _NODE.fullmatch(own)
    session = next((found[1] for folder in folders if (found := _SESSION.fullmatch(folder))), None)
    session_us = _session_us(session) if session else None
    return (node["host"], int(node["rank"]), session_us) if node else (own, None, session_us)


def _session_us(stamp: str) -> int | None:
    try:
        start = datetime.strptime(stamp, "%Y-%m-%d_%H-%M-%S").replace(tzinfo=UTC)
    except ValueError:
        return None
    return int(start.timestamp()) * 1_000_000
