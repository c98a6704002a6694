"""Why a rule stayed quiet, read off the statement that it left by: which of its conditions held it back.

The condition is the code's own, so it can't differ from what was weighed. It is put in words by what was measured
(measures.py): the parts of a condition are looked up there by their source text, local names replaced by what they
stand for.
"""

import ast
import inspect
import textwrap
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from types import CodeType
from typing import Any

from state.case import Case
from state.clause_facts import thresholds
from state.weighed.measures import MEASURES, Measured, counted
from state.weighed.watch import Call, watched

_OPERATORS: dict[type[ast.cmpop], tuple[str, str]] = {
    ast.Lt: ("less than", "at least"),
    ast.LtE: ("at most", "more than"),
    ast.Gt: ("more than", "at most"),
    ast.GtE: ("at least", "less than"),
}
"""An order in words, and its contrary."""
NOTHING_HOLDS = "none of its conditions holds"
DEEPEST = 4
"""Functions that are gone into from a rule, one called by the other."""


def because(call: Call, case: Case) -> Measured:
    """Why this call gave nothing: with the figures, and the lines that it looked at."""
    told = list(_Reader(case).left(call, DEEPEST))
    facts = list(dict.fromkeys(each.says for each in told))
    said = [one for one in facts if not any(other != one and other.startswith(one) for other in facts)]
    says = "; ".join(said) or NOTHING_HOLDS
    return Measured(says, tuple(dict.fromkeys(place for each in told for place in each.evidence)))


@dataclass(frozen=True, slots=True)
class _Reader:
    case: Case

    def left(self, call: Call, deepest: int) -> Iterator[Measured]:
        """What made a call leave where it left."""
        tree = _tree(call.code)
        if (whole := MEASURES.get(f"{call.code.co_name}(case)")) is not None:
            yield whole(self.case)
            return
        scope = _Scope(call, _meanings(tree), deepest)
        statement, guards = _return_at(tree, call.line)
        if guards:
            yield from self._holds(guards[-1].test, True, scope)
        elif statement is not None and statement.value is not None and not isinstance(statement.value, ast.Constant):
            yield from self._holds(statement.value, False, scope)
        else:
            for passed in _passed(tree):
                yield from self._holds(passed.test, False, scope)

    def _holds(self, test: ast.expr, truth: bool, scope: "_Scope") -> Iterator[Measured]:
        """What makes an expression true, or untrue."""
        if isinstance(test, ast.UnaryOp) and isinstance(test.op, ast.Not):
            yield from self._holds(test.operand, not truth, scope)
        elif isinstance(test, ast.BoolOp):
            yield from self._joined(test, truth, scope)
        elif isinstance(test, ast.IfExp):
            chosen = bool(scope.value(test.test))
            nothing = test.body if chosen else test.orelse
            if isinstance(nothing, ast.Constant):
                yield from self._holds(test.test, chosen, scope)
            else:
                yield from self._holds(nothing, truth, scope)
        elif isinstance(test, ast.NamedExpr):
            yield from self._holds(test.value, truth, scope)
        else:
            yield from self._told(test, truth, scope)

    def _joined(self, test: ast.BoolOp, truth: bool, scope: "_Scope") -> Iterator[Measured]:
        """An «or» is true by its first true part and untrue by all; an «and» the other way round."""
        one_is_enough = truth is isinstance(test.op, ast.Or)
        for part in test.values:
            if not one_is_enough or bool(scope.value(part)) is truth:
                yield from self._holds(part, truth, scope)
            if one_is_enough and bool(scope.value(part)) is truth:
                return

    def _told(self, test: ast.expr, truth: bool, scope: "_Scope") -> Iterator[Measured]:
        meant = scope.meant(test)
        measured = list(self._measured(meant))
        if measured:
            yield from measured[:-1]
            limit = _limit(meant, truth) if measured[-1].figure else ""
            yield Measured(measured[-1].says + limit, measured[-1].evidence)
            return
        if isinstance(test, ast.Name) and test.id in scope.meanings:
            yield from self._holds(scope.meanings[test.id], truth, scope)
            return
        called = scope.called(test) if scope.deepest else None
        if called is not None and not called.value:
            yield from self.left(called, scope.deepest - 1)

    def _measured(self, meant: ast.AST) -> Iterator[Measured]:
        """What is measured by the largest parts of an expression that have words."""
        text = ast.unparse(meant) if isinstance(meant, ast.expr) else ""
        if (measure := MEASURES.get(text)) is not None:
            yield measure(self.case)
        elif (count := counted(text, self.case)) is not None:
            yield count
        else:
            for part in ast.iter_child_nodes(meant):
                yield from self._measured(part)


@dataclass(frozen=True, slots=True)
class _Scope:
    call: Call
    meanings: dict[str, ast.expr]
    deepest: int

    def value(self, part: ast.expr) -> Any:
        """What an expression comes to at the place where the call left."""
        # The expression is one of this package's own source.
        return eval(compile(ast.Expression(part), "<condition>", "eval"), self.call.variables)

    def meant(self, part: ast.expr) -> ast.expr:
        """The expression with local names replaced by what they stand for."""
        copy = ast.parse(ast.unparse(part), mode="eval").body
        meant: ast.expr = _Meant(self.meanings).visit(copy)
        return meant

    def called(self, part: ast.expr) -> Call | None:
        """How a call of a function of state/ goes, where the expression is one."""
        calls = watched(self.value, part).calls
        inner = [call for call in calls if call.code is not _Scope.value.__code__]
        inner = inner or [each for call in calls for each in call.calls]
        return inner[-1] if isinstance(part, ast.Call) and inner else None


class _Meant(ast.NodeTransformer):
    def __init__(self, meanings: dict[str, ast.expr]) -> None:
        self._meanings = meanings

    def visit_Name(self, node: ast.Name) -> ast.expr:
        if node.id not in self._meanings:
            return node
        copy: ast.expr = self.visit(ast.parse(ast.unparse(self._meanings[node.id]), mode="eval").body)
        return copy

    def visit_NamedExpr(self, node: ast.NamedExpr) -> ast.expr:
        value: ast.expr = self.visit(node.value)
        return value


@cache
def _tree(code: CodeType) -> ast.Module:
    tree = ast.parse(textwrap.dedent(inspect.getsource(code)))
    ast.increment_lineno(tree, code.co_firstlineno - 1)
    return tree


def _return_at(
    tree: ast.AST, line: int, guards: tuple[ast.If, ...] = ()
) -> tuple[ast.Return | None, tuple[ast.If, ...]]:
    """The return statement at a line, with the «if»s whose bodies it stands in."""
    for node in ast.iter_child_nodes(tree):
        around = (*guards, tree) if isinstance(tree, ast.If) and node in tree.body else guards
        if isinstance(node, ast.Return) and node.lineno <= line <= (node.end_lineno or node.lineno):
            return node, around
        found = _return_at(node, line, around)
        if found[0] is not None:
            return found
    return None, ()


def _passed(tree: ast.Module) -> Iterator[ast.If]:
    """The outermost «if»s of a function that would have given something."""
    for node in ast.iter_child_nodes(tree.body[0]):
        if isinstance(node, ast.If) and isinstance(node.body[-1], ast.Return):
            yield node


def _meanings(tree: ast.Module) -> dict[str, ast.expr]:
    """The local names that are given one value in a function and nothing is added to, with its expression."""
    given: dict[str, list[ast.expr]] = {}
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute) and node.attr == "append" and isinstance(node.value, ast.Name):
            given.setdefault(node.value.id, []).append(node)
        if isinstance(node, ast.AugAssign) and isinstance(node.target, ast.Name):
            given.setdefault(node.target.id, []).append(node.value)
        if isinstance(node, ast.NamedExpr):
            given.setdefault(node.target.id, []).append(node.value)
        elif isinstance(node, ast.Assign):
            for target in node.targets:
                for name, value in _pairs(target, node.value):
                    given.setdefault(name, []).append(value)
    return {name: values[0] for name, values in given.items() if len(values) == 1}


def _pairs(target: ast.expr, value: ast.expr) -> list[tuple[str, ast.expr]]:
    if isinstance(target, ast.Name):
        return [(target.id, value)]
    if isinstance(target, ast.Tuple) and isinstance(value, ast.Tuple):
        return [pair for one, other in zip(target.elts, value.elts, strict=True) for pair in _pairs(one, other)]
    return []


@cache
def _thresholds() -> dict[str, str]:
    return {name: shown for name, shown, _ in thresholds()}


def _limit(meant: ast.expr, truth: bool) -> str:
    """`, less than 20`, `, not generation`: what the condition asked, and how that which was measured stands to it."""
    if not isinstance(meant, ast.Compare) or len(meant.ops) != 1:
        return ""
    how, asked = meant.ops[0], meant.comparators[0]
    if type(how) in _OPERATORS and isinstance(asked, ast.Name) and asked.id in _thresholds():
        return f", {_OPERATORS[type(how)][0 if truth else 1]} {_thresholds()[asked.id]}"
    differs = isinstance(how, ast.IsNot | ast.NotIn) is truth
    members = [part.attr.lower() for part in ast.walk(asked) if isinstance(part, ast.Attribute) and part.attr.isupper()]
    return f", not {' or '.join(members)}" if members and differs else ""
