"""asyncio: an exception of a task or future whose result nobody asked for.

Its process goes on, so that it is a cause only of an end that follows it closely.
"""

from extractors.pattern import Nature, Role, pattern
from extractors.python import traceback
from extractors.signal import Fault


@pattern(
    "python",
    Nature.FAULT,
    role=Role.ROOT,
    hints=(" exception was never retrieved",),
    samples={
        "ERROR:asyncio:Task exception was never retrieved\n"
        "future: <Task finished name='Task-7' coro=<ask() done, defined at /opt/app/judge.py:19> "
        "exception=KeyError('grade')>\n"
        "Traceback (most recent call last):\n"
        '  File "/opt/app/judge.py", line 24, in ask\n'
        "    return answer[name]\n"
        "KeyError: 'grade'": Fault("python_exception", "'grade'", "KeyError", "ask"),
        "[2031-03-14 09:12:00,310 | asyncio | ERROR]:\t_GatheringFuture exception was never retrieved\n"
        "future: <_GatheringFuture finished exception=APIStatusError('Error code: 402')>\n"
        "Traceback (most recent call last):\n"
        '  File "/opt/app/judge.py", line 19, in ask\n'
        "    return await client.chat.completions.create(**request)\n"
        "openai.APIStatusError: Error code: 402 - {'detail': 'top up your account'}": (
            Fault("billing_refused", "Error code: 402 - {'detail': 'top up your account'}", "APIStatusError", "ask")
        ),
    },
    rejects=(
        "ERROR:asyncio:Task exception was never retrieved",
        'the manual says "Task exception was never retrieved"\n'
        "Traceback (most recent call last):\n"
        '  File "/opt/app/judge.py", line 24, in ask\n'
        "    return answer[name]\n"
        "KeyError: 'grade'",
    ),
)
def detached_exception(text: str) -> Fault | None:
    """A task of an event loop failed and nobody awaits it; asyncio logs it when the task is dropped. It ended nothing
    by itself: what moves after it shows that it was survived, and an error that did end a process is blamed before
    it."""
    said, newline, rest = text.partition("\n")
    fault: Fault | None = traceback.build(rest) if newline and said.rstrip().endswith("retrieved") else None
    return fault


PATTERNS = (detached_exception,)
