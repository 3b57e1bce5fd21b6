"""Rules for the test suite itself."""

from __future__ import annotations

import re

import pytest

from tests.support.paths import ROOT

TESTS = ROOT / "tests"
_TEST = re.compile(r'^ *(?:async )?def (test_\w+)\(.*?\)(?: -> [^\n]*)?:\n( +r?""")?', re.DOTALL | re.MULTILINE)


def test_every_test_states_its_claim() -> None:
    """Each test function has a docstring."""
    seen, silent = 0, []
    for path in sorted(TESTS.rglob("test_*.py")):
        for name, opening in _TEST.findall(path.read_text(encoding="utf-8")):
            seen += 1
            silent += [] if opening else [f"{path.relative_to(TESTS)}: {name}"]
    assert silent == []
    assert seen > 2_000


def test_tests_of_one_file_run_in_one_process(request: pytest.FixtureRequest) -> None:
    """Under pytest-xdist, each test has its file as group: tests of some files build on each other."""
    assert ("@" in request.node.nodeid) == hasattr(request.config, "workerinput")
