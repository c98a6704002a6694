"""What to say, and when: records on change, at heartbeats, and once at the end.

An ERROR is said once it has stood for a minute: between two stages evidence is often missing for a beat. A first one
waits ten minutes, so that the first seconds of a stream don't say what is missing gate by gate; of a job that is over
nothing more is to come. That nothing is heard of a job is said at once, beside the rest (beside.py).
"""

from typing import Any, ClassVar

import msgspec

from extractors.host import HostMemory
from extractors.record import Beat
from extractors.trainer import BufferProgress
from extractors.vllm import EngineLoad
from state.beside import OUTAGE, VERDICT, Beside, Gists, is_beside
from state.case import Case
from state.decision import Decided, Decision, decided
from state.flip import Watch, checked, watched
from state.gate import Status
from state.policy import MINUTE, SECOND_US
from state.report import gate_record, verdict_record
from state.track import Views
from state.verdict import SaidBefore, worded

FIRST_ERROR_US = int(10 * MINUTE * SECOND_US)
LATER_ERROR_US = int(MINUTE * SECOND_US)

QUIET = frozenset({EngineLoad, BufferProgress, HostMemory})
"""Signals that prove life and seldom change an answer: beats of nothing else are judged together."""
TOGETHER_US = int(30 * SECOND_US)


class Judge(msgspec.Struct):
    """What was last said of a job. heartbeat_us is None where no heartbeat is asked for; erring says since when a gate,
    or the verdict, has been an ERROR; weighed_us when the job was last judged. watch looks for the flip signal of the
    last verdict, ended keeps what the gates said before the job was over.

    waiting are the cases of quiet beats since then. They are judged, in order, when the next case after them gives
    another answer, so that an answer that only time changes bears the time of its own beat. They are no part of a
    snapshot.

    beside keeps what was said of an outage; loud says that beats of it brought what changes answers.
    """

    VERSION: ClassVar[int] = 1

    heartbeat_us: int | None = None
    erring: dict[str, int] = {}
    said_us: int | None = None
    gates: dict[str, tuple[str, str, str]] = {}
    verdict: tuple[str, str, str] | None = None
    weighed_us: int = 0
    watch: Watch | None = None
    ended: dict[str, str] = {}
    waiting: list[Any] = []
    beside: Beside = msgspec.field(default_factory=Beside)
    loud: bool = False

    def weigh(self, beat: Beat, views: Views) -> list[dict[str, Any]]:
        """The records that this beat gives rise to, or those before it that were not judged yet."""
        case = Case(job=beat.job, now_us=beat.tick.at_us, **views)
        if is_beside(beat, case):
            self.loud = self.loud or not beat.kinds - OUTAGE <= QUIET
            return self.beside.weigh(beat, case, self._said(), self.ended)
        if self._may_wait(beat):
            self.waiting.append(case)
            return []
        come = decided(case)
        records: list[dict[str, Any]] = []
        if self.waiting and self._is_news(come):
            for earlier in self.waiting:
                records += self._say(earlier, decided(earlier), final=False)
        self.waiting.clear()
        self.weighed_us, self.loud = case.now_us, False
        now = self._say(case, come, beat.tick.final, beat.blind)
        if self.beside.told:
            records += self.beside.follow(records + now, case, come, self._said(), self.ended)
        return records + now

    def snapshot(self) -> bytes:
        """What was said, as msgpack bytes."""
        return msgspec.msgpack.encode(msgspec.structs.replace(self, waiting=[]))

    def _said(self) -> Gists:
        return self.gates if self.verdict is None else {**self.gates, VERDICT: self.verdict}

    def _may_wait(self, beat: Beat) -> bool:
        now_us = beat.tick.at_us
        if beat.tick.final or self.loud or self._ripening() or now_us - self.weighed_us >= TOGETHER_US:
            return False
        return not self._heartbeat_due(now_us) and beat.kinds <= QUIET

    def _ripening(self) -> bool:
        """Whether there is an ERROR that was not said yet."""
        unsaid = (VERDICT if self.verdict is None else "", *self.erring)
        said = {**self.gates, VERDICT: self.verdict or ("",)}
        return any(what and said.get(what, ("",))[0] != Status.ERROR for what in unsaid)

    def _is_news(self, come: Decided) -> bool:
        return come.gist != self.verdict or any(come.gist_of(letter) != said for letter, said in self.gates.items())

    def _say(self, case: Case, come: Decided, final: bool, blind: bool = False) -> list[dict[str, Any]]:
        if self.said_us is None:
            self.said_us = case.now_us
        self.watch = checked(self.watch, case, come)
        changed = [letter for letter in come.rulings if self._gate_changed(letter, come, case, final)]
        says = self._verdict_changed(come, case) or final or (not blind and self._heartbeat_due(case.now_us))
        if not changed and not says:
            return []
        verdict = worded(case, come, SaidBefore(self.watch.fired if self.watch else "", self.ended))
        records = [gate_record(case, letter, verdict.rulings[letter], str(verdict.stage)) for letter in changed]
        if says:
            records.append(verdict_record(case, verdict, final))
            self.said_us = case.now_us
            self.verdict = come.gist
            self.watch = watched(verdict.flip, case)
        return records

    def _gate_changed(self, letter: str, come: Decided, case: Case, final: bool) -> bool:
        now, before = come.gist_of(letter), self.gates.get(letter)
        begins = before is None and come.over is None
        ripe = self._ripe(letter, come.rulings[letter].status is Status.ERROR, begins, case.now_us)
        if before == now or not (ripe or final):
            return False
        if before is not None and before[0] != Status.NOT_APPLICABLE and letter != "A":
            self._keep(letter, now, before)
        self.gates[letter] = now
        return True

    def _keep(self, letter: str, now: tuple[str, str, str], before: tuple[str, str, str]) -> None:
        """A gate that does not apply any more: what it said last."""
        status, condition, _ = before
        if now[0] == Status.NOT_APPLICABLE:
            self.ended[letter] = condition if status == Status.PASS else f"{status} {condition}"

    def _verdict_changed(self, come: Decided, case: Case) -> bool:
        begins = self.verdict is None and come.over is None
        ripe = self._ripe(VERDICT, come.decision is Decision.ERROR, begins, case.now_us)
        return ripe and self.verdict != come.gist

    def _ripe(self, what: str, error: bool, first: bool, now_us: int) -> bool:
        """Whether an answer may be said: any but an ERROR at once, an ERROR when it has stood long enough."""
        if not error:
            self.erring.pop(what, None)
            return True
        since_us = self.erring.setdefault(what, now_us)
        return now_us - since_us >= (FIRST_ERROR_US if first else LATER_ERROR_US)

    def _heartbeat_due(self, now_us: int) -> bool:
        return self.heartbeat_us is not None and now_us - (self.said_us or 0) >= self.heartbeat_us
