"""What the speakers of errors make of whole pieces of log: chains, headlines, advice, torn and glued lines."""

from extractors.nccl import CommInit
from extractors.sample import read_sample
from extractors.signal import Benign, Fault
from extractors.vllm import EngineLoad

DEVICE_FAULT = """RuntimeError: CUDA error: an illegal memory access was encountered
CUDA kernel errors might be asynchronously reported at some other API call, so the stacktrace below might be incorrect.
For debugging consider passing CUDA_LAUNCH_BLOCKING=1
Compile with `TORCH_USE_CUDA_DSA` to enable device-side assertions."""

REMOTE_CHAIN = """Traceback (most recent call last):
  File "/opt/app/main.py", line 8, in main
    ray.get(entry.remote())
ray.exceptions.RayTaskError(DistBackendError): ray::entry() (pid=31337, ip=10.1.0.4)
  File "/opt/app/engine.py", line 51, in join
    group.broadcast(probe)
torch.distributed.DistBackendError: [2] is setting up NCCL communicator and retrieving ncclUniqueId from [0] via c10d \
key-value store by key '0', but store->get('0') got error: wait timeout after 600000ms, keys: /default_pg/0//cuda//0."""


def patterns_of(text: str) -> list[str]:
    """The names of the patterns that read something."""
    return [name for name, _ in read_sample(text)]


def test_advice_under_an_error_anchors_nothing() -> None:
    assert patterns_of(DEVICE_FAULT) == ["cuda_error"]


def test_a_chain_of_remote_tasks_is_one_error_and_its_last_line_names_it() -> None:
    assert patterns_of(REMOTE_CHAIN) == ["store_wait_timeout"]


def test_an_engine_headline_and_its_traceback_are_two_readings_of_one_place() -> None:
    prefix = "ERROR 03-14 09:40:00 [core.py:1101] "
    lines = (
        "EngineCore encountered a fatal error.",
        "Traceback (most recent call last):",
        '  File "/venv/vllm/v1/engine/core.py", line 1092, in run_busy_loop',
        "NotImplementedError: Could not run '_C::norm' with arguments from the 'Meta' backend.",
    )
    read = patterns_of("\n".join(prefix + line for line in lines))
    assert read == ["engine_core_fatal", "engine_meta_tensors"]


def test_a_torn_statistics_line_gives_no_figures() -> None:
    head = "INFO 03-14 09:26:53 [loggers.py:248] Engine 000: "
    torn = head + "Avg prompt throughput: 7.0 tokens/s, Avg generation throughput: 3"
    assert not [signal for _, signal in read_sample(torn) if isinstance(signal, EngineLoad)]


def test_a_rank_inside_a_sub_group_names_no_rank_of_the_job() -> None:
    thrown = (
        "  what():  [PG ID {} Rank 1] Process group watchdog thread terminated with exception: CUDA error: misaligned"
    )
    ((_, inside),) = read_sample(thrown.format("4 PG GUID 31(tensor)"))
    ((_, default),) = read_sample(thrown.format("0 PG GUID 0(default_pg)"))
    assert isinstance(inside, Fault)
    assert inside.rank is None
    assert isinstance(default, Fault)
    assert default.rank == 1


def test_a_split_without_its_own_id_is_grouped_by_its_colour() -> None:
    line = (
        "n1:9:9 [0] NCCL INFO ncclCommSplit comm 0xa rank {} nranks 2 cudaDev 0 nvmlDev 0 busId 18000 parent 0xb "
        "color {} key 0- Init START"
    )
    groups = {
        (signal.group, signal.rank)
        for rank, color in ((0, 1), (1, 1), (0, 2))
        for _, signal in read_sample(line.format(rank, color))
        if isinstance(signal, CommInit)
    }
    assert groups == {("color 1", 0), ("color 1", 1), ("color 2", 0)}


def test_an_orderly_stop_and_a_bare_kill_are_no_faults() -> None:
    text = "2031-03-14 09:59:04,815\tVINFO scripts.py:1254 -- Killed `ray::IDLE` (via SIGKILL)\nKilled"
    signals = [signal for _, signal in read_sample(text)]
    assert not [signal for signal in signals if isinstance(signal, Fault)]
    assert signals[-1] == Benign("killed-by-unknown-hand")


def test_words_of_death_inside_an_agents_message_are_not_read() -> None:
    words = "Killed\\nTraceback (most recent call last): CUDA out of memory. Segmentation fault (core dumped)"
    quoted = f'{{"role": "tool", "content": "{words}"}}'
    assert read_sample(quoted) == []
