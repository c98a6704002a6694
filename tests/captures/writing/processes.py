"""Process lists and live stacks: what `ps` and py-spy say of the pods."""

from tests.captures.writing.polls import Answer, inside, record
from tests.captures.writing.run import Actor, Run

PS = ("ps", "-eo", "pid,ppid,pcpu,rss,etime,args")
REFUSED = "Permission Denied: Try running again with elevated permissions by going 'sudo env \"PATH=$PATH\" !!'\n"

IN_COLLECTIVE = (
    "all_gather_into_tensor (torch/distributed/distributed_c10d.py:3847)",
    "foreach_all_gather (torch/distributed/fsdp/_fully_shard/_fsdp_collectives.py:168)",
    "unshard (torch/distributed/fsdp/_fully_shard/_fsdp_param_group.py:264)",
    "training_step (skyrl_train/workers/fsdp/fsdp_worker.py:288)",
    "ppo_train (skyrl_train/workers/worker.py:771)",
)
WAITING = ("get_objects (ray/_private/worker.py:1012)", "wait_for_work (skyrl_train/workers/worker.py:604)")
DISPATCHING = (
    "_render_prompt (examples/terminal_bench/terminal_bench_generator.py:417)",
    "generate (examples/terminal_bench/terminal_bench_generator.py:512)",
    "run_batch (examples/terminal_bench/rollout_coordinator.py:301)",
)
STEPPING = ("step (vllm/v1/engine/core.py:338)", "run_engine_loop (vllm/v1/engine/core.py:1012)")


def stack(run: Run, at: float, actor: Actor, method: str, frames: tuple[str, ...]) -> None:
    """`py-spy dump` of one actor: an idle main thread and one at work."""
    body = "".join(f"    {frame}\n" for frame in frames)
    text = (
        f"Process {actor.pid}: ray::{actor.kind}.{method}\nPython v3.12.3 (/usr/bin/python3.12)\n\n"
        f'Thread {actor.pid} (idle): "MainThread"\n    main_loop (ray/_private/worker.py:963)\n'
        f'Thread {actor.pid + 68} (active): "AsyncIO Thread: default"\n{body}'
    )
    dump(run, at, actor, Answer(text))


def stack_refused(run: Run, at: float, actor: Actor) -> None:
    """py-spy without the right to trace."""
    dump(run, at, actor, Answer(stderr=REFUSED, exit=1))


def dump(run: Run, at: float, actor: Actor, answer: Answer) -> None:
    """What one call of py-spy for an actor gave."""
    pod = run.pod(actor.node)
    record(run, at, "stacks", inside(run, pod, "py-spy", "dump", "--pid", str(actor.pid)), answer, pod)


def ps(run: Run, at: float, cpu_seconds: float) -> None:
    """The process lists of the engine pods. ps gives a lifetime average: cpu_seconds is what each coordinator has
    used up to now."""
    elapsed = at - 310
    for coordinator in run.coordinators:
        pod = run.pod(coordinator.node)
        rows = [
            _row(1, 0, 0.0, 4188, at - 5, "/bin/bash /iris/task.sh"),
            _row(61, 1, 2.9, 790212, at - 240, "/opt/venv/bin/raylet --raylet_socket_name=/tmp/ray/raylet"),
        ]
        rows += [
            _row(e.pid, 61, 31.5, 9411204 + e.pid, elapsed, "ray::AsyncVLLMInferenceEngine")
            for e in run.engines
            if e.node == coordinator.node
        ]
        share = 100 * cpu_seconds / elapsed
        rows.append(_row(coordinator.pid, 61, share, 2204117, elapsed, "ray::RolloutCoordinator.run_batch"))
        table = "    PID    PPID %CPU     RSS     ELAPSED COMMAND\n" + "".join(rows)
        record(run, at + coordinator.rank, "procs", inside(run, pod, *PS), Answer(table), pod)


def _row(pid: int, parent: int, cpu: float, rss: int, elapsed: float, command: str) -> str:
    seconds = int(elapsed)
    since = f"{seconds // 3600:02d}:{seconds // 60 % 60:02d}:{seconds % 60:02d}"
    return f"{pid:>7} {parent:>7} {cpu:>4.1f} {rss:>8} {since:>11} {command}\n"
