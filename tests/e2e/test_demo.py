"""`farmwatch demo`, run as by a user."""

from __future__ import annotations

import json
import subprocess
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from farmwatch.__main__ import run
from farmwatch.demo.demo_web import build_demo_web
from tests.support.processes.demo_run import demo_run

_LLM_SITES_FOUND = 4  # of 8, at least: the detector was not trained on them, and some may be undecided


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of the demo; its log stays in `kept`."""
    return tmp_path_factory.mktemp("demo")


@pytest.fixture
def on_kept(
    folder: Path, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> Callable[..., subprocess.CompletedProcess[str]]:
    """Runs a command on the kept log, in this process."""
    monkeypatch.chdir(folder)

    def command(*arguments: str) -> subprocess.CompletedProcess[str]:
        capfd.readouterr()
        code = run([*arguments, "--config", str(folder / "kept" / "farmwatch.toml")])
        return subprocess.CompletedProcess(arguments, code, *capfd.readouterr())

    return command


@pytest.fixture(scope="module")
def result(folder: Path, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """The output of `farmwatch demo --json --serve`; `served` is what its console says."""
    return demo_run(tmp_path_factory, folder / "kept")


def test_every_site_has_a_verdict_and_none_is_wrong(result: dict[str, Any]) -> None:
    """All larger human sites have the verdict human, only LLM sites llm, no LLM site human; the audit is clean."""
    demo = build_demo_web()
    assert {site["site"]: site["expected"] for site in result["sites"]} == demo.expected
    assert {site["site"]: site["truth"] for site in result["sites"] if site["truth"]} == demo.truth
    assert all(site["verdict"] == "human" for site in result["sites"] if site["expected"] == "human")
    assert {site["truth"] for site in result["sites"] if site["verdict"] == "llm"} == {"llm"}
    assert {site["truth"] for site in result["sites"] if site["verdict"] == "human"} == {"human"}
    assert result["audit_ok"]


def test_llm_sites_are_found(result: dict[str, Any]) -> None:
    """Most LLM sites are judged llm, each on flagged articles, so that the demo shows something."""
    found = [site for site in result["sites"] if site["truth"] == site["verdict"] == "llm"]
    assert len(found) >= _LLM_SITES_FOUND
    assert all(0 < site["flagged"] <= site["articles"] <= site["pages"] for site in found)
    assert all(0 < site["pages_used"] <= site["articles"] for site in found)


def test_the_rate_is_consistent_with_the_sites(result: dict[str, Any]) -> None:
    """Denominators equal the counts of verdicts, the judged share is their quotient; intervals contain shares."""
    (rate,) = result["rates"]
    verdicts = Counter(site["verdict"] for site in result["sites"])
    for verdict in ("llm", "human", "undecided", "unclassifiable"):
        assert rate[verdict] == verdicts[verdict], verdict
    assert rate["sites"] == verdicts.total() == len(build_demo_web().expected)
    assert rate["classifiable"] == rate["llm"] + rate["human"] + rate["undecided"] > 0
    assert rate["judged_share"] == pytest.approx(rate["llm"] / rate["classifiable"])
    assert 0 <= rate["judged_low"] < rate["judged_share"] < rate["judged_high"] <= 1
    assert 0 <= rate["low"] < rate["share"] < rate["high"] <= 1
    assert (rate["method"], rate["judged_method"], rate["confidence"]) == ("direct", "uncorrected", 0.95)
    assert all(rate[name] == result[name] for name in ("detector", "ruleset", "digest"))
    assert "indicative only" in result["warning"]


def test_the_share_agrees_with_the_truth(result: dict[str, Any]) -> None:
    """The share is near that of sites by a language model, including sites without a verdict."""
    (rate,) = result["rates"]
    scored = [site for site in result["sites"] if site["articles"]]
    llm = sum(site["truth"] == "llm" for site in scored)
    assert (llm, len(scored)) == (11, 22)
    truth = llm / len(scored)
    assert rate["low"] < truth < rate["high"]
    assert abs(rate["share"] - truth) < 0.1


def test_the_kept_log_has_the_result_of_the_demo(result: dict[str, Any], on_kept: Callable[..., Any]) -> None:
    """`rate` prints share, interval and denominators of the same sites, with the warning; `audit` is clean."""
    (rate,) = result["rates"]
    found = json.loads(on_kept("rate", "--json").stdout)
    of_the_crawl = ("warning", "not_judged", "not_judged_bounds", "preferring")  # the demo's line is of rows alone
    assert {**found, **dict.fromkeys(of_the_crawl)} == {**rate, **dict.fromkeys(of_the_crawl)}
    assert (found["warning"], found["not_judged"]) == (result["warning"], {"refused by robots.txt": 1})
    assert list(found["not_judged_bounds"]) == ["refused by robots.txt"]
    rows = map(json.loads, on_kept("sites", "--json").stdout.splitlines())
    assert {row["site"]: row["no_page"] for row in rows if row["no_page"]} == {
        "members.closedshelf.example": "refused by robots.txt"
    }
    assert result["served"]["no_page"] == {"members.closedshelf.example": "refused by robots.txt"}
    assert "refused by robots.txt" in result["served"]["site"]
    printed = on_kept("rate")
    interval = f"(95% interval {rate['low']:.1%} to {rate['high']:.1%})"
    share = f"{rate['share']:.1%} {interval} of {rate['scored_sites']} sites"
    for part in (
        share,
        f"{rate['sites'] - rate['scored_sites']} of {rate['sites']} sites",
        f"decided one by one: {rate['llm']} llm, {rate['human']} human;",
    ):
        assert part in printed.stdout
    assert "indicative only" in printed.stderr
    audited = on_kept("doctor", "audit")
    assert (audited.returncode, "audit: clean" in audited.stderr) == (0, True)
    assert f"share recomputed from the log: {share}" in audited.stderr and "(as in the stored rows)" in audited.stderr
    rows = json.loads(on_kept("doctor", "audit", "--json").stdout)["steps"]["sites -> rows"]
    assert rows["done"] == rows["records"] == rate["sites"]


def test_the_console_serves_the_log_of_the_demo(result: dict[str, Any]) -> None:
    """With --serve the demo ends with the console, which has the same share; Ctrl-C ends it with code 0."""
    (rate,) = result["rates"]
    (line,) = result["served"]["lines"]
    for name in ("share", "low", "high", "scored_sites", "sites", "llm", "judged_text"):
        assert line[name] == rate[name], name


def test_a_replay_of_the_kept_log_shows_another_rate(result: dict[str, Any], on_kept: Callable[..., Any]) -> None:
    """Under a stricter ruleset, fewer of the same pages are articles."""
    replayed = on_kept("replay", "--ruleset", "notes", "--name", "notes", "--json")
    assert replayed.returncode == 0, replayed.stderr
    told = json.loads(replayed.stdout)
    assert (told["state"], told["pages"]) == ("done", sum(site["pages"] for site in result["sites"]))
    assert 0 < told["articles"] < sum(site["articles"] for site in result["sites"])
