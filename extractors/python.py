"""Python: tracebacks that no other speaker knows, and exceptions that only mask another one.

A joined traceback comes as one text, from its header to its exception line. Ray writes `ray::Actor.method() (pid=…)` in
place of the word Traceback. Chained exceptions come one by one; Ray's chain of remote tasks comes as one text.
"""

import re
from typing import Any

from extractors.announcing import IGNORED_HEADERS
from extractors.joining import is_traceback_header
from extractors.pattern import Nature, Role, pattern
from extractors.signal import Benign, Fault

HEADER = "Traceback (most recent call last)"
MESSAGE_LIMIT = 200
_RAISED = re.compile(r"(?P<type>[A-Za-z_][\w.]*)(?:\((?P<inner>[\w.]+)\))?(?::(?: (?P<message>.*))?)?$")
_REMOTE = re.compile(r"\bray::(\w+)\.\w+\(\)")
_FRAME = re.compile(r'\s+File "(?P<file>[^"]+)", line \d+, in (?P<function>\S+)')
_NOT_OWN = ("site-packages", "dist-packages", "/lib/python", "<frozen", "ray/_private", "ray/_raylet")
_BUILTIN_ENDINGS = ("Error", "Exception", "Exit", "Interrupt", "Iteration", "Warning", "Group", "Timeout", "Failure")
_NO_ERRORS = frozenset({"KeyboardInterrupt", "SystemExit", "GeneratorExit", "CancelledError", "StopIteration"})
_REFUSED_CONFIG = re.compile(r"\d+ validation errors? for \w*(?:Config|Args|Settings|Params)\b")
_STATUS = re.compile(r"\bError code: (4\d\d) - ")
"""How the SDKs of OpenAI, Anthropic and their kin print an HTTP status (openai-python 1.x)."""
_PASSING = frozenset({"408", "409", "423", "425", "429"})
"""Statuses that a later try can pass."""
_MASKED = {"EngineDeadError": "engine_dead", "OutOfMemoryError": "cuda_oom", "ActorDiedError": "actor_died"}


def _conclusion(lines: list[str]) -> re.Match[str] | None:
    """The exception line: the last that is no frame and that names an exception or a remote task's cause."""
    for line in reversed(lines):
        if line[:1] in " \t" or not line.strip():
            continue
        found = _RAISED.match(line)
        if found and (found["inner"] or _names_exception(found["type"])):
            return found
    return None


def _names_exception(word: str) -> bool:
    """Whether a word before a colon is an exception's type. Without a module it is a builtin or the script's own, and
    `Action: …` of a message that spans lines is neither."""
    module, _, name = word.rpartition(".")
    return name[:1].isupper() and (bool(module) or name.endswith(_BUILTIN_ENDINGS))


def _site(lines: list[str]) -> str:
    """The innermost frame's function outside of installed packages, or the innermost at all."""
    own = any_frame = ""
    for line in lines:
        found = _FRAME.match(line)
        if found is None:
            continue
        any_frame = found["function"]
        if not any(part in found["file"] for part in _NOT_OWN):
            own = any_frame
    return own or any_frame


def _remote_actor(lines: list[str]) -> str:
    """The actor class that raised it, in Ray's chain of remote calls: the innermost one. "" outside of one."""
    found = [match[1] for line in lines if _is_header(line) and (match := _REMOTE.search(line))]
    return found[-1] if found else ""


def _is_header(line: str) -> bool:
    return is_traceback_header(line) or line.startswith("ray::") or ("RayTaskError(" in line[:80] and ": ray::" in line)


@pattern(
    "python",
    Nature.FAULT,
    role=Role.ROOT,
    hints=(HEADER, "RayTaskError(", "() (pid=", "()\x1b[39m (pid="),
    samples={
        "Traceback (most recent call last):\n"
        '  File "/opt/app/train.py", line 88, in main\n'
        "    run(cfg)\n"
        '  File "/opt/app/loader.py", line 12, in read_shard\n'
        "    return table[name]\n"
        '  File "/venv/lib/python3.12/site-packages/pyarrow/table.py", line 9, in __getitem__\n'
        "    raise KeyError(name)\n"
        "KeyError: 'prompt'": Fault("python_exception", "'prompt'", "KeyError", "read_shard"),
        "(FSDPPolicyWorkerBase pid=900, ip=10.1.0.4) Traceback (most recent call last):\n"
        '(FSDPPolicyWorkerBase pid=900, ip=10.1.0.4)   File "/opt/app/worker.py", line 5, in forward\n'
        "(FSDPPolicyWorkerBase pid=900, ip=10.1.0.4)     assert mask.any()\n"
        "(FSDPPolicyWorkerBase pid=900, ip=10.1.0.4) AssertionError": (
            Fault("python_exception", "", "AssertionError", "forward")
        ),
        "ERROR 03-14 09:40:00 [core.py:1101] Traceback (most recent call last):\n"
        'ERROR 03-14 09:40:00 [core.py:1101]   File "/venv/lib/python3.12/site-packages/vllm/v1/engine/core.py", line '
        "1092, in run_busy_loop\n"
        "ERROR 03-14 09:40:00 [core.py:1101]     self.step()\n"
        "ERROR 03-14 09:40:00 [core.py:1101] RuntimeError: Invalid request status": (
            Fault("python_exception", "Invalid request status", "RuntimeError", "run_busy_loop")
        ),
        "\x1b[36mray::RolloutCoordinator.run()\x1b[39m (pid=4242, ip=10.1.0.6, actor_id=77ab, repr=<x>)\n"
        '  File "/opt/app/coordinator.py", line 40, in run\n'
        "    batch = queue.take()\n"
        "my.package.QueueEmptyError: nothing to take": (
            Fault("python_exception", "nothing to take", "QueueEmptyError", "run", entity="RolloutCoordinator")
        ),
        "Traceback (most recent call last):\n"
        '  File "/opt/app/main.py", line 8, in main\n'
        "    ray.get(entry.remote())\n"
        "ray.exceptions.RayTaskError(ValueError): ray::entry() (pid=31337, ip=10.1.0.4)\n"
        '  File "/opt/app/main.py", line 30, in entry\n'
        "    check(rows)\n"
        "ValueError: 3 rows of 4": Fault("python_exception", "3 rows of 4", "ValueError", "entry"),
        "Traceback (most recent call last):\n"
        '  File "/opt/app/judge.py", line 19, in ask\n'
        "    return await client.chat.completions.create(**request)\n"
        "openai.APIStatusError: Error code: 402 - {'detail': 'top up your account'}": (
            Fault("billing_refused", "Error code: 402 - {'detail': 'top up your account'}", "APIStatusError", "ask")
        ),
        "Traceback (most recent call last):\n"
        '  File "/opt/app/sandbox.py", line 31, in start\n'
        "    self.client.create(snapshot)\n"
        "harbor.SnapshotQuotaExceeded: 100 of 100 snapshots": (
            Fault("snapshot_quota", "100 of 100 snapshots", "SnapshotQuotaExceeded", "start")
        ),
        "Traceback (most recent call last):\n"
        '  File "/opt/app/judge.py", line 19, in ask\n'
        "    return await client.chat.completions.create(**request)\n"
        "openai.RateLimitError: Error code: 429 - {'detail': 'slow down'}": (
            Fault("python_exception", "Error code: 429 - {'detail': 'slow down'}", "RateLimitError", "ask")
        ),
        "Traceback (most recent call last):\n"
        '  File "/opt/app/serve.py", line 7, in main\n'
        "    config = ModelConfig(**arguments)\n"
        "pydantic_core._pydantic_core.ValidationError: 1 validation error for ModelConfig": (
            Fault("config_error", "1 validation error for ModelConfig", "ValidationError", "main")
        ),
        "Loading shards:  50%|█████     | 1/2 [00:03<00:03,  3.1s/it]ERROR:root:Traceback (most recent call last):\n"
        '  File "/opt/app/load.py", line 7, in shard\n'
        "    read(path)\n"
        "OSError: the volume is gone": Fault("python_exception", "the volume is gone", "OSError", "shard"),
        "ray.exceptions.RayTaskError(OutOfMemoryError): ray::Runner.run() (pid=900, ip=10.1.0.4, actor_id=77ab)\n"
        '  File "/opt/app/main.py", line 94, in fit\n'
        "    self.update()\n"
        "ray.exceptions.RayTaskError(OutOfMemoryError): ray::PolicyWorker.forward_backward() (pid=901, ip=10.1.0.5)\n"
        '  File "/opt/app/worker.py", line 12, in forward_backward\n'
        "    loss.backward()": Fault("cuda_oom", "", "OutOfMemoryError", "forward_backward", entity="PolicyWorker"),
    },
    rejects=(
        '{"role": "user", "content": "Traceback (most recent call last): boom"}',
        "Traceback (most recent call last):\n"
        '  File "/opt/app/main.py", line 8, in main\n'
        "    loop.run()\n"
        "KeyboardInterrupt",
    ),
)
def traceback(text: str) -> Fault | None:
    """An exception with its frames. It is a cause only where nothing later shows that it was handled. Interrupts and
    cancellations are no errors. site is the innermost own function, installed packages left out."""
    lines = text.split("\n")
    found = _conclusion(lines) if _is_header(lines[0]) else None
    if found is None:
        return None
    name = (found["inner"] or found["type"]).rpartition(".")[2]
    if name in _NO_ERRORS:
        return None
    message = "" if found["inner"] else (found["message"] or "").strip()[:MESSAGE_LIMIT]
    cause = _MASKED.get(name, "python_exception") if found["inner"] else _said_cause(name, message)
    return Fault(cause, message, name, _site(lines), entity=_remote_actor(lines))


def _said_cause(name: str, message: str) -> str:
    """The cause that a message names by itself: a configuration that pydantic refused, a request that a service did, a
    quota that is used up."""
    if name == "ValidationError" and _REFUSED_CONFIG.match(message):
        return "config_error"
    if name == "SnapshotQuotaExceeded" or ("snapshot" in message.lower() and "quota" in message.lower()):
        return "snapshot_quota"
    return refusal(message) or "python_exception"


def refusal(message: str) -> str:
    """The cause of a request that a service refused for good, by its status; empty where it was not."""
    status = _STATUS.search(message)
    if "insufficient_quota" in message or (status and status[1] == "402"):
        return "billing_refused"
    return "request_refused" if status and status[1] not in _PASSING else ""


@pattern(
    "python",
    Nature.FAULT,
    role=Role.EITHER,
    hints=("PicklingError: Can't pickle", "No module named 'pydantic_compat", "UnserializableException: "),
    regex=r"(?:(?:ray\.exceptions\.)?(?P<unbuilt>UnserializableException): "
    r"|(?:_?pickle\.)?PicklingError: Can't pickle <class '[\w.]*RayTaskError\((?P<inner>\w+)\)'>"
    r"|ModuleNotFoundError: No module named '(?P<module>pydantic_compat)[^']*')",
    samples={
        "_pickle.PicklingError: Can't pickle <class 'ray.exceptions.RayTaskError(EngineDeadError)'>: attribute lookup "
        "failed": Fault("engine_dead", "an unpicklable exception hides it", "EngineDeadError"),
        "pickle.PicklingError: Can't pickle <class 'ray.exceptions.RayTaskError(ValueError)'>: it's not the same "
        "object": (Fault("python_exception", "an unpicklable exception hides it", "ValueError")),
        "ray.exceptions.UnserializableException: Failed to deserialize exception. Refer to https://docs.ray.io": (
            Fault("python_exception", "an exception that can't be unpickled hides the cause", "UnserializableException")
        ),
        "ModuleNotFoundError: No module named 'pydantic_compat'": (
            Fault("python_exception", "an exception that can't be unpickled hides the cause", "ModuleNotFoundError")
        ),
    },
    rejects=("_pickle.PicklingError: Can't pickle <function main.<locals>.f>", "No module named 'pydantic_compat'"),
)
def masked_exception(found: Any) -> Fault:
    """An exception that could not travel between processes and hides the one it carries: that one is the cause."""
    if found["module"] or found["unbuilt"]:
        mask = found["unbuilt"] or "ModuleNotFoundError"
        return Fault("python_exception", "an exception that can't be unpickled hides the cause", mask)
    inner = found["inner"]
    return Fault(_MASKED.get(inner, "python_exception"), "an unpicklable exception hides it", inner)


@pattern(
    "python",
    Nature.FAULT,
    role=Role.EITHER,
    hints=("Unhandled error (suppress with",),
    regex=r"Unhandled error \(suppress with [^)]*\): (?:ray::(?P<actor>\w+)(?:\.(?P<method>\w+))?\(\)"
    r"|(?P<what>[^\n]{0,160}))",
    samples={
        "(RefWorker pid=8249) Unhandled error (suppress with 'RAY_IGNORE_UNHANDLED_ERRORS=1'): "
        "ray::EngineActor.update_weight() (pid=8805, ip=10.1.0.4, actor_id=77ab)": (
            Fault("python_exception", "an error that nobody waited for", "", "update_weight", entity="EngineActor")
        ),
        "Unhandled error (suppress with 'RAY_IGNORE_UNHANDLED_ERRORS=1'): The worker died": (
            Fault("python_exception", "The worker died")
        ),
    },
    rejects=("Unhandled error in step 3",),
)
def unhandled_remote_error(found: Any) -> Fault:
    """A remote call failed and nobody asked for its result; Ray's owner prints it when the reference goes away."""
    if found["what"] is not None:
        return Fault("python_exception", found["what"])
    site = found["method"] or found["actor"]
    return Fault("python_exception", "an error that nobody waited for", "", site, entity=found["actor"])


@pattern(
    "python",
    Nature.BENIGN,
    hints=(
        "AgentTimeoutError: ",
        "ContextLengthExceededError: ",
        "ContextWindowExceededError: ",
        "OutputLengthExceededError: ",
    ),
    regex=r"(?:[\w.]+\.)?(?:AgentTimeoutError|ContextLengthExceededError|ContextWindowExceededError"
    r"|OutputLengthExceededError): ",
    samples={
        "harbor.trial.errors.AgentTimeoutError: Agent execution timed out after 900.0 seconds": Benign("agent-outcome"),
        "ContextLengthExceededError: the prompt has 40000 tokens": Benign("agent-outcome"),
        "litellm.exceptions.ContextWindowExceededError: litellm.BadRequestError: too long": Benign("agent-outcome"),
        "harbor.llms.base.OutputLengthExceededError: the answer was cut": Benign("agent-outcome"),
    },
    rejects=("Exception breakdown: {'AgentTimeoutError': 3}", "generate/errors/AgentTimeoutError: 3"),
)
def agent_outcome(found: Any) -> Benign:
    """An agent ran out of time or context: an outcome of its trial, passed through by the harness."""
    return Benign("agent-outcome")


@pattern(
    "python",
    Nature.BENIGN,
    hints=IGNORED_HEADERS,
    regex=r"Exception ignored in|--- Logging error ---|Error occurred while register actor to metric agent",
    samples={
        "Exception ignored in: <function Session.__del__ at 0x7f00aa>\n"
        "Traceback (most recent call last):\n"
        '  File "/opt/app/session.py", line 31, in __del__\n'
        "    self.close()\n"
        "RuntimeError: Event loop is closed": Benign("ignored-exception"),
        "--- Logging error ---\n"
        "Traceback (most recent call last):\n"
        '  File "/usr/lib/python3.12/logging/__init__.py", line 1160, in emit\n'
        "    msg = self.format(record)\n"
        "TypeError: not all arguments converted during string formatting": Benign("ignored-exception"),
        "(RefWorker pid=900) Error occurred while register actor to metric agent: '7' has type str\n"
        "(RefWorker pid=900) Traceback (most recent call last):\n"
        '(RefWorker pid=900)   File "python/ray/_raylet.pyx", line 1904, in ray._raylet.execute\n'
        "(RefWorker pid=900) TypeError: '7' has type str": Benign("ignored-exception"),
    },
    rejects=("the Exception ignored in step 3", 'log("--- Logging error ---")'),
)
def ignored_exception(found: Any) -> Benign:
    """The traceback below this line ended nothing: Python met it in a destructor, an exit handler or a log handler, Ray
    while it told its metrics agent of an actor."""
    return Benign("ignored-exception")


PATTERNS = (traceback, masked_exception, unhandled_remote_error, agent_outcome, ignored_exception)
