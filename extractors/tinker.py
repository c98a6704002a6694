"""Clients of a Tinker server (SkyRL's, Thinking Machines'): the cookbook's loops, refused requests, a lost session.

A line wears `logger:line [LEVEL] ` and no clock. Serves gate A; the client's side only, the server has its own logs.
"""

from typing import Any

from extractors.pattern import Nature, Role, pattern
from extractors.python import refusal
from extractors.signal import Fault
from extractors.trainer import Ending, StepCompleted, StepsPlanned, TrainingDone

_SAYS = r"(?:[\w.]+:\d+ \[[A-Z]+\] )"


@pattern(
    "tinker",
    Nature.FACT,
    hints=("[INFO] Training for ",),
    regex=_SAYS + r"Training for (\d+) (?:batches|steps)",
    samples={
        "__main__:118 [INFO] Training for 40 batches": StepsPlanned(40),
        "__main__:92 [INFO] Training for 40 steps": StepsPlanned(40),
    },
    rejects=("Training for 40 batches", "__main__:118 [INFO] Training for many batches"),
)
def tinker_steps_planned(found: Any) -> StepsPlanned:
    """The loop says at its start on how many batches (rl_loop) or for how many steps (sl_loop) it will train."""
    return StepsPlanned(int(found[1]))


@pattern(
    "tinker",
    Nature.PROGRESS,
    hints=("  Step ",),
    regex=r" {2,}Step (\d+) {2,}$",
    samples={
        "\x1b[3m                 Step 6                 \x1b[0m": StepCompleted(7, None, None),
        "                  Step 0                  ": StepCompleted(1, None, None),
    },
    rejects=("  Step 6", "  Step 6: mix the flour  "),
)
def tinker_step(found: Any) -> StepCompleted:
    """The title of the table of metrics (rich, centred) that is printed after each batch; batches count from 0."""
    return StepCompleted(int(found[1]) + 1, None, None)


@pattern(
    "tinker",
    Nature.PROGRESS,
    hints=("[INFO] Training completed",),
    regex=_SAYS + r"Training completed(?: successfully)?\.?$",
    samples={"__main__:251 [INFO] Training completed": TrainingDone(Ending.DONE)},
    rejects=("__main__:251 [INFO] Training completed 3 of 9 batches", "Training completed"),
)
def tinker_done(found: Any) -> TrainingDone:
    """The loop's last line, after its last checkpoint."""
    return TrainingDone(Ending.DONE)


@pattern(
    "tinker",
    Nature.FAULT,
    role=Role.ROOT,
    hints=("Request failed with non-retryable error: ",),
    regex=_SAYS + r"Request failed with non-retryable error: (?:(?P<type>\w+): )?(?:Error retrieving result: )?"
    r"(?P<what>(?:Error code: \d{3} - )?[^\n]{1,120})",
    samples={
        "tinker.lib.retry_handler:230 [ERROR] Request failed with non-retryable error: ValueError: Error retrieving "
        "result: Error code: 400 - {'detail': 'no such model'}": (
            Fault("request_refused", "Error code: 400 - {'detail': 'no such model'}", "ValueError")
        ),
        "tinker.lib.retry_handler:230 [ERROR] Request failed with non-retryable error: APIStatusError: Error code: "
        "402 - {'detail': 'no credit left'}": (
            Fault("billing_refused", "Error code: 402 - {'detail': 'no credit left'}", "APIStatusError")
        ),
    },
    rejects=("tinker.lib.retry_handler:99 [WARNING] Request failed, retrying: Error code: 503",),
)
def tinker_request_refused(found: Any) -> Fault:
    """The server refused a request for good; the client does not try it again."""
    return Fault(refusal(found["what"]) or "request_refused", found["what"], found["type"] or "")


@pattern(
    "tinker",
    Nature.FAULT,
    role=Role.EITHER,
    hints=("Session heartbeat failed for ",),
    regex=_SAYS + r"Session heartbeat failed for (?P<seconds>\d+)[\d.]* seconds for session (?P<session>[\w-]+)",
    samples={
        "tinker.lib.internal_client_holder:344 [WARNING] Session heartbeat failed for 140.07 seconds for session "
        "session_77aab1. Last exception: APITimeoutError: Request timed out..": (
            Fault("service_unreachable", "no heartbeat of the session", entity="session_77aab1")
        ),
    },
    rejects=("tinker.lib.internal_client_holder:350 [INFO] Session heartbeat works for 140.07 seconds",),
)
def tinker_session_lost(found: Any) -> Fault:
    """The server does not answer the client's heartbeat, said every 20 s with a growing number. A step after it shows
    that it came back."""
    return Fault("service_unreachable", "no heartbeat of the session", entity=found["session"])


PATTERNS = (tinker_steps_planned, tinker_step, tinker_done, tinker_request_refused, tinker_session_lost)
