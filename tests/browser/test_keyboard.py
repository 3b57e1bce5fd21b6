"""The console without a mouse."""

from __future__ import annotations

import pytest
from playwright.sync_api import Page, expect

from tests.browser.conftest import OpenTab
from tests.browser.served import ServedConsole
from tests.browser.test_every_page import COUNT_STOPS
from tests.support.web.console_browser import TOKEN

pytestmark = [pytest.mark.slow, pytest.mark.xdist_group("browser")]


def focus(page: Page, name: str) -> None:
    """Press Tab until the field of this name has the focus."""
    for _ in range(page.evaluate(COUNT_STOPS)):
        page.keyboard.press("Tab")
        if page.evaluate("document.activeElement.name") == name:
            return
    raise AssertionError(f"{page.url}: Tab does not reach {name}")


def test_forms_are_sent_by_enter(small: ServedConsole, open_tab: OpenTab) -> None:
    """The token, a search, a pause and its end, and an exclusion, by Tab, letters and Enter alone."""
    tab = open_tab(small, known=False)
    page = tab.open()
    tab.faults.clear()  # the browser reports the status 401
    for path, name, text, said in (
        ("/", "token", TOKEN, "The share of LLM sites"),
        ("/sites", "search", "kept", "kept.example"),
        ("/crawl", "why", "a holiday", "a holiday"),
        ("/crawl", "why", "it is over", "Pause the crawl"),
        ("/crawl", "name", "keyboard.example", "keyboard.example"),
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
