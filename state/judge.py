"""What to say, and when: records on change, at heartbeats, and once at the end.

An ERROR is said once it has stood for a minute: between two stages evidence is often missing for a beat. A first one
waits ten minutes, so that the first seconds of a stream don't say what is missing gate by gate.
"""

from typing import Any, ClassVar

import msgspec

from extractors.record import Beat
from state.case import Case
from state.gate import Ruling, Status
from state.policy import MINUTE, SECOND_US
from state.report import gate_record, verdict_record
from state.track import Views
from state.verdict import Decision, Verdict, judge

FIRST_ERROR_US = int(10 * MINUTE * SECOND_US)
LATER_ERROR_US = int(MINUTE * SECOND_US)
VERDICT = "verdict"


class Judge(msgspec.Struct):
    """What was last said of a job. heartbeat_us is None where no heartbeat is asked for; erring says since when a gate,
    or the verdict, has been an ERROR."""

    VERSION: ClassVar[int] = 1

    heartbeat_us: int | None = None
    erring: dict[str, int] = {}
    said_us: int | None = None
    gates: dict[str, tuple[str, str, str]] = {}
    verdict: tuple[str, str, str] | None = None

    def weigh(self, beat: Beat, views: Views) -> list[dict[str, Any]]:
        """The records that this beat gives rise to."""
        case = Case(job=beat.job, now_us=beat.tick.at_us, **views)
        if self.said_us is None:
            self.said_us = case.now_us
        verdict = judge(case)
        records = [
            gate_record(case, letter, ruling, str(verdict.stage))
            for letter, ruling in verdict.rulings.items()
            if self._gate_changed(letter, ruling, verdict, case, beat.tick.final)
        ]
        if self._verdict_changed(verdict, case) or beat.tick.final or self._heartbeat_due(case):
            records.append(verdict_record(case, verdict, beat.tick.final))
            self.said_us = case.now_us
            self.verdict = _gist(verdict)
        return records

    def _gate_changed(self, letter: str, ruling: Ruling, verdict: Verdict, case: Case, final: bool) -> bool:
        cause = verdict.cause.code if verdict.cause is not None and verdict.deciding == letter else ""
        now = (str(ruling.status), ruling.condition, cause)
        before = self.gates.get(letter)
        ripe = self._ripe(letter, ruling.status is Status.ERROR, before is None, case.now_us)
        if before == now or not (ripe or final):
            return False
        self.gates[letter] = now
        return True

    def _verdict_changed(self, verdict: Verdict, case: Case) -> bool:
        ripe = self._ripe(VERDICT, verdict.decision is Decision.ERROR, self.verdict is None, case.now_us)
        return ripe and self.verdict != _gist(verdict)

    def _ripe(self, what: str, error: bool, first: bool, now_us: int) -> bool:
        """Whether an answer may be said: any but an ERROR at once, an ERROR when it has stood long enough."""
        if not error:
            self.erring.pop(what, None)
            return True
        since_us = self.erring.setdefault(what, now_us)
        return now_us - since_us >= (FIRST_ERROR_US if first else LATER_ERROR_US)

    def _heartbeat_due(self, case: Case) -> bool:
        return self.heartbeat_us is not None and case.now_us - (self.said_us or 0) >= self.heartbeat_us


def _gist(verdict: Verdict) -> tuple[str, str, str]:
    return (str(verdict.decision), verdict.deciding, verdict.rulings.get(verdict.deciding, _NONE).condition)


_NONE = Ruling(Status.NOT_APPLICABLE, "", "")
