"""GPU polls: by header or command, never by position; what the driver could not fill is None."""

import pytest

from extractors.polls import GpuProcess, GpuProcessesPolled, GpuReading, GpusPolled, PollFailed
from tests.extractors.poll_builders import reading, said, why

QUERY = "kubectl exec pod-1 -- nvidia-smi --query-gpu=index,utilization.gpu,power.draw,memory.used,memory.total"
HEADER = "index, utilization.gpu [%], power.draw [W], memory.used [MiB], memory.total [MiB]\n"
FULL = GpuReading(0, 91.0, 402.5, 61234.0, 81559.0)


def test_the_header_names_the_columns_in_any_order() -> None:
    output = "memory.total [MiB], index, memory.used [MiB], power.draw [W], utilization.gpu [%]\n"
    found = reading("gpu", output + "81559 MiB, 0, 61234 MiB, 402.50 W, 91 %\n", target="pod-1")
    assert found.signals == (GpusPolled("pod-1", (FULL,)),)
    assert found.quotes == ("81559 MiB, 0, 61234 MiB, 402.50 W, 91 %",)


@pytest.mark.parametrize("row", ["0, 91 %, 402.50 W, 61234 MiB, 81559 MiB", "0, 91, 402.50, 61234, 81559"])
def test_without_header_the_command_names_the_columns(row: str) -> None:
    assert said("gpu", row + "\n", command=QUERY + " --format=csv,noheader").gpus == (FULL,)


def test_rows_without_header_or_command_are_not_guessed() -> None:
    assert "not found" in why("gpu", "0, 91, 402.50, 61234, 81559\n")


@pytest.mark.parametrize("cell", ["[N/A]", "[Not Supported]", "[Unknown Error]", "[GPU requires reset]", "ERR!", ""])
def test_a_cell_that_could_not_be_filled_is_none(cell: str) -> None:
    (gpu,) = said("gpu", HEADER + f"3, {cell}, 402.50 W, {cell}, 81559 MiB\n").gpus
    assert gpu == GpuReading(3, None, 402.5, None, 81559.0)


def test_a_table_without_one_readable_cell_is_a_failure() -> None:
    assert "no cell" in why("gpu", HEADER + "0, [N/A], [N/A], [N/A], 81559 MiB\n")
    assert "not found" in why("gpu", HEADER)


@pytest.mark.parametrize(
    "output",
    [
        "No devices were found",
        "NVIDIA-SMI has failed because it couldn't communicate with the NVIDIA driver. Make sure that it runs.",
        "Failed to initialize NVML: Driver/library version mismatch",
        "Unable to determine the device handle for GPU0000:5D:00.0: Unknown Error",
    ],
)
def test_a_complaint_in_the_output_is_the_reason(output: str) -> None:
    assert why("gpu", output + "\n", command=QUERY) == output


def test_one_lost_gpu_is_told_and_the_others_are_read() -> None:
    complaint = "Unable to determine the device handle for GPU0000:5D:00.0: Unknown Error"
    found = reading("gpu", complaint + "\n" + HEADER + "0, 91 %, 402.50 W, 61234 MiB, 81559 MiB\n")
    failure, gpus = found.signals
    assert isinstance(failure, PollFailed)
    assert isinstance(gpus, GpusPolled)
    assert found.quotes[0] == complaint


def test_a_looped_poll_keeps_each_gpus_newest_row() -> None:
    rows = "0, 5 %, 90 W, 1 MiB, 9 MiB\n1, 6 %, 90 W, 1 MiB, 9 MiB\n0, 7 %, 90 W, 1 MiB, 9 MiB\n"
    assert [(gpu.index, gpu.utilization_percent) for gpu in said("gpu", HEADER + rows).gpus] == [(0, 7.0), (1, 6.0)]


def test_without_index_the_newest_timestamp_is_the_sample() -> None:
    rows = "2026/07/20 09:15:00.100, 5 %\n2026/07/20 09:15:01.100, 7 %\n2026/07/20 09:15:01.104, 9 %\n"
    gpus = said("gpu", "timestamp, utilization.gpu [%]\n" + rows).gpus
    assert [(gpu.index, gpu.utilization_percent) for gpu in gpus] == [(0, 7.0), (1, 9.0)]


def test_power_alone_leaves_utilization_unknown() -> None:
    (gpu,) = said("gpu", "timestamp, power.draw [W]\n2026/07/20 09:15:00.100, 22.10 W\n").gpus
    assert (gpu.utilization_percent, gpu.power_watts) == (None, 22.1)


APPS = "gpu_uuid, pid, process_name, used_gpu_memory [MiB]\n"


def test_compute_apps_name_who_holds_the_gpus() -> None:
    rows = "GPU-77aa, 5151, ray::FSDPPolicyWorkerBase.forward, 60001 MiB\nGPU-88bb, 5152, [Not Found], [N/A]\n"
    expected = (
        GpuProcess("GPU-77aa", 5151, "ray::FSDPPolicyWorkerBase.forward", 60001.0),
        GpuProcess("GPU-88bb", 5152, "[Not Found]", None),
    )
    assert said("gpu", APPS + rows, target="pod-1") == GpuProcessesPolled("pod-1", expected)


def test_no_compute_app_is_an_answer_only_where_the_tool_worked() -> None:
    assert said("gpu", APPS, target="pod-1") == GpuProcessesPolled("pod-1", ())
    assert "exit 9" in why("gpu", APPS, exit=9, stderr="command terminated with exit code 9")


def test_two_tables_in_one_output_are_two_signals() -> None:
    output = HEADER + "0, 91 %, 402.50 W, 61234 MiB, 81559 MiB\n\n" + APPS + "GPU-77aa, 5151, python, 9 MiB\n"
    assert [type(signal) for signal in reading("gpu", output).signals] == [GpusPolled, GpuProcessesPolled]


DCGM = """\
# HELP DCGM_FI_DEV_GPU_UTIL GPU utilization (in %).
# TYPE DCGM_FI_DEV_GPU_UTIL gauge
DCGM_FI_DEV_GPU_UTIL{gpu="0",UUID="GPU-1",device="nvidia0",Hostname="node-7",container="task",pod="rl-0"} 87
DCGM_FI_DEV_GPU_UTIL{gpu="1",UUID="GPU-2",device="nvidia1",Hostname="node-7",container="task",pod="rl-1"} 3
DCGM_FI_DEV_POWER_USAGE{gpu="0",UUID="GPU-1",Hostname="node-7",pod="rl-0"} 510.250000
DCGM_FI_DEV_POWER_USAGE{gpu="1",UUID="GPU-2",Hostname="node-7",pod="rl-1"} 9223372036854775794
DCGM_FI_DEV_FB_USED{gpu="0",UUID="GPU-1",Hostname="node-7",pod="rl-0"} 70000
DCGM_FI_DEV_FB_FREE{gpu="0",UUID="GPU-1",Hostname="node-7",pod="rl-0"} 11000
DCGM_FI_PROF_DRAM_ACTIVE{gpu="0",UUID="GPU-1",Hostname="node-7",pod="rl-0"} 0.25
"""


def test_dcgm_text_is_split_by_pod_and_its_sentinels_are_unknown() -> None:
    found = reading("gpu", DCGM, target="node-7")
    assert found.signals == (
        GpusPolled("rl-0", (GpuReading(0, 87.0, 510.25, 70000.0, 81000.0, 25.0),)),
        GpusPolled("rl-1", (GpuReading(1, 3.0),)),
    )
    assert 'pod="rl-0"} 87' in found.quotes[0]


def test_dcgm_profiling_stands_in_for_utilization() -> None:
    (gpu,) = said("gpu", 'DCGM_FI_PROF_GR_ENGINE_ACTIVE{gpu="2",Hostname="node-7"} 0.5\n', target="pod-1").gpus
    assert (gpu.index, gpu.utilization_percent) == (2, 50.0)


def test_every_dcgm_sibling_is_read_or_passed_over_without_harm() -> None:
    fields = {"PROF_SM_ACTIVE": "0.4", "PROF_DRAM_ACTIVE": "0.1", "DEV_POWER_USAGE": "300.5", "DEV_MEM_COPY_UTIL": "9"}
    passed = ("DEV_SM_CLOCK", "DEV_GPU_TEMP", "DEV_XID_ERRORS", "DEV_NVLINK_BANDWIDTH_TOTAL", "PROF_PIPE_TENSOR_ACTIVE")
    lines = [
        f'DCGM_FI_{name}{{gpu="3",Hostname="node-7"}} {value}'
        for name, value in {**fields, **dict.fromkeys(passed, "7")}.items()
    ]
    assert said("gpu", "\n".join(lines), target="pod-1").gpus == (GpuReading(3, 40.0, 300.5, None, None, 10.0),)


RAY_METRICS = """\
# HELP ray_node_gpus_utilization Total GPU usage on a ray node
# TYPE ray_node_gpus_utilization gauge
ray_node_gpus_utilization{GpuDeviceName="NVIDIA H100",GpuIndex="0",SessionName="s",Version="2.51.1",ip="10.1.0.7"} 87.0
ray_node_gpus_utilization{GpuDeviceName="NVIDIA H100",GpuIndex="1",SessionName="s",Version="2.51.1",ip="10.1.0.7"} 3.0
ray_node_gram_used{GpuDeviceName="NVIDIA H100",GpuIndex="0",SessionName="s",Version="2.51.1",ip="10.1.0.7"} 70000.0
ray_node_gram_available{GpuDeviceName="NVIDIA H100",GpuIndex="0",SessionName="s",Version="2.51.1",ip="10.1.0.7"} 11559.0
ray_node_mem_used{ip="10.1.0.7"} 5e+11
"""


def test_rays_own_metrics_are_read_by_node() -> None:
    found = reading("gpu", RAY_METRICS, target="head")
    gpus = (GpuReading(0, 87.0, None, 70000.0, 81559.0), GpuReading(1, 3.0))
    assert found.signals == (GpusPolled("10.1.0.7", gpus),)
    assert found.quotes[0].endswith("87.0") or found.quotes[0].endswith("3.0")


def test_ray_metrics_without_a_readable_gpu_are_a_failure() -> None:
    assert "Ray's GPU metrics" in why("gpu", 'ray_node_gpus_utilization{GpuIndex="",ip="10.1.0.7"} NaN\n')
    assert "not found" in why("gpu", 'ray_node_mem_used{ip="10.1.0.7"} 5e+11\n')


PLAIN_TABLE = """\
+-----------------------------------------------------------------------------------------+
| NVIDIA-SMI 570.86.15              Driver Version: 570.86.15      CUDA Version: 12.8     |
| GPU  Name                 Persistence-M | Bus-Id          Disp.A | Volatile Uncorr. ECC |
| Fan  Temp   Perf          Pwr:Usage/Cap |           Memory-Usage | GPU-Util  Compute M. |
|=========================================+========================+======================|
|   0  NVIDIA H100 80GB HBM3          On  |   00000000:18:00.0 Off |                    0 |
| N/A   41C    P0            402W /  700W |   61234MiB /  81559MiB |     91%      Default |
|                                         |                        |             Disabled |
+-----------------------------------------+------------------------+----------------------+
|   5  NVIDIA H100 80GB HBM3          On  |   00000000:5D:00.0 Off |                   On |
| N/A   41C    P0            N/A /  N/A   |   61234MiB /  81559MiB |     N/A      Default |
+-----------------------------------------+------------------------+----------------------+
| Processes:                                                                              |
|  GPU   GI   CI              PID   Type   Process name                        GPU Memory |
|    0   N/A  N/A            4242      C   ray::FSDPPolicyWorkerBase             61020MiB |
+-----------------------------------------------------------------------------------------+
"""


def test_the_plain_table_is_read_without_a_query() -> None:
    found = reading("gpu", PLAIN_TABLE, command="nvidia-smi", target="pod-1")
    blind = GpuReading(5, None, None, 61234.0, 81559.0)
    assert found.signals == (GpusPolled("pod-1", (GpuReading(0, 91.0, 402.0, 61234.0, 81559.0), blind)),)
    assert "61234MiB" in found.quotes[0]


def test_figures_without_the_cards_line_are_no_plain_table() -> None:
    row = "| N/A   41C    P0            402W /  700W |   61234MiB /  81559MiB |     91%      Default |\n"
    assert "not found" in why("gpu", row, command="nvidia-smi")
