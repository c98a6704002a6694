"""Options of the test suite."""

import pytest


def pytest_addoption(parser: pytest.Parser) -> None:
    """`--accept` rewrites golden files instead of comparing with them."""
    parser.addoption("--accept", action="store_true", help="rewrite golden files with what the code says now")


@pytest.fixture
def accept(request: pytest.FixtureRequest) -> bool:
    """Whether golden files are to be rewritten."""
    return bool(request.config.getoption("--accept"))
