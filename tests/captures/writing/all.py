"""The captures by name, each with the function that writes it."""

from collections.abc import Callable

from tests.captures.writing import ended, healthy, stalled
from tests.captures.writing.disk import Files

CAPTURES: dict[str, Callable[[], Files]] = {
    build.__name__: build
    for build in (
        stalled.policy_wedge_behind_live_engines,
        ended.weight_sync_bootstrap_hang,
        ended.engine_death_meta_tensors,
        healthy.lone_watchdog_line,
        stalled.frozen_buffer_without_stacks,
        stalled.frozen_buffer_with_stacks,
        healthy.long_quiet_forward,
        stalled.add_tests_error,
        healthy.one_slot_401_burst,
        healthy.gpu_poll_failed,
        healthy.bring_up,
        ended.clean_exit_missing_ray_logs,
        healthy.healthy_sawtooth,
        ended.completed_run,
        ended.crash_loop_same_failure,
        ended.host_oom_killed,
    )
}
