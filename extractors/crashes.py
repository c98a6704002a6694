"""Native crashes: fatal signals, aborts, and the shell's words for them.

A fatal signal ends its process. An abort is what a watchdog or an assertion does on purpose: what was printed before it
says why. SIGKILL says nothing of its sender.
"""

from typing import Any

from extractors import receipts
from extractors.kernel import DMESG
from extractors.pattern import Nature, Role, pattern
from extractors.ray_lines import CPP
from extractors.signal import Benign, Fault, Noted

_WORDS = {"SIGSEGV": "Segmentation fault", "SIGBUS": "Bus error", "SIGILL": "Illegal instruction", "SIGFPE": "SIGFPE"}


@pattern(
    "host",
    Nature.FAULT,
    role=Role.ROOT,
    hints=("Fatal Python error: ", "*** SIG", "(core dumped)", ": segfault at ", "uv__epoll_ctl_prep"),
    regex=r"(?:Fatal Python error: (?P<python>Segmentation fault|Bus error|Illegal instruction|Floating[ -]point \w+)"
    r"|" + CPP + r"\*\*\* (?P<signal>SIG(?:SEGV|BUS|ILL|FPE)) received at time="
    r"|(?:[^\n]{0,120}: line \d+: *\d+ )?(?P<shell>Segmentation fault|Bus error) +\(core dumped\)"
    r"|" + DMESG + r"(?P<process>[^\n\[]{1,32})\[(?P<pid>\d+)\]: segfault at \w+ [^\n]*?(?: in (?P<library>[\w.+-]+)|$)"
    r"|[^\n{\"]{0,160}(?P<assertion>uv__epoll_ctl_prep))",
    samples={
        "Fatal Python error: Segmentation fault": Fault("fatal_signal", "Segmentation fault"),
        "Fatal Python error: Bus error": Fault("fatal_signal", "Bus error"),
        "(FSDPPolicyWorkerBase pid=900) *** SIGSEGV received at time=1930000001 on cpu 12 ***": (
            Fault("fatal_signal", "Segmentation fault")
        ),
        "[2031-03-14 09:10:00,672 E 900 950] logging.cc:460: *** SIGBUS received at time=1930000001 on cpu 12 ***": (
            Fault("fatal_signal", "Bus error")
        ),
        "Segmentation fault (core dumped)": Fault("fatal_signal", "Segmentation fault"),
        "run.sh: line 12:  4242 Bus error               (core dumped) python train.py": Fault(
            "fatal_signal", "Bus error"
        ),
        "kern  :warn  : 2031-03-14T09:41:44,285060+00:00 pt_main_thread[4242]: segfault at 7f797fe00000 ip "
        "00007f7c7ac69996 sp 00007f7c12fd7c30 error 4 in libnccl.so.2[7f7c7ac00000+d3d3000]": (
            Fault("fatal_signal", "Segmentation fault in libnccl.so.2", entity="pt_main_thread (4242)")
        ),
        "python: src/unix/linux.c:1021: uv__epoll_ctl_prep: Assertion `ctl->sqflags' failed.": (
            Fault("fatal_signal", "uvloop's assertion uv__epoll_ctl_prep")
        ),
    },
    rejects=(
        "Fatal Python error: Aborted",
        "[2031-03-14 09:10:00,672 E 900 950] logging.cc:460: *** SIGTERM received at time=1930000001 on cpu 12 ***",
        "the test program ends with Segmentation fault (core dumped)",
    ),
)
def fatal_signal(found: Any) -> Fault:
    """A process touched memory it must not (SIGSEGV, SIGBUS …). The first frame below `Current thread` says where."""
    if found["assertion"]:
        return Fault("fatal_signal", "uvloop's assertion uv__epoll_ctl_prep")
    if found["process"]:
        where = f" in {found['library']}" if found["library"] else ""
        return Fault(
            "fatal_signal", f"Segmentation fault{where}", entity=f"{found['process'].strip()} ({found['pid']})"
        )
    return Fault("fatal_signal", found["python"] or found["shell"] or _WORDS[found["signal"]])


@pattern(
    "host",
    Nature.FAULT,
    role=Role.EITHER,
    hints=("Fatal Python error: ", "*** SIGABRT", "terminate called ", "(core dumped)", " received by PID "),
    regex=r"(?:Fatal Python error: (?P<python>(?!Segmentation|Bus error|Illegal|Floating)[^\n]{1,80})"
    r"|" + CPP + r"\*\*\* (?P<signal>SIGABRT) received at time="
    r"|terminate called (?:after throwing an instance of '(?P<type>[^'\n]+)'|(?P<bare>without an active exception"
    r"|recursively))"
    r"|(?:[^\n]{0,120}: line \d+: *\d+ )?(?P<shell>Aborted) +\(core dumped\)"
    r"|\s*(?:traceback +: )?Signal \d+ \((?P<torchrun>SIG\w+)\) received by PID \d+)",
    samples={
        "Fatal Python error: Aborted": Fault("fatal_signal", "Aborted"),
        "(FSDPPolicyWorkerBase pid=900) *** SIGABRT received at time=1930000001 on cpu 12 ***": (
            Fault("fatal_signal", "SIGABRT")
        ),
        "[2031-03-14 09:10:00,672 E 900 950] logging.cc:460: *** SIGABRT received at time=1930000001 on cpu 12 ***": (
            Fault("fatal_signal", "SIGABRT")
        ),
        "terminate called after throwing an instance of 'c10::Error'": (
            Fault("fatal_signal", "terminate called", "c10::Error")
        ),
        "terminate called without an active exception": Fault("fatal_signal", "terminate called"),
        "terminate called after throwing an instance of 'c10::DistBackendError'": (
            Fault("fatal_signal", "terminate called", "c10::DistBackendError")
        ),
        "Aborted (core dumped)": Fault("fatal_signal", "Aborted"),
        "  traceback : Signal 6 (SIGABRT) received by PID 50328": Fault("fatal_signal", "SIGABRT"),
    },
    rejects=("Fatal Python error: Segmentation fault", "the signal was received by PID 3"),
)
def aborted(found: Any) -> Fault:
    """A process aborted itself (SIGABRT): a watchdog, a C++ exception that nobody caught, an assertion. What it printed
    before says why."""
    if found["type"]:
        return Fault("fatal_signal", "terminate called", found["type"])
    detail = found["python"] or found["signal"] or found["shell"] or found["torchrun"] or "terminate called"
    return Fault("fatal_signal", detail)


@pattern(
    "host",
    Nature.FAULT,
    role=Role.CASCADE,
    hints=("errors.ChildFailedError",),
    regex=r"(?:torch\.distributed\.elastic\.multiprocessing\.)?errors\.ChildFailedError",
    samples={
        "torch.distributed.elastic.multiprocessing.errors.ChildFailedError:": (
            Fault("worker_crashed", "torchrun's child failed", "ChildFailedError")
        ),
    },
    rejects=("ChildFailedError is what torchrun raises",),
)
def torchrun_child_failed(found: Any) -> Fault:
    """torchrun sums up that one of its workers failed; the worker's own error stands before."""
    return Fault("worker_crashed", "torchrun's child failed", "ChildFailedError")


@pattern(
    "host",
    Nature.FAULT,
    role=Role.ROOT,
    hints=("SignalException: Process", " death signal, shutting down workers"),
    regex=r"(?:(?:[\w.]+\.)?SignalException: Process \d+ got signal: (?P<got>\d+)"
    r"|[^\n{\"]{0,400}?Received (?:Signals\.)?(?P<number>\w+) death signal, shutting down workers)",
    samples={
        "torch.distributed.elastic.multiprocessing.api.SignalException: Process 4242 got signal: 15": (
            Fault("external_signal", "signal 15")
        ),
        "WARNING:torch.distributed.elastic.agent.server.api:Received 2 death signal, shutting down workers": (
            Fault("external_signal", "signal 2")
        ),
        "W0314 09:12:00.310000 800 torch/distributed/elastic/agent/server/api.py:704] Received Signals.SIGTERM death "
        "signal, shutting down workers": Fault("external_signal", "signal SIGTERM"),
        "step 40 of 90, loss tensor(4.25, device='cuda:0', grad_fn=<DivBackward0>) WARNING:torch.distributed.elastic."
        "agent.server.api:Received 2 death signal, shutting down workers": Fault("external_signal", "signal 2"),
    },
    rejects=("SignalException: Process ended", '{"say": "Received 2 death signal, shutting down workers"}'),
)
def torchrun_signalled(found: Any) -> Fault:
    """torchrun was told to stop: a person, a scheduler, an eviction. The workers did not fail."""
    return Fault("external_signal", f"signal {found['got'] or found['number']}")


@pattern(
    "host",
    Nature.BENIGN,
    hints=("Killed", "killed by SIGKILL", "*** SIGTERM received"),
    regex=r"(?:(?P<bare>Killed)$|[^\n]{0,120}: line \d+: *\d+ Killed +\S|srun: error: [\w-]+: tasks? [\d,-]+: Killed"
    r"|Process \S+ killed by SIGKILL|" + CPP + r"\*\*\* (?P<term>SIGTERM) received at time=)",
    samples={
        "Killed": Benign("killed-by-unknown-hand"),
        "run.sh: line 12:  4242 Killed                  python train.py": Benign("killed-by-unknown-hand"),
        "srun: error: node-12: task 0: Killed": Benign("killed-by-unknown-hand"),
        "Process SpawnProcess-3 killed by SIGKILL": Benign("killed-by-unknown-hand"),
        "[2031-03-14 09:10:00,672 E 900 950] logging.cc:460: *** SIGTERM received at time=1930000001 on cpu 12 ***": (
            Benign("process-asked-to-end")
        ),
    },
    rejects=("Killed 3 bugs", "Killed `ray::IDLE` (via SIGKILL)", "srun: error: node-12: task 3: Out Of Memory"),
)
def killed(found: Any) -> Benign:
    """A process was ended from outside. SIGKILL is no proof of an OOM, nor of an orderly end: only the kernel, the pod
    or Ray's monitor says which."""
    return Benign("process-asked-to-end" if found["term"] else "killed-by-unknown-hand")


@pattern(
    "host",
    Nature.FACT,
    hints=("(most recent call first):",),
    regex=r"(?:Current thread|Thread) 0x[0-9a-fA-F]+(?: \[[^\]\n]{0,64}\])? \(most recent call first\):",
    samples={
        "Current thread 0x00007f12aa11c740 (most recent call first):": Noted("python-stacks"),
        "Thread 0x00007f12aa11d740 [MainThread] (most recent call first):": Noted("python-stacks"),
    },
    rejects=("Exception raised from sendBytes at Utils.hpp:653 (most recent call first):",),
)
def python_stacks(found: Any) -> Noted:
    """Python's faulthandler writes the threads' frames below it, the innermost first: after a fatal signal the first
    frame of the *current* thread says where it struck. 3.13 names the threads."""
    return Noted("python-stacks")


PATTERNS = (
    fatal_signal,
    aborted,
    torchrun_child_failed,
    torchrun_signalled,
    killed,
    python_stacks,
    *receipts.PATTERNS,
)
