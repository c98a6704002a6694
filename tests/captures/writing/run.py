"""A run that is being played: its pods and actors, and every line they have said so far."""

import random
from collections import defaultdict
from dataclasses import dataclass, field
from datetime import UTC, datetime
from hashlib import sha256

from tests.captures.writing.clock import Clock
from tests.captures.writing.echo import Echo, Echoed

POLICY = "FSDPPolicyWorkerBase"
ENGINE = "AsyncVLLMInferenceEngine"
COORDINATOR = "RolloutCoordinator"
ENTRY = "skyrl_entrypoint"


@dataclass(frozen=True, slots=True)
class Actor:
    """One Ray worker process. node is the pod's rank; rank the policy rank, or the engine's number."""

    kind: str
    pid: int
    node: int
    rank: int = 0
    attempt: int = 0


@dataclass
class Run:
    """One job, two policy pods (0, 1) and two engine pods (2, 3) with `gpus` cards each.

    Times are seconds since `start`. colour keeps the ANSI colours that loguru and Ray write.
    """

    name: str
    job: str
    start: datetime
    gpus: int = 2
    colour: bool = False
    model: str = "Tern-30B-A3B-Instruct"
    pod_hash: str = "6b1f"
    attempt: int = 0
    ended: float = 0.0
    lines: list[Echoed] = field(default_factory=list)
    actor_files: dict[str, list[tuple[float, int, str]]] = field(default_factory=lambda: defaultdict(list))
    artifacts: dict[str, bytes] = field(default_factory=dict)
    polls: dict[str, list[tuple[float, dict[str, object]]]] = field(default_factory=lambda: defaultdict(list))

    def __post_init__(self) -> None:
        self.clock = Clock(self.start.replace(tzinfo=UTC))
        self.rng = random.Random(self.name)
        self.slug = self.job.strip("/").replace("/", "-")
        self.nodes = [f"quartz-{11 + index}" for index in range(4)]
        self.cast(0)

    def cast(self, attempt: int) -> None:
        """New processes for a new attempt."""
        self.attempt, base = attempt, 5000 + 3000 * attempt
        self.entry = Actor(ENTRY, base + 17, 0, attempt=attempt)
        self.policy = [Actor(POLICY, base + 100 + 41 * r, r // self.gpus, r, attempt) for r in range(2 * self.gpus)]
        self.engines = [
            Actor(ENGINE, base + 600 + 53 * e, 2 + e // self.gpus, e, attempt) for e in range(2 * self.gpus)
        ]
        self.coordinators = [Actor(COORDINATOR, base + 900 + 61 * c, 2 + c, c, attempt) for c in range(2)]

    # --- who and where
    def pod(self, rank: int) -> str:
        """A pod's name, with the generation of the current attempt."""
        return f"iris-{self.slug}-{rank}-{self.pod_hash}-{self.attempt}"

    def ip(self, node: int) -> str:
        """A pod's address."""
        return f"10.4.0.{node + 1}"

    def task(self, rank: int) -> str:
        """The Iris task path: a retried attempt carries `:N`."""
        return f"{self.job}/{rank}" + (f":{self.attempt}" if self.attempt else "")

    def hex(self, *words: object, size: int = 56) -> str:
        """A stable made-up identifier."""
        return sha256("|".join(map(str, (self.name, *words))).encode()).hexdigest()[:size]

    def session(self, node: int, attempt: int) -> str:
        """The folder of one node's Ray session."""
        began = self.clock.moment(240 + attempt).strftime("%Y-%m-%d_%H-%M-%S")
        return f"ray_session_logs/rank{node}-{self.nodes[node]}/session_{began}_204417_{311 + attempt}"

    def worker_file(self, actor: Actor, stream: str) -> str:
        """The actor's own log."""
        worker = self.hex("worker", actor.pid)
        return f"{self.session(actor.node, actor.attempt)}/worker-{worker}-01000000-{actor.pid}.{stream}"

    # --- who says what
    def supervisor(self, at: float, rank: int, text: str) -> None:
        """A line of the pod's own process (the task runtime, a shell, the Ray CLI): aggregated log only."""
        self.lines.append(Echoed(at, len(self.lines), self.task(rank), "", text))

    def say(self, at: float, actor: Actor, text: str, stream: str = "err", echo: bool = True) -> None:
        """A line that an actor prints: in its own file, and echoed by the driver unless `echo` is off."""
        for part in text.split("\n"):
            self.note(at, actor, part, stream)
            if echo:
                self.lines.append(Echoed(at, len(self.lines), self.task(0), self._tag(actor), part))

    def echoed(self, at: float, actor: Actor, text: str) -> None:
        """A line of an actor that reached the driver and not the actor's own file."""
        for part in text.split("\n"):
            self.lines.append(Echoed(at, len(self.lines), self.task(0), self._tag(actor), part))

    def note(self, at: float, actor: Actor, text: str, stream: str = "err") -> None:
        """A line that stands in the actor's file only."""
        file = self.actor_files[self.worker_file(actor, stream)]
        file.append((at, len(file), text))

    def log(self, at: float, actor: Actor, site: str, message: str, level: str = "INFO", echo: bool = True) -> None:
        """A loguru line; site is `module:function:line`."""
        when = self.clock.loguru(at)
        if self.colour:
            tone = "\x1b[33m\x1b[1m" if level == "WARNING" else "\x1b[1m"
            module, function, line = site.split(":")
            where = ":".join(f"\x1b[36m{part}\x1b[0m" for part in (module, function, line))
            text = f"\x1b[32m{when}\x1b[0m | {tone}{level:<8}\x1b[0m | {where} - {tone}{message}\x1b[0m"
        else:
            text = f"{when} | {level:<8} | {site} - {message}"
        self.say(at, actor, text, "err", echo)

    def daemon(self, at: float, node: int, name: str, text: str) -> None:
        """A line of raylet.out or gcs_server.out."""
        file = self.actor_files[f"{self.session(node, self.attempt)}/{name}"]
        file.append((at, len(file), text))

    def _tag(self, actor: Actor) -> str:
        where = "" if actor.node == 0 else f", ip={self.ip(actor.node)}"
        tag = f"({actor.kind} pid={actor.pid}{where})"
        return f"\x1b[36m{tag}\x1b[0m" if self.colour else tag

    # --- what it comes to on disk
    def finelog(self) -> bytes:
        """The aggregated log, as `iris job logs` prints it, with the connection's preamble."""
        day = self.clock.moment(0).strftime("%Y%m%d %H:%M:%S")
        out = [
            f"I{day} 140221 iris.cli.connect Establishing tunnel to controller...",
            f"I{day} 140221 iris.cluster.platforms.k8s.service Tunnel ready: 127.0.0.1:10000",
        ]
        for line in Echo(self.colour).stream(self.lines):
            tag = f"{line.speaker} " if line.speaker else ""
            out.append(f"{self.clock.iris(line.at)} task={line.task} | {tag}{line.text}")
        return ("\n".join(out) + "\n").encode()

    def actor_logs(self) -> dict[str, bytes]:
        """Every per-actor and daemon file by its path."""
        return {
            path: ("\n".join(text for _, _, text in sorted(said)) + "\n").encode()
            for path, said in sorted(self.actor_files.items())
        }
