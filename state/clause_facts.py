"""What a clause may say and which thresholds it weighs, read off its code: the facts behind docs/gates.md."""

import ast
import inspect
import textwrap
from collections.abc import Iterator
from functools import cache
from types import CodeType, FunctionType
from typing import Any

from state import policy
from state.decision import GATES
from state.gate import Clause, Status
from state.wording import span

SAYS = {
    "passed": Status.PASS,
    "failed": Status.FAIL,
    "unjudged": Status.ERROR,
    "not_applicable": Status.NOT_APPLICABLE,
}
"""The shortcuts of state/gate.py by the status that they give; their first argument is the condition."""
_NO_THRESHOLDS = ("SECOND_US", "MINUTE", "HOUR", "PHASE_STAGES")


def sentence_of(clause: Clause) -> str:
    """The rule's sentence: the docstring's first paragraph, in one line."""
    said = inspect.getdoc(clause) or ""
    return " ".join(said.split("\n\n")[0].split())


def conditions_of(clause: Clause) -> tuple[tuple[Status, str], ...]:
    """Every status and condition that the clause, or a function that it calls, can come to, in the code's order."""
    found = [pair for function in _reached(clause) for pair in _said(function)]
    return tuple(sorted(set(found), key=found.index))


def thresholds_of(clause: Clause) -> tuple[str, ...]:
    """The names of state/policy.py that the clause, or a function that it calls, reads, in the order of that file."""
    read = {name for function in _reached(clause) for name in _names(function.__code__) if name in _thresholds()}
    return tuple(name for name in _thresholds() if name in read)


def thresholds() -> tuple[tuple[str, str, str], ...]:
    """Every threshold of state/policy.py: its name, its value as reasons say it, and its docstring."""
    body = _policy().body
    rows = []
    for node, after in zip(body, [*body[1:], ast.Pass()], strict=True):
        if (name := _constant(node)) in _thresholds():
            timed = {one.id for one in ast.walk(node) if isinstance(one, ast.Name)} & {"MINUTE", "HOUR"}
            rows.append((name, _shown(getattr(policy, name), bool(timed)), _docstring(after)))
    return tuple(rows)


def _docstring(node: ast.stmt) -> str:
    said = node.value.value if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant) else ""
    return " ".join(str(said).split())


def _shown(value: Any, timed: bool) -> str:
    if isinstance(value, dict):
        return ", ".join(f"{key} {_shown(one, timed)}" for key, one in value.items())
    if isinstance(value, tuple):
        return ", ".join(f"up to {_shown(most, timed)}: {_shown(one, timed)}" for most, one in value)
    return span(value) if timed else f"{value:g}"


@cache
def _policy() -> ast.Module:
    return ast.parse(inspect.getsource(policy))


@cache
def _thresholds() -> tuple[str, ...]:
    names = [_constant(node) for node in _policy().body]
    return tuple(name for name in names if name and name not in _NO_THRESHOLDS)


def _constant(node: ast.stmt) -> str:
    target = (
        node.targets[0] if isinstance(node, ast.Assign) else node.target if isinstance(node, ast.AnnAssign) else None
    )
    return target.id if isinstance(target, ast.Name) and target.id.isupper() else ""


@cache
def _clauses() -> frozenset[FunctionType]:
    return frozenset(inspect.unwrap(clause) for gate in GATES for clause in gate.clauses)


def _reached(clause: Clause) -> list[FunctionType]:
    """The clause and the functions of state/ that it calls, directly or through others; no other clause."""
    reached: list[FunctionType] = []
    waiting: list[Any] = [clause]
    while waiting:
        function = inspect.unwrap(waiting.pop(0))
        if function in reached or (reached and function in _clauses()):
            continue
        reached.append(function)
        known = [function.__globals__.get(name) for name in _names(function.__code__)]
        waiting += [one for one in _functions(known) if one.__module__.startswith("state.")]
    return reached


def _functions(values: list[Any]) -> Iterator[FunctionType]:
    for value in values:
        for one in value if isinstance(value, tuple) else (value,):
            if isinstance(one, FunctionType):
                yield one


def _names(code: CodeType) -> Iterator[str]:
    """The global names that code reads, those of nested functions and comprehensions included."""
    yield from code.co_names
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield from _names(constant)


def _said(function: FunctionType) -> Iterator[tuple[Status, str]]:
    tree = ast.parse(textwrap.dedent(inspect.getsource(function)))
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in SAYS and node.args:
            for condition in _words(node.args[0], tree):
                yield SAYS[node.func.id], condition


def _words(argument: ast.expr, tree: ast.Module) -> list[str]:
    """The strings that an expression may be: its own, or those assigned to the variable that it is."""
    if isinstance(argument, ast.Name):
        assigned = [node.value for node in ast.walk(tree) if isinstance(node, ast.Assign) and _is(argument, node)]
        return [word for value in assigned for word in _words(value, tree)]
    if isinstance(argument, ast.IfExp):
        return [*_words(argument.body, tree), *_words(argument.orelse, tree)]
    return [argument.value] if isinstance(argument, ast.Constant) and isinstance(argument.value, str) else []


def _is(variable: ast.Name, assignment: ast.Assign) -> bool:
    return any(isinstance(target, ast.Name) and target.id == variable.id for target in assignment.targets)
