"""How things die: the lines of each death, and of the teardown after it."""

from tests.captures.writing.run import ENGINE, Actor, Run
from tests.captures.writing.trainer import finished

TIMEOUT_MS = 600000
LIB = "/opt/venv/lib/python3.12/site-packages"
FRAME = f"in {LIB}/torch/lib/libtorch_cuda.so)"


def _group(actor: Actor) -> str:
    return f"[PG ID 1 PG GUID 1(mesh_fsdp) Rank {actor.rank}] "


def c10(run: Run, at: float, actor: Actor, message: str, severity: str = "E", line: int = 683) -> None:
    """A line of torch's own logger, from ProcessGroupNCCL.cpp, with the tag of the rank's process group."""
    head = f"[rank{actor.rank}]:[{run.clock.c10(severity, at)} ProcessGroupNCCL.cpp:{line}] "
    run.say(at, actor, head + _group(actor) + message)


def collective(number: int) -> str:
    """The words of one timed-out collective."""
    return (
        f"WorkNCCL(SeqNum={number}, OpType=_ALLGATHER_BASE, NumelIn=524288, NumelOut=2097152,"
        f" Timeout(ms)={TIMEOUT_MS}) ran for {TIMEOUT_MS + 27} milliseconds before timing out."
    )


def watchdog_barks(run: Run, at: float, actor: Actor, number: int = 7714) -> None:
    """The watchdog of one rank reports a timeout, and nothing more."""
    c10(run, at, actor, f"Watchdog caught collective operation timeout: {collective(number)}")
    status = f"last enqueued work: {number + 2}, last completed work: {number - 1}"
    c10(
        run,
        at + 0.01,
        actor,
        f"  failure detected by watchdog at work sequence id: {number} PG status: {status}",
        line=2241,
    )


def watchdog_aborts(run: Run, at: float, actor: Actor, number: int = 9052) -> None:
    """The whole end of a policy rank: timeout, dump, abort a minute later; survivors lose the store."""
    watchdog_barks(run, at, actor, number)
    c10(run, at + 0.1, actor, "First PG on this rank to signal dumping.", line=2573)
    c10(run, at + 0.9, actor, "ProcessGroupNCCL preparing to dump debug info. Include stack trace: 1", line=1589)
    for other in run.policy:
        if other is not actor:
            _survives(run, at + 1.5 + other.rank / 50, other, actor)
    at += 60
    c10(
        run,
        at,
        actor,
        "Some NCCL operations have failed or timed out. Due to the asynchronous nature of CUDA kernels, subsequent GPU"
        " operations might run on corrupted/incomplete data.",
        line=744,
    )
    c10(run, at + 0.01, actor, "To avoid data inconsistency, we are taking the entire process down.", line=758)
    run.say(
        at + 0.02,
        actor,
        "terminate called after throwing an instance of 'c10::DistBackendError'\n"
        f"  what():  {_group(actor)}Process group watchdog thread terminated with exception: [Rank {actor.rank}]"
        f" Watchdog caught collective operation timeout: {collective(number)}\n"
        f"frame #0: c10d::ProcessGroupNCCL::Watchdog::runLoop() + 0x1691 (0x7f5b104a1 {FRAME}\n"
        f"*** SIGABRT received at time={run.clock.epoch(at)} on cpu 9 ***\n"
        "PC: @     0x7f2c4a1969fc  (unknown)  pthread_kill\n"
        "Fatal Python error: Aborted\n\n"
        "Extension modules: msgpack._cmsgpack, torch._C (total: 118)",
    )
    worker_exits(run, at + 1, actor)


def _survives(run: Run, at: float, other: Actor, dead: Actor) -> None:
    c10(run, at, other, "Observed flight recorder dump signal from another rank via TCPStore.", line=1806)
    for tick in range(3):
        late = at + 3 + 1.2 * tick
        c10(
            run,
            late,
            other,
            'Failed to check the "should dump" flag on TCPStore, (maybe TCPStore server has shut down too early), with'
            " error: Broken pipe",
            "W",
            1793,
        )
        home, store = run.nodes[other.node], run.nodes[dead.node]
        run.say(
            late + 0.01,
            other,
            f"[rank{other.rank}]:[{run.clock.c10('W', late)} TCPStore.cpp:106] [c10d] sendBytes failed on"
            f" SocketImpl(fd=71, addr=[{home}]:40112, remote=[{store}]:41877): Broken pipe",
        )


def worker_exits(run: Run, at: float, actor: Actor) -> None:
    """The raylet's own note of a worker that went away."""
    run.daemon(
        at,
        actor.node,
        "raylet.out",
        f"[{run.clock.ray(at)} I 61 61] (raylet) node_manager.cc:1586: worker {run.hex('worker', actor.pid)} with pid"
        f" {actor.pid} exited, exit type SYSTEM_ERROR, exit detail: Worker unexpectedly exits with a connection error"
        " code 2. End of file.",
    )


def bootstrap_times_out(run: Run, at: float) -> None:
    """The weight-sync group never forms: the driver's traceback, aggregated log only."""
    finished(run, at, "init_weight_sync_state", 1800.2, 176)
    engine = run.engines[0]
    key = "/skyrl/skyrl//cuda//0"
    for line in (
        "Traceback (most recent call last):",
        '  File "/opt/skyrl/skyrl_train/entrypoints/main_fully_async.py", line 91, in main',
        "    ray.get(skyrl_entrypoint.remote(cfg))",
        f'  File "{LIB}/ray/_private/worker.py", line 2961, in get',
        "    values, debugger_breakpoint = worker.get_objects(object_refs, timeout=timeout)",
        f"ray.exceptions.RayTaskError(DistBackendError): ray::skyrl_entrypoint() (pid={run.entry.pid}, ip={run.ip(0)})",
        '  File "/opt/skyrl/skyrl_train/fully_async_trainer.py", line 181, in train',
        "    self.init_weight_sync_state()",
        f"ray.exceptions.RayTaskError(DistBackendError): ray::{ENGINE}.init_weight_update_communicator()"
        f" (pid={engine.pid}, ip={run.ip(engine.node)}, actor_id={run.hex('actor', engine.pid, size=32)})",
        '  File "/opt/skyrl/skyrl_train/inference_engines/vllm/worker.py", line 127, in init_communicator',
        "    torch.distributed.broadcast(probe, src=0, group=self.model_update_group)",
        "torch.distributed.DistBackendError: [1] is setting up NCCL communicator and retrieving ncclUniqueId from [0]"
        f" via c10d key-value store by key '0', but store->get('{key}') got error: wait timeout after 1800000ms,"
        f" keys: {key}. This may indicate a possible application crash on rank 0 or a network set up issue.",
    ):
        run.supervisor(at + 0.2, 0, line)


def meta_tensors(run: Run, at: float, engine: Actor) -> None:
    """An engine meets weights without data: its own file only; its neighbours find it dead."""
    head = f"ERROR {run.clock.vllm(at)} [core.py:1101] "
    trace = (
        "EngineCore encountered a fatal error.",
        "Traceback (most recent call last):",
        f'  File "{LIB}/vllm/v1/engine/core.py", line 1088, in run_busy_loop',
        "    self._process_engine_step()",
        f'  File "{LIB}/vllm/_custom_ops.py", line 2013, in reshape_and_cache_flash',
        "    torch.ops._C_cache_ops.reshape_and_cache_flash(",
        "NotImplementedError: Could not run '_C_cache_ops::reshape_and_cache_flash' with arguments from the 'Meta'"
        " backend. This could be because the operator doesn't exist for this backend.",
    )
    run.say(at, engine, "\n".join(head + line for line in trace), "out", echo=False)
    for other in run.engines:
        late = at + 2 + other.rank / 10
        head = f"ERROR {run.clock.vllm(late)} [async_llm.py:708] "
        died = (
            "AsyncLLM output_handler failed.",
            "Traceback (most recent call last):",
            f'  File "{LIB}/vllm/v1/engine/async_llm.py", line 664, in output_handler',
            "    outputs = await engine_core.get_output_async()",
            "vllm.v1.engine.exceptions.EngineDeadError: EngineCore encountered an issue. See stack trace (above) for"
            " the root cause.",
        )
        run.say(late, other, "\n".join(head + line for line in died), "out", echo=False)


def train_loop_fails(run: Run, at: float, step: int, message: str, frames: tuple[tuple[str, int, str], ...]) -> None:
    """`Train loop failed` and its traceback, from the entry task. frames are (file, line, function), outermost one
    first."""
    run.log(
        at, run.entry, "skyrl_train.fully_async_trainer:train:205", f"Train loop failed at global_step {step}:", "ERROR"
    )
    rows = ["Traceback (most recent call last):"]
    rows += [f'  File "/opt/skyrl/{file}", line {line}, in {function}' for file, line, function in frames]
    run.say(at + 0.01, run.entry, "\n".join([*rows, message]))


def shut_down(run: Run, at: float, exit_code: int) -> float:
    """`ray stop --force` by the supervisor and the workers' farewell; gives its end."""
    for number, victim in enumerate(("ray::IDLE", "ray::IDLE", "ray::RolloutCoordinator", "gcs_server --port=6379")):
        when = at + number / 10
        run.supervisor(when, 0, f"{run.clock.ray(when)}\tVINFO scripts.py:1254 -- Killed `{victim}` (via SIGKILL)")
    run.supervisor(at + 1, 0, f"{run.clock.ray(at + 1)}\tSUCC scripts.py:1335 -- Stopped all 4 Ray processes.")
    run.supervisor(
        at + 2,
        0,
        f"[ray-log-sync] uploaded 58 file(s) / 0.11 GiB (unchanged=402, failed=0) -> s3://iris-task-env{run.job}"
        f"/ray_session_logs/rank0-{run.nodes[0]} [driver exit_code={exit_code} (head)]",
    )
    for rank in range(1, 4):
        run.supervisor(at + 3 + rank, rank, f"[task-runtime] Worker rank {rank} saw head done-marker; shutting down.")
    return at + 8


def kernel_kills(run: Run, at: float, actor: Actor) -> None:
    """The kernel's own words, printed inline since the artifact could not be uploaded; Ray then misses the actor."""
    rss = 1043217344
    for text in (
        "[term-capture] upload FAILED (timed out); emitting inline:",
        f"=== TERMINATION ARTIFACT task={run.slug}_{actor.node} ts={run.clock.epoch(at)} reason=signal 9 ===",
        "--- dmesg OOM/kill tail ---",
        "[81533.410022] python invoked oom-killer: gfp_mask=0xcc0(GFP_KERNEL), order=0, oom_score_adj=997",
        "[81533.410981] oom-kill:constraint=CONSTRAINT_MEMCG,nodemask=(null),oom_memcg=/kubepods/burstable/pod6b1f,"
        f"task_memcg=/kubepods/burstable/pod6b1f,task=ray::FSDPPolicy,pid={actor.pid},uid=0",
        f"[81533.411204] Memory cgroup out of memory: Killed process {actor.pid} (ray::FSDPPolicy)"
        f" total-vm:1893004112kB, anon-rss:{rss}kB, file-rss:90112kB, shmem-rss:0kB, UID:0 pgtables:2201088kB"
        " oom_score_adj:997",
    ):
        run.supervisor(at, actor.node, text)
    run.supervisor(
        at + 4,
        0,
        "A worker died or was killed while executing a task by an unexpected system error. To troubleshoot the problem,"
        f" check the logs for the dead worker. RayTask ID: {run.hex('task', size=48)} Worker ID:"
        f" {run.hex('worker', actor.pid)} Node ID: {run.hex('raylet', actor.node)} Worker IP address:"
        f" {run.ip(actor.node)} Worker port: 10012 Worker PID: {actor.pid} Worker exit type: SYSTEM_ERROR Worker exit"
        " detail: Worker unexpectedly exits with a connection error code 2. End of file.",
    )
    worker_exits(run, at + 1, actor)
