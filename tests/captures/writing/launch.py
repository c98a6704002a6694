"""job.toml: what the launcher knew."""

from tests.captures.writing.run import Run


def job_toml(run: Run, steps: int = 60, retries: int = 1, expect: str = "") -> bytes:
    """The launcher's facts of a run. expect is the body of [expect]; pods are named as of the first attempt."""
    named = [f'"{run.pod(rank)}"' for rank in range(4)]
    text = f"""[job]
id = "{run.job}"
cluster = "cw-lab2"
model = "{run.model}"
architecture = "moe"
active_params_b = 3.3
geometry = "TP1 x{len(run.engines)}"
mode = "agentic"
max_retries = {retries}

[mesh]
policy = [{", ".join(named[:2])}]
engine = [{", ".join(named[2:])}]

[engines]
count = {len(run.engines)}
tensor_parallel_size = 1
max_num_seqs = 64
enforce_eager = false

[rollouts]
n_concurrent_trials = 192
num_parallel_generation_workers = 96
num_coordinators = 2
max_staleness_steps = 3

[training]
max_steps = {steps}
"""
    return (text + (f"\n[expect]\n{expect}\n" if expect else "")).encode()
