"""Ray's de-duplication of what several workers print: the suffix that says how many lines stand for one.

On by default, with a window of 5 s; the key is the line without the words that hold a digit. N is the number of lines
that were swallowed, so that the absence of a rank in the aggregated log proves nothing.
"""

import re

_REPEATED = re.compile(r" ?\[repeated (\d{1,9})x across cluster\](?: \(Ray deduplicates logs.*)?$")
_FIRST_OF_DEDUP = re.compile(r" \(Ray deduplicates logs by default\..*$")


def dedup(text: str) -> tuple[int, str]:
    """(how many lines this one stands for, the text without Ray's suffix)."""
    if found := _REPEATED.search(text):
        return int(found[1]), text[: found.start()]
    if found := _FIRST_OF_DEDUP.search(text):
        return 1, text[: found.start()]
    return 1, text
