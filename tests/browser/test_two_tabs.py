"""Two people at one console: the second learns that the first was quicker."""

from __future__ import annotations

from contextlib import closing

import pytest
from playwright.sync_api import expect

from stream.log.contract import Message
from stream.opening import open_log
from stream.processing.dead_letters import dead_letter
from stream.schema.topics import HITS
from tests.browser.conftest import OpenTab
from tests.browser.served import ServedConsole
from tests.support.front_door import SITE

pytestmark = [pytest.mark.slow, pytest.mark.xdist_group("browser")]


@pytest.mark.parametrize("script", [True, False], ids=["script", "no script"])
def test_of_two_tabs_the_second_is_told(small: ServedConsole, open_tab: OpenTab, script: bool) -> None:
    """Both pause and resume the crawl, exclude a host and end that: each time one page says who was quicker."""
    first, second = (open_tab(small, java_script_enabled=script).page for _ in range(2))
    pages = (first, second)
    for button in ("Pause the crawl", "Resume the crawl", "Exclude", "Visit no.example again"):
        for page in pages:
            page.goto(f"{small.url}/crawl")
            if button == "Exclude":
                page.get_by_label("Host, domain").fill("no.example")
        for page in pages:
            page.get_by_role("button", name=button, exact=True).click()
            page.wait_for_load_state()
        expect(first.get_by_role("alert")).to_have_count(0)
        expect(second.get_by_role("alert")).to_contain_text("somebody else was quicker")


def test_letters_are_settled_once(small: ServedConsole, open_tab: OpenTab) -> None:
    """Both drop the same letters: one page says how many, the other that none was left."""
    with closing(open_log(small.log)) as log:
        log.append([dead_letter(Message(HITS, 0, 0, SITE.encode(), b"{", {}, 0), "crawl", KeyError("x"), 1)])
    pages = [open_tab(small).open("/letters") for _ in range(2)]
    for page, said in zip(pages, ("1 letter settled", "0 letters settled"), strict=True):
        page.get_by_role("button", name="Drop").click()
        expect(page.get_by_role("status")).to_contain_text(said)
