"""Imports run one way: dataflow → state → extractors; only the flow's own files know the engine."""

import ast
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
FORBIDDEN = {
    "extractors": ("state", "dataflow", "bytewax"),
    "state": ("dataflow", "bytewax"),
    "dataflow": (),
}
ENGINE_FILES = {"flow.py", "recovery.py", "shards.py", "sinks.py"}
MODULES = sorted(path for room in FORBIDDEN for path in (ROOT / room).rglob("*.py"))
TIMELESS = [path for path in MODULES if path.relative_to(ROOT).parts[0] in ("extractors", "state")]


def imported(path: Path) -> set[str]:
    names: set[str] = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            names |= {alias.name.split(".")[0] for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module:
            names.add(node.module.split(".")[0])
    return names


@pytest.mark.parametrize("path", MODULES, ids=lambda p: str(p.relative_to(ROOT)))
def test_no_module_imports_against_the_arrow(path: Path) -> None:
    room = path.relative_to(ROOT).parts[0]
    assert not imported(path) & set(FORBIDDEN[room])
    if room == "dataflow" and path.name not in ENGINE_FILES:
        assert "bytewax" not in imported(path)


@pytest.mark.parametrize(
    "path", [p for p in MODULES if p.relative_to(ROOT).parts[0] in ("extractors", "state")], ids=str
)
def test_nothing_left_of_the_flow_reads_a_clock_or_acts(path: Path) -> None:
    assert not imported(path) & {"time", "subprocess", "socket", "signal"}
    text = path.read_text(encoding="utf-8")
    assert ".now(" not in text
    assert "utcnow" not in text


@pytest.mark.parametrize("path", MODULES, ids=lambda p: str(p.relative_to(ROOT)))
def test_every_module_says_what_it_is_for_and_holds_one_idea(path: Path) -> None:
    text = path.read_text(encoding="utf-8")
    assert ast.get_docstring(ast.parse(text)), "no docstring"
    assert text.count("\n") <= 300, "over 300 lines: two ideas"
