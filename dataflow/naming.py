"""What a live capture says of its job: the launcher's facts as they come and change, and the job's name."""

import os
from pathlib import Path

from dataflow.capture import CaptureError, open_capture, shown
from dataflow.homes import JOB_FILE
from dataflow.outcome import SettingsError
from dataflow.settings import Settings, load_job

NAMED_BY_PATH_US = 10_000_000
"""How long after its first file a capture that names no job is given time to; then its folder's name is the job's."""
SETTINGS_US = 5_000_000
"""How often job.toml is looked at."""


class Naming:
    """Looks at one capture's job.toml, or the one given, and for the job's name. notes gets what the user should hear,
    as `<place>: <what>`. settings are None while there is nothing that can be used."""

    def __init__(self, path: str, job_toml: Path | None, notes: list[str]) -> None:
        self.path = path
        self.job_toml = job_toml or Path(path) / JOB_FILE
        self.settings: Settings | None = None
        self._notes = notes
        self._given = job_toml is not None
        self._stamp: tuple[int, int] | None = None
        self._first_us: int | None = None
        self._told = ""
        self._missed = False

    def look(self) -> bool:
        """Reads job.toml where it is new or another. False, and told once, where what stands there can't be used."""
        stamp = _stamp(self.job_toml)
        if stamp is None and self._given and not self._missed:
            self._notes.append(f"{shown(str(self.job_toml))}: is not there or can't be read; it is waited for")
        self._missed = stamp is None
        if self.settings is None or (stamp is not None and stamp != self._stamp):
            settings = self._read() if stamp is not None else Settings()
            if settings is None:
                return False
            self.settings, self._stamp = settings, stamp
        return True

    @property
    def text(self) -> str | None:
        """What job.toml says, as text; None where it isn't there, or is none."""
        try:
            return self.job_toml.read_bytes().decode() if self._stamp is not None else None
        except (OSError, ValueError):
            return None

    def name(self, now_us: int) -> str:
        """The job's name, "" while it can't be known."""
        if self.settings is not None and self.settings.facts.id:
            return self.settings.facts.id
        try:
            capture = open_capture(self.path)
        except CaptureError as error:
            self.tell(f"{error}; it is waited for")
            return ""
        if capture.job_id_from != "name":
            return capture.job_id
        if not capture.sources and not capture.trials:
            return ""
        self._first_us = now_us if self._first_us is None else self._first_us
        return capture.job_id if now_us - self._first_us >= NAMED_BY_PATH_US else ""

    def tell(self, *lines: str) -> None:
        """Notes something, once."""
        if self._told != lines[0]:
            self._told = lines[0]
            self._notes += lines

    def _read(self) -> Settings | None:
        try:
            return load_job(self.job_toml)
        except SettingsError as error:
            self.tell(*error.message.split("\n"))
            return None


def _stamp(path: Path) -> tuple[int, int] | None:
    try:
        found = os.stat(path)
    except OSError:
        return None
    return found.st_mtime_ns, found.st_size
