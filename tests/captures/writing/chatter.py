"""Benign lines: monitors, uploads, notices, and agents that talk of errors all day."""

from tests.captures.writing.run import Run

TALK = (
    "The build stops because the linker was Killed; I lower the job count and rebuild.",
    "Traceback (most recent call last): that is the sample input of the exercise, not our failure.",
    "RuntimeError: CUDA out of memory stands in the log I was given to summarise, at line 88.",
    "After the timeout the retry loop gives error 2, so I check the lock file next.",
)


def monitors(run: Run, start: float, end: float, every: float = 300.0) -> None:
    """fd-monitor and ray-log-sync lines, each `every` seconds."""
    at, used, limit = start + 17, 517.0, 1100.0
    while at < end:
        hour = run.clock.hour(at)
        run.say(
            at,
            run.entry,
            f"[fd-monitor] [{hour}] OK: 1,402 / 1,048,576 FDs open (0.1% of soft limit, hard limit: 1,048,576)",
            "out",
        )
        run.say(
            at,
            run.entry,
            f"[fd-monitor] [{hour}] OK: cgroup mem {used:.2f}/{limit:.2f} GiB ({100 * used / limit:.1f}% of cap),"
            f" peak {used + 9:.2f} GiB",
            "out",
        )
        for rank in range(4):
            run.supervisor(
                at + 20 + rank,
                rank,
                f"[ray-log-sync] uploaded {40 + run.rng.randrange(60)} file(s) / 0.42 GiB (unchanged=311, failed=0) ->"
                f" s3://iris-task-env{run.job}/ray_session_logs/rank{rank}-{run.nodes[rank]} [periodic]",
            )
        at += every


def agents_talk(run: Run, start: float, end: float, every: float = 240.0) -> None:
    """Episodes and per-trial outcomes: content, never events of the job."""
    at, generator = start + 31, "examples.terminal_bench.terminal_bench_generator:_process_result:866"
    while at < end:
        coordinator = run.coordinators[run.rng.randrange(2)]
        words = TALK[run.rng.randrange(len(TALK))]
        run.log(
            at,
            coordinator,
            "harbor.agents.terminus_2.terminus_2:_log_episode:1102",
            f'episode={{"episode": {run.rng.randrange(2, 20)}, "role": "assistant", "content": "{words}"}}',
            "DEBUG",
        )
        run.log(
            at + 40,
            coordinator,
            generator,
            f"Trajectory TrajectoryID(instance_id='/data/tasks/mend-sitemap-{run.rng.randrange(900):04d}',"
            f" repetition_id={run.rng.randrange(8)}) failed with Harbor exception: Agent execution timed out after"
            " 1800.0 seconds (type=AgentTimeoutError, exclude_from_baseline=False)",
            "WARNING",
        )
        at += every


def workers_wait(run: Run, start: float, end: float, every: float = 600.0) -> None:
    """vLLM's broadcast notice, which alone means a worker that waits for work."""
    at = start + every
    while at < end:
        engine = run.engines[0]
        run.say(
            at,
            engine,
            f"INFO {run.clock.vllm(at)} [shm_broadcast.py:501] No available shared memory broadcast block found in 60"
            " seconds. This typically happens when some processes are hanging or doing some time-consuming work"
            " (e.g. compilation, weight/kv cache quantization).",
            "out",
        )
        at += every
