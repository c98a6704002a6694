"""How the watching of a job fares."""

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from dataflow.live import LiveFeed


@dataclass(frozen=True, slots=True)
class Synced:
    """How a job's sync fares. good_us is when its last good one began, None where none was; fails says why it fails
    now, "" where it doesn't."""

    good_us: int | None
    fails: str


@dataclass(slots=True)
class Lag:
    """How a job's watching fares. released_us is up to when its stream was judged, newest_us the time of its newest
    line until then (both 0 before the first); late counts observations that came too late for their place; unreadable
    are files that can't be read now, with why; blind says that nothing can; synced is None where no sync pulls the
    job."""

    released_us: int = 0
    newest_us: int = 0
    late: int = 0
    unreadable: dict[str, str] = field(default_factory=dict)
    sources: int = 0
    blind: bool = False
    synced: Synced | None = None


class Watched(Protocol):
    """A job that is watched. path is where its capture lies, as who named it wrote it; feed is None while nothing of it
    is read live."""

    @property
    def job(self) -> str:
        """Its name."""
        ...

    @property
    def path(self) -> str:
        """Its capture."""
        ...

    @property
    def stands(self) -> str:
        """How it stands while nothing of it is read live, in words."""
        ...

    @property
    def feed(self) -> "LiveFeed | None":
        """Its live stream."""
        ...
