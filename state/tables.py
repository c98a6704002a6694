"""The tables of a verdict's text report: what trials spend their time on, and how they ended by 10 minutes."""

from typing import Any

from state.wording import plural

SPREAD = ("median", "p10", "p90", "max")
PARTS = {
    "llm": "LLM",
    "tool": "tools",
    "lifecycle": "sandbox life cycle",
    "verifier": "verifier",
    "idle": "idle",
}
"""The shares of a trial's time, by their names in the record, as they are told."""
SLOTS_SHOWN = 18
"""Slots of a report: three hours. A record has them all."""


def duty_lines(record: dict[str, Any]) -> list[str]:
    """The duty cycle of a verdict record as a table; empty where no trial gave timings."""
    duty = record["duty_cycle"]
    if not duty:
        return []
    rows = [_row(name, duty["shares"].get(part), "{:.0%}") for part, name in PARTS.items()]
    return [
        "",
        f"Duty cycle of the newest {plural(duty['trials'], 'trial')}, shares of a trial's time:",
        _line("", SPREAD),
        *rows,
        _row("setup, seconds", duty["setup_seconds"], "{:.1f}"),
        f"  verifiers that finished after their trial (release race): {duty['release_races']}",
    ]


def slot_lines(record: dict[str, Any]) -> list[str]:
    """The newest slots of a verdict record as a table; empty where no trial has ended."""
    slots = record["slots"]
    if not slots:
        return []
    earlier = len(slots) - SLOTS_SHOWN
    lines = ["", "Trials that ended, by 10 minutes:"]
    lines += [f"  ({plural(earlier, 'earlier slot')} in the record)"] if earlier > 0 else []
    return lines + [_slot(slot) for slot in slots[-SLOTS_SHOWN:]]


def _slot(slot: dict[str, Any]) -> str:
    by_count = sorted(slot["exceptions"].items(), key=lambda item: (-item[1], item[0]))
    exceptions = ", ".join(f"{name} {count}" for name, count in by_count) or "no exception"
    return f"  {slot['from']}  {slot['ended']:>4} ended  {exceptions}"


def _row(name: str, spread: dict[str, float] | None, form: str) -> str:
    if spread is None:
        return f"  {name:<20}not told by the trials' files"
    return _line(name, tuple(form.format(spread[key]) for key in SPREAD))


def _line(name: str, cells: tuple[str, ...]) -> str:
    return f"  {name:<20}" + "".join(f"{cell:>9}" for cell in cells)
