"""The short way and the long way through a file come to the same observations."""

import random
from collections.abc import Iterator
from itertools import chain

import pytest

from extractors import shortcut
from extractors.catalogue import CATALOGUE
from extractors.extract import Reader
from extractors.record import Block, Observation, Origin

IRIS = "[06:00:{second:02d}] task=/alice/rl-80b/0 | "
HEADS = (
    IRIS + "(Worker pid={pid}, ip=10.0.0.3) 2026-07-01 06:00:{second:02d}.120 | INFO     | trainer.loop:run:7 - ",
    IRIS + "(Worker pid={pid}, ip=10.0.0.3) INFO 07-01 06:00:{second:02d} [loggers.py:271] ",
    IRIS + "2026-07-01 06:00:{second:02d}.120 | INFO     | LiteLLM:completion:3389 - ",
    IRIS + "(Worker pid={pid}) ",
    "2026-07-01 06:00:{second:02d}.120 | WARNING  | trainer.loop:run:7 - ",
    "INFO 07-01 06:00:{second:02d} [loggers.py:271] ",
    "[06:01:{second:02d}] task=/alice/rl-80b/0 | (W pid={pid}) 2026-07-01 05:59:{second:02d}.120 | INFO | a:b:1 - ",
    IRIS + "\x1b[36m(Worker pid={pid}, ip=10.0.0.3)\x1b[0m \x1b[32m2026-07-01 06:00:{second:02d}.120\x1b[0m | "
    "\x1b[1mINFO    \x1b[0m | \x1b[36mtrainer.loop\x1b[0m:\x1b[36mrun\x1b[0m:\x1b[36m7\x1b[0m - \x1b[1m",
    IRIS + "\x1b[36m(Worker pid={pid})\x1b[0m ",
    IRIS + "(Worker pid={pid}) [fd-monitor] ",
    IRIS + "(Worker pid={pid}) [rank3]: ",
    "[default7]: ",
    "[pod/rl-80b-0/main] ",
    "?06:00:{second:02d}] task=/alice/rl-80b/0 | (Worker pid={pid}) ",
    "",
)
TAILS = (
    "",
    " [repeated 7x across cluster]",
    "\x1b[32m [repeated 7x across cluster]\x1b[0m",
    " [repeated 7x across cluster] (Ray deduplicates logs by default. Set RAY_DEDUP_LOGS=0)",
    " (Ray deduplicates logs by default. Set RAY_DEDUP_LOGS=0)",
    " (in a bracket)",
    "\x1b[0m",
    "\x1b[2K",
)


def payloads() -> Iterator[str]:
    samples = chain.from_iterable((*pattern.samples, *pattern.rejects) for pattern in CATALOGUE.whole.patterns)
    for sample in samples:
        last = sample.rsplit("] ", 1)[-1].rsplit(" - ", 1)[-1]
        yield from dict.fromkeys((sample, last)).keys()


def log() -> bytes:
    """Every sample and look-alike behind every head, each twice, as a second look finds its head known."""
    lines: list[str] = []
    for number, payload in enumerate(payloads()):
        head = HEADS[number % len(HEADS)].format(second=number // 40 % 60, pid=4000 + number % 3)
        lines += [head + payload + TAILS[number // 3 % len(TAILS)]] * 2
    return "\n".join(lines).encode() + b"\n"


def observed(data: bytes, size: int) -> tuple[list[Observation], int, int]:
    reader, found = Reader("a.log", Origin(), 1_782_800_000_000_000), []
    at, line = 0, 1
    while at < len(data):
        cut = data.find(b"\n", min(at + size, len(data) - 1)) + 1
        found += reader.read(Block("a.log", at, line, data[at:cut]))
        line += data.count(b"\n", at, cut)
        at = cut
    return found + reader.end(), reader.unparsed, reader.torn


@pytest.mark.parametrize("size", [3_000, 262_144])
def test_both_ways_observe_the_same_of_every_sample_behind_every_head(
    size: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    short = observed(log(), size)
    monkeypatch.setattr(shortcut.Shortcut, "read", lambda _self, _lines, _hits, at, _out: at)
    assert short == observed(log(), size)
    assert len(short[0]) > 1_000


@pytest.mark.parametrize("size", [3_000, 262_144])
def test_a_colour_amid_a_tracebacks_header_hides_no_traceback(size: int, monkeypatch: pytest.MonkeyPatch) -> None:
    said = "ray.exceptions.ActorDiedError: The actor never ran - it was cancelled before it started running."
    log = f"Traceback\x1b[0m (most recent call last): {said}\n{said}\n".encode()
    short = observed(log, size)
    monkeypatch.setattr(shortcut.Shortcut, "read", lambda _self, _lines, _hits, at, _out: at)
    assert short == observed(log, size)


def test_a_prefix_that_is_not_known_is_no_layout_for_the_lines_behind_it(monkeypatch: pytest.MonkeyPatch) -> None:
    said = "node-11:900:950 [1] NCCL INFO ncclCommInitAll comm 0x5 rank 1 nranks 8 cudaDev 1 nvmlDev 1 busId 3b000 "
    head = "[06:00:07] task=/alice/rl-80b/0 | (Worker pid=2) "
    lines = [head + launcher + said + "commId 0x77 - Init COMPLETE" for launcher in ("", "[default7]: ", "", "") * 2]
    log = ("\n".join(lines) + "\n").encode()
    short = observed(log, 262_144)
    monkeypatch.setattr(shortcut.Shortcut, "read", lambda _self, _lines, _hits, at, _out: at)
    assert short == observed(log, 262_144)


NOISE = (
    ":task_name:evaluate",
    "CRITICAL 07-01 06:{second:02d}:00 [core.py:7] nothing",
    "2026-07-01 06:{second:02d}:00.000 | INFO     | a:b:1 - nothing",
    "noise",
    "\rnoise\rnoise",
    "(pid=7) noise",
    "Traceback (most recent call last):",
    "ValueError: of nothing",
)


def mixed(seed: int) -> bytes:
    """A few samples in any order, with and without heads, among lines that say nothing or how to read others."""
    chance, lines = random.Random(seed), []
    said = chance.sample(list(payloads()), 6)
    for second in range(40):
        line = chance.choice(NOISE if chance.random() < 0.3 else HEADS).format(second=second, pid=chance.randrange(3))
        tail = chance.choice(TAILS) if chance.random() < 0.2 else ""
        lines.append(line + chance.choice(said) * (chance.random() < 0.7) + tail)
    return "\n".join(lines).encode() + b"\n"


def test_both_ways_observe_the_same_of_mixed_lines(monkeypatch: pytest.MonkeyPatch) -> None:
    logs = [mixed(seed) for seed in range(300)]
    short = [observed(log, 262_144) for log in logs]
    monkeypatch.setattr(shortcut.Shortcut, "read", lambda _self, _lines, _hits, at, _out: at)
    differing = [seed for seed, log in enumerate(logs) if observed(log, 262_144) != short[seed]]
    assert differing == []


@pytest.mark.parametrize(
    ("head", "tail"),
    [(HEADS[0], ""), (HEADS[0], TAILS[1]), (HEADS[7], ""), (HEADS[7], TAILS[2]), (HEADS[9], "")],
    ids=["plain", "repeated", "coloured", "coloured and repeated", "in brackets"],
)
def test_usual_lines_go_the_short_way(head: str, tail: str, monkeypatch: pytest.MonkeyPatch) -> None:
    taken: list[int] = []
    whole = Reader._line

    def counted(self: Reader, *line: object) -> None:
        taken.append(1)
        whole(self, *line)  # type: ignore[arg-type]

    monkeypatch.setattr(Reader, "_line", counted)
    words = "[06:00:07] OK: cgroup mem 1.0/{}.0 GiB" if "fd-monitor" in head else "Started: 'phase_{}'"
    lines = [head.format(second=7, pid=4000) + words.format(number) + tail for number in range(50)]
    found, _, _ = observed(("\n".join(lines) + "\n").encode(), 262_144)
    assert (len(found), len(taken)) == (50, 1)
    assert {each.repeated for each in found} == {7 if tail else 1}


def test_a_line_that_only_looks_like_the_transports_moves_no_clock() -> None:
    iris = "[06:00:00] task=/alice/rl-80b/0 | (Worker pid=7) Started: 'generate'\n"
    others = "(15:59:00) Started: 'generate'\n(23:59:00) Started: 'generate'\n"
    found, _, _ = observed((iris * 3 + others + iris * 3).encode(), 262_144)
    times = [each.at_us for each in found if each.origin.pid]
    assert len(times) == 6
    assert len(set(times)) == 1
