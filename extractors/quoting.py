"""Quotes: a printed line without control sequences, whole or as a window around what was read, secrets masked."""

import re
from collections.abc import Sequence
from functools import lru_cache

QUOTE_LIMIT = 500
LEAD = 150
SECRET_LIMIT = 4_096
"""How far around a quote secrets are looked for: longer than any token, and a line may have a million characters."""

_ANSI = re.compile(r"\x1b(?:\[[0-?]*[ -/]*[@-~]|\][^\x07\x1b]*(?:\x07|\x1b\\)|[@-Z\\-_])")
_CONTROL = re.compile(r"[\x00-\x08\x09-\x1f\x7f-\x9f\u200e\u200f\u202a-\u202e\u2066-\u2069]")
_SECRET = re.compile(
    r"(?i)(?P<keep>(?:authorization|bearer|api[_-]?key|secret(?:[_-]?key)?|passwd|password|passphrase"
    r"|access[_-]?key(?:[_-]?id)?|token|signature|credential)"
    r"\\{0,4}[\"']?(?:\s{0,8}[:=]\s{0,8}|\s{1,8})\\{0,4}[\"']?(?:bearer\s{1,8}|basic\s{1,8}|token\s{1,8})?)"
    r"(?P<hide>[A-Za-z0-9_\-./+=~%]{12,})"
    r"|(?:password|passwd|pwd|secret)\\{0,4}[\"']?\s{0,8}[:=]\s{0,8}\\{0,4}[\"']?(?P<short>[^\s\"'\\,;&\[]{4,})"
    r"|://(?P<user>[^/\s:@]{0,256}:[^\s@/\"']{1,256}@)"
    r"|(?:hf_[A-Za-z0-9]{16,}|\bsk-[A-Za-z0-9_-]{16,}|gh[opsur]_[A-Za-z0-9]{20,}|github_pat_[A-Za-z0-9_]{20,}"
    r"|glpat-[A-Za-z0-9_-]{16,}|xox[abprs]-[A-Za-z0-9-]{10,}|npm_[A-Za-z0-9]{20,}|dtn_[A-Za-z0-9]{16,}"
    r"|AIza[A-Za-z0-9_-]{20,}|A[KS]IA[A-Z0-9]{12,}|\beyJ[A-Za-z0-9_-]{10,8192}\.[A-Za-z0-9_-]{10,}[A-Za-z0-9_.-]*)"
)
_NEEDLES = (
    *("auth", "bearer", "key", "secret", "passw", "passphrase", "pwd", "token", "signature", "credential", "://"),
    *("hf_", "sk-", "gh", "glpat-", "xox", "npm_", "dtn_", "aiza", "akia", "asia", "eyj"),
)
"""What stands in every secret that is recognised, in lower case; most texts hold none, and searching costs far less."""
MASK = "[masked]"
_BETWEEN_WORDS = "\x1f"
"""Blank to a pattern, so that a name and its secret are seen as neighbours; no word of a command holds it."""


def without_controls(text: str) -> str:
    """The text without terminal control sequences, control characters and direction overrides."""
    if text.isprintable():
        return text
    return _CONTROL.sub("", _ANSI.sub("", text) if "\x1b" in text else text)


def without_ansi(text: str) -> str:
    """The text without terminal control sequences; tabs and carriage returns stay."""
    return _ANSI.sub("", text) if "\x1b" in text else text


def masked(text: str) -> str:
    """The text with what looks like a secret shown as `[masked]`."""
    return _SECRET.sub(_masked, text) if _may_hold_secrets(text) else text


def masked_words(words: Sequence[str]) -> list[str]:
    """A command's words with secrets masked, also those whose name is the word before (`--token`, `abc…`)."""
    return masked(_BETWEEN_WORDS.join(word.replace(_BETWEEN_WORDS, "") for word in words)).split(_BETWEEN_WORDS)


def quote(line: str, read: str = "") -> str:
    """A line as evidence: whole up to 500 characters, above that a window around `read`, cuts shown by `…`.

    Secrets are masked where a cut could otherwise hide what they are; a whole line is masked when it is written.
    """
    if len(line) <= QUOTE_LIMIT:
        return line if line.isprintable() else without_controls(line)
    clean = _long_without_controls(line)
    if len(clean) <= QUOTE_LIMIT:
        return clean
    at = max(0, clean.rfind(read[:80])) if read else 0
    start = 0 if at < QUOTE_LIMIT - LEAD else min(at - LEAD, len(clean) - QUOTE_LIMIT + 1)
    end = start + QUOTE_LIMIT - (2 if start else 1)
    before, after = "…" if start else "", "…" if end < len(clean) else ""
    room = QUOTE_LIMIT - len(before) - len(after)
    return before + _window(clean, start, min(end, len(clean)), room) + after


def _window(text: str, start: int, end: int, room: int) -> str:
    """The text between two places, at most so long, with every secret masked of which a part lies there."""
    near = text[max(0, start - SECRET_LIMIT) : end + SECRET_LIMIT]
    if not _may_hold_secrets(near):
        return text[start:end]
    pieces, at = [], start
    for found in _SECRET.finditer(text, max(0, start - SECRET_LIMIT), min(len(text), end + SECRET_LIMIT)):
        hide_from, hide_to = _hidden(found)
        if hide_to > start and hide_from < end:
            pieces += [text[at : max(at, hide_from)], MASK]
            at = hide_to
    pieces.append(text[at:end])
    while sum(map(len, pieces)) > room:
        last = pieces.pop()
        over = sum(map(len, pieces)) + len(last) - room
        if last != MASK and over < len(last):
            pieces.append(last[: len(last) - over])
    return "".join(pieces)


def _hidden(found: re.Match[str]) -> tuple[int, int]:
    """From where to where a secret is hidden; its name stays."""
    for group in ("hide", "short", "user"):
        if found[group] is not None:
            return found.span(group)
    return found.span()


def _masked(found: re.Match[str]) -> str:
    hide_from, hide_to = _hidden(found)
    begin, end = found.span()
    return found[0][: hide_from - begin] + MASK + found[0][len(found[0]) - (end - hide_to) :]


def _may_hold_secrets(text: str) -> bool:
    lowered = text.lower()
    return any(needle in lowered for needle in _NEEDLES)


@lru_cache(maxsize=1)
def _long_without_controls(text: str) -> str:
    """A line's frames are asked one after the other, and each quotes the whole line."""
    return without_controls(text)
