"""The page of one dead letter: it says what `farmwatch dead show` says, and its forms settle this letter alone."""

from __future__ import annotations

import json
from contextlib import closing
from pathlib import Path

import pytest

from stream.log.contract import Message
from stream.opening import open_log
from stream.processing.dead_letters import dead_letter
from stream.schema.records import Hit, encode
from stream.schema.topics import HITS
from tests.support.front_door import SITE, Runner
from tests.support.web.console_browser import Answer, Browser, browse

_HOSTILE = "<script>alert(1)</script>\"'><img src=x onerror=alert(2)>{{7*7}}"


@pytest.fixture
def url(finished: str) -> str:
    """URL of a log with three letters of CRAWL; the record of the last is unreadable."""
    hit = encode(Hit(id="h", site=SITE, url=f"https://{SITE}/{_HOSTILE}", title=_HOSTILE + "x" * 2000))
    with closing(open_log(finished)) as log:
        for offset, value in enumerate((hit, hit, f"\0{_HOSTILE}".encode())):
            message = Message(HITS, 0, offset, _HOSTILE.encode(), value, {}, 0)
            log.append([dead_letter(message, "crawl", KeyError(_HOSTILE), 1)])
    return finished


def test_a_letter_is_shown_as_the_command_shows_it(farmwatch: Runner, url: str, tmp_path: Path) -> None:
    """The group leads to its newest letter; the twin is `dead show --json`; no byte of a record becomes markup."""

    async def visit(browser: Browser) -> list[Answer]:
        pages = [await browser.get("/letters")]
        for letter in ("0/1", "0/2"):
            pages += [await browser.get(path, {"id": letter}) for path in ("/letter", "/letter.json")]
        return pages

    groups, page, twin, unreadable, other = browse(url, tmp_path, visit)
    assert 'href="/letter?id=0/2"' in groups.text
    for letter, answer in (("0/1", twin), ("0/2", other)):
        assert answer.json == farmwatch("dead", "show", letter, "--json", "--log", url).json
    for shown in (page, unreadable):
        assert "&lt;script&gt;" in shown.text and "{{7*7}}" in shown.text
        assert "<script>alert" not in shown.text and "<img" not in shown.text
    assert "x" * 100 in page.text and "x" * 400 not in page.text


def test_a_letter_is_settled_alone(farmwatch: Runner, url: str, tmp_path: Path) -> None:
    """One letter is retried or dropped, and the others stay open. A second tab sees its state and no form."""

    async def visit(browser: Browser) -> list[Answer]:
        orders = (("0/0", "drop"), ("0/0", "retry"), ("0/1", "retry"), ("0/9", "drop"), ("1", "drop"))
        forms = [await browser.form("/letter?id=0/0", id=letter, order=order) for letter, order in orders]
        return [*[await browser.post("/letter", form) for form in forms], await browser.get("/letter?id=0/0")]

    dropped, late, retried, missing, wrong, after = browse(url, tmp_path, visit)
    assert (dropped.headers["Location"], retried.headers["Location"]) == ("/letter?id=0/0", "/letter?id=0/1")
    assert [answer.status for answer in (late, missing, wrong)] == [409, 404, 400] and "already dropped" in late.text
    assert "<form" not in after.text
    lines = farmwatch("dead", "list", "--each", "--json", "--log", url).out.splitlines()
    assert [one["state"] for one in map(json.loads, lines)] == ["dropped", "waiting", "open"]


def test_a_letter_that_is_not_there_is_said(url: str, tmp_path: Path) -> None:
    """An unknown place is 404; no place, or one beyond all numbers of the log, is 400."""

    async def visit(browser: Browser) -> list[int]:
        return [(await browser.get("/letter", {"id": text})).status for text in ("0/7", "99/0", "", "0/" + "9" * 5000)]

    assert browse(url, tmp_path, visit) == [404, 404, 400, 400]
