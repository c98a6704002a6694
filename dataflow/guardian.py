"""Lets no probe outlive the watcher, however the watcher ends.

A small shell holds the reading end of a pipe whose other end is the watcher's. It is told which process groups run;
when the pipe ends, which it does also at kill -9, it ends those that are left. A parent's death signal would reach only
the first process of a probe, and is bound to the thread that started it.
"""

import os
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from threading import Lock

_SCRIPT = """
trap '' INT TERM HUP QUIT
groups=' '
while read -r sign group; do
  case "$sign$groups" in
    +*) groups="$groups$group " ;;
    -*" $group "*) groups="${groups%% "$group" *} ${groups#* "$group" }" ;;
  esac
done
[ "$groups" = ' ' ] && exit
for group in $groups; do kill -s TERM -- "-$group"; done
sleep 0.5
for group in $groups; do kill -s KILL -- "-$group"; done
"""


class Guardian:
    """Starts with the first probe. Where it can't be started, probes run without it."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._shell: subprocess.Popen[bytes] | None = None
        self._groups: set[int] = set()
        self._closed = False

    @contextmanager
    def watching(self, group: int) -> Iterator[None]:
        """While it is in here, the process group ends when the watcher does. To be left before the group's first
        process is waited for: its number may belong to somebody else afterwards."""
        self._tell(b"+", group)
        try:
            yield
        finally:
            self._tell(b"-", group)

    def close(self) -> None:
        """Ends the groups that still run, as if the watcher had died."""
        with self._lock:
            self._closed = True
            shell, self._shell = self._shell, None
        if shell is None or shell.stdin is None:
            return
        with suppress(OSError):
            shell.stdin.close()
        if not self._groups:
            with suppress(subprocess.TimeoutExpired):
                shell.wait(0.2)

    def _tell(self, sign: bytes, group: int) -> None:
        with self._lock:
            (self._groups.add if sign == b"+" else self._groups.discard)(group)
            if self._closed:
                return
            if self._shell is not None and self._shell.poll() is not None:
                self._shell = None
            if self._shell is not None:
                self._write(b"%s %d\n" % (sign, group))
            elif self._groups:
                self._start()

    def _start(self) -> None:
        """Starts it with all groups of now; it is its own session, so that a terminal's Ctrl-C does not reach it."""
        nowhere = subprocess.DEVNULL
        with suppress(OSError):
            self._shell = subprocess.Popen(
                ["/bin/sh", "-c", _SCRIPT],
                stdin=subprocess.PIPE,
                stdout=nowhere,
                stderr=nowhere,
                cwd="/",
                bufsize=0,
                start_new_session=True,
            )
            self._write(b"".join(b"+ %d\n" % each for each in sorted(self._groups)))

    def _write(self, line: bytes) -> None:
        if self._shell is not None and self._shell.stdin is not None:
            with suppress(OSError):
                os.write(self._shell.stdin.fileno(), line)
