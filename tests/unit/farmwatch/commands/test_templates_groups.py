"""`farmwatch templates groups`, and the page of the console that shows the same."""

from __future__ import annotations

import json
from contextlib import closing
from pathlib import Path

import pytest

from stream.opening import open_log
from stream.text.user_errors import Exit
from tests.support.front_door import Runner
from tests.support.shared_templates import fill
from tests.support.web.console_browser import Answer, Browser, browse

pytestmark = pytest.mark.usefixtures("no_weights")


@pytest.fixture
def url(tmp_path: Path) -> str:
    """A log with the rows of `fill`."""
    url = f"sqlite:{tmp_path / 'log'}"
    with closing(open_log(url)) as log:
        fill(log)
    return url


def test_the_groups_are_listed(farmwatch: Runner, url: str) -> None:
    """As a table, and as JSON with the names of the sites; verdicts are those of the live run."""
    shown = farmwatch("templates", "groups", "--log", url)
    assert shown.code == Exit.OK, shown.err
    assert shown.out.splitlines()[1].split("\t") == ["4", "3", "2", "1", "0", "0", "1", "https://a.example/1"]
    assert "2 templates of several sites, among 6 sites" in shown.err
    (line,) = farmwatch("templates", "groups", "--json", "--limit", "1", "--log", url).out.splitlines()
    assert json.loads(line)["names"] == ["a.example", "b.example", "x.c.example", "y.c.example"]


def test_the_console_shows_them(farmwatch: Runner, url: str, tmp_path: Path) -> None:
    """/templates.json is the list of the command; a site leads to those that share its template."""

    async def visit(browser: Browser) -> list[Answer]:
        await browser.open()
        asked = ("/templates.json", "/templates", "/site?site=z.example", "/templates?site=z.example")
        return [await browser.get(path) for path in (*asked, "/templates?site=alone.example")]

    twin, page, site, of_site, alone = browse(url, tmp_path, visit)
    rows = [json.loads(row) for row in farmwatch("templates", "groups", "--json", "--log", url).out.splitlines()]
    for row, shown in zip(rows, twin.json["groups"], strict=True):
        assert shown == {key: value for key, value in row.items() if key != "names"} | {"first": row["names"][0]}
    assert "https://a.example/1" in page.text
    assert '<a href="/templates?site=z.example">shared with 1 site</a>' in site.text
    assert '<a href="/site?site=a.example">' in of_site.text and "b.example" not in of_site.text
    assert "No template of several sites." in alone.text
