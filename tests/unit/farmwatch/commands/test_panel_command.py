"""`farmwatch panel`: a random sample in the log, and its paired change."""

from __future__ import annotations

import time
from collections.abc import Sequence
from contextlib import closing
from pathlib import Path

import pytest

from scoring.stages.site_tally import term_key
from stream.log.contract import Output
from stream.opening import open_log
from stream.schema.control import Control
from stream.schema.records import SiteState, encode
from stream.schema.topics import SITE_TERMS, SITES, all_topics
from stream.text.user_errors import Exit
from tests.support.front_door import Runner
from tests.support.logs.term_rows import DAY_MS, term_row

pytestmark = pytest.mark.usefixtures("no_weights")


def put_rows(url: str, topic: str, rows: Sequence[SiteState]) -> None:
    with closing(open_log(url)) as log:
        keys = [row.site if topic == SITES else term_key(row.site, row.term) for row in rows]
        log.append([Output(topic, 0, key.encode(), encode(row)) for key, row in zip(keys, rows, strict=True)])


def in_term(site: str, verdict: str, term: int) -> SiteState:
    """A row of a site whose first term began 80 days ago, or whose second one has just begun."""
    start = int(time.time() * 1000) - 80 * DAY_MS * (term == 0)
    return term_row(site, verdict, term, term_start=start, term_end=start + 90 * DAY_MS)


@pytest.fixture
def url(tmp_path: Path) -> str:
    """A log with 80 human sites in their first term, and one that nobody crawls."""
    url = f"sqlite:{tmp_path / 'log'}"
    with closing(open_log(url)) as log:
        log.create(all_topics(1, "e"))
    rows = [in_term(f"s{number:02}.test", "human", 0) for number in range(80)]
    put_rows(url, SITES, [*rows, term_row("archive.test", "human", term_start=0, term_end=0)])
    return url


def test_a_panel_shows_its_change_apart_from_new_sites(farmwatch: Runner, url: str) -> None:
    """60 sites of which 12 turn: 20 points, with the interval; a new site is none of it. Each panel is a version."""
    made = farmwatch("panel", "make", "--sites", "60", "--json", "--log", url)
    assert made.code == Exit.OK, made.err
    panel = made.json
    assert (made.code, panel["version"], panel["drawn_from"], len(panel["sites"])) == (Exit.OK, 1, 80, 60)
    sites = panel["sites"]
    put_rows(url, SITE_TERMS, [in_term(site, "human", 0) for site in sites])
    put_rows(url, SITES, [in_term(site, "llm" if number < 12 else "human", 1) for number, site in enumerate(sites)])
    new = int(time.time() * 1000)
    put_rows(url, SITES, [term_row("new.test", "llm", term_start=new, term_end=new + DAY_MS)])
    shown = farmwatch("panel", "show", "--json", "--log", url)
    found = shown.json
    assert (found["pairs"], found["turned"], found["turned_back"], found["change"]) == (60, 12, 0, 0.2)
    assert found["low"] < 0.2 < found["high"]
    assert [line["sites"] for line in found["new_sites"]] == [1]
    text = farmwatch("panel", "show", "--log", url).out
    assert "+20.0 points (95% interval +" in text and "12 turned to llm, 0 back" in text
    assert f"turned to llm: {', '.join(sites[:12])}" in " ".join(text.split())
    assert "new since then: 1 site" in text
    again = farmwatch("panel", "make", "--sites", "10", "--seed", "7", "--json", "--log", url).json
    same = farmwatch("panel", "make", "--sites", "10", "--seed", "7", "--json", "--log", url).json
    assert (again["version"], same["version"], again["sites"]) == (2, 3, same["sites"])
    assert farmwatch("panel", "show", "--version", "1", "--json", "--log", url).json["pairs"] == 60


def test_other_readers_of_control_pass_over_panels(farmwatch: Runner, url: str) -> None:
    """The runs of a log with a panel are read as without one."""
    farmwatch("panel", "make", "--sites", "5", "--log", url)
    with closing(open_log(url)) as log:
        assert Control(log).runs == {}


@pytest.mark.parametrize(
    ("arguments", "code", "said"),
    [
        (["make", "--sites", "81"], Exit.USAGE, "--sites 81: 80 crawled sites with a scored article so far"),
        (["show"], Exit.PROBLEM, "no panel yet: `farmwatch panel make` draws one"),
    ],
)
def test_what_cannot_be_is_said(farmwatch: Runner, url: str, arguments: list[str], code: Exit, said: str) -> None:
    """Too few sites, and no panel."""
    ran = farmwatch("panel", *arguments, "--log", url)
    assert ran.code == code and said in ran.err
