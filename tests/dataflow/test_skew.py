"""A node whose clock is off tells its lines at the job's time, once the same lines in the aggregated log show by how
much."""

from datetime import UTC, datetime, timedelta

from dataflow.capture import open_capture
from dataflow.feed import open_feed
from dataflow.skew import measured
from extractors.trainer import PhaseStarted

START = datetime(2026, 7, 20, 8, 0, tzinfo=UTC)
MINUTE_US = 60_000_000
PID = 4242


def written(folder, lines, *, own_ahead=timedelta(0), printed_ahead=timedelta(0), host="node-a", first=0):
    """A capture whose driver prints a line a minute: the node's file runs ahead by own_ahead, what it forwards shows a
    clock that runs ahead by printed_ahead."""
    forwarded, own = [], []
    for minute in range(lines):
        at = START + timedelta(minutes=minute)
        text = f" | INFO     | skyrl_train.trainer:train:227 - Started: 'phase_{minute // 2 if minute % 2 else 0}'"
        clock = f"{at + printed_ahead:%Y-%m-%d %H:%M:%S}.000"
        if minute >= first:
            forwarded.append(f"[{at:%H:%M:%S}] task=/alice/rl-demo/0 | (skyrl_entrypoint pid={PID}) {clock}{text}")
        own.append(f"{at + own_ahead:%Y-%m-%d %H:%M:%S}.000{text}")
    session = f"ray_session_logs/rank0-{host}/session_2026-07-20_08-00-00_123456_99"
    (folder / session).mkdir(parents=True)
    (folder / session / f"worker-ab12-01000000-{PID}.err").write_text("\n".join(own) + "\n")
    (folder / "finelog.log").write_text("\n".join(forwarded) + "\n")
    return str(folder)


def skews(path):
    anchor_us = int(START.timestamp()) * 1_000_000
    return {host: skew.own_us / MINUTE_US for host, skew in measured(open_capture(path).sources, anchor_us).items()}


def test_node_that_runs_ahead_is_measured(tmp_path):
    assert skews(written(tmp_path, 40, own_ahead=timedelta(minutes=45))) == {"node-a": 45}


def test_node_in_another_time_zone_is_measured_against_the_transports_clock(tmp_path):
    zone = timedelta(hours=-7)
    assert skews(written(tmp_path, 40, own_ahead=zone, printed_ahead=zone)) == {"node-a": -420}


def test_node_on_time_has_no_skew(tmp_path):
    assert skews(written(tmp_path, 40)) == {}


def test_log_whose_head_is_missing_still_tells(tmp_path):
    assert skews(written(tmp_path, 60, own_ahead=timedelta(minutes=45), first=40)) == {"node-a": 45}


def test_few_common_lines_prove_nothing(tmp_path):
    assert skews(written(tmp_path, 4, own_ahead=timedelta(minutes=45))) == {}


def test_phases_of_a_node_that_runs_ahead_stand_at_the_jobs_time(tmp_path):
    path = written(tmp_path, 40, own_ahead=timedelta(hours=2))
    seen = [one for beat in open_feed(path).beats() for one in beat.observations if type(one.signal) is PhaseStarted]
    newest = max(one.at_us for one in seen)
    assert len(seen) == 80
    assert newest == int((START + timedelta(minutes=39)).timestamp()) * 1_000_000
    assert {one.evidence.at_us for one in seen if one.evidence.source != "finelog.log"} <= {one.at_us for one in seen}
