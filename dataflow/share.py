"""How several flow processes share the partitions of the topics between them."""

from typing import NamedTuple


class Share(NamedTuple):
    """Which of several processes this one is, from 1, and of how many."""

    number: int = 1
    of: int = 1

    def __str__(self) -> str:
        return f"{self.number}/{self.of}"

    def has(self, partition: int, partitions: int) -> bool:
        """Whether a partition is this process's."""
        del partitions
        return partition % self.of == self.number - 1


WHOLE = Share()
"""One process has them all."""
