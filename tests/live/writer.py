"""Plays a recorded capture into a folder as if it was live, in event time. A process of its own:

    python -m tests.live.writer RECORDED TARGET --clock FILE [--rate 120] [--torn] [--rotate rename] [--late 60]

All lines that are due up to a time T are whole before T is published in FILE, which is replaced at once, so that a
watch by that clock finds nothing late, however slow the machine is. The same arguments write the same bytes.
"""

import argparse
import os
import random
import shutil
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields, replace
from pathlib import Path

from extractors.clocks import SECOND_US, write_iso
from tests.live.recorded import Played, Recorded, recorded

STEP, LONGEST_STEP = 0.05, 2.0
"""Seconds between two published times; of event time at most so many, that a file which must stand still before it is
read (a trial's result) is not late by that."""
TORN_SHARE = 0.3
"""The share of growing files of whose next line a step writes a part."""
ROTATED_WITHIN = (0.3, 0.7)
"""Between which shares of its lines a log is rotated."""
HOLDS = 4
"""Stretches of a log that a late writer holds back."""
ROTATIONS = ("rename", "copytruncate")


@dataclass(frozen=True, slots=True)
class Manner:
    """How the writer plays: event seconds a second (0: as fast as it can), what it does to the files meanwhile, and how
    far it lets the clock run on after the end. log is the file that is rotated or held back; the largest one unless
    named. copied says that files are replaced by longer copies, as rsync does."""

    rate: float = 120.0
    seed: int = 0
    torn: bool = False
    rotate: str = ""
    late: float = 0.0
    log: str = ""
    slack: float = 30.0
    step: float = 0.0
    copied: bool = False


@dataclass(slots=True)
class _Open:
    """A file that is written. at is up to where; torn_end is the end of the line that is there in part, torn_in where
    its beginning lies."""

    file: Played
    at: int = -1
    torn_end: int = -1
    torn_in: str = ""


class Writer:
    """Writes the files of a schedule into a folder, up to one time after the other."""

    def __init__(self, target: Path, schedule: Recorded, manner: Manner) -> None:
        self.target = target
        self.schedule = schedule
        self.manner = manner
        self._chance = random.Random(manner.seed)
        self._log = manner.log or largest_log(schedule)
        self.files = [_Open(held_back(file, manner) if self._is_late(file) else file) for file in schedule.files]
        self._turn_us = self._turned_at() if manner.rotate else -1

    def _is_late(self, file: Played) -> bool:
        return self.manner.late > 0 and file.relative == self._log

    def _turned_at(self) -> int:
        """When the log is turned: amid its lines."""
        dues = next(each.file.dues for each in self.files if each.file.relative == self._log)
        return dues[int(self._chance.uniform(*ROTATED_WITHIN) * len(dues))]

    @property
    def end_us(self) -> int:
        """When the last line is there."""
        return max([self.schedule.end_us, *(each.file.dues[-1] for each in self.files)])

    def write(self, until_us: int, next_us: int) -> None:
        """Makes all lines up to a time whole, several files at once; then tears some that come until the next time."""
        growing = [each for each in self.files if each.file.due(until_us) > each.at or each.torn_end >= 0]
        turns = [(each, part) for each in growing for part in self._parts(each, until_us)]
        self._chance.shuffle(turns)
        parts: dict[int, list[int]] = {}
        for each, part in sorted(turns, key=lambda turn: turn[1]):
            parts.setdefault(id(each), []).append(part)
        for each, _ in turns:
            self._append(each, parts[id(each)].pop(0), until_us)
        turns_now = 0 <= self._turn_us <= until_us
        if turns_now and self.manner.rotate == "copytruncate":
            self._rotate(until_us)
        if self.manner.torn:
            self._tear(until_us, next_us)
        if turns_now and self.manner.rotate == "rename":
            self._rotate(until_us)

    def _parts(self, each: _Open, until_us: int) -> list[int]:
        """Up to where each of the writes goes that bring a file to a time; they end anywhere, but for the last."""
        end = max(each.file.due(until_us), each.torn_end)
        start = max(each.at, 0)
        # A watch that looks between two parts of a line, and then after the truncation, tells the line as missed.
        truncates = 0 <= self._turn_us <= until_us and self.manner.rotate == "copytruncate"
        if not self.manner.torn or not each.file.grows or end - start < 2 or truncates:
            return [end]
        return sorted({*(self._chance.randrange(start + 1, end) for _ in range(self._chance.randrange(3))), end})

    def _append(self, each: _Open, end: int, at_us: int) -> None:
        """Writes on. The rest of a torn line goes where its beginning went: its process holds that file open."""
        start = max(each.at, 0)
        middle = min(end, each.torn_end) if each.torn_end >= 0 else start
        if each.torn_end >= 0:
            self._add(each.torn_in, each.file.data[start:middle], at_us)
        if end > middle or each.torn_end < 0:
            written_us = at_us if each.file.grows else each.file.dues[-1]
            self._add(each.file.relative, each.file.data[middle:end], written_us)
        each.at = end
        if end >= each.torn_end:
            each.torn_end = -1

    def _add(self, relative: str, data: bytes, at_us: int) -> None:
        path = self.target / relative
        path.parent.mkdir(parents=True, exist_ok=True)
        if self.manner.copied:
            longer = path.with_name(f".{path.name}.a1B2c3")
            longer.write_bytes((path.read_bytes() if path.exists() else b"") + data)
            longer.replace(path)
        else:
            with path.open("ab") as out:
                out.write(data)
        os.utime(path, ns=(at_us * 1_000, at_us * 1_000))

    def _tear(self, until_us: int, next_us: int) -> None:
        """Writes a part of the next line of some files; of one that is not there yet, too."""
        for each in self.files:
            if not each.file.grows or self._chance.random() >= TORN_SHARE:
                continue
            start, soon = max(each.at, 0), each.file.due(next_us)
            if soon <= start:
                continue
            line = next(end for end in each.file.ends if end > start)
            if line - start > 1:
                each.torn_end, each.torn_in = line, each.file.relative
                self._append(each, self._chance.randrange(start + 1, line), until_us)

    def _rotate(self, at_us: int) -> None:
        """Turns the log: what is written of it becomes `<log>.1`, and the log begins anew."""
        self._turn_us = -1
        path = self.target / self._log
        turned = path.with_name(f"{path.name}.1")
        if self.manner.rotate == "rename":
            path.rename(turned)
            path.touch()
            for each in self.files:
                if each.file.relative == self._log and each.torn_end >= 0:
                    each.torn_in = f"{self._log}.1"
        else:
            shutil.copyfile(path, turned)
            os.truncate(path, 0)
        for each_path in (turned, path):
            os.utime(each_path, ns=(at_us * 1_000, at_us * 1_000))


def largest_log(schedule: Recorded) -> str:
    """The log that grows most; empty where none grows."""
    logs = [file for file in schedule.files if file.grows and not file.relative.startswith("polls/")]
    return max(logs, key=lambda file: len(file.data)).relative if logs else ""


def held_back(file: Played, manner: Manner) -> Played:
    """A log of which some stretches come late: what is due in one is written at its end, all at once."""
    chance = random.Random(f"{manner.seed} held back")
    held_us = int(manner.late * SECOND_US)
    holds: list[int] = []
    for from_us in (chance.choice(file.dues) for _ in range(HOLDS)):
        if all(abs(from_us - other) >= held_us for other in holds):
            holds.append(from_us)
    ends = [next((at_us + held_us for at_us in holds if at_us <= due < at_us + held_us), due) for due in file.dues]
    return replace(file, dues=ends)


def publish(clock: Path, at_us: int) -> None:
    """Replaces what the clock says. The clock is never there in part."""
    fresh = clock.with_name(f".{clock.name}.new")
    fresh.write_text(write_iso(at_us) + "\n")
    fresh.replace(clock)


def play(
    writers: Sequence[Writer],
    clock: Path,
    monotonic: Callable[[], float] = time.monotonic,
    sleep: Callable[[float], None] = time.sleep,
) -> None:
    """Writes all files of captures of one time, and publishes each time once its lines are there."""
    manner = writers[0].manner
    step = manner.step or (min(manner.rate * STEP, LONGEST_STEP) if manner.rate else LONGEST_STEP)
    step_us = int(step * 1000) * 1000
    at_us = began_us = min(writer.schedule.begin_us for writer in writers) // 1000 * 1000
    last_us = max(writer.end_us for writer in writers) + int(manner.slack * SECOND_US)
    begun = monotonic()
    while True:
        for writer in writers:
            writer.write(at_us, at_us + step_us)
        publish(clock, at_us)
        if at_us >= last_us:
            return
        at_us += step_us
        if manner.rate and (ahead := (at_us - began_us) / SECOND_US / manner.rate - (monotonic() - begun)) > 0:
            sleep(ahead)


def main(words: list[str] | None = None) -> None:
    """Reads the arguments and plays."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("recorded", type=Path)
    parser.add_argument("target", type=Path)
    parser.add_argument("--also", nargs=2, type=Path, action="append", default=[], metavar=("RECORDED", "TARGET"))
    parser.add_argument("--clock", type=Path, required=True)
    parser.add_argument("--rate", type=float, default=120.0, help="event seconds a second; 0: as fast as it can")
    parser.add_argument("--step", type=float, default=0.0, help="event seconds a step")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--torn", action="store_true", help="write lines in parts")
    parser.add_argument("--rotate", choices=ROTATIONS, default="", help="turn a log amid the run")
    parser.add_argument("--copied", action="store_true", help="replace files by longer copies instead of appending")
    parser.add_argument("--late", type=float, default=0.0, help="hold lines of a log back by so many event seconds")
    parser.add_argument("--log", default="", help="the log that is turned or held back; the largest without it")
    parser.add_argument("--slack", type=float, default=30.0, help="event seconds that the clock runs on after the end")
    asked = parser.parse_args(words)
    known = {field.name: getattr(asked, field.name) for field in fields(Manner)}
    writers = []
    for played, target in [(asked.recorded, asked.target), *asked.also]:
        target.mkdir(parents=True, exist_ok=True)
        if any(target.iterdir()):
            parser.error(f"{target}: holds files already")
        writers.append(Writer(target, recorded(played), Manner(**known)))
    play(writers, asked.clock)


if __name__ == "__main__":
    main()
