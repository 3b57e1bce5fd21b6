"""The console on a real broker: the same pages and numbers as on the embedded log."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from replay.runs.site_table import read_sites
from tests.support.front_door import PARTITIONS
from tests.support.runs.cutover_world import CutoverWorld, cutover_world
from tests.support.tallied_log import LLM_SITES, SITES_MADE, tallied
from tests.support.web.console_browser import Answer, Browser, browse

pytestmark = pytest.mark.kafka
KEPT = "notes"  # a ruleset that keeps the pages of the world


@pytest.fixture
def world(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[CutoverWorld]:
    with cutover_world("kafka", tmp_path, monkeypatch) as made:
        yield made


def visit_console(world: CutoverWorld, folder: Path, visit: Any) -> Any:
    async def known(browser: Browser) -> Any:
        await browser.open()
        return await visit(browser)

    return browse(world.config.log.url, folder, known, config=world.config)


def test_sites_pages_and_tests_are_found(world: CutoverWorld, tmp_path: Path) -> None:
    """Each site is there with its pages, and its test ends where its row is; no page of the console fails."""
    tallied(world)
    rows = {row.site: row for row in read_sites(world.log)}
    pages = ("/answer", "/flow", "/crawl", "/frontier", "/runs", "/rulesets", "/letters", "/templates", "/health")

    async def visit(browser: Browser) -> tuple[list[Answer], list[Answer], Answer]:
        sites = (await browser.get("/sites.json")).json["sites"]
        shown = [await browser.get("/site.json", {"site": row["site"]}) for row in sites]
        while not all(page["walk"] for page in shown[0].json["pages"] if page["verdict"] == "article"):
            shown[0] = await browser.get("/site.json", {"site": sites[0]["site"]})
        return shown, [await browser.get(path) for path in pages], await browser.get("/health.json")

    shown, others, health = visit_console(world, tmp_path, visit)
    assert {one.json["site"]["site"]: one.json["site"]["verdict"] for one in shown} == {
        site: row.verdict for site, row in rows.items()
    }
    assert sum(row.verdict == "llm" for row in rows.values()) == LLM_SITES and len(rows) == SITES_MADE
    assert all(len(one.json["pages"]) == rows[one.json["site"]["site"]].pages for one in shown)
    steps = [page["walk"] for page in shown[0].json["pages"] if page["walk"]]
    assert (steps[-1]["verdict"], len(steps)) == (rows[shown[0].json["site"]["site"]].verdict, len(steps))
    assert {answer.status for answer in others} == {200} and health.json["behind"] == 0


def test_a_run_is_compared_and_made_live(world: CutoverWorld, tmp_path: Path) -> None:
    """The comparison reads both runs; after the cutover the index has the verdicts of the other run."""
    live = world.begin_live()
    world.features(4 * PARTITIONS)
    world.replay(live)
    world.replay(world.begin("kept", KEPT))

    async def visit(browser: Browser) -> list[Answer]:
        compared = await browser.get("/compare.json", {"a": "live", "b": "kept"})
        number = (await browser.get("/runs.json")).json["number"]
        form = await browser.form("/runs", number=str(number), run="kept", order="live")
        return [compared, await browser.post("/runs/cutover", form), await browser.get("/runs.json")]

    compared, moved, runs = visit_console(world, tmp_path, visit)
    assert compared.json["pages"]["common"] == 4 * PARTITIONS
    assert moved.status == 303
    assert [run["run"] for run in runs.json["runs"] if run["state"] == "live"] == ["kept"]
    (page,) = visit_console(world, tmp_path, lambda browser: _pages(browser))
    assert page.json["status"]["run"] == "kept"


async def _pages(browser: Browser) -> list[Answer]:
    return [await browser.get("/flow.json")]
