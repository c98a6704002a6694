"""The facts: job.toml first, then the first word of the logs, and where each was said."""

from typing import Any

from extractors.facts import GENERATOR_TRIALS, ConfigFact, ConfigFacts
from extractors.supervisor import RoleAssigned
from extractors.vllm import EngineConfigured
from state.tracker import AttemptStarted
from state.trackers.facts import FactsTracker, FactsView
from tests.builders import saw
from tests.state.resources_cases import declared


def _after(*observations: Any) -> FactsView:
    tracker = FactsTracker()
    for seen in observations:
        tracker.FOLDS[type(seen.signal)](tracker, seen)
    return FactsTracker.restore(tracker.snapshot()).view()


def test_job_toml_wins_over_the_logs() -> None:
    view = _after(declared(max_num_seqs=32), saw(5, ConfigFact("max_num_seqs", "1024")))
    assert view.facts.max_num_seqs == 32
    assert view.sources["max_num_seqs"].source == "job.toml"


def test_what_job_toml_leaves_out_comes_from_the_logs_with_its_place() -> None:
    view = _after(declared(), saw(5, ConfigFact("enforce_eager", "True"), line=77))
    assert view.facts.enforce_eager is True
    assert (view.sources["enforce_eager"].source, view.sources["enforce_eager"].line) == ("finelog.log", 77)


def test_the_first_word_of_the_logs_stands() -> None:
    said = ConfigFacts((ConfigFact("n_concurrent_trials", "96"), ConfigFact("num_coordinators", "3")))
    view = _after(saw(5, said), saw(9, ConfigFact("n_concurrent_trials", "32")))
    assert (view.facts.n_concurrent_trials, view.facts.num_coordinators) == (96, 3)


def test_a_new_attempt_is_configured_anew() -> None:
    view = _after(
        saw(5, ConfigFact("max_steps", "40")), saw(50, AttemptStarted(1)), saw(60, ConfigFact("max_steps", "60"))
    )
    assert view.facts.max_steps == 60


def test_job_toml_outlives_an_attempt() -> None:
    assert _after(declared(), saw(50, AttemptStarted(1))).facts.max_num_seqs == 32


def test_engines_and_roles_say_facts_of_their_own() -> None:
    view = _after(saw(5, EngineConfigured(2, False, 8192, "0.20.2")), saw(6, RoleAssigned("head", 0, 6)))  # type: ignore[arg-type]
    assert (view.facts.tensor_parallel_size, view.facts.enforce_eager, view.facts.nodes) == (2, False, 6)


def test_a_value_that_is_no_number_is_no_fact() -> None:
    view = _after(saw(5, ConfigFact("max_num_seqs", "null")), saw(6, ConfigFact("num_inference_engines", "0")))
    assert (view.facts.max_num_seqs, view.facts.engine_count) == (None, None)
    assert view.sources == {}


def test_a_staleness_limit_of_zero_is_a_limit() -> None:
    assert _after(saw(5, ConfigFact("max_staleness_steps", "0"))).facts.max_staleness_steps == 0


def test_a_generators_trials_are_the_jobs_unless_a_coordinator_says_them() -> None:
    said = ConfigFact(GENERATOR_TRIALS, "48")
    assert _after(saw(5, said, actor="RolloutCoordinator")).facts.n_concurrent_trials is None
    assert _after(saw(5, said, actor="skyrl_entrypoint")).facts.n_concurrent_trials == 48


def test_the_retries_that_the_launchers_command_line_allows_are_known() -> None:
    assert _after(saw(5, ConfigFact("max_retries", "0"))).facts.max_retries == 0
