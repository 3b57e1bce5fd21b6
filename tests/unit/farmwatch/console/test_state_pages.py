"""The pages on the state: they say what `status`, `sites`, `topics` and `doctor` say."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path

import pytest

from replay.runs.control_update import ControlUpdate, update_control
from scoring.sites.registry import text_of_method
from scoring.sites.sprt import SiteTest, SprtParams
from stream.log.contract import Output, partition_of
from stream.opening import open_log
from stream.schema.records import SiteState, encode
from stream.schema.runs import LIVE, Run
from stream.schema.topics import SITES
from tests.support.front_door import PARTITIONS, Runner
from tests.support.web.console_browser import visited


def test_the_funnel_is_the_sum_of_the_sites(farmwatch: Runner, finished: str, tmp_path: Path) -> None:
    """Hits, measured pages, articles and scored articles are those of `sites --json`; a canary is no site."""
    with closing(open_log(finished)) as log:
        for n, site in enumerate(("c.example", "d.example", "x.ab.3.1.human.canary.invalid")):
            row = SiteState(id=site, site=site, hits=7 + n, pages=5, articles=3, scored=2 - n)
            log.append([Output(SITES, partition_of(site, PARTITIONS), site.encode(), encode(row))])
    flow, page = visited(finished, tmp_path, "/flow.json", "/flow")
    rows = farmwatch("sites", "--json", "--log", finished).lines
    sums = {name: sum(row[name] for row in rows) for name in ("hits", "pages", "articles", "scored")}
    assert flow.json["funnel"] == {
        "hits": sums["hits"],
        "measured": sums["pages"],
        "articles": sums["articles"],
        "scored": sums["scored"],
        "sites": len(rows),
    }
    assert sums["hits"] == 15 and "of 4 sites with a row" in page.text


@pytest.mark.usefixtures("no_weights")
def test_health_says_what_the_doctor_says(farmwatch: Runner, finished: str, tmp_path: Path) -> None:
    """On request only: the checks and results of `farmwatch doctor --json`. A renewed page does not run them again."""
    (plain,) = visited(finished, tmp_path, "/health.json")
    twin, page, again = visited(finished, tmp_path, "/health.json", "/health", "/health.json", doctor="1")
    said = farmwatch("doctor", "--json", "--log", finished).json
    assert plain.json["doctor"] is None
    found = [(one["check"], one["state"]) for one in twin.json["doctor"]["results"]]
    assert found == [(one["check"], one["state"]) for one in said]
    assert again.json["doctor"] == twin.json["doctor"]
    assert "What the doctor says" in page.text and "trafilatura" in page.text


def test_health_says_the_disk_and_the_versions(farmwatch: Runner, finished: str, tmp_path: Path) -> None:
    """The lines on the disk are those of `farmwatch topics`; the versions those of the program and of the live run."""
    live = Run(
        name=LIVE,
        ruleset="mine",
        digest="0123abcd",
        detector="a-detector",
        epoch="an-epoch",
        site_method=text_of_method(SiteTest(SprtParams())),
    )
    with closing(open_log(finished)) as log:
        update_control(log, lambda _: ControlUpdate(live))
    (health,) = visited(finished, tmp_path, "/health.json")
    said = farmwatch("topics", "--log", finished).err
    assert health.json["disk"] and all(line in said for line in health.json["disk"])
    versions = health.json["versions"]
    assert versions["farmwatch"] in farmwatch("--version").out
    shown = [versions[name] for name in ("ruleset", "detector", "site method", "feature epoch")]
    assert shown == ["mine 0123abcd", "a-detector", f"sprt {SiteTest(SprtParams()).digest}", "an-epoch"]


def test_flow_and_health_say_that_the_crawl_is_paused(farmwatch: Runner, finished: str, tmp_path: Path) -> None:
    """In the words of the page Crawl, with who and why."""
    assert farmwatch("crawl", "pause", "--why", "a <b>look</b>", "--log", finished).code == 0
    crawl, flow, health = visited(finished, tmp_path, "/crawl.json", "/flow.json", "/health.json")
    assert flow.json["pause"] == health.json["pause"] == crawl.json["pause"] != ""
    for page in visited(finished, tmp_path, "/flow", "/health"):
        assert "the crawl is paused" in page.text and "a &lt;b&gt;look" in page.text
