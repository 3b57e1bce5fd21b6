"""The console without a mouse."""

from __future__ import annotations

import pytest
from playwright.sync_api import Page, expect

from tests.browser.conftest import OpenTab
from tests.browser.served import ServedConsole
from tests.browser.test_every_page import walk
from tests.support.web.console_browser import TOKEN

pytestmark = [pytest.mark.slow, pytest.mark.xdist_group("browser")]

_STOPS = """() => {
    const kinds = "a[href], button, input:not([type=hidden]), select, textarea, summary, [tabindex='0']";
    return [...document.querySelectorAll(kinds)].filter(e => e.checkVisibility() && !e.disabled);
}"""
_COUNT_STOPS = f"({_STOPS})().length"
_STOP = f"""() => {{
    const here = document.activeElement, style = getComputedStyle(here);
    return [({_STOPS})().indexOf(here), style.outlineStyle !== "none" && parseFloat(style.outlineWidth) > 0];
}}"""


def focus(page: Page, name: str) -> None:
    """Press Tab until the field of this name has the focus."""
    for _ in range(page.evaluate(_COUNT_STOPS)):
        page.keyboard.press("Tab")
        if page.evaluate("document.activeElement.name") == name:
            return
    raise AssertionError(f"{page.url}: Tab does not reach {name}")


def stops_of(page: Page) -> tuple[int, list[list[int | bool]]]:
    """The number of stops, and for as many presses of Tab: the place of the stop, and whether it has an outline."""
    page.evaluate(f"window.stops = []; document.addEventListener('focusin', () => window.stops.push(({_STOP})()))")
    count: int = page.evaluate(_COUNT_STOPS)
    for _ in range(count):
        page.keyboard.press("Tab")
    return count, page.evaluate("window.stops")


def test_tab_reaches_all_in_order_and_shows_where_it_is(demo: ServedConsole, open_tab: OpenTab) -> None:
    """On each page: every link, field and button once, in the order of the page, each with an outline."""
    for path, (count, stops) in walk(open_tab(demo), stops_of).items():
        assert stops == [[number, True] for number in range(count)], path


def test_forms_are_sent_by_enter(small: ServedConsole, open_tab: OpenTab) -> None:
    """The token, a search, a pause and an exclusion, by Tab, letters and Enter alone."""
    tab = open_tab(small, known=False)
    page = tab.page
    tab.faults.clear()  # the browser reports the status 401
    for path, name, text, said in (
        ("/", "token", TOKEN, "The share of LLM sites"),
        ("/sites", "search", "kept", "kept.example"),
        ("/crawl", "why", "a holiday", "a holiday"),
        ("/crawl", "name", "no.example", "Visit again"),
    ):
        if path != "/":
            tab.open(path)
        focus(page, name)
        page.keyboard.type(text)
        page.keyboard.press("Enter")
        expect(page.locator("main")).to_contain_text(said)


def test_a_key_that_is_held_down_labels_one_page(demo: ServedConsole, open_tab: OpenTab) -> None:
    """The repeated presses that a browser sends of it do nothing."""
    page = open_tab(demo).open("/label?a=live&b=stricter")
    presses = """() => {
        let clicks = 0;
        document.addEventListener("click", event => { event.preventDefault(); clicks++; });
        for (const repeat of [false, true, true])
            document.body.dispatchEvent(new KeyboardEvent("keydown", {key: "h", repeat, bubbles: true}));
        return clicks;
    }"""
    assert page.evaluate(presses) == 1
