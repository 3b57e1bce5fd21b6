"""The remedies of errors fit the errors: class by class, and fact by fact."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from itertools import takewhile
from string import Formatter

import pytest

from farmwatch.terminal.remedies import REMEDIES, in_full
from stream.log.errors import UnknownTopic
from tests.support.paths import ROOT
from tests.tools.house import PACKAGES

TREES = {
    path: ast.parse(path.read_text(encoding="utf-8")) for package in PACKAGES for path in (ROOT / package).rglob("*.py")
}
CLASSES = {node.name: node for tree in TREES.values() for node in ast.walk(tree) if isinstance(node, ast.ClassDef)}


def _lineage(name: str) -> Iterator[str]:
    """The class and those above it, by name."""
    while name in CLASSES:
        yield name
        bases = CLASSES[name].bases
        name = bases[0].id if bases and isinstance(bases[0], ast.Name) else ""


def _called(call: ast.Call) -> str:
    if isinstance(call.func, ast.Name):
        return call.func.id
    return call.func.attr if isinstance(call.func, ast.Attribute) else ""


def _facts(call: ast.Call) -> set[str]:
    return {keyword.arg or "**" for keyword in call.keywords}


def _case(call: ast.Call) -> str:
    """The fact `case` of a raised error as it stands in the source; "" without one."""
    return next((ast.unparse(keyword.value).strip("'") for keyword in call.keywords if keyword.arg == "case"), "")


def _key(call: ast.Call) -> str:
    """The row of the remedy that an error made by this call has; "" if it has none."""
    keys = (key for kind in _lineage(_called(call)) for key in (f"{kind} {_case(call)}", kind))
    return next((key for key in keys if key in REMEDIES), "")


CALLS = [(path, node) for path, tree in TREES.items() for node in ast.walk(tree) if isinstance(node, ast.Call)]


@pytest.mark.parametrize("key", REMEDIES)
def test_each_remedy_is_for_an_error_that_gives_its_facts(key: str) -> None:
    """Each row is of a FarmwatchError; each place that makes it, or a class below, names the facts of the remedy."""
    assert "FarmwatchError" in _lineage(key.partition(" ")[0])
    fields = {re.split(r"[.\[]", field)[0] for _, field, _, _ in Formatter().parse(REMEDIES[key]) if field}
    needed = {"run" if field in ("resume", "settings") else field for field in fields}
    for path, call in CALLS:
        if _key(call) != key:
            continue
        given = _facts(call)
        for kind in takewhile(lambda kind: kind != "FarmwatchError", _lineage(_called(call))):
            parts = [part for part in ast.walk(CLASSES[kind]) if isinstance(part, ast.Call)]
            given |= {fact for part in parts if _called(part) == "__init__" for fact in _facts(part)}
        assert needed <= given or "**" in given, f"{path}:{call.lineno}"


def test_an_error_is_shown_with_the_remedy_of_its_class() -> None:
    """`what happened: what to do`; an error without a remedy is its message."""
    assert in_full(UnknownTopic("no topic hits")) == f"no topic hits: {REMEDIES['UnknownTopic']}"
    assert in_full(ValueError("no")) == "no"
