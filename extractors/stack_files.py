"""A stack dump as Python's own faulthandler writes it (SIGUSR2), where py-spy may not look. A part of `stacks`.

Only Python frames are in it, the innermost first. Which thread works it does not say: the current one is the one that
took the signal, as a rule the main thread.
"""

import re

from extractors.polls import Thread

_HEAD = re.compile(
    r"^(?:Current thread|Thread) (?P<id>0x[0-9A-Fa-f]+)(?: \[(?P<name>[^\]]*)\])? "
    r"\(most recent call first\):\s*$"
)
_FRAME = re.compile(r'^  File "(?P<file>[^"]*)", line (?P<line>\d{1,9}) in (?P<function>.+?)\s*$')
FRAMES_LIMIT = 64


def read_faulthandler(text: str) -> tuple[Thread, ...]:
    """The threads of the newest dump in the text, their status empty. A file that is written again and again holds
    many: a thread that was there before begins the next."""
    dump: dict[str, tuple[str, list[str]]] = {}
    at = ""
    for line in text.splitlines():
        head = _HEAD.match(line)
        if head is not None:
            if head["id"] in dump:
                dump = {}
            at = head["id"]
            dump[at] = (head["name"] or f"thread {at}", [])
            continue
        frame = _FRAME.match(line)
        if frame is not None and at and len(dump[at][1]) < FRAMES_LIMIT:
            dump[at][1].append(f"{frame['function']} ({frame['file'].rpartition('/')[2]}:{frame['line']})")
    return tuple(Thread(name, "", tuple(frames)) for name, frames in dump.values() if frames)
