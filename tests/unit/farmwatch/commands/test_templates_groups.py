"""`farmwatch templates groups`, and the page of the console that shows the same."""

from __future__ import annotations

import json
from contextlib import closing
from pathlib import Path

import pytest

from stream.opening import open_log
from stream.text.user_errors import Exit
from tests.support.front_door import Runner
from tests.support.logs.shared_templates import fill
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
    assert "2 templates of several sites, among 6 sites with a template; --json has their names" in shown.err
    (line,) = farmwatch("templates", "groups", "--json", "--limit", "1", "--log", url).out.splitlines()
    assert json.loads(line)["names"] == ["a.example", "b.example", "x.c.example", "y.c.example"]


def test_the_console_shows_them(farmwatch: Runner, url: str, tmp_path: Path) -> None:
    """/templates.json is the list of the command; a site leads to those that share its template."""

    async def visit(browser: Browser) -> list[Answer]:
        asked = ("/templates.json", "/templates", "/site?site=z.example", "/site.json?site=a.example")
        return [await browser.get(path) for path in (*asked, "/templates?id=2", "/templates?id=3")]

    twin, page, site, twin_of_site, of_template, unknown = browse(url, tmp_path, visit)
    rows = farmwatch("templates", "groups", "--json", "--log", url).lines
    assert twin.json["groups"] == [{key: value for key, value in row.items() if key != "names"} for row in rows]
    assert "https://a.example/1" in page.text and '<a href="/templates?id=2">2</a>' in page.text
    assert '<a href="/templates?id=2">shared with 1 site</a>' in site.text
    assert twin_of_site.json["template"] == {"id": "1", "other_sites": 3}
    assert '<a href="/site?site=a.example">' in of_template.text and "b.example" not in of_template.text
    assert "This template leads no group now" in unknown.text
