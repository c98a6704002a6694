"""What an outage makes a judge say beside what it says of the job's stream: nothing is heard of it; it is heard again.

Event time stands still meanwhile, and what the judge remembers stays what it was: once the job is heard again, it says
what it would have said without the outage, to the byte.
"""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import msgspec

from extractors.record import Beat, HeardAgain, Unheard
from state.case import Case
from state.decision import Decided, decided
from state.flip import Watch, checked, watched
from state.report import gate_record, verdict_record
from state.unheard import unheard
from state.verdict import SaidBefore, worded

VERDICT = "verdict"
OUTAGE: frozenset[type] = frozenset({Unheard, HeardAgain})
Record = dict[str, Any]
Gist = tuple[str, str, str]
Gists = dict[str, Gist]


class Beside(msgspec.Struct):
    """What was told last of a gate, or of the verdict, where it is not what the judge said last. watch looks for the
    flip signal of the last verdict that was told so."""

    told: Gists = {}
    watch: Watch | None = None

    def weigh(self, beat: Beat, case: Case, said: Gists, ended: Mapping[str, str]) -> list[Record]:
        """The records of a beat of an outage, which are ripe at once: silence was waited for in real time. Where the
        job is heard again, all that was told is told anew. said is what the judge said last, ended what the gates said
        before the job was over."""
        again = next((each.signal for each in beat.observations if type(each.signal) is HeardAgain), None)
        come = decided(case)
        gists = _gists(case, come)
        asked = gists if again is None else self.told
        changed = [what for what in asked if gists[what] != self.told.get(what, said.get(what))]
        records = self._say(case, come if again is None else _noted(come, again), changed, ended)
        self.told |= {what: gists[what] for what in changed}
        self._forget(said)
        return records

    def follow(
        self, records: list[Record], case: Case, come: Decided, said: Gists, ended: Mapping[str, str]
    ) -> list[Record]:
        """What a beat behind an outage leaves to be told, now that the judge has spoken (its records): an answer that
        it said before the outage, and that stands again."""
        for record in records:
            self.told.pop(record.get("gate", VERDICT), None)
        gists = _gists(case, come)
        again = [what for what, told in self.told.items() if told != gists[what] == said.get(what)]
        told = self._say(case, come, again, ended)
        self.told |= {what: gists[what] for what in again}
        self._forget(said)
        return told

    def _say(self, case: Case, come: Decided, what: list[str], ended: Mapping[str, str]) -> list[Record]:
        self.watch = checked(self.watch, case, come)
        if not what:
            return []
        verdict = worded(case, come, SaidBefore(self.watch.fired if self.watch else "", ended))
        stage = str(verdict.stage)
        records = [gate_record(case, each, verdict.rulings[each], stage) for each in come.rulings if each in what]
        if VERDICT in what:
            records.append(verdict_record(case, verdict, final=False))
            self.watch = watched(verdict.flip, case)
        return records

    def _forget(self, said: Gists) -> None:
        self.told = {what: gist for what, gist in self.told.items() if gist != said.get(what)}
        if VERDICT not in self.told:
            self.watch = None


def is_beside(beat: Beat, case: Case) -> bool:
    """Whether a beat tells of an outage, or comes within one. The last of all is weighed as any."""
    return (case.coverage.unheard is not None or HeardAgain in beat.kinds) and not beat.tick.final


def _gists(case: Case, come: Decided) -> Gists:
    """What makes one answer another, by letter and for the verdict: in an outage also why nothing is heard."""
    gists = {**{letter: come.gist_of(letter) for letter in come.rulings}, VERDICT: come.gist}
    silence = unheard(case)
    if silence is None:
        return gists
    return {
        what: (status, condition, f"unheard: {silence.signal.why}") for what, (status, condition, _) in gists.items()
    }


def _noted(come: Decided, again: HeardAgain) -> Decided:
    note = f"the job is heard again: {again.why}"
    return replace(come, rulings={letter: replace(r, notes=(*r.notes, note)) for letter, r in come.rulings.items()})
