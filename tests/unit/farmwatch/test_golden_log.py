"""A log of November 2026: two terms, a replay of features and one of pages, a cutover, a review, canaries, a panel."""

from __future__ import annotations

import json
import tarfile
from datetime import UTC, datetime
from pathlib import Path

import pytest

from tests.support.front_door import Runner
from tests.support.kafka_broker import broker

ARCHIVE = Path(__file__).parents[2] / "golden" / "log-2026-11.tar.xz"
STEPS = {"hits -> pages": 53, "pages -> features": 432, "features -> verdicts": 432, "sites -> rows": 57}
DAY_MS = int(datetime(2026, 11, 29, 12, tzinfo=UTC).timestamp() * 1000)
SHARE = (0.584, 0.301, 0.828)


@pytest.fixture(scope="module")
def unpacked(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the log, its configuration, canaries and labels."""
    folder = tmp_path_factory.mktemp("golden")
    with tarfile.open(ARCHIVE) as archive:
        archive.extraction_filter = tarfile.data_filter
        archive.extractall(folder)
    return folder


@pytest.fixture
def golden(unpacked: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """Its log, as an option; its configuration is in force."""
    monkeypatch.chdir(unpacked)
    return f"--log=sqlite:{unpacked / 'log'}"


def assert_same(farmwatch: Runner, log: str) -> None:
    """The share with its interval, the live run, and clean audits of the live run and of the one that measured."""
    line = farmwatch("rate", log, "--json").json
    assert tuple(round(line[name], 3) for name in ("share", "low", "high")) == SHARE
    assert (line["run"], line["scored_sites"], line["sites"], line["labelled"]) == ("notes", 48, 53, 47)
    audited = farmwatch("doctor", "audit", log, "--json").json
    assert audited["ok"]
    assert {name: step["records"] for name, step in audited["steps"].items() if name in STEPS} == STEPS
    assert farmwatch("doctor", "audit", log, "--run", "again", "--json").code == 0


def test_a_log_of_then_opens_with_its_share_and_a_clean_audit(farmwatch: Runner, golden: str) -> None:
    """Each record of it decodes, each row is the one that its records give, and the share is the one of then."""
    assert_same(farmwatch, golden)


def test_its_canaries_runs_terms_and_panel_are_read(
    farmwatch: Runner, golden: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """On the day of the log: verdicts on its canaries, runs with the cutover, terms of the first run, the panel."""
    monkeypatch.setattr("farmwatch.commands.review.canaries.wall_ms", lambda: DAY_MS)
    (llm, *_) = farmwatch("review", "canaries", golden, "--json", "--where", "truth=llm").lines
    assert [llm[name] for name in ("through", "sent", "measured", "kept", "scored", "flagged")] == [4, 8, 8, 8, 8, 6]
    states = {run["run"]: run["state"] for run in farmwatch("runs", golden, "--json").lines}
    assert states == {"first": "was live", "notes": "live", "again": "done"}
    sites = farmwatch("sites", golden, "--run", "first", "--json").lines
    assert sum(site["term"] == 1 for site in sites) > 40
    panel = json.loads(farmwatch("review", "panel", "show", golden, "--json").out.splitlines()[0])
    assert panel["sites"] == 12


@pytest.mark.kafka
def test_its_copy_on_kafka_has_the_same_share(
    farmwatch: Runner, golden: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Copied into Kafka, the log has the same share and a clean audit."""

    monkeypatch.setenv("FARMWATCH_LOG_STATE_FOLDER", str(tmp_path / "state"))
    kafka = f"kafka:{broker()}"
    copied = farmwatch("log", "copy", "--from", golden.removeprefix("--log="), "--to", kafka)
    assert copied.code == 0, copied.err
    assert_same(farmwatch, f"--log={kafka}")


def test_its_most_certain_llm_sites_are_listed(farmwatch: Runner, golden: str) -> None:
    """A list with a stated share of false sites has LLM sites without a verdict, and none that people call human."""
    five, one = (farmwatch("sites", golden, "--llm", "--fdr", fdr, "--json").lines for fdr in ("5%", "0.01"))
    assert len(five) == 26 and {row["label"] for row in five} == {"llm"}
    assert [row["site"] for row in one] == [row["site"] for row in five[: len(one)]]
    assert "unclassifiable" in {row["verdict"] for row in one}
    assert farmwatch("sites", golden, "--llm", "--fdr", "100%").code == 2
