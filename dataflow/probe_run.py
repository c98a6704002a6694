"""One run of a probe's command, with bounds on its time, its output and its children. Whatever happens is a value."""

import errno
import os
import selectors
import signal
import subprocess
import time
from collections.abc import Callable, Sequence
from contextlib import ExitStack, suppress
from dataclasses import dataclass, field
from pathlib import Path

from dataflow.guardian import Guardian
from dataflow.opened import reason

MOST_OUTPUT = 4_194_304
"""Bytes of a stream that are kept; what follows is read and dropped."""
FLOOD = 67_108_864
"""Bytes dropped of a run after which it is ended: nobody reads what comes, and it costs a core."""
GRACE = 1.0
"""Seconds between SIGTERM and SIGKILL."""
SHORT_GRACE = 0.3
"""The same when the watcher itself stops."""
TICK = 0.05
_CHUNK = 65_536


@dataclass(frozen=True, slots=True)
class Ran:
    """What came of a run. exit is None where there is no exit status, and error says why; error stands beside an exit
    status where the output is not whole. elapsed is seconds; dropped is bytes of each stream that were not kept.
    unbegun says that no process could be started."""

    exit: int | None
    error: str = ""
    elapsed: float = 0.0
    stdout: bytes = b""
    stderr: bytes = b""
    dropped: dict[str, int] = field(default_factory=dict)
    unbegun: bool = False


def run_command(
    command: Sequence[str],
    folder: Path,
    timeout: float,
    guardian: Guardian,
    stopping: Callable[[], bool] = lambda: False,
) -> Ran | None:
    """Runs a command in a folder, as its own session and without standard input, for at most `timeout` seconds.

    None where the run was broken off since the watcher stops: that says nothing of the job.
    """
    began = time.monotonic()
    try:
        process = subprocess.Popen(
            list(command),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            cwd=folder,
            bufsize=0,
            start_new_session=True,
        )
    except (OSError, ValueError) as error:
        return Ran(None, _not_started(error, command[0], folder), time.monotonic() - began, unbegun=True)
    with _Run(process, began, timeout) as run:
        with guardian.watching(process.pid):
            run.follow(stopping)
            run.end(SHORT_GRACE if stopping() else GRACE)
        return run.came_to()


def _not_started(error: Exception, program: str, folder: Path) -> str:
    code = error.errno if isinstance(error, OSError) else None
    if code is not None and not folder.is_dir():
        return f"cannot be run in {folder}: {reason(error)}"
    if code == errno.ENOENT:
        there = "/" in program and (folder / program).exists()
        return f"not found: the interpreter of {program}" if there else f"not found: {program}"
    if code == errno.EACCES:
        return f"not executable: {program}"
    return f"cannot be run: {program}: {reason(error)}"


class _Run:
    """A process that runs: its group, and what it has printed."""

    def __init__(self, process: "subprocess.Popen[bytes]", began: float, timeout: float) -> None:
        self._process = process
        self._began = began
        self._deadline = began + timeout
        self._timeout = timeout
        self._error = ""
        self._broken_off = False
        self._ended_at = 0.0
        self._kept = {"stdout": bytearray(), "stderr": bytearray()}
        self._dropped = {"stdout": 0, "stderr": 0}
        self._open = ExitStack()

    def __enter__(self) -> "_Run":
        self._selector = self._open.enter_context(selectors.DefaultSelector())
        for name, stream in (("stdout", self._process.stdout), ("stderr", self._process.stderr)):
            if stream is not None:
                self._open.enter_context(stream)
                os.set_blocking(stream.fileno(), False)
                self._selector.register(stream.fileno(), selectors.EVENT_READ, name)
        with suppress(OSError, AttributeError):
            ended = os.pidfd_open(self._process.pid)
            self._open.callback(os.close, ended)
            self._selector.register(ended, selectors.EVENT_READ, "")
        return self

    def __exit__(self, *_: object) -> None:
        self._open.close()

    def follow(self, stopping: Callable[[], bool]) -> None:
        """Reads until the process has ended, or must."""
        while not self._exited() and not stopping():
            left = self._deadline - time.monotonic()
            if left <= 0:
                self._error = f"timeout after {self._timeout:g} s"
            elif sum(self._dropped.values()) > FLOOD:
                self._error = f"ended after it had printed {FLOOD // 1_048_576} MiB more than is kept"
            if self._error:
                return
            self._read(min(TICK, left))

    def end(self, grace: float) -> None:
        """Ends the whole group: what has not ended by itself is asked first. Children that outlive a process which has
        ended are not asked."""
        self._ended_at = time.monotonic()
        if not self._exited():
            self._broken_off = not self._error
            self._signal(signal.SIGTERM)
            until = time.monotonic() + grace
            while not self._exited() and (left := until - time.monotonic()) > 0:
                self._read(min(TICK, left))
        self._signal(signal.SIGKILL)
        until = time.monotonic() + grace
        while not self._exited() and time.monotonic() < until:
            self._read(TICK)
        for _ in range(2 * MOST_OUTPUT // _CHUNK):
            if not self._read(0):
                break

    def came_to(self) -> Ran | None:
        """What came of it; None where it was broken off. To be asked after `end`."""
        with suppress(subprocess.TimeoutExpired):
            self._process.wait(GRACE)
        code = self._process.returncode
        if self._broken_off:
            return None
        dropped = {name: size for name, size in self._dropped.items() if size}
        error = self._error
        if not error and code is not None and code < 0:
            error = f"ended by {_signal_name(-code)}"
        exit_status = None if error else code
        if not error and "stdout" in dropped:
            whole = MOST_OUTPUT + dropped["stdout"]
            error = f"its output is not whole: the first {MOST_OUTPUT} of {whole} bytes are kept"
        kept = {name: bytes(each) for name, each in self._kept.items()}
        return Ran(exit_status, error, self._ended_at - self._began, kept["stdout"], kept["stderr"], dropped)

    def _exited(self) -> bool:
        """Whether the process has ended; it is not waited for yet, so that its group's number stays its own."""
        try:
            return os.waitid(os.P_PID, self._process.pid, os.WEXITED | os.WNOHANG | os.WNOWAIT) is not None
        except ChildProcessError:
            return True

    def _signal(self, number: int) -> None:
        with suppress(ProcessLookupError, PermissionError):
            os.killpg(self._process.pid, number)

    def _read(self, wait: float) -> bool:
        """Takes what is there of the output, waiting so many seconds at most. False where there was none."""
        read = False
        for key, _ in self._selector.select(wait):
            if key.data:
                read |= self._take(key.fd, key.data)
        return read

    def _take(self, fd: int, name: str) -> bool:
        try:
            chunk = os.read(fd, _CHUNK)
        except BlockingIOError:
            return False
        except OSError:
            chunk = b""
        if not chunk:
            self._selector.unregister(fd)
            return False
        kept = self._kept[name]
        room = MOST_OUTPUT - len(kept)
        kept += chunk[:room]
        self._dropped[name] += max(0, len(chunk) - room)
        return True


def _signal_name(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"
