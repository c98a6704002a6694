"""What one ended attempt says of the agent: turns, output, coherence; and a sample of them. A part of the rollouts'."""

import msgspec

from extractors.coherence import Coherence
from extractors.harbor_trials import TrialEnded
from state.exceptions import is_infrastructure


class Sample(msgspec.Struct, frozen=True):
    """The newest ended attempts. turned, measured and read say of how many the turns, the output and the text are
    known; turns is the mean. Attempts that infrastructure ended are not in turned and measured."""

    attempts: int = 0
    turned: int = 0
    turns: float | None = None
    measured: int = 0
    empty: int = 0
    read: int = 0
    incoherent: int = 0


class Outcome(msgspec.Struct, frozen=True):
    """What is remembered of one ended attempt. turns and empty are None where unknown or where they say nothing."""

    turns: int | None
    empty: bool | None
    coherence: Coherence


def outcome_of(ended: TrialEnded) -> Outcome:
    """Attempts that infrastructure ended say nothing of the agent's turns and output."""
    if ended.exception and ended.reward is None and is_infrastructure(ended.exception):
        return Outcome(None, None, ended.coherence)
    return Outcome(ended.turns, _is_empty(ended), ended.coherence)


def _is_empty(ended: TrialEnded) -> bool | None:
    """Whether the agent wrote nothing: by its tokens, else by its text; None where neither was kept."""
    if ended.output_tokens is not None:
        return ended.output_tokens == 0
    return None if ended.coherence is Coherence.UNKNOWN else ended.coherence is Coherence.EMPTY


def sample_of(outcomes: list[Outcome], newest: int) -> Sample:
    """The sums over the newest ended attempts: of each matter, the newest so many of which it is known."""
    turns = [outcome.turns for outcome in outcomes if outcome.turns is not None][-newest:]
    measured = [outcome.empty for outcome in outcomes if outcome.empty is not None][-newest:]
    written = (Coherence.COHERENT, Coherence.INCOHERENT)
    read = [outcome.coherence for outcome in outcomes if outcome.coherence in written][-newest:]
    return Sample(
        attempts=min(len(outcomes), newest),
        turned=len(turns),
        turns=sum(turns) / len(turns) if turns else None,
        measured=len(measured),
        empty=sum(measured),
        read=len(read),
        incoherent=read.count(Coherence.INCOHERENT),
    )
