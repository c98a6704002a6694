"""Launchers that begin in the same file again: DeepSpeed's, torchrun, srun, the Tinker cookbook.

Serves the attempts of GATES: a launch after an end is a new life of the job.
"""

from enum import StrEnum
from typing import Any

import msgspec

from extractors.pattern import Nature, pattern


class Anew(StrEnum):
    """What must stand before such a line for it to begin a new life of the job."""

    END = "end"
    START = "start"
    NOTHING = "nothing"


class Launched(msgspec.Struct, frozen=True):
    """A launcher begins. after is what shows that an earlier life is over: its end, its own start (the process is
    alone in its file), or nothing (the line itself says so)."""

    by: str
    after: Anew


@pattern(
    "launcher",
    Nature.FACT,
    hints=(":main] cmd = ",),
    regex=r"\[INFO\] \[runner\.py:\d+:main\] cmd = ",
    samples={
        "[2031-03-14 09:00:00,310] [INFO] [runner.py:571:main] cmd = /opt/python -u -m deepspeed.launcher.launch "
        "--world_info=eyJhIjogWzBdfQ== --master_port=29500 tune.py --deepspeed": Launched("DeepSpeed", Anew.END),
        "[2031-03-14 09:00:00,310] [INFO] [runner.py:607:main] cmd = pdsh -S -f 1024 -w node-7,node-8 export A=1;": (
            Launched("DeepSpeed", Anew.END)
        ),
    },
    rejects=("[INFO] [launch.py:350:main] cmd = ", "the [INFO] [runner.py:571:main] cmd = of yesterday"),
)
def deepspeed_launch(found: Any) -> Launched:
    """DeepSpeed's runner tells the command it starts on each node (0.7 to 0.17). After an end it is a new attempt."""
    return Launched("DeepSpeed", Anew.END)


@pattern(
    "launcher",
    Nature.FACT,
    hints=("Starting elastic_operator with launch configs", "Setting OMP_NUM_THREADS environment variable for each"),
    regex=r"(?:[\w.]+:)?(?:Starting elastic_operator with launch configs"
    r"|Setting OMP_NUM_THREADS environment variable for each process to be )",
    samples={
        "INFO:torch.distributed.launcher.api:Starting elastic_operator with launch configs:": (
            Launched("torchrun", Anew.END)
        ),
        "W0314 09:00:00.310000 800 torch/distributed/run.py:792] Setting OMP_NUM_THREADS environment variable for each "
        "process to be 1 in default, to avoid your system being overloaded.": Launched("torchrun", Anew.END),
        "Setting OMP_NUM_THREADS environment variable for each process to be 1 in default, to avoid your system being "
        "overloaded, please further tune the variable.": Launched("torchrun", Anew.END),
    },
    rejects=("We are Setting OMP_NUM_THREADS environment variable for each process to be 1",),
)
def torchrun_launch(found: Any) -> Launched:
    """torchrun begins on a node (torch 1.9 to 2.9; the second form where OMP_NUM_THREADS was not set)."""
    return Launched("torchrun", Anew.END)


@pattern(
    "launcher",
    Nature.FACT,
    hints=(" attempts left; will restart worker group", " attempts left;  will restart worker group"),
    regex=r"(?:[\w.]+:)?\[[\w-]{1,80}\] Worker group [A-Z]+\. \d+/\d+ attempts left; +will restart worker group",
    samples={
        "INFO:torch.distributed.elastic.agent.server.api:[default] Worker group FAILED. 2/3 attempts left;  will "
        "restart worker group": Launched("torchrun", Anew.NOTHING),
        "I0314 09:12:00.310000 800 torch/distributed/elastic/agent/server/api.py:917] [trainer] Worker group UNHEALTHY."
        " 1/3 attempts left; will restart worker group": Launched("torchrun", Anew.NOTHING),
    },
    rejects=("3 attempts left; will restart worker group", "[default] Worker group FAILED. no attempts left"),
)
def torchrun_restart(found: Any) -> Launched:
    """torchrun's agent starts all of its workers again (--max-restarts); the agents of all nodes say so."""
    return Launched("torchrun", Anew.NOTHING)


@pattern(
    "launcher",
    Nature.FACT,
    hints=(" has been allocated resources", "srun: Step created for "),
    regex=r"srun: (?:job \d+ has been allocated resources|Step created for (?:StepId=|job |step )[\d.]+)",
    samples={
        "srun: job 4711 has been allocated resources": Launched("srun", Anew.END),
        "srun: Step created for StepId=4711.1": Launched("srun", Anew.END),
        "srun: Step created for job 4711": Launched("srun", Anew.END),
    },
    rejects=("salloc: job 4711 has been allocated resources", "srun: job 4711 queued and waiting for resources"),
)
def srun_launch(found: Any) -> Launched:
    """srun got its nodes, or its step where it had to wait for it; the file of a requeued job goes on in place."""
    return Launched("srun", Anew.END)


@pattern(
    "tinker",
    Nature.FACT,
    hints=("[INFO] Command line invocation: ",),
    regex=r"[\w.]+:\d+ \[INFO\] Command line invocation: ",
    samples={
        "root:680 [INFO] Command line invocation: /home/u/cookbook/recipes/rl_loop.py base_url=http://localhost:9000": (
            Launched("the recipe", Anew.START)
        ),
    },
    rejects=("[INFO] Command line invocation: x", "Command line invocation: rl_loop.py"),
)
def tinker_launch(found: Any) -> Launched:
    """A recipe of the Tinker cookbook begins; it writes behind what an earlier one left in its log folder."""
    return Launched("the recipe", Anew.START)


PATTERNS = (deepspeed_launch, torchrun_launch, torchrun_restart, srun_launch, tinker_launch)
