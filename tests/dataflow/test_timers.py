"""When a probe runs again: on its timer, less often while it fails, never at once. Time is handed in."""

from pathlib import Path

import pytest

from dataflow.timers import LONGEST_BACKOFF, Series, Timers


def series(probe: str = "state", every: float = 60.0) -> Series:
    return Series("/kim/rl-demo", Path("/capture"), probe, "", ("poll",), every, timeout=20.0)


def test_probe_is_due_on_its_own_timer_from_the_beginning_of_its_last_run() -> None:
    timers = Timers()
    timers.add(series(), 0.0)
    taken = timers.take(0.0)
    assert taken is not None
    assert timers.take(1_000.0) is None
    assert timers.wait(0.0) is None
    assert timers.ended(taken, began=0.0, now=9.0, failed=False) == 60.0
    assert timers.take(59.9) is None
    assert timers.wait(59.0) == 1.0
    assert timers.take(60.0) is taken


def test_what_is_due_longest_goes_first() -> None:
    timers = Timers()
    for probe, at in (("gpu", 3.0), ("state", 1.0), ("pods", 1.0)):
        timers.add(series(probe), at)
    order = [taken.probe for _ in range(3) if (taken := timers.take(5.0))]
    assert order == ["state", "pods", "gpu"]


def test_probe_that_takes_longer_than_its_timer_still_pauses() -> None:
    timers = Timers()
    assert timers.ended(series(every=10.0), began=0.0, now=25.0, failed=False) == 26.0


@pytest.mark.parametrize("draw", [0.0, 0.5, 1.0])
def test_failing_probe_backs_off_within_bounds_and_returns_to_its_timer_at_once(draw: float) -> None:
    timers, failing = Timers(jitter=lambda: draw), series(every=60.0)
    waits = [timers.ended(failing, began=0.0, now=0.0, failed=True) for _ in range(2_000)]
    spread = 0.9 + 0.2 * draw
    assert waits[:4] == pytest.approx([120 * spread, 240 * spread, LONGEST_BACKOFF * spread, LONGEST_BACKOFF * spread])
    assert waits[-1] == pytest.approx(LONGEST_BACKOFF * spread)
    assert timers.ended(failing, began=0.0, now=0.0, failed=False) == 60.0
    assert timers.ended(failing, began=0.0, now=0.0, failed=True) == pytest.approx(120 * spread)


def test_slow_timer_is_never_made_faster_by_a_failure() -> None:
    assert Timers(jitter=lambda: 0.5).ended(series(every=7_200.0), 0.0, 0.0, failed=True) == pytest.approx(7_200.0)
