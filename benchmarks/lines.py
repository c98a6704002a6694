"""The lines of a healthy SkyRL run under Iris, made up after the formats that the catalogue reads, in about the shares in
which recorded runs of that kind hold them.
"""

# ruff: noqa: E501 (log lines stand as printed)

import random
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime
from itertools import accumulate

JOB = "/bench/rl-speed"
ENTRYPOINT = "skyrl_entrypoint pid=31337"
_REPEATED_SHARE = 0.6
"""Of the lines that all engines print at once: how many stand for others, too (Ray's de-duplication)."""


@dataclass(frozen=True)
class Said:
    """A kind of line: how often it comes, the actor that prints it, its speaker's prefix and its words."""

    weight: float
    actor: Callable[[random.Random], str]
    speaker: Callable[[datetime], str]
    words: Callable[[random.Random], str]
    deduplicated: bool = False


class Kinds:
    """Kinds of lines, of which one is drawn by its weight."""

    def __init__(self, *kinds: Said) -> None:
        self._kinds = kinds
        self._until = list(accumulate(kind.weight for kind in kinds))

    def line(self, chance: random.Random, at: datetime) -> str:
        """A line of one of them, with its newline."""
        said = chance.choices(self._kinds, cum_weights=self._until)[0]
        line = prefix(at, said.actor(chance)) + said.speaker(at) + said.words(chance)
        if said.deduplicated and chance.random() < _REPEATED_SHARE:
            line += f" [repeated {chance.randrange(2, 9)}x across cluster]"
        return line + "\n"


def prefix(at: datetime, actor: str = ENTRYPOINT) -> str:
    """What Iris and Ray write before an actor's line."""
    return f"[{at:%H:%M:%S}] task={JOB}/0 | ({actor}) "


def coloured(line: str) -> str:
    """A line as Ray and loguru write it for a terminal."""
    head, bar, rest = line.rstrip("\n").partition(" | (")
    tag, _, words = rest.partition(") ")
    parts = words.split(" | ", 2)
    if len(parts) == 3:
        stamp, level, (place, _, said) = parts[0], parts[1], parts[2].partition(" - ")
        place = ":".join(f"\x1b[36m{part}\x1b[0m" for part in place.split(":"))
        words = f"\x1b[32m{stamp}\x1b[0m | \x1b[1m{level}\x1b[0m | {place} - \x1b[1m{said}\x1b[0m"
    words = words.replace(" [repeated", "\x1b[32m [repeated").replace("cluster]", "cluster]\x1b[0m")
    return f"{head}{bar[:-1]}\x1b[36m({tag})\x1b[0m {words}\n"


def _entrypoint(_chance: random.Random) -> str:
    return ENTRYPOINT


def _coordinator(chance: random.Random) -> str:
    return f"RolloutCoordinator pid={15049 + chance.randrange(4)}, ip=10.0.0.{3 + chance.randrange(2)}"


def _engine(chance: random.Random) -> str:
    return f"AsyncVLLMInferenceEngine pid={9100 + chance.randrange(8)}, ip=10.0.0.4"


def _bare(_at: datetime) -> str:
    return ""


def _vllm(at: datetime) -> str:
    return f"INFO {at:%m-%d %H:%M:%S} [loggers.py:271] "


def _monitor(at: datetime) -> str:
    return f"[fd-monitor] [{at:%H:%M:%S}] "


def _logger(level: str, place: str) -> Callable[[datetime], str]:
    def loguru(at: datetime) -> str:
        return f"{at:%Y-%m-%d %H:%M:%S}.{at.microsecond // 1000:03d} | {level:<8} | {place} - "

    return loguru


_TRIAL = _logger("INFO", "examples.terminal_bench.terminal_bench_generator:_process_result:866")
_TIMERS = _logger("INFO", "skyrl_train.fully_async_trainer:_train_loop:1121")
_PATHS = ("/v1/chat/completions", "/v1/chat/completions", "/tokenize", "/v1/completions")
_SAID_BY_AGENTS = (
    "the",
    "tests",
    "error",
    "failed",
    "because",
    "pytest",
    "killed",
    "grep",
    "file",
    "path",
    "config",
    "of",
)


def _access(chance: random.Random) -> str:
    return f'INFO:     10.0.0.{chance.randrange(9)}:{chance.randrange(30000, 60000)} - "POST {chance.choice(_PATHS)} HTTP/1.1" 200 OK'


def _call(chance: random.Random) -> str:
    if chance.random() < 0.5:
        return "Wrapper: Completed Call, calling success_handler"
    return "LiteLLM completion() model= hosted_vllm/Qwen3-Coder-30B-A3B-Instruct; provider = hosted_vllm"


def _episode(chance: random.Random) -> str:
    thought, shown = (" ".join(chance.choices(_SAID_BY_AGENTS, k=k)) for k in (24, 36))
    return (
        f'episode={{"episode": {chance.randrange(30)}, "role": "assistant", "content": "{{\\"analysis\\": \\"{thought}.\\"}}", '
        f'"observation": "New Terminal Output:\\n\\nroot@sbx:/app# {shown}"}}'
    )


def _loads(chance: random.Random) -> str:
    return (
        f"Engine 000: Avg prompt throughput: {chance.uniform(500, 4000):.1f} tokens/s, "
        f"Avg generation throughput: {chance.uniform(1500, 4000):.1f} tokens/s, Running: {chance.randrange(20, 60)} reqs, "
        f"Waiting: {chance.randrange(4)} reqs, GPU KV cache usage: {chance.uniform(20, 70):.1f}%, "
        f"Prefix cache hit rate: {chance.uniform(40, 70):.1f}%"
    )


def _bar(chance: random.Random) -> str:
    held = chance.randrange(64)
    return f"Generation Buffer Progress: {held}/64 ({held * 100 // 64}%) [{chance.randrange(1200)}s] | buffer qsize=3"


def _files(chance: random.Random) -> str:
    return f"OK: {chance.randrange(1, 9)},{chance.randrange(100, 999)} / 1,048,576 FDs open (0.4% of soft limit, hard limit: 1,048,576)"


def _host(chance: random.Random) -> str:
    used = chance.uniform(600, 720)
    return f"OK: RSS 24.46 GiB, peak RSS 31.00 GiB | node mem {used:.1f}/2014.0 GiB used (34.4%), avail {2014 - used:.1f} GiB"


def _cgroup(chance: random.Random) -> str:
    return f"OK: cgroup mem {chance.uniform(500, 650):.2f}/1303.85 GiB (48.5% of cap), peak 662.45 GiB"


def _breakdown(chance: random.Random) -> str:
    return (
        f"HOST_RAM_BREAKDOWN node=gpu-node-63 cgroup={chance.uniform(500, 650):.1f}/1303.9 GiB pids=212 | workers=492.5 "
        "raylet=1.2 plasma=0.0 coord=10.3 shm=90.0 pinned=n/a other=38.5 GiB"
    )


def _trial(chance: random.Random) -> str:
    trial = f"TrajectoryID(instance_id='/data/tasks/cron-job-{chance.randrange(999):04d}', repetition_id={chance.randrange(8)})"
    if chance.random() < 0.3:
        return f"Trajectory {trial} classified as PASSTHROUGH, using verifier reward"
    return (
        f"Trajectory {trial} failed with Harbor exception: Agent execution timed out after 1800.0 seconds "
        "(type=AgentTimeoutError, exclude_from_baseline=False)"
    )


def _timer(chance: random.Random) -> str:
    phase = chance.choice(("generate", "policy_train", "sync_weights", "fwd_logprobs_values_reward"))
    return (
        f"Started: '{phase}'"
        if chance.random() < 0.5
        else f"Finished: '{phase}', time cost: {chance.uniform(3, 700):.2f}s"
    )


NOISE = Kinds(
    Said(80, _entrypoint, _bare, _access),
    Said(8, _coordinator, _logger("INFO", "LiteLLM:completion:3389"), _call),
    Said(12, _coordinator, _logger("DEBUG", "harbor.agents.terminus_2.terminus_2:_log_episode:1102"), _episode),
)
"""Lines that say nothing of the run."""
SIGNALS = Kinds(
    Said(45, _engine, _vllm, _loads, deduplicated=True),
    Said(12, _entrypoint, _logger("INFO", "skyrl_train.utils.progress:_emit:118"), _bar),
    *(Said(8, _coordinator, _monitor, words) for words in (_files, _host, _cgroup, _breakdown)),
    Said(5, _coordinator, _TRIAL, _trial),
    Said(6, _entrypoint, _TIMERS, _timer),
)
"""Lines that a pattern reads."""
