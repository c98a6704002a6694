"""Prefixes that few lines wear: a followed Iris log, python's bare level, Hugging Face's logger, a label before vLLM's.

They are asked last, so that they cost only lines that wear none of the usual ones.
"""

import re

_LEVELS = r"(?:DEBUG|INFO|WARNING|WARN|ERROR|CRITICAL)"

FOLLOWED = re.compile(
    rf"(?:(?:[IWEFD]?\d{{4}}-?\d\d-?\d\d[ T]\d\d:\d\d:\d\d(?:[.,]\d{{1,9}})?Z?|\[?{_LEVELS}\]?:?) "
    r"(?:[\w.:\[\]|-]{1,64} +){0,4})?task=(?P<task>/\S{1,500}(?: attempt=\d{1,9})?) \| ?"
)
"""`iris job logs -f` and `iris job run`: the line is the message of the client's own logger. The time before it is
when the client got it, on its machine's clock, and is not read."""

LEVEL = re.compile(
    rf"(?:\d\d:\d\d:\d\d(?:[.,]\d{{1,6}})? )?(?:\[{_LEVELS}\] (?!\[)|{_LEVELS}:? +(?![\w.]+:\d)|"
    rf"- [\w.]{{1,100}} - {_LEVELS} - )"
)
"""Python's logging in its usual short formats: `22:47:31 INFO …`, `[INFO] …`, `- trainer - INFO - …`. A level before a
place (`INFO worker.py:12`) or a bracket is another speaker's."""

HUGGING_FACE = re.compile(
    rf"\[{_LEVELS}\|([\w.]{{1,100}}:\d{{1,6}})\] (\d{{4}}-\d\d-\d\d \d\d:\d\d:\d\d),(\d{{3}}) >> "
)
"""transformers and TRL with their explicit format: `[INFO|trainer.py:2414] 2026-07-01 22:47:31,123 >> …`."""

LABEL = re.compile(
    r"[\w.:/#@|-]{1,40} ?(?=(?:DEBUG|INFO|WARNING|ERROR|CRITICAL) \d\d-\d\d \d\d:\d\d:\d\d \[?[\w./]{1,200}:\d{1,6}\])"
)
"""What `VLLM_LOGGING_PREFIX` puts before vLLM's own prefix: one word, as a rule."""
