"""How the watching of a job fares."""

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from dataflow.live import LiveFeed


@dataclass(slots=True)
class Lag:
    """How a job's watching fares. released_us is up to when its stream was judged; late counts observations that came
    too late for their place; unreadable are files that can't be read now, with why; blind says that nothing can."""

    released_us: int = 0
    late: int = 0
    unreadable: dict[str, str] = field(default_factory=dict)
    sources: int = 0
    blind: bool = False


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
