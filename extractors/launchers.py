"""Launchers of other stacks than ours: Slurm's steps, submitit, DeepSpeed's launcher, torchrun's agent.

They tell that a process ended and who ended it, never why: the process' own error stands before them.
"""

from typing import Any

from extractors.pattern import Nature, Role, pattern
from extractors.signal import Fault, Teardown

_AGENT = r"(?:torch[\w./]*(?::\d+\])?: )?(?:\[(?:ERROR|WARNING)\] )?"

_CANCELLED = {"time limit": "wall_clock", "node failure": "node_died", "preemption": "preempted"}
"""Slurm's reasons that are causes of their own; the others are somebody's will."""


@pattern(
    "launcher",
    Nature.FAULT,
    role=Role.EITHER,
    hints=(" CANCELLED AT ", ": this job is preempted", ": this job is timed-out"),
    regex=r"(?:slurmstepd: error: \*\*\* (?P<what>JOB|STEP) (?P<id>[\w.+]+)(?: ON (?P<node>\S+))? CANCELLED AT [\w:-]+"
    r"(?: DUE TO (?P<why>[A-Z ]+?)(?:,[^\n*]*)?)? \*\*\*"
    r"|submitit WARNING \([^)\n]{1,40}\) - Caught signal (?P<signal>\w+) on (?P<host>\S+): this job is "
    r"(?P<said>preempted|timed-out))",
    samples={
        "slurmstepd: error: *** JOB 4711 ON node-7 CANCELLED AT 2031-03-14T09:12:00 DUE TO TIME LIMIT ***": (
            Fault("wall_clock", "Slurm cancelled job 4711: time limit", entity="node-7")
        ),
        "slurmstepd: error: *** STEP 4711.0 ON node-7 CANCELLED AT 2031-03-14T09:12:00 DUE TO PREEMPTION ***": (
            Fault("preempted", "Slurm cancelled step 4711.0: preemption", entity="node-7")
        ),
        "slurmstepd: error: *** JOB 4711 ON node-7 CANCELLED AT 2031-03-14T09:12:00 DUE TO NODE FAILURE, SEE SLURMCTLD "
        "LOG FOR DETAILS ***": Fault("node_died", "Slurm cancelled job 4711: node failure", entity="node-7"),
        "slurmstepd: error: *** STEP 4711.0 ON node-7 CANCELLED AT 2031-03-14T09:12:00 ***": (
            Fault("external_signal", "Slurm cancelled step 4711.0", entity="node-7")
        ),
        "slurmstepd: error: *** JOB 4711 CANCELLED AT 2031-03-14T09:12:00 DUE TO TIME LIMIT ***": (
            Fault("wall_clock", "Slurm cancelled job 4711: time limit")
        ),
        "submitit WARNING (2031-03-14 09:12:00,310) - Caught signal SIGUSR2 on node-7: this job is preempted.": (
            Fault("preempted", "SIGUSR2: preempted", entity="node-7")
        ),
        "submitit WARNING (2031-03-14 09:12:00,310) - Caught signal SIGUSR2 on node-7: this job is timed-out.": (
            Fault("wall_clock", "SIGUSR2: timed-out", entity="node-7")
        ),
    },
    rejects=(
        "the JOB 4711 was CANCELLED AT 2031-03-14T09:12:00",
        "submitit WARNING (2031-03-14 09:12:00,310) - Bypassing signal SIGCONT",
    ),
)
def slurm_cancelled(found: Any) -> Fault:
    """Slurm ended a job or a step: its time limit, a pre-emption or requeue, a lost node, a person, or `srun` after one
    of its tasks failed. With an earlier error on file it is the end of that one."""
    if found["signal"]:
        cause = "wall_clock" if found["said"] == "timed-out" else "preempted"
        return Fault(cause, f"{found['signal']}: {found['said']}", entity=found["host"])
    why = (found["why"] or "").lower()
    cause = _CANCELLED.get(why, "external_signal")
    said = f"Slurm cancelled {found['what'].lower()} {found['id']}" + (f": {why}" if why else "")
    return Fault(cause, said, entity=found["node"] or "")


@pattern(
    "launcher",
    Nature.FAULT,
    role=Role.CASCADE,
    hints=(": Exited with exit code ", ": Segmentation fault", ": Aborted", ": Bus error"),
    regex=r"srun: error: (?P<node>\S+): (?P<tasks>tasks? [\d,-]+): (?:Exited with exit code (?P<code>[1-9]\d*)"
    r"|(?P<signal>Segmentation fault|Aborted|Bus error))",
    samples={
        "srun: error: node-7: tasks 2-3: Exited with exit code 1": (
            Fault("worker_crashed", "tasks 2-3 exited with code 1", entity="node-7")
        ),
        "srun: error: node-7: task 2: Segmentation fault (core dumped)": (
            Fault("worker_crashed", "task 2 ended: Segmentation fault", entity="node-7")
        ),
        "srun: error: node-7: tasks 0,3: Aborted": Fault("worker_crashed", "tasks 0,3 ended: Aborted", entity="node-7"),
        "srun: error: node-7: task 12: Exited with exit code 137": (
            Fault("worker_crashed", "task 12 exited with code 137", entity="node-7")
        ),
    },
    rejects=(
        "srun: error: node-7: task 0: Killed",
        "compiler: Aborted",
        "task 3: Exited with exit code 1, says the manual",
    ),
)
def srun_task_exited(found: Any) -> Fault:
    """A task of a Slurm step ended with an error code or by a fatal signal. Its own output says why, or Slurm's
    cancellation does."""
    how = f"exited with code {found['code']}" if found["code"] else f"ended: {found['signal']}"
    return Fault("worker_crashed", f"{found['tasks']} {how}", entity=found["node"])


@pattern(
    "launcher",
    Nature.FAULT,
    role=Role.EITHER,
    hints=("srun: error: Node failure on ",),
    regex=r"srun: error: Node failure on (?P<node>[^\s,]{1,120})",
    samples={"srun: error: Node failure on node-7": Fault("node_died", "Slurm lost a node", entity="node-7")},
    rejects=("srun: error: node-7: task 0: Killed", "the srun: error: Node failure on node-7"),
)
def slurm_node_lost(found: Any) -> Fault:
    """Slurm lost a node of the step; what ran on it left no word."""
    return Fault("node_died", "Slurm lost a node", entity=found["node"])


@pattern(
    "launcher",
    Nature.BENIGN,
    hints=("srun: Terminating ", "srun: Job step aborted: ", "srun: forcing job termination", "srun: interrupt "),
    regex=r"srun: (?:Terminating (?:StepId=|job step )[\w.+]+|Job step aborted: |forcing job termination|interrupt )",
    samples={
        "srun: Terminating StepId=4711.0": Teardown("srun ends its step"),
        "srun: Terminating job step 4711.0": Teardown("srun ends its step"),
        "srun: Job step aborted: Waiting up to 32 seconds for job step to finish.": Teardown("srun ends its step"),
        "srun: forcing job termination": Teardown("srun ends its step"),
        "srun: interrupt (one more within 1 sec to abort)": Teardown("srun ends its step"),
    },
    rejects=("srun: Terminating is what it does", "the srun: forcing job termination"),
)
def srun_closing(found: Any) -> Teardown:
    """srun ends what is left of a step after a task failed, Slurm cancelled it or somebody interrupted it: the reason
    stands before."""
    return Teardown("srun ends its step")


@pattern(
    "launcher",
    Nature.FAULT,
    role=Role.CASCADE,
    hints=(" exits with return code = ", ") of binary: "),
    regex=r"(?:\[ERROR\] \[launch\.py:\d+:\w+\] [^\n]*?(?:--local_rank=(?P<local>\d+)[^\n]*)?\] exits with return "
    r"code = (?P<code>-?\d+)"
    r"|" + _AGENT + r"failed \(exitcode: (?P<exitcode>-?\d+)\) local_rank: (?P<rank>\d+) \(pid: \d+\) of binary: )",
    samples={
        "[2031-03-14 09:12:00,310] [ERROR] [launch.py:324:sigkill_handler] ['/opt/python', '-u', 'tune.py', "
        "'--local_rank=3', '--deepspeed'] exits with return code = -9": (
            Fault("worker_crashed", "exit code -9", entity="local rank 3")
        ),
        "[2031-03-14 09:12:00,310] [ERROR] [launch.py:325:sigkill_handler] ['/opt/python', 'tune.py'] exits with "
        "return code = 1": Fault("worker_crashed", "exit code 1"),
        "ERROR:torch.distributed.elastic.multiprocessing.api:failed (exitcode: -11) local_rank: 2 (pid: 900) of "
        "binary: /opt/python": Fault("worker_crashed", "exit code -11", entity="local rank 2"),
        "E0314 09:12:00.310000 800 torch/distributed/elastic/multiprocessing/api.py:869] failed (exitcode: 1) "
        "local_rank: 0 (pid: 900) of binary: /opt/python": (
            Fault("worker_crashed", "exit code 1", entity="local rank 0")
        ),
        "[2031-03-14 09:12:00,310] torch.distributed.elastic.multiprocessing.api: [ERROR] failed (exitcode: 1) "
        "local_rank: 5 (pid: 900) of binary: /opt/python": (
            Fault("worker_crashed", "exit code 1", entity="local rank 5")
        ),
    },
    rejects=(
        "[2031-03-14 09:12:00,310] [INFO] [launch.py:318:sigkill_handler] Killing subprocess 900",
        "the sha of binary: 77ab (pid: 3) of binary: x",
    ),
)
def launched_process_failed(found: Any) -> Fault:
    """The launcher (DeepSpeed, torchrun) saw one of its processes fail first and ends the others. A negative code is
    the signal that ended it; a local rank counts within its node."""
    code, local = (found["code"], found["local"]) if found["code"] else (found["exitcode"], found["rank"])
    return Fault("worker_crashed", f"exit code {code}", entity=f"local rank {local}" if local else "")


@pattern(
    "launcher",
    Nature.BENIGN,
    hints=("] Killing subprocess ", " exits successfully."),
    regex=r"\[INFO\] \[launch\.py:\d+:\w+\] (?:(?P<killed>Killing subprocess \d+)|Process \d+ exits successfully\.)",
    samples={
        "[2031-03-14 09:12:00,310] [INFO] [launch.py:318:sigkill_handler] Killing subprocess 900": (
            Teardown("DeepSpeed's launcher ends its processes")
        ),
        "[2031-03-14 09:12:00,310] [INFO] [launch.py:350:main] Process 900 exits successfully.": (
            Teardown("a process of DeepSpeed's launcher exited with 0")
        ),
    },
    rejects=("Process 900 exits successfully.", "[INFO] [runner.py:457:main] Killing subprocess 900"),
)
def deepspeed_closing(found: Any) -> Teardown:
    """DeepSpeed's launcher ends what is left of its processes, or saw one end by itself with exit code 0."""
    if found["killed"]:
        return Teardown("DeepSpeed's launcher ends its processes")
    return Teardown("a process of DeepSpeed's launcher exited with 0")


PATTERNS = (
    slurm_cancelled,
    srun_task_exited,
    slurm_node_lost,
    srun_closing,
    launched_process_failed,
    deepspeed_closing,
)
