"""Quotes: a printed line without control sequences, whole or as a window around what was read, secrets masked."""

import re

QUOTE_LIMIT = 500
LEAD = 150

_ANSI = re.compile(r"\x1b(?:\[[0-?]*[ -/]*[@-~]|\][^\x07\x1b]*(?:\x07|\x1b\\)|[@-Z\\-_])")
_CONTROL = re.compile(r"[\x00-\x08\x09-\x1f\x7f-\x9f\u200e\u200f\u202a-\u202e\u2066-\u2069]")
_SECRET = re.compile(
    r"(?i)(?P<keep>(?:authorization|bearer|api[_-]?key|secret|passwd|password|access[_-]?key(?:[_-]?id)?|[a-z_]*token)"
    r"[\"']?(?:\s*[:=]\s*|\s+)(?:bearer\s+)?[\"']?)(?P<hide>[A-Za-z0-9_\-./+=~]{12,})"
    r"|(?P<bare>\b(?:hf_[A-Za-z0-9]{16,}|sk-[A-Za-z0-9_-]{16,}|ghp_[A-Za-z0-9]{20,}|AKIA[A-Z0-9]{12,}"
    r"|eyJ[A-Za-z0-9_-]{10,}\.[A-Za-z0-9_-]{10,}[A-Za-z0-9_.-]*)|://[^/\s:@]+:[^/\s:@]+@)"
)
MASK = "[masked]"


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
    return _SECRET.sub(lambda found: (found["keep"] or "") + MASK, text)


def quote(line: str, read: str = "") -> str:
    """A line as evidence: whole up to 500 characters, above that a window around `read`, cuts shown by `…`."""
    clean = line if line.isprintable() else without_controls(line)
    if len(clean) <= QUOTE_LIMIT:
        return clean
    clean = masked(clean)
    at = clean.rfind(read[:80]) if read else 0
    start = max(0, min(at - LEAD, len(clean) - QUOTE_LIMIT + 1))
    if at < QUOTE_LIMIT - LEAD:
        return clean[: QUOTE_LIMIT - 1] + "…"
    end = start + QUOTE_LIMIT - 2
    return "…" + clean[start:end] + ("…" if end < len(clean) else "")
