"""The remedies of errors fit the errors: class by class, and fact by fact."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from string import Formatter

import pytest
import structlog

from farmwatch.terminal.messages import start_logging
from farmwatch.terminal.remedies import EVENTS, REMEDIES, in_full
from stream.log.errors import UnknownTopic
from tests.support.paths import ROOT
from tests.tools.house import PACKAGES

TREES = {
    path: ast.parse(path.read_text(encoding="utf-8")) for package in PACKAGES for path in (ROOT / package).rglob("*.py")
}
CALLS = [(path, node) for path, tree in TREES.items() for node in ast.walk(tree) if isinstance(node, ast.Call)]
CLASSES = {node.name: node for tree in TREES.values() for node in ast.walk(tree) if isinstance(node, ast.ClassDef)}


def _lineage(name: str) -> Iterator[str]:
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


def _cases(call: ast.Call) -> set[str]:
    cases = [part for keyword in call.keywords if keyword.arg == "case" for part in ast.walk(keyword.value)]
    return {part.value for part in cases if isinstance(part, ast.Constant) and isinstance(part.value, str)} or {""}


@pytest.mark.parametrize("key", REMEDIES)
def test_each_remedy_is_for_an_error_that_gives_its_facts(key: str) -> None:
    """Each name is a FarmwatchError; each place that makes it, or a class below, names the facts of the remedy."""
    name, _, case = key.partition(" ")
    assert "FarmwatchError" in _lineage(name)
    fields = {field.partition(".")[0] for _, field, _, _ in Formatter().parse(REMEDIES[key]) if field}
    needed = {"run" if field in ("resume", "settings") else field for field in fields}
    calls = CALLS
    if case:
        calls = [(path, call) for path, call in calls if case in _cases(call) and name in _lineage(_called(call))]
        assert calls
    for path, call in calls:
        lineage = list(_lineage(_called(call)))
        if not case and next((kind for kind in lineage if kind in REMEDIES), "") != name:
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


def test_each_event_with_a_remedy_is_logged_below() -> None:
    """A package below farmwatch logs it, without words of its own on what to do."""
    calls = [
        call
        for path, call in CALLS
        if path.relative_to(ROOT).parts[0] != "farmwatch" and call.args and _called(call) == "warning"
    ]
    logged = {call.args[0].value: _facts(call) for call in calls if isinstance(call.args[0], ast.Constant)}
    assert logged.keys() >= EVENTS.keys() and not any("mend" in logged[event] for event in EVENTS)


def test_the_log_says_what_to_do(capsys: pytest.CaptureFixture[str]) -> None:
    """The remedy of an event is in its line; other events have none."""
    try:
        start_logging()
        structlog.get_logger().warning("proxy_failed")
        structlog.get_logger().warning("other")
    finally:
        structlog.reset_defaults()
    failed, other = capsys.readouterr().err.splitlines()
    assert EVENTS["proxy_failed"] in failed and "mend=" not in other
