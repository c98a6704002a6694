"""Causes of processes, GPUs and memory."""

from state.causes.cause import Cause, Transient

ROWS = (
    Cause(
        "fatal_signal",
        "a process that died of a fatal signal",
        Transient.UNKNOWN,
        "read the current thread's first frame below the signal",
        "relaunch after the frame is explained",
        (
            "Python's faulthandler («Fatal Python error», «Current thread … most recent call first»); Ray's "
            "failure handler («*** SIGSEGV received»)"
        ),
        hang=True,
        fatal=True,
    ),
    Cause(
        "cuda_error",
        "a CUDA error",
        Transient.UNKNOWN,
        "check the node's Xid lines, then the kernel it was in",
        "relaunch without the node if the hardware is at fault",
        (
            "CUDA by PyTorch («CUDA kernel errors might be asynchronously reported»); NVIDIA's Xid catalogue for "
            "the node's side"
        ),
    ),
    Cause(
        "torch_internal_assert",
        "an internal assertion of PyTorch",
        Transient.NO,
        "reduce it to its call",
        "hold until fixed",
        "PyTorch, c10 («INTERNAL ASSERT FAILED … please report a bug to PyTorch»)",
    ),
    Cause(
        "gpu_hardware",
        "a GPU hardware fault (Xid)",
        Transient.UNKNOWN,
        "drain the node",
        "relaunch without the node",
        "NVIDIA's driver («NVRM: Xid») and its Xid catalogue (48, 63, 64, 74, 79, 94, 95, 119, 120)",
    ),
    Cause(
        "gpu_application_fault",
        "a kernel that made the GPU fault (Xid)",
        Transient.UNKNOWN,
        "find the kernel that the process ran; if several programs fault on one card, drain the node",
        "relaunch after the kernel is explained",
        "NVIDIA's driver («NVRM: Xid») and its Xid catalogue (13, 31, 43, 45: the application's kernel)",
    ),
    Cause(
        "cuda_oom",
        "a GPU that ran out of memory",
        Transient.NO,
        "lower micro-batch, sequence length or memory utilisation on the named component",
        "hold until lowered",
        "PyTorch ≤ 2.12, OutOfMemoryError; PyTorch docs, CUDA semantics, Memory management",
        oom="gpu",
    ),
    Cause(
        "host_oom",
        "a host or container that ran out of memory",
        Transient.NO,
        "raise the memory limit or lower what the node holds",
        "hold until changed",
        (
            "the Linux kernel's oom-killer («Memory cgroup out of memory: Killed process»), Kubernetes' "
            "OOMKilled, Slurm's oom_kill event"
        ),
        oom="host",
    ),
    Cause(
        "memory_monitor_kill",
        "a worker that Ray's memory monitor killed",
        Transient.NO,
        "raise the memory limit or lower what the node holds",
        "hold until changed",
        (
            "Ray 2.40–2.60, OutOfMemoryError («Task was killed due to the node running low on memory»); Ray docs, "
            "Out-of-memory prevention"
        ),
        oom="host",
    ),
    Cause(
        "corrupt_allocation",
        "an allocation of an impossible size",
        Transient.NO,
        "look for a corrupt shape or length in the frame that allocates: it is not a lack of memory",
        "hold until fixed",
        "PyTorch's allocator («Tried to allocate more than 1EB memory»): a size that no tensor can have",
    ),
    Cause(
        "external_signal",
        "a signal from outside (eviction, pre-emption, a person)",
        Transient.YES,
        "ask who sent it: the scheduler's events",
        "relaunch if nobody meant it",
        (
            "the Iris task supervisor («received signal 15; stopping Ray»), Kubernetes docs, Disruptions "
            "(DisruptionTarget), Slurm's PREEMPTED"
        ),
    ),
)
