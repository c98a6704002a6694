"""The receipts that MarinSkyRL's launcher writes of each process it ran: how it ended, as one JSON object.

A negative raw code is a signal; the public one is 128 and its number (137 SIGKILL, 134 SIGABRT, 139 SIGSEGV).
"""

import msgspec

from extractors.pattern import Nature, Role, pattern
from extractors.signal import Benign, Fault

_FATAL = {-4: "SIGILL", -6: "SIGABRT", -7: "SIGBUS", -8: "SIGFPE", -11: "SIGSEGV"}
_SIGNALS = {**_FATAL, -1: "SIGHUP", -2: "SIGINT", -9: "SIGKILL", -10: "SIGUSR1", -12: "SIGUSR2", -15: "SIGTERM"}
"""Linux' numbers, as a raw return code has them."""
_HINTS = ('"public_exit_code"', '"exception_type"')
_SAID = 160
"""Characters of an exception's message that are kept."""


class _Receipt(msgspec.Struct):
    kind: str
    raw_returncode: int | None = None
    signal_name: str | None = None
    exception_type: str | None = None
    message: str | None = None
    pid: int | None = None

    def signal(self) -> str:
        """The name of the signal that ended the process, or nothing."""
        if self.signal_name:
            return self.signal_name
        code = self.raw_returncode or 0
        return _SIGNALS.get(code, f"signal {-code}" if code < 0 else "")

    def process(self) -> str:
        """`pid 4242`, where it is told."""
        return f"pid {self.pid}" if self.pid else ""


def _read(text: str) -> _Receipt | None:
    if not text.startswith("{"):
        return None
    try:
        return msgspec.json.decode(text, type=_Receipt)
    except msgspec.DecodeError:
        return None


@pattern(
    "host",
    Nature.FAULT,
    role=Role.EITHER,
    hints=_HINTS,
    samples={
        '{"kind": "exit", "raw_returncode": 1, "signal": null, "signal_name": null, "public_exit_code": 1, "pid": '
        '4242, "metadata": {}}': Fault("worker_crashed", "exit code 1", entity="pid 4242"),
        '{"kind": "signal", "raw_returncode": -11, "signal": 11, "signal_name": "SIGSEGV", "public_exit_code": 139, '
        '"pid": 4242, "metadata": {}}': Fault("fatal_signal", "SIGSEGV", entity="pid 4242"),
        '{"kind": "signal", "raw_returncode": -6, "public_exit_code": 134, "pid": 4242}': (
            Fault("fatal_signal", "SIGABRT", entity="pid 4242")
        ),
        '{"kind": "signal", "raw_returncode": -15, "signal": 15, "signal_name": "SIGTERM", "public_exit_code": 143, '
        '"pid": 4242}': Fault("external_signal", "SIGTERM", entity="pid 4242"),
        '{"kind": "exception", "exception_type": "builtins.RuntimeError", "message": "no such shard", "traceback": '
        '"Traceback …", "pid": 4242}': (Fault("python_exception", "no such shard", "RuntimeError", entity="pid 4242")),
    },
    rejects=(
        '{"kind": "exit", "raw_returncode": 0, "public_exit_code": 0, "pid": 4242}',
        '{"kind": "signal", "raw_returncode": -9, "signal_name": "SIGKILL", "public_exit_code": 137, "pid": 4242}',
        'the receipt says {"kind": "exit", "raw_returncode": 1, "public_exit_code": 1}',
    ),
)
def receipt_of_failure(text: str) -> Fault | None:
    """A process ended with an error, by a signal or with an exception (newest MarinSkyRL, `process_diagnostics`)."""
    told = _read(text)
    if told is None:
        return None
    if told.kind == "exception":
        name = (told.exception_type or "").rpartition(".")[2]
        return Fault("python_exception", (told.message or "")[:_SAID], name, entity=told.process())
    name = told.signal()
    if name == "SIGKILL" or not (name or told.raw_returncode):
        return None
    if name:
        return Fault("fatal_signal" if name in _FATAL.values() else "external_signal", name, entity=told.process())
    return Fault("worker_crashed", f"exit code {told.raw_returncode}", entity=told.process())


@pattern(
    "host",
    Nature.BENIGN,
    hints=_HINTS,
    samples={
        '{"kind": "signal", "raw_returncode": -9, "signal": 9, "signal_name": "SIGKILL", "public_exit_code": 137, '
        '"pid": 4242, "metadata": {}}': Benign("killed-by-unknown-hand"),
    },
    rejects=('{"kind": "signal", "raw_returncode": -11, "signal_name": "SIGSEGV", "public_exit_code": 139}',),
)
def receipt_of_kill(text: str) -> Benign | None:
    """A process was killed with SIGKILL, which names no sender: no proof of an OOM."""
    told = _read(text)
    return Benign("killed-by-unknown-hand") if told is not None and told.signal() == "SIGKILL" else None


PATTERNS = (receipt_of_failure, receipt_of_kill)
