"""A log written by farmwatch 0.1.0: three sites of the demo through every stage, in `tests/golden`."""

from __future__ import annotations

import json
import tarfile
from pathlib import Path

import pytest

from tests.support.front_door import Runner

ARCHIVE = Path(__file__).parents[3] / "golden" / "log-0.1.0.tar.xz"


@pytest.fixture
def old_log(tmp_path: Path) -> str:
    """URL of an unpacked copy."""
    with tarfile.open(ARCHIVE) as archive:
        archive.extractall(tmp_path, filter="data")
    return f"--log=sqlite:{tmp_path / 'log'}"


def test_an_older_log_has_a_clean_audit(farmwatch: Runner, old_log: str) -> None:
    """The audit of an older log is clean: every record decodes, and each recomputed row equals the stored one."""
    scope = farmwatch("audit", old_log, "--json")
    assert scope.code == 0, scope.out + scope.err
    report = json.loads(scope.out)
    assert report["ok"]
    lines = farmwatch("sites", old_log, "--json").out.splitlines()
    rows = {row["site"]: row["verdict"] for row in map(json.loads, lines)}
    assert rows == {
        "docs.serpentmanual.example": "human",
        "members.closedshelf.example": "unclassifiable",
        "morninghabits.example": "llm",
    }


def test_an_older_log_is_replayed_to_the_same_verdicts(farmwatch: Runner, old_log: str) -> None:
    """A replay under the same ruleset is appended to an older log, and no page or site flips."""
    replayed = farmwatch("replay", old_log, "--ruleset", "default", "--name", "again")
    assert replayed.code == 0, replayed.err
    compared = farmwatch("compare", old_log, "live", "again")
    assert "the same verdict for every page and site" in compared.out
    assert farmwatch("audit", old_log, "--run", "again").code == 0
