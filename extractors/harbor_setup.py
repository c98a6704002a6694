"""Harbor's rollout side as it sets itself up: how many trials at once, how many coordinators, token alignment.

Serves the launch facts of CONTRACT.md and gate C's «n started». A coordinator names its own share of the trials.
"""

from typing import Any

from extractors.facts import GENERATOR_TRIALS, ConfigFact
from extractors.pattern import Nature, pattern
from extractors.signal import Benign, BringUp, Noted, Teardown


@pattern(
    "harbor",
    Nature.FACT,
    hints=("TerminalBenchGenerator initialized with ", "QueueOrchestrator created and started with "),
    regex=r"TerminalBenchGenerator initialized with [^\n]{0,4000}?\bConcurrent trials: (\d+)"
    r"|QueueOrchestrator created and started with n_concurrent_trials=(\d+)",
    samples={
        "2026-03-04 09:10:00.000 | INFO     | tbench.generator:__init__:210 - TerminalBenchGenerator initialized with "
        "HarborConfigBuilder. Exposed fields: ['agent.name']. Retry config: max_retries=2, backoff=1.0-30.0s. "
        "Concurrent trials: 192. Reward shaping: enabled=False, shaper=none.": ConfigFact(GENERATOR_TRIALS, "192"),
        "QueueOrchestrator created and started with n_concurrent_trials=48, rollback_hook registered for []": (
            ConfigFact(GENERATOR_TRIALS, "48")
        ),
    },
    rejects=("TerminalBenchGenerator initialized with defaults", "QueueOrchestrator created and started with nothing"),
)
def generator_trials(found: Any) -> ConfigFact:
    """How many trials this generator runs at once: all of the job's in the entry task, a coordinator's share with
    fan-out. The retry settings in it are no errors."""
    return ConfigFact(GENERATOR_TRIALS, found[1] or found[2])


@pattern(
    "harbor",
    Nature.FACT,
    hints=("Rollout fan-out ENABLED: ",),
    regex=r"Rollout fan-out ENABLED: [^\n]{0,400}?\(K=(\d+), cpus_per_coordinator=\d+\)",
    samples={
        "Rollout fan-out ENABLED: replacing single-process generator with RolloutDispatcher (K=6, "
        "cpus_per_coordinator=4).": ConfigFact("num_coordinators", "6"),
    },
    rejects=("Rollout fan-out ENABLED: no figures",),
)
def fan_out_enabled(found: Any) -> ConfigFact:
    """The driver will spread the rollouts over K coordinators."""
    return ConfigFact("num_coordinators", found[1])


@pattern(
    "harbor",
    Nature.FACT,
    hints=("[RolloutDispatcher] PlacementGroup ready: ", "[RolloutDispatcher] fan-out path: ", "] constructed (http="),
    regex=r"\[RolloutDispatcher\] (?:(PlacementGroup ready): \d+ bundles|fan-out path: overriding inference host)"
    r"|\[RolloutCoordinator (\d+)/(\d+)\] constructed \(http=",
    samples={
        "[RolloutDispatcher] PlacementGroup ready: 6 bundles x 4 CPU (SPREAD)": BringUp("rollout placement group"),
        "[RolloutDispatcher] fan-out path: overriding inference host 127.0.0.1 -> 10.0.1.1 for the coordinators": (
            BringUp("inference host of the rollouts")
        ),
        "(RolloutCoordinator pid=8001) [RolloutCoordinator 2/6] constructed (http=10.0.1.1:8000)": BringUp(
            "rollout coordinator constructed", of=6
        ),
    },
    rejects=("[RolloutDispatcher] PlacementGroup ready: soon", "[RolloutCoordinator 2] startup complete"),
)
def fan_out_coming_up(found: Any) -> BringUp:
    """A step of the rollout fan-out on its way up. Coordinators count from 0."""
    if found[3]:
        return BringUp("rollout coordinator constructed", of=int(found[3]))
    return BringUp("rollout placement group" if found[1] else "inference host of the rollouts")


@pattern(
    "harbor",
    Nature.BENIGN,
    hints=("] shutdown complete",),
    regex=r"\[RolloutCoordinator (\d+)\] shutdown complete",
    samples={"(RolloutCoordinator pid=8001) [RolloutCoordinator 2] shutdown complete": Teardown("coordinator 2")},
    rejects=("[RolloutCoordinator two] shutdown complete",),
)
def coordinator_closed(found: Any) -> Teardown:
    """A rollout coordinator ended in order, after success and failure alike."""
    return Teardown(f"coordinator {int(found[1])}")


@pattern(
    "harbor",
    Nature.BENIGN,
    hints=("Restarting QueueOrchestrator (attempt ",),
    regex=r"Restarting QueueOrchestrator \(attempt \d+/\d+\)",
    samples={"Restarting QueueOrchestrator (attempt 1/3)": Benign("orchestrator-restart")},
    rejects=("Restarting QueueOrchestrator (attempt failed)",),
)
def orchestrator_restarting(found: Any) -> Benign:
    """The orchestrator's own remedy after a failure; only when its attempts are used up is the batch lost for good."""
    return Benign("orchestrator-restart")


@pattern(
    "harbor",
    Nature.HEARTBEAT,
    hints=("TIS alignment: ", "TIS mode: "),
    regex=r"TIS (?:(alignment): \d+/\d+ tokens exact|mode: (?:(\d+)/\d+|ALL (\d+)) trajectories missing logprobs)",
    samples={
        "TIS alignment: 1980/2000 tokens exact, 12 via LCS fallback, 8 unaligned; 0 messages failed": Noted(
            "tis-alignment"
        ),
        "2026-03-04 09:30:00.000 | WARNING  | tbench.generator:_tis:900 - TIS mode: 12/64 trajectories missing "
        "logprobs (masked)": Noted("tis-logprobs-missing", 12),
        "TIS mode: ALL 64 trajectories missing logprobs. The batch is skipped.": Noted("tis-logprobs-missing", 64),
    },
    rejects=("TIS mode: on", "TIS alignment: fine"),
)
def importance_sampling(found: Any) -> Noted:
    """How well engine tokens and trainer tokens match for truncated importance sampling. `tis/…` metrics say it too."""
    if found[1]:
        return Noted("tis-alignment")
    return Noted("tis-logprobs-missing", int(found[2] or found[3]))


@pattern(
    "harbor",
    Nature.HEARTBEAT,
    hints=("Reward component averages (n=",),
    regex=r"Reward component averages \(n=(\d+)\): ",
    samples={"Reward component averages (n=64): format=0.500, tests=0.125": Noted("reward-components")},
    rejects=("Reward component averages (none)",),
)
def reward_components(found: Any) -> Noted:
    """Shaped rewards of a batch by their parts. The raw reward, which gate C reads, is in metrics and trials."""
    return Noted("reward-components")


PATTERNS = (
    generator_trials,
    fan_out_enabled,
    fan_out_coming_up,
    coordinator_closed,
    orchestrator_restarting,
    importance_sampling,
    reward_components,
)
