"""Options of the test suite, and which worker runs what."""

from typing import Any

import pytest

TOGETHER = "tests/kafka/"
"""They share one broker, which some of them stop."""


def pytest_addoption(parser: pytest.Parser) -> None:
    """`--accept` rewrites golden files instead of comparing with them."""
    parser.addoption("--accept", action="store_true", help="rewrite golden files with what the code says now")


@pytest.fixture
def accept(request: pytest.FixtureRequest) -> bool:
    """Whether golden files are to be rewritten."""
    return bool(request.config.getoption("--accept"))


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> Any:
    """Gives each worker one test after the other (`-n`), and one of them all that belong together."""
    from xdist.scheduler import LoadScopeScheduling

    class Scheduling(LoadScopeScheduling):
        def _split_scope(self, nodeid: str) -> str:
            return TOGETHER if nodeid.startswith(TOGETHER) else nodeid

    return Scheduling(config, log)
