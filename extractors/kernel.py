"""The head of a kernel log line, as a part of a regex, and its clock in words."""

import re

DMESG = (
    r"(?:(?:kern +:\w+ *: )?(?:\[ *\d+\.\d+\] |\[[A-Z][a-z]{2} [A-Z][a-z]{2} [ \d]\d [\d:]{8} \d{4}\] "
    r"|\d{4}-\d\d-\d\dT[\d:.,]+(?:[+-][\d:]+"
    r"|Z) )?(?:[A-Z][a-z]{2} [ \d]\d [\d:]{8} )?(?:(?:[\w.-]+ )?kernel: )?(?:\[ *\d+\.\d+\] )?)"
)
"""dmesg plain, with -T, with --time-format=iso or with -x; syslog's host and `kernel:` where they are left."""

_MONTHS = ("Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec")
_IN_WORDS = re.compile(
    r"\[(?:[A-Z][a-z]{2} )?(?P<month>[A-Z][a-z]{2}) (?P<day>[ \d]\d) (?:(?P<first>\d{4}) )?(?P<time>\d\d:\d\d:\d\d)"
    r"(?: (?P<last>\d{4}))?\] "
)


def time_in_words(text: str) -> str:
    """`2031-03-14 09:24:18` of `[Sun Mar 14 09:24:18 2031] ` (dmesg -T) and of `[Mar 14 2031 09:24:18] ` (NVIDIA's
    fabric manager); empty where the line begins with neither."""
    found = _IN_WORDS.match(text)
    year = (found["first"] or found["last"]) if found else None
    if found is None or year is None or found["month"] not in _MONTHS:
        return ""
    return f"{year}-{_MONTHS.index(found['month']) + 1:02d}-{found['day'].strip():0>2} {found['time']}"
