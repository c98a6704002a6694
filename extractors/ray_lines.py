"""The pieces that Ray's lines share, as parts of a regex, and the clock of its event files."""

import re

_EVENT_TIME = re.compile(
    r'"(?:time_stamp|timestamp|time)": ?"?(?:(?P<second>\d{4}-\d\d-\d\d \d\d:\d\d:\d\d)\.?(?P<digits>\d*)'
    r"|(?P<epoch>\d{10})(?P<rest>\d{0,9})\b)"
)


def event_time(text: str) -> tuple[str, str, int | None]:
    """(written second, digits of its fraction, microseconds of an epoch) of one line of Ray's event files: local time
    up to Ray 2.9, then an epoch in seconds, milliseconds or microseconds. Empty where the line is no event."""
    found = _EVENT_TIME.search(text) if '"label"' in text and '"severity"' in text else None
    if found is None:
        return "", "", None
    if found["second"]:
        return found["second"], found["digits"], None
    return "", "", int(found["epoch"] + found["rest"][:6].ljust(6, "0"))


CPP = r"(?:(?:[DIWECF] \d+ \d+\] )?(?:\(\w+\) )?(?:[\w.]+:\d+: )?)"
"""What a torn or short Ray C++ prefix leaves before the message (`E 4200 4231] `, `(raylet) node_manager.cc:1: `)."""

EXCEPTION = r"(?:(?:ray\.exceptions\.)?)"
"""The module of Ray's exceptions, which the driver prints and a log call may not."""

FAULTY_EXIT = r"(?P<exit>SYSTEM_ERROR|NODE_OUT_OF_MEMORY|USER_ERROR)"
INTENDED_EXIT = r"INTENDED_(?:USER|SYSTEM)_EXIT"
