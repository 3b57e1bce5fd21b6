"""A log written by farmwatch 0.1.0: three sites of the demo through every stage, in `tests/golden`."""

from __future__ import annotations

import json
import re
import tarfile
from pathlib import Path

import pytest

from filters.rules.ruleset import load_ruleset
from tests.support.front_door import Runner
from tests.support.pages.extraction_here import extract_here

ARCHIVE = Path(__file__).parents[3] / "golden" / "log-0.1.0.tar.xz"


@pytest.fixture
def old_log(tmp_path: Path) -> str:
    """URL of an unpacked copy."""
    with tarfile.open(ARCHIVE) as archive:
        if hasattr(tarfile, "data_filter"):  # from 3.11.4; later versions warn without
            archive.extraction_filter = tarfile.data_filter
        archive.extractall(tmp_path)
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


def test_an_older_log_is_replayed_to_the_same_verdicts(
    farmwatch: Runner, old_log: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A replay under the rules of that time measures an older log's pages again, and no page or site flips."""
    extract_here(monkeypatch)
    rules = tmp_path / "then.toml"
    rules.write_text(re.sub(r"\[rules\.(?:no_page|article_probability)\][^\[]*", "", load_ruleset("default").source))
    replayed = farmwatch("replay", old_log, "--ruleset", rules, "--name", "again")
    assert replayed.code == 0, replayed.err
    compared = farmwatch("compare", old_log, "live", "again")
    assert "note: two feature epochs" in compared.out
    for row in (
        "article in A\t26\t0\n",
        "dropped in A\t0\t7\n",
        "A: llm\t1\t0\t0\t0\t0\n",
        "A: human\t0\t1\t0\t0\t0\n",
    ):
        assert row in compared.out
    assert farmwatch("audit", old_log, "--run", "again").code == 0


@pytest.mark.usefixtures("no_weights")
def test_up_makes_an_older_database_one_that_shrinks(
    farmwatch: Runner, old_log: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The first `up` rewrites an older database, applies today's limits and reports it; it names `upgrade` for MEASURE.

    After that it starts, and the audit stays clean.
    """
    monkeypatch.setattr("farmwatch.commands.daemon.running._supervise", lambda *_: 0)
    monkeypatch.setenv("FARMWATCH_LOG_PARTITIONS", "2")
    monkeypatch.setenv("FARMWATCH_METRICS_PORT", "0")
    monkeypatch.setenv("FARMWATCH_CONSOLE_PORT", "0")
    monkeypatch.setenv("FARMWATCH_CRAWL_CONTACT", "https://operator.example/")
    first = farmwatch("up", old_log)
    assert (first.code, "`farmwatch upgrade` measures the stored pages again" in first.err) == (3, True), first.err
    assert "rewriting log.sqlite once (" in first.err
    assert "retention of pages: 30 days, 7.0 GiB; before: 30 days, " in first.err
    assert farmwatch("upgrade", old_log).code == 0
    second = farmwatch("up", old_log)
    assert (second.code, "rewriting" in second.err, "retention" in second.err) == (0, False, False)
    assert farmwatch("audit", old_log).code == 0
