"""Causes of processes, GPUs and memory."""

from state.causes.cause import Cause, Transient

ROWS = (
    Cause(
        "fatal_signal",
        "a process that died of a fatal signal",
        Transient.UNKNOWN,
        "read the current thread's first frame below the signal",
        "relaunch after the frame is explained",
        hang=True,
        fatal=True,
    ),
    Cause(
        "cuda_error",
        "a CUDA error",
        Transient.UNKNOWN,
        "check the node's Xid lines, then the kernel it was in",
        "relaunch without the node if the hardware is at fault",
    ),
    Cause(
        "torch_internal_assert",
        "an internal assertion of PyTorch",
        Transient.NO,
        "reduce it to its call",
        "hold until fixed",
    ),
    Cause(
        "gpu_hardware",
        "a GPU hardware fault (Xid)",
        Transient.UNKNOWN,
        "drain the node",
        "relaunch without the node",
    ),
    Cause(
        "gpu_application_fault",
        "a kernel that made the GPU fault (Xid)",
        Transient.UNKNOWN,
        "find the kernel that the process ran; if several programs fault on one card, drain the node",
        "relaunch after the kernel is explained",
    ),
    Cause(
        "cuda_oom",
        "a GPU that ran out of memory",
        Transient.NO,
        "lower micro-batch, sequence length or memory utilisation on the named component",
        "hold until lowered",
        oom="gpu",
    ),
    Cause(
        "host_oom",
        "a host or container that ran out of memory",
        Transient.NO,
        "raise the memory limit or lower what the node holds",
        "hold until changed",
        oom="host",
    ),
    Cause(
        "memory_monitor_kill",
        "a worker that Ray's memory monitor killed",
        Transient.NO,
        "raise the memory limit or lower what the node holds",
        "hold until changed",
        oom="host",
    ),
    Cause(
        "corrupt_allocation",
        "an allocation of an impossible size",
        Transient.NO,
        "look for a corrupt shape or length in the frame that allocates: it is not a lack of memory",
        "hold until fixed",
    ),
    Cause(
        "external_signal",
        "a signal from outside (eviction, pre-emption, a person)",
        Transient.YES,
        "ask who sent it: the scheduler's events",
        "relaunch if nobody meant it",
    ),
)
