"""What a watch keeps on disk between its runs, in `<store>/watch/`, and who may use it.

    lock          held while a watch runs; its process id stands in it
    fingerprint   what wrote the recovery: its steps, shards and versions
    recovery/     the engine's memory of how far it came
    journal/      what was released when, by job
    told/         what was last said where that can't be read back
    written       there while no record waits to be written
    quarantine-*  recoveries that couldn't be used, the newest few

Recovery is a cache and the logs are the truth: what can't be used is moved aside, the logs are read again from the
start, and the sinks drop what they have. Nothing is lost by it but time.
"""

import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from datetime import UTC, datetime
from pathlib import Path
from threading import Lock

from dataflow.appended import force_names
from dataflow.recovery import begin, damage
from dataflow.state_lock import StateError, locked, telling

__all__ = ["QUARANTINES", "StateError", "StateFolder", "held"]

QUARANTINES = 3
"""How many are kept; older ones are removed when one is added."""

_WATCH = "watch"
_AGAIN = "the logs are read again from the start, and nothing is said twice"


class StateFolder:
    """The state of one watch, held by it. notes says what was done about it, for standard error."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.recovery = folder / "recovery"
        self.journal = folder / "journal"
        self.told = folder / "told"
        self.notes: list[str] = []
        self._written = folder / "written"
        self._owing: set[str] = set()
        self._guard = Lock()

    def quarantine(self, why: str) -> None:
        """Moves the recovery aside and begins a fresh one, with a note. The engine must not run. Raises StateError."""
        with telling(self.folder, _WATCH):
            aside = self._aside()
            self.notes.append(f"{self.recovery}: {why}; it was moved to {aside.name}, {_AGAIN}")
            self._fresh()

    def owes(self, sink: str) -> None:
        """A sink has a record that it couldn't write. A watch that ends before it is paid begins anew the next time,
        so that the record is said then. Takes no room on the disk. Raises nothing."""
        with self._guard, suppress(OSError):
            self._owing.add(sink)
            self._written.unlink(missing_ok=True)
            force_names(self.folder)

    def paid(self, sink: str) -> None:
        """A sink has written all it had. Raises nothing."""
        with self._guard, suppress(OSError):
            self._owing.discard(sink)
            if not self._owing:
                self._written.touch()

    def open(self, fingerprint: str) -> None:
        """Looks over what is there, moves aside what can't be used, and makes what is missing. Raises OSError."""
        self._sweep()
        for folder in (self.journal, self.told):
            folder.mkdir(exist_ok=True)
        known = self.folder / "fingerprint"
        why = self._unusable(_read(known), fingerprint)
        if why:
            aside = self._aside()
            self.notes.append(f"{self.recovery}: {why}; it was moved to {aside.name}, {_AGAIN}")
        _write(known, fingerprint)
        if not self.recovery.exists():
            self._fresh()
        self._written.touch()

    def _unusable(self, known: str, fingerprint: str) -> str:
        """Why the recovery that is there can't be used; "" where it can, or where there is none."""
        if not os.path.lexists(self.recovery):
            return ""
        if not self.recovery.is_dir():
            return "it is no folder"
        if known != fingerprint:
            return "it was written by another version, or with other settings"
        if not self._written.exists():
            return "the last run ended before all its records could be written"
        return damage(self.recovery)

    def _fresh(self) -> None:
        """Begins it beside its place, so that a half of one is never taken for a whole."""
        begun = self.folder / "recovery.new"
        begin(begun)
        begun.rename(self.recovery)

    def _aside(self) -> Path:
        """Moves the recovery to a name with the time, and keeps only the newest few of those."""
        stem = f"quarantine-{datetime.now(UTC):%Y%m%dT%H%M%SZ}"
        names = (stem, *(f"{stem}-{number}" for number in range(2, 1000)))
        aside = next(self.folder / name for name in names if not os.path.lexists(self.folder / name))
        self.recovery.rename(aside)
        kept = sorted((path for path in self.folder.glob("quarantine-*") if path != aside), key=_age)
        for path in kept[: len(kept) - QUARANTINES + 1]:
            _remove(path)
        return aside

    def _sweep(self) -> None:
        """Removes what a run left that was killed amid its beginning."""
        for name in ("recovery.new", "fingerprint.new"):
            _remove(self.folder / name)


@contextmanager
def held(store: Path, fingerprint: str) -> Iterator[StateFolder]:
    """The watch's state under a store's folder, for this process alone. fingerprint says what would write it: another
    one than before, and the recovery is moved aside. Raises StateError."""
    folder = store / "watch"
    with locked(folder, _WATCH, "watches"):
        with telling(folder, _WATCH):
            state = StateFolder(folder)
            state.open(fingerprint)
        yield state


def _read(path: Path) -> str:
    """The text of a file; "" where it isn't there. Raises OSError where it can't be read."""
    with suppress(FileNotFoundError):
        return path.read_text(encoding="utf-8", errors="replace")
    return ""


def _write(path: Path, text: str) -> None:
    """Replaces a file in one step, so that it is never half of one."""
    new = path.with_name(f"{path.name}.new")
    new.write_text(text, encoding="utf-8")
    new.replace(path)


def _remove(path: Path) -> None:
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path, ignore_errors=True)
    else:
        path.unlink(missing_ok=True)


def _age(path: Path) -> tuple[str, int]:
    """Orders quarantines from the oldest, several of one second by their numbers."""
    stem, _, number = path.name.removeprefix("quarantine-").partition("-")
    return stem, int(number) if number.isdigit() else 1
