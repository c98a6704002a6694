"""Configuration as the logs show it: YAML dump, hydra overrides on a command line, environment, vLLM's own arguments.

Keys are matched by their leaf, since their paths differ between releases. Serves the launch facts of CONTRACT.md.
"""

from typing import Any

import msgspec

from extractors.pattern import Nature, Role, pattern
from extractors.signal import Fault


class ConfigFact(msgspec.Struct, frozen=True):
    """One configured value, as written. key is the leaf (or the environment variable's name)."""

    key: str
    value: str


class ConfigFacts(msgspec.Struct, frozen=True):
    """The configured values that one line carries, in its order."""

    facts: tuple[ConfigFact, ...]


KEYS = (
    "max_num_seqs",
    "num_inference_engines",
    "inference_engine_tensor_parallel_size",
    "enforce_eager",
    "n_concurrent_trials",
    "num_coordinators",
    "max_staleness_steps",
    "num_parallel_generation_workers",
    "policy_num_nodes",
    "colocate_all",
    "max_steps",
    "max_buffered_groups",
    "cpus_per_coordinator",
    "inference_engine_pipeline_parallel_size",
    "inference_engine_data_parallel_size",
    "inference_engine_expert_parallel_size",
    "gpu_memory_utilization",
    "policy_num_gpus_per_node",
    "policy_strict_spread_pg",
    "use_tis",
    "resume_mode",
)
STRATEGY = "strategy"
"""The trainer's `strategy` (fsdp, fsdp2, megatron, deepspeed): a word so common that its values are the hints."""
_STRATEGIES = ("fsdp", "megatron", "deepspeed")
GENERATOR_TRIALS = "generator_concurrent_trials"
"""What one generator says of its trials at once: the job's figure, unless it is a coordinator's share."""
VARIABLES = (
    "NUM_INFERENCE_ENGINES",
    "TENSOR_PARALLEL_SIZE",
    "POLICY_NUM_NODES",
    "IRIS_NUM_TASKS",
    "IRIS_TASK_ID",
    "SKYRL_W13_RELOAD_BRACKET",
    "SKYRL_R3_RESIDENT",
    "SKYRL_PROGRESS_HEARTBEAT_S",
    "SKYRL_WORKER_NCCL_TIMEOUT_IN_S",
    "TORCH_NCCL_HEARTBEAT_TIMEOUT_SEC",
    "VLLM_EXECUTE_MODEL_TIMEOUT_SECONDS",
)
_UNSET = ("<unset>", "null", "None", "")


@pattern(
    "facts",
    Nature.FACT,
    hints=(*KEYS, *(f"{STRATEGY}: {name}" for name in _STRATEGIES)),
    regex=rf"\s*({'|'.join(KEYS)}|{STRATEGY}(?=: (?:{'|'.join(_STRATEGIES)})\d?\s*$)): ([\w.-]+)\s*$",
    samples={
        "(skyrl_entrypoint pid=5150)   max_num_seqs: 96": ConfigFact("max_num_seqs", "96"),
        "    n_concurrent_trials: 192": ConfigFact("n_concurrent_trials", "192"),
        "  num_inference_engines: 4": ConfigFact("num_inference_engines", "4"),
        "  inference_engine_tensor_parallel_size: 2": ConfigFact("inference_engine_tensor_parallel_size", "2"),
        "  num_coordinators: 4": ConfigFact("num_coordinators", "4"),
        "  max_staleness_steps: 4": ConfigFact("max_staleness_steps", "4"),
        "    policy_num_nodes: 2": ConfigFact("policy_num_nodes", "2"),
        "    colocate_all: true": ConfigFact("colocate_all", "true"),
        "  max_steps: 120": ConfigFact("max_steps", "120"),
        "  enforce_eager: true": ConfigFact("enforce_eager", "true"),
        "  num_parallel_generation_workers: 128": ConfigFact("num_parallel_generation_workers", "128"),
        "  max_buffered_groups: 96": ConfigFact("max_buffered_groups", "96"),
        "  cpus_per_coordinator: 4": ConfigFact("cpus_per_coordinator", "4"),
        "  inference_engine_pipeline_parallel_size: 1": ConfigFact("inference_engine_pipeline_parallel_size", "1"),
        "  inference_engine_data_parallel_size: 1": ConfigFact("inference_engine_data_parallel_size", "1"),
        "  inference_engine_expert_parallel_size: 2": ConfigFact("inference_engine_expert_parallel_size", "2"),
        "  gpu_memory_utilization: 0.85": ConfigFact("gpu_memory_utilization", "0.85"),
        "    policy_num_gpus_per_node: 8": ConfigFact("policy_num_gpus_per_node", "8"),
        "    policy_strict_spread_pg: false": ConfigFact("policy_strict_spread_pg", "false"),
        "    use_tis: true": ConfigFact("use_tis", "true"),
        "  resume_mode: latest": ConfigFact("resume_mode", "latest"),
        "  strategy: fsdp2": ConfigFact("strategy", "fsdp2"),
        "  strategy: megatron": ConfigFact("strategy", "megatron"),
    },
    rejects=(
        "  max_num_seqs: null",
        "  max_num_seqs: 96 would be too many, I think",
        "  strategy: fsdp2 or megatron",
    ),
)
def yaml_value(found: Any) -> ConfigFact | None:
    """A line of the trainer's YAML dump at start (`get_cfg_as_str`): the resolved configuration, defaults included."""
    return None if found[2] in _UNSET else ConfigFact(found[1], found[2])


@pattern(
    "facts",
    Nature.FACT,
    hints=(*KEYS, *(f"{STRATEGY}={name}" for name in _STRATEGIES)),
    samples={
        "[09:10:00] task=/bob/rl-14b/0 |   python -m skyrl_train.entrypoints.main_base trainer.strategy=fsdp2 "
        "generator.max_num_seqs=96 ++terminal_bench_config.harbor.n_concurrent_trials=192": ConfigFacts(
            (
                ConfigFact("strategy", "fsdp2"),
                ConfigFact("max_num_seqs", "96"),
                ConfigFact("n_concurrent_trials", "192"),
            )
        ),
        "[task-runtime]   python3 -m skyrl_train.entrypoints.main_base trainer.max_steps=120": ConfigFacts(
            (ConfigFact("max_steps", "120"),)
        ),
        "+ srun python examples/async/main_async.py 'generator.enforce_eager=false'": ConfigFacts(
            (ConfigFact("enforce_eager", "false"),)
        ),
        "  generator.num_inference_engines=4 \\": ConfigFacts((ConfigFact("num_inference_engines", "4"),)),
        "- trainer.placement.policy_num_nodes=2": ConfigFacts((ConfigFact("policy_num_nodes", "2"),)),
        "trainer.placement.colocate_all=true \\": ConfigFacts((ConfigFact("colocate_all", "true"),)),
        "python -m skyrl_train.entrypoints.main_base trainer.strategy=megatron generator.gpu_memory_utilization=0.85 "
        "trainer.algorithm.use_tis=true trainer.resume_mode=from_path": ConfigFacts(
            (
                ConfigFact("strategy", "megatron"),
                ConfigFact("gpu_memory_utilization", "0.85"),
                ConfigFact("use_tis", "true"),
                ConfigFact("resume_mode", "from_path"),
            )
        ),
        "python -m skyrl_train.entrypoints.main_fully_async generator.inference_engine_tensor_parallel_size=2 "
        "generator.num_coordinators=4 trainer.max_staleness_steps=4 "
        "trainer.fully_async.num_parallel_generation_workers=128": ConfigFacts(
            (
                ConfigFact("inference_engine_tensor_parallel_size", "2"),
                ConfigFact("num_coordinators", "4"),
                ConfigFact("max_staleness_steps", "4"),
                ConfigFact("num_parallel_generation_workers", "128"),
            )
        ),
    },
    rejects=(
        "SchedulerConfig(max_num_seqs=96, policy=fcfs)",
        "We should try generator.max_num_seqs=96 next",
        "Could not override 'generator.max_num_seqs=96'.",
    ),
)
def overrides(text: str) -> ConfigFacts | None:
    """Hydra overrides on the driver's command line (the supervisor's launch line, a Slurm `set -x` echo, a script's
    continuation line). What was asked for; the YAML dump says what it came to."""
    words = text.removeprefix("[task-runtime]").removeprefix("[start_rl_iris_controller]").split()
    while words and words[0] in ("+", "-", "++"):
        del words[0]
    commanded = any(word.endswith(".py") or word in ("-m", "python", "python3") for word in words)
    if not words or not (commanded or _override(words[0])):
        return None
    facts = tuple(fact for fact in map(_override, words) if fact is not None)
    return ConfigFacts(facts) if facts else None


def _override(word: str) -> ConfigFact | None:
    path, equals, value = word.strip("'\"").lstrip("+").partition("=")
    parents, _, key = path.rpartition(".")
    named = key in KEYS or (key == STRATEGY and value.startswith(_STRATEGIES))
    known = equals and named and parents.replace(".", "").replace("_", "").isalnum()
    return ConfigFact(key, value) if known and value not in _UNSET else None


@pattern(
    "facts",
    Nature.FACT,
    hints=tuple(f"{name}=" for name in VARIABLES),
    regex=rf"(?:\s+|\+ +|export +|\+ +export +)?({'|'.join(VARIABLES)})=(\S*)\s*$",
    samples={
        "[09:00:01] task=/bob/rl-14b/0 |   NUM_INFERENCE_ENGINES=4": ConfigFact("NUM_INFERENCE_ENGINES", "4"),
        "  POLICY_NUM_NODES=2": ConfigFact("POLICY_NUM_NODES", "2"),
        "  IRIS_NUM_TASKS=8": ConfigFact("IRIS_NUM_TASKS", "8"),
        "  SKYRL_W13_RELOAD_BRACKET=1": ConfigFact("SKYRL_W13_RELOAD_BRACKET", "1"),
        "  IRIS_TASK_ID=/bob/rl-14b/0:1": ConfigFact("IRIS_TASK_ID", "/bob/rl-14b/0:1"),
        "+ export TENSOR_PARALLEL_SIZE=2": ConfigFact("TENSOR_PARALLEL_SIZE", "2"),
        "  SKYRL_R3_RESIDENT=1": ConfigFact("SKYRL_R3_RESIDENT", "1"),
        "  SKYRL_PROGRESS_HEARTBEAT_S=30": ConfigFact("SKYRL_PROGRESS_HEARTBEAT_S", "30"),
        "  SKYRL_WORKER_NCCL_TIMEOUT_IN_S=7200": ConfigFact("SKYRL_WORKER_NCCL_TIMEOUT_IN_S", "7200"),
        "  TORCH_NCCL_HEARTBEAT_TIMEOUT_SEC=3600": ConfigFact("TORCH_NCCL_HEARTBEAT_TIMEOUT_SEC", "3600"),
        "  VLLM_EXECUTE_MODEL_TIMEOUT_SECONDS=900": ConfigFact("VLLM_EXECUTE_MODEL_TIMEOUT_SECONDS", "900"),
    },
    rejects=("  NUM_INFERENCE_ENGINES=<unset>", "echo NUM_INFERENCE_ENGINES=4 >> env.sh"),
)
def environment_value(found: Any) -> ConfigFact | None:
    """A line of the supervisor's environment snapshot, or a launch script's export. `<unset>` says nothing."""
    return None if found[2] in _UNSET else ConfigFact(found[1], found[2])


@pattern(
    "facts",
    Nature.FACT,
    hints=("non-default args: {",),
    regex=r"non-default args: (\{[^\n]*)",
    samples={
        "(APIServer pid=10) INFO 03-04 09:05:00 [utils.py:233] non-default args: {'model': 'org/m', "
        "'max_num_seqs': 96, 'enforce_eager': True}": ConfigFacts(
            (ConfigFact("max_num_seqs", "96"), ConfigFact("enforce_eager", "True"))
        ),
    },
    rejects=("non-default args: {'model': 'org/m'}", "The non-default args: {'max_num_seqs': 96} are the cause"),
)
def engine_arguments(found: Any) -> ConfigFacts | None:
    """vLLM's API server tells what it was given beyond its defaults; an in-process engine never prints it."""
    pairs = (pair.strip(" {}").partition(": ") for pair in found[1].split(", "))
    facts = tuple(ConfigFact(key.strip("'"), value) for key, _, value in pairs if key.strip("'") in KEYS)
    return ConfigFacts(facts) if facts else None


@pattern(
    "facts",
    Nature.FACT,
    hints=("[RolloutDispatcher] configured num_coordinators=", "[RolloutCoordinator] scaled n_concurrent_trials "),
    regex=r"\[RolloutDispatcher\] configured num_coordinators=(\d+)"
    r"|\[RolloutCoordinator\] scaled n_concurrent_trials (\d+) -> \d+ \(// \d+\)",
    samples={
        "[RolloutDispatcher] configured num_coordinators=4, cpus_per_coordinator=8": ConfigFact(
            "num_coordinators", "4"
        ),
        "(RolloutCoordinator pid=8001) [RolloutCoordinator] scaled n_concurrent_trials 192 -> 48 (// 4)": ConfigFact(
            "n_concurrent_trials", "192"
        ),
    },
    rejects=("[RolloutCoordinator] scaled n_concurrent_trials down",),
)
def coordinator_value(found: Any) -> ConfigFact:
    """The rollout fan-out's own figures. After the scaling each coordinator names its share of the trials: only the
    figure before the arrow is the job's."""
    return ConfigFact("num_coordinators", found[1]) if found[1] else ConfigFact("n_concurrent_trials", found[2])


@pattern(
    "facts",
    Nature.FAULT,
    role=Role.ROOT,
    hints=("Could not override '", "' is not in struct", "': Could not find '"),
    regex=r"(?:(?:[\w.]+\.)?(\w+(?:Exception|Error)): )?(?P<what>Could not override '(?P<over>[\w.+=-]+)'"
    r"|Key '(?P<key>\w+)' is not in struct|In '[\w./-]+': Could not find '(?P<group>[\w./-]+)')",
    samples={
        "Could not override 'generator.sampler'.": Fault(
            "config_error", detail="Could not override 'generator.sampler'", entity="generator.sampler"
        ),
        "hydra.errors.ConfigCompositionException: Could not override 'generator.sampler'.": Fault(
            "config_error",
            detail="Could not override 'generator.sampler'",
            exception="ConfigCompositionException",
            entity="generator.sampler",
        ),
        "Key 'sampler' is not in struct": Fault(
            "config_error", detail="Key 'sampler' is not in struct", entity="sampler"
        ),
        "In 'ppo_base': Could not find 'megatron_config/large'": Fault(
            "config_error",
            detail="In 'ppo_base': Could not find 'megatron_config/large'",
            entity="megatron_config/large",
        ),
    },
    rejects=("Could not override ''", "The Key 'a' is not in struct, says the agent"),
)
def config_refused(found: Any) -> Fault:
    """Hydra refused the configuration, within seconds of the driver's launch and before any model: the same command
    fails the same way each time. The hint `HYDRA_FULL_ERROR=1` after it is only advice."""
    entity = found["over"] or found["key"] or found["group"]
    return Fault("config_error", detail=found["what"], exception=found[1] or "", entity=entity)


PATTERNS = (
    yaml_value,
    overrides,
    environment_value,
    engine_arguments,
    coordinator_value,
    config_refused,
)
