"""The store as a watch writes it: mended where it is damaged, opened anew after each failure."""

import shutil
from collections.abc import Callable
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from dataflow.sinks import Debts
from state.mending import mended
from state.store import Store, StoreError

Record = dict[str, Any]

COPIES = 3
"""Of damaged stores that are kept, the newest ones."""


class KeptStore:
    """A Store that lasts. tell takes notes for standard error. was_mended says that it was repaired when it was opened,
    so that records may be gone from it, which a reading of all logs from the start gives again; a repair later on is a
    debt, for which the next run reads them so.

    RocksDB takes no more writes after one that failed, so it is closed then and opened with the next record; a Patient
    brings the failed one again. Raises StoreError where it can't be opened.
    """

    def __init__(self, folder: Path, tell: Callable[[str], None], debts: Debts) -> None:
        self._folder = folder
        self._tell = tell
        self._debts = debts
        self._mended = False
        self._store: Store | None = self._opened()
        self.was_mended, self._mended = self._mended, False

    def write(self, record: Record) -> None:
        """Takes one record. Raises StoreError."""
        if self._store is None:
            self._store = self._opened()
        try:
            self._store.write(record)
        except StoreError as error:
            with suppress(StoreError):
                self.close()
            if error.damaged:
                self._mend()
            raise
        if self._mended:
            self._mended = False
            self._debts.owes(f"{self._folder}, mended")

    def force(self) -> None:
        """Has the disk keep what was written. Raises StoreError."""
        if self._store is not None:
            self._store.force()

    def close(self) -> None:
        """Ends the writing. Raises StoreError."""
        store, self._store = self._store, None
        if store is not None:
            store.close()

    def _opened(self) -> Store:
        try:
            return Store(self._folder)
        except StoreError as error:
            if not error.damaged:
                raise
        self._mend()
        return Store(self._folder)

    def _mend(self) -> None:
        self._tell(mended(self._folder, f"quarantine-{datetime.now(UTC):%Y%m%dT%H%M%S%fZ}"))
        for old in sorted(self._folder.glob("quarantine-*"))[:-COPIES]:
            shutil.rmtree(old, ignore_errors=True)
        self._mended = True
