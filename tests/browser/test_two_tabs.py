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


def put_site(console: ServedConsole, site: str) -> None:
    row = SiteState(id=site, site=site)
    with closing(open_log(console.log)) as log:
        log.append([Output(SITES, partition_of(site, PARTITIONS), site.encode(), encode(row))])


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
        expect(second.get_by_role("alert")).to_contain_text("another tab or command was quicker")


def test_with_script_a_tab_shows_new_records(small: ServedConsole, open_tab: OpenTab) -> None:
    """A site that is measured while the page is open is on it without a reload."""
    page = open_tab(small).open("/sites")
    put_site(small, "new.example")
    expect(page.get_by_role("link", name="new.example")).to_be_visible()


def test_a_tab_that_is_shown_again_shows_what_came_meanwhile(small: ServedConsole, open_tab: OpenTab) -> None:
    """A hidden tab keeps no connection, of which a browser has six to a host; later it is brought up to date."""
    page = open_tab(small).open("/sites")
    expect(page.locator("#live")).to_have_text("live")
    hide = "is => { Object.defineProperty(document, 'hidden', {value: is, configurable: true});"
    hide += "document.dispatchEvent(new Event('visibilitychange')); return source.readyState; }"
    assert page.evaluate(hide, True) == 2  # closed
    put_site(small, "later.example")
    page.evaluate(hide, False)
    expect(page.get_by_role("link", name="later.example")).to_be_visible()


def test_what_was_typed_stays_while_the_page_changes(small: ServedConsole, open_tab: OpenTab) -> None:
    """Also where the field lost the focus; once it is empty again, the page is renewed."""
    page, other = open_tab(small).open("/crawl"), open_tab(small).open("/crawl")
    field = page.get_by_label("Host, domain")
    field.fill("typed.example")
    page.get_by_role("heading", name="Crawl").click()
    other.get_by_label("Host, domain").fill("no.example")
    other.get_by_role("button", name="Exclude", exact=True).click()
    expect(other.get_by_role("rowheader", name="no.example")).to_be_visible()
    page.evaluate("source.onmessage(new MessageEvent('message', {data: '0'}))")
    expect(field).to_have_value("typed.example")
    field.fill("")
    field.blur()
    page.evaluate("source.onmessage(new MessageEvent('message', {data: '0'}))")
    expect(page.get_by_role("rowheader", name="no.example")).to_be_visible()


def test_the_focus_stays_while_the_page_changes(small: ServedConsole, open_tab: OpenTab) -> None:
    """The second of two links with one address and a folded part have it again in the new main part."""
    page = open_tab(small).open("/sites")
    changed = """() => {
        const main = document.querySelector("main");
        main.innerHTML = "<a href=/x>1</a><a href=/x id=second>2</a><details><summary id=folded>3</summary></details>";
    }"""
    page.evaluate(changed)
    for stop in ("second", "folded"):
        page.locator(f"#{stop}").focus()
        page.evaluate("replaceMain(document.querySelector('main').cloneNode(true))")
        assert page.evaluate("document.activeElement.id") == stop


def test_letters_are_settled_once(small: ServedConsole, open_tab: OpenTab) -> None:
    """Both drop the same letters: one page says how many, the other that none was left."""
    put_letter(small.log, KeyError("x"))
    pages = [open_tab(small, java_script_enabled=False).open("/letters") for _ in range(2)]
    for page, said in zip(pages, ("1 letter settled", "0 letters settled"), strict=True):
        page.get_by_role("button", name="Drop").click()
        expect(page.locator("main").get_by_role("status")).to_contain_text(said)
