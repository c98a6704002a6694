"""The ids of records that were written or seen, by which repeats are known whatever the order in which they come."""

IDS_KEPT = 200_000
"""A week of verdicts of a few hundred jobs; some 30 MB."""


class KnownIds:
    """Remembers the newest so many ids."""

    def __init__(self, kept: int = IDS_KEPT) -> None:
        self._kept = kept
        self._ids: dict[str, None] = {}

    def __contains__(self, id: str) -> bool:
        return id in self._ids

    def add(self, id: str) -> None:
        """Remembers one, and forgets the oldest where there are too many."""
        self._ids[id] = None
        if len(self._ids) > self._kept:
            del self._ids[next(iter(self._ids))]
