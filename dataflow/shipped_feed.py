"""The files of a shipped job, as its feed asks for them."""

from collections.abc import Callable

from dataflow.capture import Source
from dataflow.families import GoesOn
from dataflow.live_source import LiveSource
from dataflow.shelf import Shelf
from dataflow.shipped_files import ShippedFiles


def followed(shelf: Shelf, given: list[ShippedFiles]) -> Callable[..., ShippedFiles]:
    """What a feed calls to have its files; they are put into given, too."""

    def follow(
        path: str,
        lateness_us: int,
        make: Callable[[Source, int], LiveSource],
        take: Callable[[LiveSource], None],
        asked: Callable[[LiveSource, GoesOn | None], None],
    ) -> ShippedFiles:
        del path, lateness_us, asked
        given.append(ShippedFiles(shelf, make, take))
        return given[-1]

    return follow
