"""`wedgewatch watch` as a process: how late its records are, what it costs, and whether it stands a storm.

    python -m benchmarks.live WHAT [--seconds N]

latency   50 jobs with 1,000 lines a second together by the real clock: from a telling line to its record
idle      200 jobs with 40 quiet files each: processor time and memory
day       24 hours by a clock that runs fast: memory of the first quarter against the last
storm     15,000 lines a second into one job for a minute: what is lost, and how long until it has caught up
all       one after the other

Prints a table for each. The machine should have nothing else to do.
"""

import argparse
import random
import statistics
import tempfile
import time
from collections import defaultdict
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path

import orjson

from benchmarks import growing
from benchmarks.costs import lag, resident, used
from tests.live.harness import Watch, at_of, playing, replayed

JOBS, LINES_A_SECOND = 50, 1_000
FLIP_EVERY = (11.0, 16.0)
"""Seconds between two telling lines of a job."""
LATENESS = 5.0
QUIET_JOBS, WORKERS_OF_A_JOB = 200, 38
SETTLING = 30.0
STORM_LINES, STORM_CHUNKS = 15_000, 20
DAY_RATE = 900.0
Row = tuple[str, str]


def latency(root: Path, seconds: float) -> list[Row]:
    """Each job's state poll flips between running and failed now and then, which ends gate D or brings it back.

    A poll is judged at the end of its beat of 10 s; a fault ends a beat, so that its record comes at once.
    """
    jobs = [f"/bench/rl-{number:02d}" for number in range(JOBS)]
    homes = [growing.begun(root / f"job-{number:02d}", job) for number, job in enumerate(jobs)]
    watch = Watch(homes, root / "watch").start()
    chance, seen = random.Random(5), _Seen(watch.out)
    told: dict[str, list[tuple[int, str]]] = defaultdict(list)
    try:
        watch.wait(lambda: watch.released_us() > 0, 120)
        watch.wait(lambda: not seen.look() and len(seen.said) == JOBS, 120)
        seen.delays.clear()
        begun = time.monotonic()
        due = {job: begun + chance.uniform(1, FLIP_EVERY[1]) for job in jobs}
        written = 0
        while (into := time.monotonic() - begun) < seconds:
            while written < into * LINES_A_SECOND:
                job, home = jobs[written % JOBS], homes[written % JOBS]
                _append(home / "finelog.log", growing.quiet_line(job, growing.now(), 50 + written // JOBS))
                written += 1
            for job, home in zip(jobs, homes, strict=True):
                if time.monotonic() >= due[job]:
                    state = "running" if len(told[job]) % 2 else "failed"
                    at = growing.now()
                    _append(home / "polls" / "state.jsonl", growing.state_poll(job, at, state))
                    told[job].append((int(at.timestamp() * 1000) * 1000, state))
                    due[job] += chance.uniform(*FLIP_EVERY)
            seen.look()
            time.sleep(0.005)
        until = time.monotonic() + 4 * LATENESS
        while time.monotonic() < until:
            seen.look()
            time.sleep(0.005)
        processor = used(watch)
        memory = resident(watch)
    finally:
        watch.kill()
    waits, lost = [], 0
    for job, polls in told.items():
        for (at_us, state), until_us in zip(polls, [*(poll[0] for poll in polls[1:]), 1 << 62], strict=True):
            wanted = "N/A" if state == "failed" else "PASS"
            found = (at for at, of_us, status in seen.said[job] if at_us <= of_us < until_us and status == wanted)
            first = next(found, None)
            lost += first is None
            waits += [] if first is None else [first - at_us / 1e6]
    return [
        ("polls that change an answer, without a record", f"{sum(map(len, told.values()))}, {lost}"),
        ("from a poll to its record beyond the lateness", _told(waits)),
        ("from a beat's end to its records beyond it", _told(seen.delays)),
        ("processor, start-up included", f"{processor:.1f} s in {seconds + 4 * LATENESS:.0f} s"),
        ("memory", f"{memory:.0f} MB"),
    ]


def _told(waits: list[float]) -> str:
    beyond = [each - LATENESS for each in waits]
    return f"p50 {statistics.median(beyond):.2f} s, p99 {statistics.quantiles(beyond, n=100)[98]:.2f} s"


class _Seen:
    """The records of gate D of each job: when they were there (epoch seconds), their time in microseconds, and their
    status; and how long after its time each record was there."""

    def __init__(self, out: Path) -> None:
        self.said: dict[str, list[tuple[float, int, str]]] = defaultdict(list)
        self.delays: list[float] = []
        self._out = out
        self._at = 0

    def look(self) -> None:
        """Reads on."""
        if not self._out.exists():
            return
        with self._out.open("rb") as out:
            out.seek(self._at)
            whole = out.read()
        whole = whole[: whole.rfind(b"\n") + 1]
        self._at += len(whole)
        now = time.time()
        for line in whole.splitlines():
            self.delays.append(now - at_of(line) / 1e6)
            if b'"kind":"gate"' in line and (record := orjson.loads(line))["gate"] == "D":
                self.said[record["job"]].append((now, at_of(line), record["status"]))


def idle(root: Path, seconds: float) -> list[Row]:
    """Nothing is written after the start."""
    homes = [
        growing.begun(root / f"job-{number:03d}", f"/bench/idle-{number:03d}", WORKERS_OF_A_JOB)
        for number in range(QUIET_JOBS)
    ]
    watch = Watch(homes, root / "watch").start()
    try:
        begun = time.monotonic()
        watch.wait(lambda: watch.released_us() > 0, 240)
        started = time.monotonic() - begun
        time.sleep(SETTLING)
        before, since = used(watch), time.monotonic()
        time.sleep(seconds)
        share = (used(watch) - before) / (time.monotonic() - since)
        memory, most = resident(watch), resident(watch, "VmHWM")
    finally:
        watch.kill()
    return [
        ("start to the first judgement of all", f"{started:.1f} s"),
        ("processor, of one core", f"{share * 100:.1f} %"),
        ("memory, and at most", f"{memory:.0f} MB, {most:.0f} MB"),
    ]


def day(root: Path, seconds: float) -> list[Row]:
    """A day of one job that is played fast. seconds is how long it may take."""
    recorded = growing.day(root / "recorded", "/bench/day")
    target, clock = root / "capture", root / "clock"
    target.mkdir()
    rate = growing.DAY.total_seconds() / seconds
    watch = Watch([target], root / "watch", clock).start()
    begin_us = int(growing.START.timestamp() * 1e6)
    day_us = int(growing.DAY.total_seconds() * 1e6)
    memory: dict[int, list[float]] = defaultdict(list)
    begun = time.monotonic()
    try:
        with playing(recorded, target, clock, "--rate", f"{rate:.0f}"):
            while (at_us := watch.released_us()) < begin_us + day_us:
                assert time.monotonic() - begun < 6 * seconds + 60, watch.said[-2000:]
                if at_us > begin_us:
                    memory[20 * (at_us - begin_us) // day_us].append(resident(watch))
                time.sleep(0.2)
        processor, took = used(watch), time.monotonic() - begun
    finally:
        watch.kill()
    first = [each for part in range(1, 5) for each in memory[part]]
    last = [each for part in range(15, 20) for each in memory[part]]
    return [
        ("24 hours took", f"{took:.0f} s, {processor:.1f} s of processor"),
        ("memory in the first quarter", f"{statistics.median(first):.1f} MB"),
        ("memory in the last quarter", f"{statistics.median(last):.1f} MB"),
        ("at most", f"{max(first + last):.1f} MB"),
    ]


def storm(root: Path, seconds: float) -> list[Row]:
    """A cascade of errors begins with one that is its cause; a replay of the finished files says what is to be kept."""
    job = "/bench/storm"
    home = growing.begun(root / "job", job, workers=1)
    watch = Watch([home], root / "watch").start()
    lags, calm, caught = [], 0.0, None
    try:
        watch.wait(lambda: watch.released_us() > 0, 60)
        begun, number = time.monotonic(), 0
        with (home / "finelog.log").open("a", encoding="utf-8") as log:
            while (into := time.monotonic() - begun) < seconds:
                wanted = int(into * STORM_LINES)
                at = growing.now()
                log.writelines(_of_a_storm(job, at, each) for each in range(number, wanted))
                log.flush()
                number = wanted
                lags.append(lag(watch))
                time.sleep(1 / STORM_CHUNKS)
        ended = time.monotonic()
        end_us = int((growing.now() + timedelta(milliseconds=1)).timestamp() * 1e6)
        while caught is None:
            lags.append(lag(watch))
            if watch.released_us() >= end_us:
                caught = time.monotonic() - ended
            assert time.monotonic() - ended < 600, watch.said[-2000:]
            time.sleep(0.1)
        calm, memory, processor = lag(watch), resident(watch, "VmHWM"), used(watch)
        late = watch.health()["jobs"][job].get("late", 0)
        _append(home / "polls" / "state.jsonl", growing.state_poll(job, growing.now(), "failed"))
        time.sleep(LATENESS + 13)
    finally:
        watch.kill()
    said = [orjson.loads(line) for line in watch.lines()]
    newest, should = _newest(said), orjson.loads(replayed(home, root).final)
    return [
        ("lines, of them late", f"{number}, {late}"),
        ("lag beyond the lateness at most", f"{max(lags) - LATENESS:.1f} s"),
        ("lag zero again after the storm", f"{max(0.0, caught - LATENESS):.1f} s (then {calm - LATENESS:.2f} s)"),
        ("first cause, by a replay", f"{_cause(newest)}, {_cause(should)}"),
        ("processor, memory at most", f"{processor:.0f} s, {memory:.0f} MB"),
    ]


def _of_a_storm(job: str, at: "growing.datetime", number: int) -> str:
    return growing.quiet_line(job, at, number) if number % 3 else growing.fault_line(job, at, 1 + number // 3)


def _newest(records: list[dict[str, object]]) -> dict[str, object]:
    return next((each for each in reversed(records) if each["kind"] == "verdict"), {})


def _cause(verdict: dict[str, object]) -> str:
    cause = verdict.get("cause")
    if not isinstance(cause, dict):
        return "none"
    return f"{cause['code']} (line {cause['evidence'][0]['line']}, explains {cause['cascade']})"


def _append(path: Path, line: str) -> None:
    with path.open("a", encoding="utf-8") as log:
        log.write(line)


BENCHMARKS: dict[str, tuple[Callable[[Path, float], list[Row]], float]] = {
    "latency": (latency, 90.0),
    "idle": (idle, 60.0),
    "day": (day, growing.DAY.total_seconds() / DAY_RATE),
    "storm": (storm, 60.0),
}


def main() -> None:
    """Runs what was asked for and prints its table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=[*BENCHMARKS, "all"])
    parser.add_argument("--seconds", type=float, help="how long, instead of the usual")
    asked = parser.parse_args()
    for name in BENCHMARKS if asked.what == "all" else [asked.what]:
        measure, usual = BENCHMARKS[name]
        with tempfile.TemporaryDirectory() as folder:
            rows = measure(Path(folder), asked.seconds or usual)
        print(f"\n{name}\n" + "\n".join(f"  {what:44} {figure}" for what, figure in rows), flush=True)


if __name__ == "__main__":
    main()
