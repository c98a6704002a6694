"""The verdict: a decision in words, with its confidence, next steps and what would flip it (GATES, The verdict)."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from enum import StrEnum

from extractors.clocks import write_iso
from extractors.record import Evidence
from state.case import Case
from state.causes import CAUSES
from state.decision import DECIDING, Decided, Decision, NamedCause, decided
from state.flip import FlipSignal, deadline_us, flip_of
from state.gate import Ruling, Status
from state.policy import Stage
from state.skipped import skipped
from state.trackers.restarts import RestartPattern
from state.unheard import unheard
from state.wording import plural


class Confidence(StrEnum):
    """How much the decision rests on."""

    HIGH = "high"
    MEDIUM = "medium"
    LOW = "low"


@dataclass(frozen=True, slots=True)
class SaidBefore:
    """What records before this one leave to be told: how the flip signal of the last verdict fired, empty where it has
    not; and what each gate last said before the job was over, by letter."""

    fired: str = ""
    gates: Mapping[str, str] = field(default_factory=dict)


NOTHING_BEFORE = SaidBefore()


@dataclass(frozen=True, slots=True)
class Verdict:
    """The ruling on a job, with everything that a supervisor needs to act on it. deciding names the gate that did."""

    decision: Decision
    confidence: Confidence
    terminal: bool
    stage: Stage
    deciding: str
    rulings: dict[str, Ruling]
    cause: NamedCause | None
    reasoning: str
    next_steps: tuple[str, ...]
    flip: FlipSignal | None


def judge(case: Case) -> Verdict:
    """Weighs the four gates and rules."""
    return worded(case, decided(case))


def worded(case: Case, come: Decided, before: SaidBefore = NOTHING_BEFORE) -> Verdict:
    """The ruling with everything that a supervisor needs to act on it."""
    decision, deciding, rulings, cause, over = come.decision, come.deciding, come.rulings, come.cause, come.over
    return Verdict(
        decision,
        _confidence(case, decision, deciding, rulings),
        over is not None,
        Stage.OVER if over is not None else case.phases.stage,
        deciding,
        {letter: _with_skipped(case, letter, ruling) for letter, ruling in rulings.items()},
        cause,
        _reasoning(case, come, before),
        _next_steps(case, decision, deciding, rulings, cause, over),
        None if over is not None else flip_of(case, decision, deciding, rulings),
    )


def _with_skipped(case: Case, letter: str, ruling: Ruling) -> Ruling:
    """The ruling with what was malformed or skipped of its evidence, which changes no decision."""
    gaps = skipped(case, letter)
    return replace(ruling, missing=ruling.missing + gaps) if gaps else ruling


def home_of(source: str) -> str:
    """The independent home that a source belongs to: each probe, the aggregated log, the actors', the trials."""
    return source if source.startswith("polls/") else source.split("!", 1)[0].split("/", 1)[0]


def _homes(evidence: tuple[Evidence, ...]) -> int:
    return len({home_of(item.source) for item in evidence})


def _confidence(case: Case, decision: Decision, deciding: str, rulings: dict[str, Ruling]) -> Confidence:
    if deciding == "restarts":
        return Confidence.HIGH if _homes(case.restarts.evidence) > 1 else Confidence.MEDIUM
    ruling = rulings[deciding]
    if decision is Decision.ERROR:
        return Confidence.HIGH if any(gap.command for gap in ruling.missing) else Confidence.MEDIUM
    if decision is Decision.NO_KILL:
        if any(rulings[letter].allowance for letter in DECIDING) or _young_recovery(case):
            return Confidence.LOW
        if any(rulings[letter].status is Status.PASS and _homes(rulings[letter].evidence) < 2 for letter in "AB"):
            return Confidence.MEDIUM
    return Confidence.HIGH if _homes(ruling.evidence) > 1 and not ruling.missing else Confidence.MEDIUM


def _young_recovery(case: Case) -> bool:
    """Whether the job got past the point where an attempt died less than one cadence ago."""
    ledger = case.restarts
    if ledger.pattern is not RestartPattern.TRANSIENT_RECOVERED or ledger.recovered_us is None:
        return False
    return case.seconds_since(ledger.recovered_us) < case.phases.allowance_seconds


def _reasoning(case: Case, come: Decided, before: SaidBefore) -> str:
    """Two to four sentences: what decided, whether the last flip signal fired, the first cause, what the other gates
    say, or last said of a job that is over, and the dynamics."""
    decision, deciding, rulings, cause = come.decision, come.deciding, come.rulings, come.cause
    sentences = []
    if deciding == "restarts":
        ledger = case.restarts
        burned = f"{ledger.burned} of {'?' if ledger.max is None else ledger.max} restarts are burned"
        sentences.append(f"The two newest ended attempts died of the same failure: the job is doomed; {burned}")
    else:
        sentences.append(rulings[deciding].reason)
    if before.fired:
        sentences.append(before.fired)
    if cause is not None and (known := CAUSES.get(cause.code)):
        sentences.append(_cause_words(cause, known.title, sentences[0]))
    others = [
        f"gate {letter} {rulings[letter].condition}: {rulings[letter].reason}"
        for letter in "ABC"
        if letter != deciding
        and rulings[letter].status is not Status.NOT_APPLICABLE
        and rulings[letter].reason != sentences[0]
    ]
    if others:
        sentences.append("; ".join(others))
    if come.over is not None and before.gates:
        last = ", ".join(f"{letter} {said}" for letter, said in sorted(before.gates.items()))
        sentences.append(f"Before the end the other gates last said: {last}")
    if decision is Decision.NO_KILL and deciding == "D":
        sentences.append("Gate D is advisory: watch the dynamics closely")
    elif rulings["D"].status is Status.PASS and rulings["D"].condition != "INSUFFICIENT":
        sentences.append(rulings["D"].reason)
    return " ".join(_sentence(text) for text in sentences[:4])


def _cause_words(cause: NamedCause, title: str, said: str) -> str:
    """The first cause, where it stands and what it explains, as far as the sentence before does not say it."""
    errors = plural(cause.cascade, "later error")
    cascade = f"; it explains {errors}" if cause.cascade and errors not in said else ""
    where = f"{cause.evidence[0].source}:{cause.evidence[0].line}" if cause.evidence else ""
    if title in said and where:
        return f"The first cause stands in {where}{cascade}"
    return f"The first cause is {title}{f' ({where})' if where else ''}{cascade}"


def _sentence(text: str) -> str:
    text = text.strip().rstrip(".")
    return text[:1].upper() + text[1:] + "."


def _next_steps(
    case: Case,
    decision: Decision,
    deciding: str,
    rulings: dict[str, Ruling],
    cause: NamedCause | None,
    over: Evidence | None,
) -> tuple[str, ...]:
    steps: list[str] = []
    if over is not None:
        steps.append("Nothing to kill: the job is over")
    if decision is Decision.KILL:
        steps += [rulings[letter].fix for letter in "ABCD" if rulings[letter].status is Status.FAIL]
        if cause is not None and (known := CAUSES.get(cause.code)):
            steps += [known.fix, known.relaunch]
        if deciding == "restarts":
            steps.append("Hold: a relaunch dies the same way until that has landed")
        if case.facts.facts.untested:
            steps.append(f"Mind that this run is untested: {case.facts.facts.untested}")
    elif unheard(case) is not None:
        steps += _listening(rulings[deciding])
    elif decision is Decision.ERROR:
        steps += [_repair(letter, rulings[letter]) for letter in DECIDING if rulings[letter].status is Status.ERROR]
    elif over is None:
        steps.append(_waiting(case))
    return _said_once(steps)


def _said_once(steps: list[str]) -> tuple[str, ...]:
    """The steps as sentences, but those that an earlier one already holds, as a ruling's fix often does its cause's."""
    said: list[str] = []
    for step in steps:
        words = step.strip().rstrip(".")
        if words and not any(words.lower() in earlier.lower() for earlier in said):
            said.append(_sentence(words))
    return tuple(said)


def _repair(letter: str, ruling: Ruling) -> str:
    wanted: dict[str, list[str]] = {}
    for gap in ruling.missing:
        command = f", ran: {' '.join(gap.command)}" if gap.command else ""
        wanted.setdefault(gap.what, []).append(f"{gap.why}{command}")
    pieces = [f"{what} ({'; '.join(dict.fromkeys(whys))})" for what, whys in wanted.items()]
    return f"Get what gate {letter} is missing and look again: {'; '.join(pieces)}"


def _listening(ruling: Ruling) -> tuple[str, ...]:
    """What helps a job that is not heard; the job itself is the last thing to touch."""
    ran = "".join(f", ran: {' '.join(gap.command)}" for gap in ruling.missing[:1] if gap.command)
    return (
        f"Get the job's lines and polls to arrive again: {ruling.missing[0].why}{ran}",
        "Look at its shipper (does `wedgewatch ship` run on the node?) and at the brokers (do they answer?)",
        "Leave the job alone meanwhile: that it is not heard says nothing of how it is",
    )


def _waiting(case: Case) -> str:
    phase = case.phases.innermost
    awaited = f"phase '{phase.name}' to finish" if phase else "the next trainer phase"
    return f"Keep it and wait for {awaited}, due before {write_iso(deadline_us(case))}"
