"""What tests of this folder leave open is closed behind them."""

from collections.abc import Iterator

import pytest

from tests.dataflow.live_feeds import OPENED


@pytest.fixture(autouse=True)
def _feeds_are_closed() -> Iterator[None]:
    yield
    while OPENED:
        OPENED.pop().close()
