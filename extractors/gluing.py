"""Several messages in one physical line: a bar that its stream left without a newline, two writers of one file.

A message begins where a speaker's whole prefix stands inside a line and nothing is quoted around it. What an agent
quotes, or a JSON holds, is content.
"""

import re

_SPEAKERS = re.compile(
    r"(?<=\S)(?=\d{4}-\d\d-\d\d \d\d:\d\d:\d\d\.\d{1,6} \| ?[A-Z]{4,8} {0,8}\| ?[\w.<>]{1,200}:[\w.<>]{1,200}:\d+ ?- "
    r"|(?:DEBUG|INFO|WARNING|ERROR) \d\d-\d\d \d\d:\d\d:\d\d \[?[\w./]{1,200}:\d{1,6}\] "
    r"|\((?:[A-Z]\w{1,80}|skyrl_entrypoint|raylet) (?:rank=\d{1,6} )?pid=\d{1,10}(?:, ip=[\d.]{7,15})?\) "
    r"|(?:\[(?:rank|default)\d{1,6}\]: ?|(?<!\]:))\[[IWEF](?:\d{3,4} \d\d:\d\d:\d\d\.\d{1,9})? \w{1,80}\.cpp:\d{1,6}\] "
    r")"
)
_LEVELS = ("DEBUG", "INFO", "WARNING", "ERROR")
_MARKS = (
    " pid=",
    ".cpp:",
    *(f" | {level}" for level in _LEVELS),
    *(f"{level} {digit}" for level in _LEVELS for digit in "01"),
)
"""One of these stands in every prefix that is looked for; most lines hold none, and searching them costs far less."""
_MESSAGES_LIMIT = 16
_SEARCHED = 16_384
"""Characters of a line in which glued messages are looked for."""


def glued_messages(text: str) -> list[str]:
    """The messages of a payload, in order; the payload alone where it is one."""
    for mark in _MARKS:
        if mark in text:
            return _parted(text)
    return [text]


def _parted(text: str) -> list[str]:
    starts = [0]
    for found in _SPEAKERS.finditer(text, 0, _SEARCHED):
        if len(starts) >= _MESSAGES_LIMIT:
            break
        if not _quotes(text[starts[-1] : found.start()]):
            starts.append(found.start())
    if len(starts) == 1:
        return [text]
    return [text[start:end] for start, end in zip(starts, [*starts[1:], len(text)], strict=True)]


def _quotes(before: str) -> bool:
    """Whether a quotation, an escape or a brace is still open at the end of this piece."""
    return (
        "\\" in before
        or before.count('"') % 2 == 1
        or before.count("`") % 2 == 1
        or before.count("{") != before.count("}")
    )
