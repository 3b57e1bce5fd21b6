"""Rules for the test suite itself."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

from tests.support.paths import ROOT

TESTS = ROOT / "tests"


@pytest.mark.parametrize("path", sorted(TESTS.rglob("test_*.py")), ids=lambda p: str(p.relative_to(TESTS)))
def test_every_test_states_its_claim(path: Path) -> None:
    """Each test function has a docstring."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    silent = [
        node.name
        for node in ast.walk(tree)
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
        and node.name.startswith("test_")
        and not ast.get_docstring(node)
    ]
    assert silent == []


def test_tests_of_one_file_run_in_one_process(request: pytest.FixtureRequest) -> None:
    """Under pytest-xdist, each test has its file as group: tests of some files build on each other."""
    assert ("@" in request.node.nodeid) == hasattr(request.config, "workerinput")
