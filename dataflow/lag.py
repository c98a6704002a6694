"""How the watching of a job fares."""

from dataclasses import dataclass, field


@dataclass(slots=True)
class Lag:
    """How a job's watching fares. released_us is up to when its stream was judged; late counts observations that came
    too late for their place; unreadable are files that can't be read now, with why; blind says that nothing can."""

    released_us: int = 0
    late: int = 0
    unreadable: dict[str, str] = field(default_factory=dict)
    sources: int = 0
    blind: bool = False
