"""What time it is for a watcher, whatever the machine's clock does."""

from pathlib import Path

from dataflow.live_clock import FileClock, LiveClock

SECOND_US = 1_000_000


class Machine:
    """A machine's clocks, turned by hand."""

    def __init__(self) -> None:
        self.wall_us, self.steady_us = 1_000 * SECOND_US, 5 * SECOND_US
        self.clock = LiveClock(lambda: self.wall_us, lambda: self.steady_us)

    def pass_by(self, seconds: float) -> int:
        self.wall_us += int(seconds * SECOND_US)
        self.steady_us += int(seconds * SECOND_US)
        return self.clock()


def test_it_follows_the_machine() -> None:
    machine = Machine()
    assert [machine.pass_by(2.5) for _ in range(3)] == [1_002_500_000, 1_005_000_000, 1_007_500_000]
    assert machine.clock.ahead_us == 0


def test_a_step_forward_is_followed_at_once() -> None:
    machine = Machine()
    machine.wall_us += 3_600 * SECOND_US
    assert machine.pass_by(1) == machine.wall_us
    assert machine.clock.ahead_us == 0


def test_after_a_step_back_it_runs_on_at_half_its_pace_until_both_agree() -> None:
    machine = Machine()
    before = machine.pass_by(1)
    machine.wall_us -= 60 * SECOND_US
    assert machine.clock() == before
    assert machine.pass_by(10) == before + 5 * SECOND_US
    assert machine.clock.ahead_us == 55 * SECOND_US
    seen = [machine.pass_by(1) for _ in range(120)]
    assert seen == sorted(seen)
    assert seen[-1] == machine.wall_us
    assert machine.clock.ahead_us == 0
    assert machine.pass_by(1) == machine.wall_us


def test_a_clock_that_jumps_to_and_fro_never_runs_backwards() -> None:
    machine, seen = Machine(), []
    for jump in (50, -50, 3, -3, 0.4, -0.4, 7_200, -7_200, -7_200):
        machine.wall_us += int(jump * SECOND_US)
        seen += [machine.pass_by(0.25) for _ in range(5)]
    assert seen == sorted(seen)


def test_it_goes_on_from_the_time_of_an_earlier_run_where_the_machine_was_stepped_back_between() -> None:
    machine = Machine()
    before = machine.pass_by(1)
    machine.clock.not_before(before - 5 * SECOND_US)
    assert machine.clock() == before
    machine.clock.not_before(before + 60 * SECOND_US)
    assert machine.pass_by(10) == before + 65 * SECOND_US
    machine.clock.not_before(before + 2 * 86_400 * SECOND_US)
    assert machine.pass_by(10) == before + 70 * SECOND_US


def test_a_steady_clock_that_stands_still_or_goes_back_stops_nothing() -> None:
    machine = Machine()
    machine.steady_us -= SECOND_US
    machine.wall_us += SECOND_US
    assert machine.clock() == machine.wall_us


def test_time_does_not_begin_before_its_file_is_there_and_is_what_the_file_says(tmp_path: Path) -> None:
    path = tmp_path / "clock"
    clock = FileClock(path)
    assert clock() == 0
    path.write_text("2026-05-04T08:00:00.250Z\n")
    assert clock() == 1_777_881_600_250_000
    path.write_text("2026-05-04T07:00:00Z")
    assert clock() == 1_777_881_600_250_000
    for unreadable in (b"", b"\xff\xfe", b"noon"):
        path.write_bytes(unreadable)
        assert clock() == 1_777_881_600_250_000
    path.unlink()
    path.mkdir()
    assert clock() == 1_777_881_600_250_000
