"""The cause catalogue: complete, each row whole, and each code that anything can say has its row."""

import ast
import re
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path

import pytest

from extractors.catalogue import CATALOGUE
from extractors.signal import Fault
from state.causes import CAUSES, Cause
from state.weighed.cause import cause_record, cause_text

ROOT = Path(__file__).parents[2]
CONCLUDED = {"done_not_exited"}
"""Causes that no line says: a gate concludes them."""
SAID = {s.cause for pattern in CATALOGUE.whole.patterns for s in pattern.samples.values() if isinstance(s, Fault)}
MODULES = sorted([*(ROOT / "extractors").glob("*.py"), *(ROOT / "state").rglob("*.py")])


def codes_built(path: Path) -> Iterator[str]:
    """The cause codes that a module's calls of Fault name: as words, or as values of a table of the module."""
    module = import_module(".".join(path.relative_to(ROOT).with_suffix("").parts))
    for call in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(call, ast.Call) and isinstance(call.func, ast.Name) and call.func.id == "Fault" and call.args:
            yield from words_of(call.args[0], module)


def words_of(node: ast.expr, module: object) -> Iterator[str]:
    if isinstance(node, ast.Constant):
        yield str(node.value)
    elif isinstance(node, ast.IfExp):
        yield from (*words_of(node.body, module), *words_of(node.orelse, module))
    elif isinstance(node, ast.Subscript):
        yield from words_of(node.value, module)
    elif isinstance(node, ast.BoolOp):
        yield from (word for value in node.values for word in words_of(value, module))
    elif isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr == "get":
        yield from (
            *words_of(node.func.value, module),
            *(word for each in node.args[1:] for word in words_of(each, module)),
        )
    elif isinstance(node, ast.Name) and isinstance(table := getattr(module, node.id, None), dict):
        yield from (str(value) for value in table.values())


@pytest.mark.parametrize("path", MODULES, ids=lambda path: str(path.relative_to(ROOT)))
def test_every_code_that_a_module_can_build_has_a_row(path: Path) -> None:
    assert set(codes_built(path)) <= CAUSES.keys()


def test_every_code_of_a_sample_has_a_row_and_every_row_a_sample() -> None:
    assert CAUSES.keys() - SAID == CONCLUDED
    assert CAUSES.keys() >= SAID


def test_there_are_causes_for_what_ends_jobs() -> None:
    assert len(CAUSES) >= 45
    named = {
        "config_error",
        "port_in_use",
        "weight_sync_bootstrap_timeout",
        "weight_reload_order",
        "bounded_put_timeout",
    }
    assert named | {"snapshot_quota", "preempted", "billing_refused", "version_mismatch"} <= CAUSES.keys()


@pytest.mark.parametrize("cause", CAUSES.values(), ids=CAUSES)
def test_every_field_of_a_cause_is_said(cause: Cause) -> None:
    assert re.fullmatch(r"[a-z]+(_[a-z]+)*", cause.code)
    assert CAUSES[cause.code] is cause
    for said in (cause.title, cause.fix, cause.relaunch, cause.source):
        assert len(said.split()) >= 1
        assert not said.endswith(".")
    assert re.match(r"(an?|the|ranks|nodes|resources|generation|task|processes|Ray) ", cause.title)
    assert re.match(r"(re)?launch|hold|nothing to relaunch", cause.relaunch)
    assert len(cause.source) > 15


@pytest.mark.parametrize("code", CAUSES)
def test_a_cause_is_printed_with_its_lines(code: str) -> None:
    record = cause_record(code)
    assert bool(record["patterns"]) is (code not in CONCLUDED)
    assert all(role in ("root", "cascade", "confirms", "either", "benign") for role in record["roles"])
    text = cause_text(record, 100)
    assert " ".join(text.split()).startswith(f"CAUSE {code}: {CAUSES[code].title}")
    assert all(len(line) <= 100 for line in text.splitlines())
    for pattern in record["patterns"]:
        assert f"{pattern['speaker']}: {pattern['pattern']} ({pattern['role']})" in text
