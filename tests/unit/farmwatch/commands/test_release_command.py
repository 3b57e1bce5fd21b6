"""`release`: the content of the bundle, and the share that follows from it."""

from __future__ import annotations

import fcntl
import json
import os
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest

from crawler.signing.signing_key import make_key
from replay.live.epoch_change import change_epoch, seams_of
from replay.runs.lookup import find_run
from scoring.rates.canary import CanaryName
from stream.log.contract import Output, partition_of
from stream.schema.control import Control
from stream.schema.records import SiteState, Verdict, encode
from stream.schema.topics import SITES, VERDICTS
from stream.text.checksums import SUMS, digest_of, write_sums
from stream.text.user_errors import Exit
from tests.support.front_door import PARTITIONS, Runner
from tests.support.logs.tallied_log import (
    DAY_MS,
    LLM_SITES,
    PAGES_EACH,
    SITES_MADE,
    put_site,
    rows_of,
    site_name,
    tallied,
    tally,
)
from tests.support.runs.cutover_world import CutoverWorld, cutover_world
from tests.support.runs.replay_world import put_rows
from tests.support.web.signed import shown_of

pytestmark = pytest.mark.slow

NUMBERS = ["--set", "tally.sprt={p0=0.1, p1=0.6}"]  # of the world's site test
FILES = {
    *("README.md", "CITATION.cff", "SHA256SUMS", "ruleset.toml", "rate.json", "settings.json", "versions.json"),
    *("sites.jsonl", "scores.jsonl", "verdicts.jsonl", "rates.jsonl"),
}


@pytest.fixture
def world(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[CutoverWorld]:
    """A log at rest with rows of TALLY."""
    with cutover_world("embedded", tmp_path, monkeypatch) as made:
        tallied(made)
        yield made


def lines(file: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in file.read_text().splitlines()]


def test_the_number_follows_from_the_bundle(world: CutoverWorld, farmwatch: Runner, tmp_path: Path) -> None:
    """The commands of its README give the share of `rate`: from all that it depends on, the sites, and the scores."""
    assert farmwatch("log", "release", "bundle", "--log", world.config.log.url, *NUMBERS).code == Exit.OK
    bundle = tmp_path / "bundle"
    numbers = json.loads((bundle / "rate.json").read_text())
    (rate,) = farmwatch("rate", "--json", "--log", world.config.log.url, *NUMBERS).lines
    assert share_of(numbers) == share_of(rate)
    assert farmwatch("doctor", "audit", bundle).code == Exit.OK
    (estimated,) = farmwatch("lab", "estimate", bundle / "sites.jsonl").lines
    assert share_of(estimated) == pytest.approx(share_of(numbers))
    tallied_again = farmwatch("lab", "tally", bundle / "scores.jsonl", *NUMBERS).out
    (tmp_path / "tallied.jsonl").write_text(tallied_again)
    (again,) = farmwatch("lab", "estimate", tmp_path / "tallied.jsonl").lines
    assert share_of(again) == pytest.approx(share_of(numbers))
    assert f"Share of LLM sites: {numbers['text']}" in (bundle / "README.md").read_text()
    verdicts = {line["site"]: line["verdict"] for line in map(json.loads, tallied_again.splitlines())}
    assert verdicts == {row["site"]: row["verdict"] for row in lines(bundle / "sites.jsonl")}


def test_a_bundle_of_an_earlier_version_opens(world: CutoverWorld, farmwatch: Runner, tmp_path: Path) -> None:
    """Its settings may have counts of sites of known truth, which correct the judged share."""
    assert farmwatch("log", "release", "bundle", "--log", world.config.log.url, *NUMBERS).code == Exit.OK
    bundle = tmp_path / "bundle"
    settings = json.loads((bundle / "settings.json").read_text())
    errors = {"llm_sites": 30, "llm_found": 27, "human_sites": 30, "human_cleared": 29}
    settings["rate"]["errors"] = errors
    (bundle / "settings.json").write_text(json.dumps(settings))
    counts = [f"--{name.replace('_', '-')}={number}" for name, number in errors.items()]
    corrected = farmwatch("lab", "estimate", bundle / "sites.jsonl", *counts).json
    assert corrected["judged_method"] == "corrected"
    judged = {name: corrected[name] for name in ("judged_share", "judged_low", "judged_high", "judged_method")}
    (bundle / "rate.json").write_text(json.dumps(json.loads((bundle / "rate.json").read_text()) | judged))
    (bundle / SUMS).unlink()
    write_sums(bundle, {file.name: digest_of(file) for file in bundle.iterdir()})
    assert farmwatch("doctor", "audit", bundle).code == Exit.OK


def share_of(line: dict[str, Any]) -> dict[str, float]:
    """The share with its intervals."""
    return {name: line[name] for name in ("share", "low", "high", "look_low", "look_high")}


def test_the_bundle_is_whole_and_holds_no_text(world: CutoverWorld, farmwatch: Runner, tmp_path: Path) -> None:
    """The bundle is complete: sha256sum agrees, rows equal those of the log, and there is no text or local path."""
    live = find_run(Control(world.log), "live")
    path = f'\n[models]  # stored with the ruleset\n"a.ngrams" = "{tmp_path}/a.ngrams"\n'
    put_rows(world.log, rulesets=[(live.digest, Control(world.log).ruleset_text(live) + path)])
    make_key(tmp_path / "visitor.pem")
    secrets = ["--set", "crawl.signature.key=visitor.pem", "--set", "crawl.proxy=http://ann:hush@127.0.0.1:3128"]
    farmwatch("log", "release", "bundle", "--log", world.config.log.url, *NUMBERS, *secrets)
    bundle = tmp_path / "bundle"
    assert {file.name for file in bundle.iterdir()} == FILES
    subprocess.run(["sha256sum", "--quiet", "-c", SUMS], cwd=bundle, check=True)
    assert len(lines(bundle / "sites.jsonl")) == SITES_MADE
    assert sum(row["verdict"] == "llm" for row in lines(bundle / "sites.jsonl")) == LLM_SITES
    assert len(lines(bundle / "verdicts.jsonl")) == SITES_MADE * PAGES_EACH
    for row in lines(bundle / "sites.jsonl"):
        mine = [score for score in lines(bundle / "scores.jsonl") if score["site"] == row["site"]]
        assert (len(mine), sum(score["flag"] for score in mine)) == (row["scored"], row["flagged"])
    versions = json.loads((bundle / "versions.json").read_text())
    assert versions["ruleset_digest"] == lines(bundle / "sites.jsonl")[0]["digest"]
    assert versions["site_method"]["numbers"]["p1"] == 0.6
    assert "[rules." in (bundle / "ruleset.toml").read_text()
    everything = "".join(file.read_text() for file in bundle.iterdir())
    assert str(tmp_path) not in everything
    assert "visitor.pem" not in everything and "hush" not in everything
    assert not shown_of(tmp_path / "visitor.pem", everything.encode())


def test_verdicts_that_retention_took_are_said(world: CutoverWorld, farmwatch: Runner, tmp_path: Path) -> None:
    """Also where a partition has none left."""
    world.log.truncate(VERDICTS, [*world.log.end(VERDICTS)[:1], *[0] * (PARTITIONS - 1)])
    ran = farmwatch("log", "release", "bundle", "--log", world.config.log.url, *NUMBERS)
    assert ran.code == Exit.OK, ran.err
    assert f"those from before {time.gmtime().tm_year}-" in (tmp_path / "bundle" / "README.md").read_text()


def test_a_change_of_the_feature_epoch_is_said(world: CutoverWorld, farmwatch: Runner, tmp_path: Path) -> None:
    """Both epochs and the time are in the README and in versions.json."""
    change_epoch(world.log, msgspec.structs.replace(world.config.measure, max_elements=9999), 1_700_000_000_000)
    assert farmwatch("log", "release", "bundle", "--log", world.config.log.url, *NUMBERS).code == Exit.OK
    (seam,) = seams_of(Control(world.log))
    assert seam[1:] in (tmp_path / "bundle" / "README.md").read_text()
    versions = json.loads((tmp_path / "bundle" / "versions.json").read_text())
    (earlier,) = versions["earlier_epochs"].items()
    assert (earlier[0] != versions["feature_epoch"], earlier[1]) == (True, 1_700_000_000_000)


def test_canaries_that_count_are_in_the_number(world: CutoverWorld, farmwatch: Runner, tmp_path: Path) -> None:
    """Recent canaries are in the bundle as sites of known truth; old ones and those of other rulesets are not."""
    now_ms = int(time.time() * 1000)
    like = next(iter(rows_of(world).values()))
    canary = CanaryName("notes", "0" * 16, 10, now_ms // 86_400_000, "human").site
    put(world, like, canary, updated_at=now_ms, pages=10, articles=9, scored=8, abstained=1, flagged=1)
    put(world, like, CanaryName("old", "1" * 16, 10, 7, "human").site, updated_at=7)
    put(world, like, "other.example", digest="f" * 16)
    ran = farmwatch("log", "release", "bundle", "--log", world.config.log.url, *NUMBERS)
    bundle = tmp_path / "bundle"
    found = {row["site"] for row in lines(bundle / "sites.jsonl")}
    assert (len(found), canary in found, "other.example" in found) == (SITES_MADE + 1, True, False)
    assert "left out: 2 rows" in ran.err
    (estimated,) = farmwatch("lab", "estimate", bundle / "sites.jsonl").lines
    assert share_of(estimated) == pytest.approx(share_of(json.loads((bundle / "rate.json").read_text())))
    assert farmwatch("doctor", "audit", bundle).code == Exit.OK


def put(world: CutoverWorld, like: SiteState, site: str, **fields: Any) -> None:
    row = msgspec.structs.replace(like, id=site, site=site, **fields)
    world.log.append([Output(SITES, partition_of(site, PARTITIONS), site.encode(), encode(row))])


def test_a_site_between_two_terms_has_the_scores_of_its_verdict(
    world: CutoverWorld, farmwatch: Runner, tmp_path: Path
) -> None:
    """Its new term has a page and no verdict: row and scores are those of the term before."""
    now_ms, number = int(time.time() * 1000), SITES_MADE
    site, run = site_name(number), find_run(Control(world.log), "live")
    put_site(world, run, number, now_ms - 5 * DAY_MS)
    by: dict[str, Any] = {"ruleset": run.ruleset, "digest": run.digest, "first_failed": "min_tokens"}
    times: dict[str, Any] = {"fetched_at": now_ms, "first_at": now_ms - 90 * DAY_MS}
    verdict = Verdict(id="new", site=site, page_id="new", url=f"http://{site}/new", verdict="dropped", **by, **times)
    world.log.append([Output(VERDICTS, partition_of(site, PARTITIONS), site.encode(), encode(verdict))])
    tally(world, run)
    assert (rows_of(world)[site].term, rows_of(world)[site].scored) == (1, 0)
    assert farmwatch("log", "release", "bundle", "--log", world.config.log.url, *NUMBERS).code == Exit.OK
    (row,) = (row for row in lines(tmp_path / "bundle" / "sites.jsonl") if row["site"] == site)
    scores = [score for score in lines(tmp_path / "bundle" / "scores.jsonl") if score["site"] == site]
    assert (row["term"], row["verdict"], row["scored"], row["scored"]) == (0, "human", len(scores), 12)


def test_the_rest_of_a_killed_release_is_gone_with_the_next(
    world: CutoverWorld, farmwatch: Runner, tmp_path: Path
) -> None:
    """Only the bundle is left, without a file of the one that was killed."""
    before = set(tmp_path.iterdir())
    (tmp_path / ".bundle.unfinished").mkdir()
    (tmp_path / ".bundle.unfinished" / "old.jsonl").touch()
    assert farmwatch("log", "release", "bundle", "--log", world.config.log.url, *NUMBERS).code == Exit.OK
    assert set(tmp_path.iterdir()) - before == {tmp_path / "bundle"}
    assert {file.name for file in (tmp_path / "bundle").iterdir()} == FILES


def test_a_second_release_to_a_folder_leaves_the_first_alone(
    world: CutoverWorld, farmwatch: Runner, tmp_path: Path
) -> None:
    """While one writes, another to the same folder is refused, and one to another folder is not."""
    unfinished = tmp_path / ".bundle.unfinished"
    unfinished.mkdir()
    (unfinished / "half.jsonl").touch()
    held = os.open(unfinished, os.O_RDONLY)
    try:
        fcntl.flock(held, fcntl.LOCK_EX)
        ran = farmwatch("log", "release", "bundle", "--log", world.config.log.url, *NUMBERS)
        assert (ran.code, "another release" in ran.err) == (Exit.UNAVAILABLE, True)
        assert (unfinished / "half.jsonl").exists() and not (tmp_path / "bundle").exists()
        assert farmwatch("log", "release", "other", "--log", world.config.log.url, *NUMBERS).code == Exit.OK
    finally:
        os.close(held)


def test_a_used_folder_is_refused_and_a_failed_release_leaves_nothing(
    world: CutoverWorld, farmwatch: Runner, tmp_path: Path
) -> None:
    """A folder with other files is refused and unchanged; a run without rows creates no folder."""
    before = set(tmp_path.iterdir())
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "file").touch()
    ran = farmwatch("log", "release", "mine", "--log", world.config.log.url)
    assert (ran.code, "mine is not empty" in ran.err) == (Exit.USAGE, True)
    world.begin("other")
    ran = farmwatch("log", "release", "new", "--run", "other", "--log", world.config.log.url)
    assert (ran.code, "run other has no judged site yet" in ran.err) == (Exit.PROBLEM, True)
    assert set(tmp_path.iterdir()) - before == {tmp_path / "mine"}
