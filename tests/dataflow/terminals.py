"""Real terminals for tests: a process on a pseudo-terminal, and the screen that its output draws."""

import fcntl
import os
import pty
import re
import signal
import struct
import subprocess
import sys
import termios
import threading
import time
from collections.abc import Callable
from pathlib import Path
from types import TracebackType

ROOT = Path(__file__).resolve().parents[2]
_CONTROL = re.compile(r"\x1b\[([?\d;]*)([A-Za-z])|([\r\n])|([^\x1b\r\n]+)")


class Terminal:
    """A pseudo-terminal with a process on it, in a session of its own. `drawn` is every byte that came, `screen` the
    lines that they leave, scrolled ones included."""

    def __init__(self, *words: Path | str, streams: str = "out err", columns: int = 100, **env: str) -> None:
        ours, theirs = pty.openpty()
        fcntl.ioctl(ours, termios.TIOCSWINSZ, struct.pack("HHHH", 30, columns, 0, 0))
        self.before = termios.tcgetattr(theirs)
        self._ours, self._theirs = ours, theirs
        self._drawn = bytearray()
        self.process = subprocess.Popen(
            [sys.executable, "-m", "dataflow.cli", *map(str, words)],
            cwd=ROOT,
            env={**_plain_environment(), "TERM": "xterm-256color", **env},
            stdin=theirs,
            stdout=theirs if "out" in streams else subprocess.PIPE,
            stderr=theirs if "err" in streams else subprocess.PIPE,
            start_new_session=True,
            preexec_fn=_takes_its_terminal,
        )
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    def __enter__(self) -> "Terminal":
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.process.kill()
        self.process.wait()
        os.close(self._theirs)
        self._reader.join(10)
        os.close(self._ours)

    def _read(self) -> None:
        try:
            while got := os.read(self._ours, 65_536):
                self._drawn += got
        except OSError:
            return

    @property
    def drawn(self) -> str:
        return self._drawn.decode()

    @property
    def screen(self) -> list[str]:
        return screen(self.drawn)

    def wait_for(self, holds: Callable[[], bool]) -> None:
        until = time.monotonic() + 60
        while not holds():
            assert time.monotonic() < until, self.drawn[-2_000:]
            time.sleep(0.01)

    def wait_for_text(self, text: str) -> None:
        self.wait_for(lambda: text in uncoloured(self.drawn))

    def ended(self) -> tuple[int, bytes, bytes]:
        """The exit code, and what came by pipes; all that was drawn has been read then."""
        out, err = self.process.communicate(timeout=60)
        os.write(self._theirs, b"\x1b[0K")
        self.wait_for(lambda: self._drawn.endswith(b"\x1b[0K"))
        return self.process.returncode, out or b"", err or b""

    def type(self, keys: str) -> None:
        os.write(self._ours, keys.encode())

    def signalled(self, number: int = signal.SIGINT) -> tuple[int, bytes, bytes]:
        self.process.send_signal(number)
        return self.ended()

    def is_as_before(self) -> bool:
        """Whether the terminal's settings are the old ones, its cursor shown and its screen the usual one."""
        left = re.findall(r"\x1b\[\?(\d+)([hl])", self.drawn)
        newest = dict(left)
        sane = newest.get("25", "h") == "h" and newest.get("1049", "l") == "l"
        return sane and termios.tcgetattr(self._theirs) == self.before


def _takes_its_terminal() -> None:
    """Makes the standard input the session's terminal, so that keys such as Ctrl-C become signals."""
    fcntl.ioctl(0, termios.TIOCSCTTY, 0)


def _plain_environment() -> dict[str, str]:
    colours = ("NO_COLOR", "FORCE_COLOR", "COLORTERM", "COLUMNS", "LINES", "TTY_COMPATIBLE", "TTY_INTERACTIVE")
    return {name: value for name, value in os.environ.items() if name not in colours} | {"PYTHONPATH": str(ROOT)}


def uncoloured(drawn: str) -> str:
    """What is drawn, colours and weights left out."""
    return re.sub(r"\x1b\[[\d;]*m", "", drawn)


def screen(drawn: str) -> list[str]:
    """The lines that a terminal without end shows of this."""
    lines, row, column = [""], 0, 0
    for found in _CONTROL.finditer(drawn):
        number, what, moved, text = found.groups()
        if what == "K":
            lines[row] = "" if number == "2" else lines[row][:column]
        elif what == "A":
            row = max(0, row - int(number or 1))
        elif moved == "\r":
            column = 0
        elif moved == "\n":
            row += 1
            lines += [""] * (row + 1 - len(lines))
        elif text:
            lines[row] = lines[row].ljust(column)[:column] + text + lines[row][column + len(text) :]
            column += len(text)
    return lines
