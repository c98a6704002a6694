"""Ray's de-duplication of what several workers print: the suffix that says how many lines stand for one.

On by default, with a window of 5 s; the key is the line without the words that hold a digit. N is the number of lines
that were swallowed, so that the absence of a rank in the aggregated log proves nothing.
"""

import re

_REPEATED = re.compile(r"\[repeated (\d{1,9})x across cluster\](?: \(Ray deduplicates logs.*)?$")
_REPEATED_BEGIN = "[repeated "
_FIRST_OF_DEDUP = " (Ray deduplicates logs by default."


def dedup(text: str) -> tuple[int, str]:
    """(how many lines this one stands for, the text without Ray's suffix). text is one physical line."""
    at = text.find(_REPEATED_BEGIN)
    while at >= 0:
        if found := _REPEATED.match(text, at):
            return int(found[1]), text[:at].removesuffix(" ")
        at = text.find(_REPEATED_BEGIN, at + 1)
    at = text.find(_FIRST_OF_DEDUP)
    return 1, text if at < 0 else text[:at]
