"""What the gates' conditions measure, in words: by the source text of the measured expression (guards.py).

A measure says what stands there, whichever way its condition came out.
"""

from collections.abc import Callable
from operator import attrgetter

from state.case import Case
from state.weighed import measures_liveness, measures_resources, measures_rollouts
from state.weighed.measured import Measured
from state.wording import plural

MEASURES: dict[str, Callable[[Case], Measured]] = {
    **measures_liveness.MEASURES,
    **measures_resources.MEASURES,
    **measures_rollouts.MEASURES,
}
COUNTS: dict[str, str] = measures_rollouts.COUNTS
"""Figures that a noun is enough for."""


def counted(text: str, case: Case) -> Measured | None:
    """A figure with its noun, where the expression is one."""
    noun = COUNTS.get(text)
    return None if noun is None else Measured(plural(attrgetter(text.removeprefix("case."))(case), noun))


__all__ = ["MEASURES", "Measured", "counted"]
