"""From the pods' first line to a trainer that is about to open its first phase (about 12 min)."""

from tests.captures.writing.run import ENTRY, Actor, Run

READY = 700.0
"""When the models are built, in seconds after the attempt began."""

CONFIG = """trainer:
  strategy: fsdp2
  placement:
    colocate_all: false
    policy_num_nodes: 2
    policy_num_gpus_per_node: {gpus}
  max_staleness_steps: 3
  fully_async:
    num_parallel_generation_workers: 96
  resume_mode: latest
  max_steps: {steps}
generator:
  backend: vllm
  num_inference_engines: {engines}
  inference_engine_tensor_parallel_size: 1
  max_num_seqs: 64
  enforce_eager: false
  num_coordinators: 2
terminal_bench_config:
  harbor:
    n_concurrent_trials: 192
    max_retries: 2
    on_out_of_memory: retry
    mask_exceptions: [DaytonaError, NetworkError]
    kill_after_timeout_sec: 90"""


def pods_start(run: Run, at: float = 0.0, joined: int = 4) -> None:
    """Supervisors stage data and model, Ray comes up; `joined` of 4 nodes join."""
    bucket = f"s3://iris-task-env{run.job}/run-{run.attempt}"
    for rank in range(4):
        role = (
            f"ROLE=head rank=0/4 head_ip={run.ip(0)} ray_port=6379"
            if rank == 0
            else f"ROLE=worker rank={rank}/4 node_ip={run.ip(rank)}"
        )
        _snapshot(run, at + 1 + rank / 10, rank)
        run.supervisor(at + 3, rank, f"[task-runtime] {role}")
        run.supervisor(
            at + 5 + rank / 10,
            rank,
            f"[task-runtime] Staging train_data on this node (rank {rank}/4): ['grebe/mend-set']",
        )
        run.supervisor(
            at + 70 + rank / 10,
            rank,
            "[task-runtime] train_data staged to node-local paths: ['/mnt/local/mend-set']",
        )
        run.supervisor(
            at + 80 + rank / 10,
            rank,
            f"[task-runtime] Pre-staging model on this node (rank {rank}/4): grebe/{run.model}",
        )
    run.supervisor(
        at + 230,
        0,
        "[task-runtime] Ray cgroup-aware: --memory=1181116006400 (~1100GiB cgroup limit), "
        "--object-store-memory=85899345920 (~80GiB plasma cap)",
    )
    run.supervisor(at + 231, 0, f"[task-runtime] Starting Ray HEAD: ray start --head --node-ip-address={run.ip(0)}")
    run.supervisor(at + 242, 0, "[task-runtime] Ray HEAD subprocess returned (exit 0) in 10.9s")
    run.supervisor(
        at + 243, 0, f"[task-runtime] Wrote rendezvous {bucket}: head_ip={run.ip(0)} port=6379 (attempt 1, 0.4s)"
    )
    for rank in range(1, 4):
        run.supervisor(
            at + 236, rank, f"[task-runtime] Polling for rendezvous {bucket}/ray_head.json (timeout 1800s)..."
        )
    run.supervisor(at + 244, 0, f"[task-runtime] Waiting for 4 Ray node(s) at {run.ip(0)}:6379 (timeout 1800s)...")
    for count in range(2, joined + 1):
        run.supervisor(at + 246 + 5 * count, 0, f"[task-runtime] Ray nodes alive: {count}/4")
    for node in range(joined):
        _raylet_starts(run, at + 250 + 5 * node, node)


def _snapshot(run: Run, at: float, rank: int) -> None:
    run.supervisor(at, rank, "[task-runtime] environment snapshot:")
    for pair in (
        f"IRIS_TASK_ID={run.task(rank)}",
        "IRIS_NUM_TASKS=4",
        f"NUM_INFERENCE_ENGINES={len(run.engines)}",
        "POLICY_NUM_NODES=2",
        "TENSOR_PARALLEL_SIZE=1",
        "SKYRL_WORKER_NCCL_TIMEOUT_IN_S=600",
        "VLLM_LOG_STATS_INTERVAL=60",
    ):
        run.supervisor(at, rank, f"  {pair}")


def _raylet_starts(run: Run, at: float, node: int) -> None:
    run.daemon(
        at,
        node,
        "raylet.out",
        f"[{run.clock.ray(at)} I 61 61] (raylet) node_manager.cc:553: Raylet of id, {run.hex('raylet', node)} started."
        " Raylet consists of node_manager and object_manager.",
    )
    if node == 0:
        run.daemon(
            at,
            0,
            "gcs_server.out",
            f"[{run.clock.ray(at)} I 44 44] (gcs_server) gcs_server.cc:272: GCS server started.",
        )


def driver_starts(run: Run, at: float = 0.0, steps: int = 60, done: int = 0) -> float:
    """The driver, its configuration dump, policy mesh and engines. Gives the time when the trainer is ready."""
    run.supervisor(at + 275, 0, "[task-runtime] All 4 Ray node(s) joined. Resources: {'CPU': 192.0, 'GPU': 8.0}")
    for rank in range(1, 4):
        run.supervisor(
            at + 276,
            rank,
            f"[task-runtime] Worker rank {rank} joined Ray cluster at {run.ip(0)}:6379;"
            " parking until the head finishes.",
        )
    run.supervisor(at + 300, 0, "[task-runtime] Launching MarinSkyRL training driver:")
    run.supervisor(
        at + 300,
        0,
        "  python -m skyrl_train.entrypoints.main_fully_async trainer.strategy=fsdp2 trainer.max_staleness_steps=3"
        f" generator.max_num_seqs=64 generator.num_inference_engines={len(run.engines)}"
        " ++terminal_bench_config.harbor.n_concurrent_trials=192",
    )
    for actor in (run.entry, *run.policy, *run.engines, *run.coordinators):
        arrives(run, at + 302, actor)
    run.log(
        at + 305,
        run.entry,
        "skyrl_train.entrypoints.main_base:skyrl_entrypoint:402",
        CONFIG.format(gpus=run.gpus, engines=len(run.engines), steps=steps),
    )
    _mesh_forms(run, at + 312)
    _engines_load(run, at + 340)
    _rollouts_ready(run, at + READY - 14, steps)
    return at + READY


def arrives(run: Run, at: float, actor: Actor) -> None:
    """The head lines of an actor's two files."""
    kind = "task_name" if actor.kind == ENTRY else "actor_name"
    for stream in ("out", "err"):
        run.note(at, actor, ":job_id:01000000", stream)
        run.note(at, actor, f":{kind}:{actor.kind}", stream)


def _mesh_forms(run: Run, at: float) -> None:
    site = "skyrl_train.workers.worker:__init__:611"
    run.log(at, run.entry, site, "Initializing process group for RayActorGroup")
    total, group = len(run.policy), "0x" + run.hex("mesh", run.attempt, size=16)
    for actor in run.policy:
        host, tid = f"{run.nodes[actor.node]}:{actor.pid}:{actor.pid + 700}", actor.rank / 100
        comm = (
            f"ncclCommInitRankConfig comm 0x{run.hex('comm', actor.pid, size=12)} rank {actor.rank}"
            f" nranks {total} cudaDev 0 nvmlDev {actor.rank % run.gpus} busId {18 + 9 * actor.rank}000 commId {group}"
        )
        run.say(at + 0.2 + tid, actor, f"{host} [0] NCCL INFO Bootstrap: Using eth0:{run.ip(actor.node)}<0>", "out")
        run.say(
            at + 0.3 + tid,
            actor,
            f"{host} [0] NCCL INFO NET/Plugin: Could not find: libnccl-net.so. Using internal net plugin.",
            "out",
        )
        run.say(at + 0.6 + tid, actor, f"{host} [0] NCCL INFO {comm} - Init START", "out")
        run.say(at + 2.4 + tid, actor, f"{host} [0] NCCL INFO {comm} - Init COMPLETE", "out")
    run.log(at + 20, run.entry, site, "Initialized process group for RayActorGroup")


def _engines_load(run: Run, at: float) -> None:
    for engine in run.engines:
        began = at + 0.4 * engine.rank
        _vllm(
            run,
            began,
            engine,
            "core.py:101",
            f"Initializing a V1 LLM engine (v0.20.2) with config: model='grebe/{run.model}', speculative_config=None,"
            " max_seq_len=32768, tensor_parallel_size=1, pipeline_parallel_size=1, data_parallel_size=1,"
            " enforce_eager=False, kv_cache_dtype=auto, seed=0, enable_prefix_caching=True",
        )
        took = 38 + run.rng.random() * 9
        _vllm(run, began + 150, engine, "default_loader.py:308", f"Loading weights took {took:.2f} seconds")
        _vllm(run, began + 190, engine, "kv_cache_utils.py:1229", "GPU KV cache size: 1,048,992 tokens")
        _vllm(
            run,
            began + 260,
            engine,
            "gpu_model_runner.py:4244",
            f"Graph capturing finished in {21 + engine.rank} secs, took 1.31 GiB",
        )
        _vllm(
            run,
            began + 270,
            engine,
            "core.py:250",
            f"init engine (profile, create kv cache, warmup model) took {91 + took:.2f} seconds",
        )


def _vllm(run: Run, at: float, engine: Actor, file: str, message: str) -> None:
    run.say(at, engine, f"INFO {run.clock.vllm(at)} [{file}] {message}", "out")


def _rollouts_ready(run: Run, at: float, steps: int) -> None:
    run.log(at, run.entry, "skyrl_train.trainer:build_models:588", "init policy/ref/critic models done")
    client = "skyrl_train.inference_engines.inference_engine_client"
    run.log(
        at + 1,
        run.entry,
        f"{client}:__init__:61",
        f"InferenceEngineClient initialized with {len(run.engines)} engines.",
    )
    run.log(
        at + 2, run.entry, f"{client}:_spin_up:412", f"InferenceEngineClient HTTP endpoint started on {run.ip(0)}:8000"
    )
    rollout = "examples.terminal_bench.rollout_coordinator"
    for c in run.coordinators:
        near = at + 4 + c.rank / 5
        run.log(near, c, f"{rollout}:__init__:201", "[RolloutCoordinator] scaled n_concurrent_trials 192 -> 96 (// 2)")
        run.log(near + 2, c, f"{rollout}:startup:240", f"[RolloutCoordinator {c.rank}] startup complete")
    run.log(at + 8, run.entry, f"{rollout}:__init__:166", "[RolloutDispatcher] 2 coordinators started")
    run.log(at + 10, run.entry, "skyrl_train.trainer:_setup:702", f"Total training steps: {steps}")
