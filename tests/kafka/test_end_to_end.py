"""Capture, shipper, a real Kafka, flow processes, verdict topic, consumer: the records are those of the replay."""

from pathlib import Path

import pytest

from tests.kafka.processes import fleet
from tests.live.harness import differing, playing, replayed
from tests.live.test_replay_is_live import OWN, RUN
from tests.said import by_job, replay_of

CAPTURES = sorted(path.parent for path in OWN.glob("*/job.toml"))


@pytest.mark.parametrize(("flows", "partitions"), [(1, 1), (1, 6), (3, 6), (3, 1)])
def test_what_is_shipped_once_is_consumed_byte_for_byte_as_it_is_replayed(
    tmp_path: Path, bootstrap: str, prefix: str, flows: int, partitions: int
) -> None:
    captures = CAPTURES if (flows, partitions) == (3, 6) else CAPTURES[:4]
    expected = by_job(replay_of(*captures))
    with fleet(tmp_path, bootstrap) as each:
        each.topics(partitions)
        each.consume()
        each.flow(flows)
        each.ship_once(*captures)
        each.until_consumed([line for lines in expected.values() for line in lines])
        assert by_job(each.consumed()) == expected


@pytest.mark.parametrize("options", [(), ("--bundle", "--every", "1s")], ids=["one-by-one", "bundled"])
def test_growing_files_that_are_shipped_say_what_the_replay_of_the_finished_ones_says(
    tmp_path: Path, bootstrap: str, prefix: str, options: tuple[str, ...]
) -> None:
    target = tmp_path / "capture"
    target.mkdir()
    with fleet(tmp_path, bootstrap, tmp_path / "clock") as each:
        each.topics(6)
        each.consume()
        each.flow(3)
        each.ship(target, options=options)
        with playing(RUN, target, each.clock, "--torn", "--rate", "450"):
            each.until_played(RUN)
        expected = replayed(target, tmp_path)
        each.until_consumed(expected.lines)
        assert differing(expected.of(each.consumed()), expected.lines) == ""
