"""The GPU under PyTorch: out of memory in all its forms, CUDA errors, internal assertions, the driver's Xid lines.

The advice that PyTorch prints under an error (TORCH_USE_CUDA_DSA, asynchronously reported) anchors nothing.
"""

from typing import Any

from extractors.kernel import DMESG
from extractors.pattern import Nature, Role, pattern
from extractors.signal import Benign, Fault

_RAISED = r"(?:\s*what\(\): +|(?:[\w.]+\.)?(?P<type>\w*Error): )"
_ADVICE_FREE = r"(?P<what>[^\n.]{1,160})"


@pattern(
    "host",
    Nature.FAULT,
    role=Role.ROOT,
    hints=("CUDA out of memory. ", "error: out of memory", "cuMemCreate"),
    regex=_RAISED
    + r"?(?:CUDA out of memory\. Tried to allocate (?P<size>[\d.]+ [KMGT]?i?B)\b(?:\.| \()(?: ?GPU (?P<gpu>\d+))?"
    r"|CUDA (?:error|driver error): out of memory|[^\n{\"]{0,120}cuMemCreate[^\n]{0,120}out of memory)",
    samples={
        "torch.cuda.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.50 GiB (GPU 0; 79.35 GiB total capacity; "
        "70.00 GiB already allocated; 1.00 GiB free; 76.00 GiB reserved in total by PyTorch)": (
            Fault("cuda_oom", "tried to allocate 2.50 GiB", "OutOfMemoryError", entity="GPU 0")
        ),
        "RuntimeError: CUDA out of memory. Tried to allocate 512.00 MiB (GPU 1; 15.90 GiB total capacity)": (
            Fault("cuda_oom", "tried to allocate 512.00 MiB", "RuntimeError", entity="GPU 1")
        ),
        "torch.cuda.OutOfMemoryError: CUDA out of memory. Tried to allocate 128.00 KiB. GPU 3 has a total capacty of "
        "79.11 GiB of which 1.02 GiB is free. Process 4242 has 70.00 GiB memory in use.": (
            Fault("cuda_oom", "tried to allocate 128.00 KiB", "OutOfMemoryError", entity="GPU 3")
        ),
        "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 9.27 GiB. GPU 5 has a total capacity of 79.11 "
        "GiB "
        "of which 1.02 GiB is free. Of the allocated memory 6.00 GiB is allocated by PyTorch, with 1.20 GiB allocated "
        "in "
        "private pools (e.g., CUDA Graphs), and 1.00 GiB is reserved by PyTorch but unallocated.": (
            Fault("cuda_oom", "tried to allocate 9.27 GiB", "OutOfMemoryError", entity="GPU 5")
        ),
        "  what():  CUDA out of memory. Tried to allocate 2.00 GiB. GPU 0 has a total capacity of 79.11 GiB": (
            Fault("cuda_oom", "tried to allocate 2.00 GiB", entity="GPU 0")
        ),
        "RuntimeError: CUDA error: out of memory": Fault("cuda_oom", "out of memory", "RuntimeError"),
        "RuntimeError: CUDA driver error: out of memory": Fault("cuda_oom", "out of memory", "RuntimeError"),
        "RuntimeError: cuMemCreate(&handle, size, &prop, 0) failed with out of memory": (
            Fault("cuda_oom", "out of memory", "RuntimeError")
        ),
    },
    rejects=(
        "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate more than 1EB memory.",
        "to avoid CUDA out of memory. set expandable_segments",
        "2031-03-14 09:00:00.000 | INFO     | app:main:3 - retry_on: ['CUDA out of memory. ']",
    ),
)
def cuda_oom(found: Any) -> Fault:
    """A GPU allocation failed (torch 1.x to 2.12). The size it asked for and the card are named from 1.x on; the class
    is torch.cuda.OutOfMemoryError up to 2.4, torch.OutOfMemoryError after."""
    detail = f"tried to allocate {found['size']}" if found["size"] else "out of memory"
    return Fault("cuda_oom", detail, found["type"] or "", entity=f"GPU {found['gpu']}" if found["gpu"] else "")


@pattern(
    "host",
    Nature.FAULT,
    role=Role.ROOT,
    hints=("Tried to allocate more than 1EB memory",),
    regex=_RAISED + r"?CUDA out of memory\. Tried to allocate more than 1EB memory",
    samples={
        "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate more than 1EB memory.": (
            Fault("corrupt_allocation", "tried to allocate more than 1EB", "OutOfMemoryError")
        ),
    },
    rejects=(
        "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 1.00 GiB. GPU 0 has a total capacity of 2 GiB",
    ),
)
def corrupt_allocation(found: Any) -> Fault:
    """An allocation of an impossible size: a corrupt shape or length, not a lack of memory."""
    return Fault("corrupt_allocation", "tried to allocate more than 1EB", found["type"] or "")


@pattern(
    "host",
    Nature.FAULT,
    role=Role.ROOT,
    hints=("CUDA error: ", "CUDA driver error: "),
    regex=_RAISED + r"?CUDA (?:driver )?error: (?!out of memory)" + _ADVICE_FREE,
    samples={
        "RuntimeError: CUDA error: an illegal memory access was encountered": (
            Fault("cuda_error", "an illegal memory access was encountered", "RuntimeError")
        ),
        "torch.AcceleratorError: CUDA error: device-side assert triggered": (
            Fault("cuda_error", "device-side assert triggered", "AcceleratorError")
        ),
        "RuntimeError: CUDA driver error: invalid argument": Fault("cuda_error", "invalid argument", "RuntimeError"),
        "  what():  CUDA error: unspecified launch failure": Fault("cuda_error", "unspecified launch failure"),
        "RuntimeError: CUDA error: CUBLAS_STATUS_EXECUTION_FAILED when calling `cublasGemmEx`": (
            Fault("cuda_error", "CUBLAS_STATUS_EXECUTION_FAILED when calling `cublasGemmEx`", "RuntimeError")
        ),
    },
    rejects=(
        "CUDA kernel errors might be asynchronously reported at some other API call, so the stacktrace below might be "
        "incorrect.",
        "Compile with `TORCH_USE_CUDA_DSA` to enable device-side assertions.",
        "RuntimeError: CUDA error: out of memory",
    ),
)
def cuda_error(found: Any) -> Fault:
    """A CUDA call returned an error. Kernels run behind their call: the frame it is raised in need not be at fault."""
    return Fault("cuda_error", found["what"].strip(), found["type"] or "")


@pattern(
    "host",
    Nature.FAULT,
    role=Role.ROOT,
    hints=("INTERNAL ASSERT FAILED at",),
    regex=r"(?:(?:[\w.]+\.)?(?P<type>\w*Error): )?(?P<what>[^\n{\"]{0,300}?)"
    r"INTERNAL ASSERT FAILED at \"(?P<file>[^\"\n]+)\":\d+",
    samples={
        'RuntimeError: handles_.at(i) INTERNAL ASSERT FAILED at "../c10/cuda/CUDACachingAllocator.cpp":1011, please '
        "report a bug to PyTorch.": (
            Fault("torch_internal_assert", "handles_.at(i)", "RuntimeError", "CUDACachingAllocator.cpp")
        ),
        'expired_storage INTERNAL ASSERT FAILED at "/pytorch/aten/src/ATen/core/Tensor.cpp":77, please report a bug': (
            Fault("torch_internal_assert", "expired_storage", "", "Tensor.cpp")
        ),
    },
    rejects=('{"content": "INTERNAL ASSERT FAILED at \\"x.cpp\\":1"}',),
)
def torch_internal_assert(found: Any) -> Fault:
    """PyTorch found itself in a state it holds impossible: a bug below the caller, the same each time."""
    file = found["file"].rpartition("/")[2]
    return Fault("torch_internal_assert", found["what"].strip(), found["type"] or "", file)


_XID = DMESG + r"NVRM: Xid \((?:PCI:)?(?P<bus>[\w:.]+)\): "


@pattern(
    "host",
    Nature.FAULT,
    role=Role.ROOT,
    hints=("NVRM: Xid (",),
    regex=_XID + r"(?P<code>(?!(?:13|31|43|45),)\d+), (?P<what>[^\n]{0,200})",
    samples={
        "[12345.678901] NVRM: Xid (PCI:0000:5d:00): 79, pid=4242, name=python, GPU has fallen off the bus.": (
            Fault("gpu_hardware", "Xid 79", entity="0000:5d:00")
        ),
        "[Sun Mar 14 09:24:18 2031] NVRM: Xid (PCI:0000:9b:00): 119, pid=4242, name=nvidia-smi, Timeout after 6s of "
        "waiting for RPC response from GPU4 GSP!": Fault("gpu_hardware", "Xid 119", entity="0000:9b:00"),
        "2031-03-14T12:02:03,470068+00:00 NVRM: Xid (PCI:0000:19:00): 48, pid='<unknown>', name=<unknown>, An "
        "uncorrectable double bit error (DBE) has been detected on GPU": (
            Fault("gpu_hardware", "Xid 48", entity="0000:19:00")
        ),
    },
    rejects=("[12345.6] NVRM: Xid (PCI:0000:5d:00): 13, pid=4242, name=python, Graphics Exception", "Xid 79 is bad"),
)
def gpu_hardware(found: Any) -> Fault:
    """The driver reports a fault of the card, its memory or its links (48, 63, 64, 74, 79, 94, 95, 119, 120 …)."""
    return Fault("gpu_hardware", f"Xid {found['code']}", entity=found["bus"])


@pattern(
    "host",
    Nature.FAULT,
    role=Role.EITHER,
    hints=("NVRM: Xid (",),
    regex=_XID + r"(?P<code>13|31|43|45), ",
    samples={
        "kern  :warn  : 2031-03-14T04:41:44,283302+00:00 NVRM: Xid (PCI:0000:38:00): 13, pid='<unknown>', "
        "name=<unknown>, Graphics SM Global Exception on (GPC 8, TPC 5, SM 1)": (
            Fault("gpu_application_fault", "Xid 13", entity="0000:38:00")
        ),
        "[12345.678901] NVRM: Xid (PCI:0000:38:00): 45, pid=4242, name=python, Ch 00000008": (
            Fault("gpu_application_fault", "Xid 45", entity="0000:38:00")
        ),
    },
    rejects=("[12345.6] NVRM: Xid (PCI:0000:5d:00): 79, pid=4242, name=python, GPU has fallen off the bus.",),
)
def gpu_application_fault(found: Any) -> Fault:
    """A program made the GPU fault (13, 31) or was ended on it (43, 45): the program first, the card where many do."""
    return Fault("gpu_application_fault", f"Xid {found['code']}", entity=found["bus"])


def _switch(severity: str, sxid: str) -> str:
    """A line of the fabric manager's log, or of the kernel, on an error of this severity in an NVSwitch."""
    return (
        r"(?:(?:\[[A-Z][a-z]{2} \d\d \d{4} [\d:]{8}\] )?\[ERROR\] \[tid \d+\] detected NVSwitch "
        + severity
        + r" error (?P<code>\d+) on [^\n]{0,80}pci bus id (?P<bus>[\w:.]+)|"
        + DMESG
        + r"nvidia-nvswitch\d+: SXid \(PCI:(?P<at>[\w:.]+)\): (?P<sxid>\d+), "
        + sxid
        + ", )"
    )


@pattern(
    "host",
    Nature.FAULT,
    role=Role.ROOT,
    hints=("detected NVSwitch fatal error ", ": SXid (PCI:"),
    regex=_switch("fatal", "Fatal"),
    samples={
        "[Mar 14 2031 09:10:00] [ERROR] [tid 2210] detected NVSwitch fatal error 20034 on fid 0 on NVSwitch pci bus id "
        "00000000:c1:00.0 physical id 2 port 12": Fault("gpu_hardware", "SXid 20034", entity="00000000:c1:00.0"),
        "[12345.678901] nvidia-nvswitch3: SXid (PCI:0000:c1:00.0): 24007, Fatal, Link 28 sourcetrack timeout error": (
            Fault("gpu_hardware", "SXid 24007", entity="0000:c1:00.0")
        ),
    },
    rejects=(
        "[12345.6] nvidia-nvswitch3: SXid (PCI:0000:c1:00.0): 28006, Non-fatal, Link 9 MC TS crumbstore",
        "we detected NVSwitch fatal error 3 on a port",
    ),
)
def nvswitch_fault(found: Any) -> Fault:
    """A switch between the cards failed: all GPUs behind it lose their links until it is reset."""
    return Fault("gpu_hardware", f"SXid {found['code'] or found['sxid']}", entity=found["bus"] or found["at"])


@pattern(
    "host",
    Nature.BENIGN,
    hints=("detected NVSwitch non-fatal error ", ": SXid (PCI:"),
    regex=_switch("non-fatal", "Non-fatal"),
    samples={
        "[Mar 14 2031 09:10:00] [ERROR] [tid 2210] detected NVSwitch non-fatal error 12028 on fid 0 on NVSwitch pci "
        "bus id 00000000:c1:00.0 physical id 2 port 12": Benign("nvswitch-non-fatal"),
        "[12345.678901] nvidia-nvswitch3: SXid (PCI:0000:c1:00.0): 28006, Non-fatal, Link 9 MC TS crumbstore": (
            Benign("nvswitch-non-fatal")
        ),
    },
    rejects=("[Mar 14 2031 09:10:00] [ERROR] [tid 2210] detected NVSwitch fatal error 20034 on fid 0",),
)
def nvswitch_non_fatal(found: Any) -> Benign:
    """An error that the switch got over, as a GPU's reset leaves it on each of its ports."""
    return Benign("nvswitch-non-fatal")


PATTERNS = (
    cuda_oom,
    corrupt_allocation,
    cuda_error,
    torch_internal_assert,
    gpu_hardware,
    gpu_application_fault,
    nvswitch_fault,
    nvswitch_non_fatal,
)
