"""Public logs, where they are at hand: no healthy run is killed, no death is missed, nothing is quoted wrong."""

from pathlib import Path

import pytest

from tests.captures import contract, quotes
from tests.captures.public_logs import (
    bare,
    capture,
    completed_ranks,
    corpus,
    fate,
    final,
    log_of,
    may_succeed,
    missing_ranks,
    records,
    views,
)

CORPUS = corpus()
LOGS = {} if CORPUS is None else {each.parent.name: log_of(each.parent) for each in sorted(CORPUS.glob("*/meta.json"))}
FATES = {name: fate(CORPUS / name) for name, log in LOGS.items() if log is not None and CORPUS is not None}
HEALTHY = [name for name, said in FATES.items() if said == "healthy"]
SUCCEEDING = [name for name in HEALTHY if CORPUS is not None and may_succeed(CORPUS / name)]
DEAD = [name for name, said in FATES.items() if said == "dead"]
COMMUNICATORS = [name for name in FATES if CORPUS is not None and completed_ranks(CORPUS / name)]
RECORDED = [] if CORPUS is None else [each.parent for each in sorted(CORPUS.glob("*/reference_missing_ranks.txt"))]
HOURS = 4 * 3600


def log(name: str) -> Path:
    found = LOGS[name]
    assert found is not None
    return found


@pytest.mark.parametrize("name", FATES)
def test_log_alone_is_never_a_kill_since_no_poll_tells_the_state(name: str) -> None:
    assert bare(log(name))["verdict"] == "ERROR"


@pytest.mark.parametrize("name", FATES)
def test_records_of_a_public_log_keep_the_contract_and_its_words(name: str) -> None:
    said = records(log(name))
    assert not contract.faults(said)
    assert not quotes.misquotes(log(name).parent, said)


@pytest.mark.parametrize("name", HEALTHY)
def test_healthy_run_is_not_killed_a_minute_after_its_last_line(name: str, tmp_path: Path) -> None:
    assert final(capture(log(name), tmp_path, "running", 60))["verdict"] != "KILL"


@pytest.mark.parametrize("name", HEALTHY)
def test_healthy_run_whose_log_stops_is_killed_only_where_training_was_done(name: str, tmp_path: Path) -> None:
    verdict = final(capture(log(name), tmp_path, "running", HOURS))
    done = verdict["gates"]["A"]["reason"].startswith("Training was done")
    assert verdict["verdict"] != "KILL" or done


@pytest.mark.parametrize("name", SUCCEEDING)
def test_healthy_run_that_succeeded_is_not_killed(name: str, tmp_path: Path) -> None:
    assert final(capture(log(name), tmp_path, "succeeded", 60))["verdict"] != "KILL"


@pytest.mark.parametrize("name", DEAD)
def test_death_is_told_with_its_first_cause(name: str, tmp_path: Path) -> None:
    verdict = final(capture(log(name), tmp_path, "failed", 60))
    assert (verdict["verdict"], verdict["gates"]["A"]["condition"]) == ("KILL", "DEAD")
    assert "The first cause is" in verdict["gates"]["A"]["reason"]


@pytest.mark.parametrize("name", COMMUNICATORS)
def test_ranks_that_completed_are_counted_and_no_rank_is_missed_by_mistake(name: str) -> None:
    seen = views(log(name), "nccl")["nccl"]
    for size, completed in completed_ranks(log(name).parent):
        told = [each.completed_count for each in seen.communicators if each.ranks == size]
        assert completed in told or (seen.complete and completed == size)
    assert not [each for each in seen.communicators if each.absent or each.unfinished]


@pytest.mark.parametrize("item", RECORDED, ids=lambda item: item.name)
def test_ranks_that_flight_recorders_show_to_be_missing_are_those_of_the_reference(item: Path) -> None:
    seen = views(item, "nccl")["flights"].absences
    assert {(each.operation, each.missing) for each in seen} == missing_ranks(item)


@pytest.mark.skipif(CORPUS is not None, reason="public logs are at hand and tested above")
def test_public_logs_are_at_hand() -> None:
    pytest.skip("no public logs: set WEDGEWATCH_SHARED to a folder that holds them in corpus/")
