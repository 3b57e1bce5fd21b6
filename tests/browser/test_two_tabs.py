"""Two people at one console: the second learns that the first was quicker."""

from __future__ import annotations

from contextlib import closing

import pytest
from playwright.sync_api import expect

from stream.log.contract import Output, partition_of
from stream.opening import open_log
from stream.schema.records import SiteState, encode
from stream.schema.topics import SITES
from tests.browser.conftest import OpenTab
from tests.browser.served import ServedConsole, put_letter
from tests.support.front_door import PARTITIONS

pytestmark = [pytest.mark.slow, pytest.mark.xdist_group("browser")]


def test_of_two_tabs_the_second_is_told(small: ServedConsole, open_tab: OpenTab) -> None:
    """Both pause and resume the crawl, exclude a host and end that: each time one page says who was quicker."""
    pages = first, second = [open_tab(small, java_script_enabled=False).page for _ in range(2)]
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


def test_with_script_a_tab_shows_new_records(small: ServedConsole, open_tab: OpenTab) -> None:
    """A site that is measured while the page is open is on it without a reload."""
    page = open_tab(small).open("/sites")
    row = SiteState(id="new.example", site="new.example")
    with closing(open_log(small.log)) as log:
        log.append([Output(SITES, partition_of(row.site, PARTITIONS), row.site.encode(), encode(row))])
    expect(page.get_by_role("link", name="new.example")).to_be_visible()


def test_letters_are_settled_once(small: ServedConsole, open_tab: OpenTab) -> None:
    """Both drop the same letters: one page says how many, the other that none was left."""
    put_letter(small.log, KeyError("x"))
    pages = [open_tab(small, java_script_enabled=False).open("/letters") for _ in range(2)]
    for page, said in zip(pages, ("1 letter settled", "0 letters settled"), strict=True):
        page.get_by_role("button", name="Drop").click()
        expect(page.locator("main").get_by_role("status")).to_contain_text(said)
