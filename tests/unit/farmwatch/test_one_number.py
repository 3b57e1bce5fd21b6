"""Every command shows the same share and interval for the same log."""

from __future__ import annotations

import json
import shutil
import warnings
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

import farmwatch as fw
from farmwatch.archive.release_check import LABELS_FILE, SITES_FILE
from farmwatch.config.config import load
from farmwatch.share.live_share import LiveShare
from replay.runs.run_rules import live_now
from stream.log.contract import Topic
from stream.opening import open_log
from stream.processing.metrics import Metrics
from stream.schema.control import Control
from stream.schema.forgotten import Forgotten, ForgottenHost
from stream.schema.records import SiteState
from stream.text.user_errors import Exit
from tests.support.front_door import DETECTOR, Runner
from tests.support.runs.two_runs import PARTITIONS, RULESETS, A, B, begin, page, put_features, put_run, site
from tests.support.web.console_browser import Browser, browse

SITES = 240
NAMES = [f"s{n}.operator{n // 6}.example" for n in range(SITES)]
SHARE = ("share", "low", "high", "look_low", "look_high", "method", "scored_sites")
METHOD = ("sprt", "")  # for rows without one


def rows(flagged_of: Callable[[int], int]) -> list[SiteState]:
    """Sites of twelve queries, six per registrable domain, with this many of five articles flagged."""
    more = {"sources": ["file"], "best_rank": 1}
    return [
        site(name, "undecided", pages=5, articles=5, scored=5, flagged=flagged_of(n), queries=[f"q{n // 20}"], **more)
        for n, name in enumerate(NAMES)
    ]


@pytest.fixture
def url(tmp_path: Path, no_weights: None) -> str:
    """A live run with LLM sites of every fourth operator, and another run that does not flag half of them."""
    url = f"sqlite:{tmp_path / 'log'}"
    log = open_log(url)
    begin(log)
    pages = [page(n, site=name) for n, name in enumerate(NAMES)]
    put_features(log, pages)
    live = rows(lambda n: 4 if n // 6 % 4 == 0 else n % 2)
    run = put_run(log, A, RULESETS[A], pages, live, live=True, detector=DETECTOR)
    log.create([Topic(f"state.{run.names(is_live=True).tally_store}", PARTITIONS)])
    put_run(log, B, RULESETS[B], pages, rows(lambda n: 4 if n // 6 % 8 == 0 else n % 2), detector=DETECTOR)
    log.close()
    return url


def reviewed(folder: Path, people: int = 1) -> str:
    """Labels of 80 of the sites, half of them LLM sites, which is more than the flags show; a second person differs."""
    drawn = {"drawn": 80, "drawn_at": 10**13}
    lines = [
        {"fetch_id": name, "site": name, "label": ("llm", "human")[(n % 2) ^ wrong], "by": f"zoe-{-person}", **drawn}
        for person in range(people)
        for n, name in enumerate(NAMES[::3])
        for wrong in [person and n % 9 == 0]
    ]
    file = folder / "labels.jsonl"
    file.write_text("".join(json.dumps(line) + "\n" for line in lines))
    return str(file)


@pytest.mark.parametrize("by_people", [0, 1, 2], ids=["flags", "review", "two labellers"])
def test_every_command_shows_the_same_share_in_the_same_interval(
    farmwatch: Runner, url: str, tmp_path: Path, by_people: int
) -> None:
    """rate, compare, audit, history, gauges, release, export, the pipe `estimate` and the console show one share."""
    settings = ["log.partitions=2", *([f"rate.review={reviewed(tmp_path, by_people)}"] if by_people else [])]
    flags = ["--log", url, *(word for setting in settings for word in ("--set", setting))]

    def run(*words: str) -> dict[str, Any]:
        found: dict[str, Any] = json.loads(farmwatch(*words, *flags).out.splitlines()[0])
        return found

    rate = run("rate", "--json")
    wanted = {name: rate[name] for name in SHARE}
    assert (rate["labellers"], rate["alpha"] is not None) == (by_people, by_people > 1)
    assert (rate["method"], rate["scored_sites"]) == ("ppi" if by_people else "direct", SITES)
    compared = run("compare", "live", A, "--json")
    for side in ("a", "b"):
        assert {name: compared[side]["estimate"][name] for name in SHARE} == wanted
        assert compared[side]["estimate"]["text"] == rate["text"]
    by_source = run("rate", "--by", "source", "--json")
    assert {name: by_source[name] for name in SHARE} == wanted

    (audited,) = run("doctor", "audit", "--json")["rates"]
    assert {name: audited["rows"][name] for name in SHARE} == wanted

    config, metrics = load(None, [*settings, f"log.url={url}"], {}).config, Metrics()
    log = open_log(url)
    live = live_now(Control(log))
    assert live is not None
    share = LiveShare(log, config.rate, metrics, live, METHOD)
    share.update_gauges()
    share.append_points(share.clock())
    log.close()
    assert {name: run("rate", "--history", "--json")[name] for name in SHARE} == wanted
    gauges = {
        sample.labels["bound"]: sample.value
        for family in metrics.registry.collect()
        for sample in family.samples
        if sample.name == "farmwatch_share"
        and (sample.labels["definition"], sample.labels["source"]) == ("sites", "all")
    }
    names = {"point": "share"}
    assert gauges == {name: rate[names.get(name, name)] for name in ("low", "point", "high", "look_low", "look_high")}

    bundle = tmp_path / "bundle"
    assert farmwatch("log", "release", bundle, *flags).code == Exit.OK
    released = json.loads((bundle / "rate.json").read_text())
    assert {name: released[name] for name in SHARE} == wanted and released["text"] == rate["text"]
    assert rate["text"] in (bundle / "README.md").read_text() and rate["text"] in (bundle / "CITATION.cff").read_text()

    exported = tmp_path / "rates.jsonl"
    farmwatch("log", "export", exported, "--what", "rate", *flags)
    point = next(of for of in map(json.loads, exported.open()) if not of["by"])
    assert {name: point[name] for name in SHARE} == wanted

    lines = tmp_path / "sites.jsonl"
    review = ["--review", config.rate.review] if by_people else []
    farmwatch("log", "export", lines, "--what", "sites", *flags)
    for rows_of in (farmwatch("sites", "--json", "--limit", "0", "--log", url).out, lines.read_text()):
        lines.write_text(rows_of)
        estimated = farmwatch("lab", "estimate", str(lines), *review).json
        assert {name: estimated[name] for name in SHARE} == wanted and estimated["text"] == rate["text"]

    async def answer(browser: Browser) -> dict[str, Any]:
        (line,) = (await browser.get("/answer.json", {})).json["lines"]
        return {name: line[name] for name in SHARE}

    assert browse(url, tmp_path, answer, config=config) == wanted


@pytest.mark.parametrize("by_people", [0, 1, 2], ids=["flags", "review", "two labellers"])
def test_the_python_api_has_the_same_share(farmwatch: Runner, url: str, tmp_path: Path, by_people: int) -> None:
    """`open_log(url).share()` is `rate --json`, and `estimate` of its sites with the labels is both."""
    pytest.importorskip("pyarrow", reason="the extra parquet is not installed")
    review = reviewed(tmp_path, by_people) if by_people else ""
    (tmp_path / "farmwatch.toml").write_text(f"[log]\npartitions = {PARTITIONS}\n[rate]\nreview = '{review}'\n")
    rate = farmwatch("rate", "--json", "--log", url).json
    with warnings.catch_warnings(), fw.open_log(url) as log:
        warnings.simplefilter("ignore")
        (row,) = log.share().to_pylist()
        estimated = fw.estimate(log.sites(), review=review)
    assert {name: row[name] for name in SHARE} == {name: rate[name] for name in SHARE} and rate["text"] == row["text"]
    assert {name: getattr(estimated, name) for name in SHARE} == {name: rate[name] for name in SHARE}


@pytest.mark.parametrize("by_people", [0, 1, 2], ids=["flags", "review", "two labellers"])
def test_a_bundle_alone_gives_its_share(farmwatch: Runner, url: str, tmp_path: Path, by_people: int) -> None:
    """`audit` of a bundle needs no log and no file of labels; with other labels or sites it finds another share."""
    labels = reviewed(tmp_path, by_people)
    review = ["--set", f"rate.review={labels}"] if by_people else []
    more = ["--set", "rate.confidence=0.9", *review]
    rate = farmwatch("rate", "--json", "--log", url, *more).json
    farmwatch("log", "release", "bundle", "--log", url, *more)
    Path(labels).unlink()
    shutil.rmtree(tmp_path / "log")
    bundle = tmp_path / "bundle"
    assert (bundle / LABELS_FILE).exists() is bool(by_people)

    def audited() -> tuple[int, dict[str, Any]]:
        ran = farmwatch("doctor", "audit", bundle, "--json")
        return ran.code, ran.json

    assert not any("zoe" in file.read_text() for file in bundle.iterdir())
    code, found = audited()
    assert (code, found["ok"], found["changed"], found["differs"]) == (Exit.OK, True, [], [])
    assert {name: found["recomputed"][name] for name in SHARE} == {name: rate[name] for name in SHARE}
    file = bundle / (LABELS_FILE if by_people else SITES_FILE)
    file.write_text(file.read_text().replace('"llm"', '"human"').replace('"flagged":1', '"flagged":4'))
    code, found = audited()
    assert (code, found["changed"], "share" in found["differs"]) == (Exit.PROBLEM, [file.name], True)
    sums = bundle / "SHA256SUMS"
    sums.write_text("".join(line for line in sums.open() if not line.endswith(f"  {file.name}\n")))
    assert audited()[1]["changed"] == [file.name]


def test_a_bundle_does_not_name_forgotten_hosts(farmwatch: Runner, url: str, tmp_path: Path) -> None:
    """A label of a forgotten host counts as for `rate`, and neither the host nor its page is named."""
    settings = ["--log", url, "--set", f"rate.review={reviewed(tmp_path)}"]
    with closing(open_log(url)) as log:
        log.append(Forgotten(log).outputs(NAMES[0], ForgottenHost(at=1, by="me")))
    rate = farmwatch("rate", "--json", *settings).json
    farmwatch("log", "release", "bundle", *settings)
    bundle = tmp_path / "bundle"
    assert not any(NAMES[0] in file.read_text() for file in bundle.iterdir())
    found = farmwatch("doctor", "audit", "bundle", "--json").json
    assert found["ok"] and {name: found["recomputed"][name] for name in SHARE} == {name: rate[name] for name in SHARE}
    assert (rate["scored_sites"], found["recomputed"]["labelled"]) == (SITES - 1, 79)


@pytest.mark.parametrize("lost", ["SHA256SUMS", "rate.json", "sites.jsonl"])
def test_a_folder_that_is_no_bundle_is_refused(farmwatch: Runner, url: str, tmp_path: Path, lost: str) -> None:
    """A folder without one of the files of a bundle is not audited."""
    farmwatch("log", "release", "bundle", "--log", url)
    (tmp_path / "bundle" / lost).unlink()
    ran = farmwatch("doctor", "audit", "bundle")
    assert (ran.code, lost in ran.err, ran.out) == (Exit.UNAVAILABLE, True, "")


def test_labels_that_hold_in_both_runs_leave_no_difference(farmwatch: Runner, url: str, tmp_path: Path) -> None:
    """A ruleset that hides LLM sites changes the share by flags, but not the share by labels of the same sites."""

    def difference(*more: str) -> dict[str, Any]:
        found: dict[str, Any] = farmwatch("compare", A, B, "--json", "--log", url, *more).json
        change: dict[str, Any] = found["changes"][0]
        assert change["difference"] == pytest.approx(found["b"]["estimate"]["share"] - found["a"]["estimate"]["share"])
        return change

    by_flags = difference()
    by_labels = difference("--set", f"rate.review={reviewed(tmp_path)}")
    assert by_flags["difference"] < -0.08 and by_flags["low"] < by_flags["difference"] < by_flags["high"]
    assert abs(by_labels["difference"]) < 0.03 and by_labels["low"] < 0 < by_labels["high"]


def test_the_difference_of_two_runs_varies_with_whole_operators(farmwatch: Runner, url: str) -> None:
    """The difference of two runs has a wider interval for six subdomains of twenty operators than for single sites."""
    found = farmwatch("compare", A, B, "--json", "--log", url).json
    change, sites = found["changes"][0], found["a"]["estimate"]["scored_sites"]
    alone = 1.96 * (abs(change["difference"]) * (1 - abs(change["difference"])) / sites) ** 0.5
    assert change["high"] - change["low"] > 1.5 * 2 * alone
