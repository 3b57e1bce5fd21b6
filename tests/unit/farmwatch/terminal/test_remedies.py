"""The remedies of errors fit the errors: class by class, and fact by fact."""

from __future__ import annotations

import ast
from collections.abc import Iterator
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


@pytest.mark.parametrize("name", REMEDIES)
def test_each_remedy_is_for_an_error_that_gives_its_facts(name: str) -> None:
    """Each name is a FarmwatchError; each place that makes it, or a class below, names the facts of the remedy."""
    assert "FarmwatchError" in _lineage(name)
    needed = {field for _, field, _, _ in Formatter().parse(REMEDIES[name]) if field}
    calls = [(path, node) for path, tree in TREES.items() for node in ast.walk(tree) if isinstance(node, ast.Call)]
    for path, call in calls:
        lineage = list(_lineage(_called(call)))
        if next((kind for kind in lineage if kind in REMEDIES), "") != name:
            continue
        given = _facts(call)
        for kind in lineage[: lineage.index("FarmwatchError")]:
            parts = [part for part in ast.walk(CLASSES[kind]) if isinstance(part, ast.Call)]
            given |= {fact for part in parts if _called(part) == "__init__" for fact in _facts(part)}
        assert needed <= given or "**" in given, f"{path}:{call.lineno}"


def test_an_error_is_shown_with_the_remedy_of_its_class() -> None:
    """`what happened: what to do`; an error without a remedy is its message."""
    assert in_full(UnknownTopic("no topic hits")) == f"no topic hits: {REMEDIES['UnknownTopic']}"
    assert in_full(ValueError("no")) == "no"
