"""Each page of the console, found by its links: readable for all, on a wide and a narrow screen, light and dark."""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal, TypeVar
from urllib.parse import parse_qs, quote, urlsplit

import pytest
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Page, expect

from tests.browser.chromium import Tab
from tests.browser.conftest import OpenTab
from tests.browser.served import ServedConsole

pytestmark = [pytest.mark.slow, pytest.mark.xdist_group("browser")]

Found = TypeVar("Found")
# The size and the colours of a screen matter to few rules
_SCREENS: tuple[tuple[int, Literal["light", "dark"], list[str] | None], ...] = (
    (1280, "light", None),
    (400, "dark", ["color-contrast", "scrollable-region-focusable", "target-size"]),
)


def walk(tab: Tab, look: Callable[[Page], Found]) -> dict[str, Found]:
    """What a look finds on each page to which links lead from the start page; one of those that differ in values."""
    addresses, kinds, found = ["/answer"], {("/answer",)}, {}
    for path in addresses:
        page = tab.open(path)
        for href in page.eval_on_selector_all("a[href]", "links => links.map(a => a.href)"):
            assert href.startswith(f"{tab.url}/"), f"{path} leads to {href}"
            address = href.removeprefix(tab.url)
            parts = urlsplit(address)
            kind = (parts.path, *sorted(parse_qs(parts.query)))
            if kind not in kinds and not parts.path.endswith(".json"):
                addresses.append(address)
                kinds.add(kind)
        found[path] = look(page)
    return found


def serious(page: Page, rules: list[str] | None = None) -> list[str]:
    """The findings of axe that bar people from the page, by default of all its rules."""
    options = {"resultTypes": ["violations"]} | ({"runOnly": rules} if rules else {})
    return [
        f"{found['id']}: {found['nodes'][0]['html'][:200]}"
        for found in Axe().run(page, options=options).response["violations"]
        if found["impact"] in ("serious", "critical")
    ]


def unfit(page: Page) -> list[str]:
    """What is wrong with the page on a wide light screen and on a narrow dark one: no style depends on both."""
    faults = []
    for width, scheme, rules in _SCREENS:
        page.set_viewport_size({"width": width, "height": 800})
        page.emulate_media(color_scheme=scheme)
        if page.evaluate("document.scrollingElement.scrollWidth") > width:
            faults.append(f"{width}: wider than the screen")
        faults += [f"{width} {scheme}: {finding}" for finding in serious(page, rules)]
    return faults


def page_with_verdict(tab: Tab, verdict: str) -> str:
    """The address of a page with this verdict, of the first site that has one."""
    for site in tab.page.request.get(f"{tab.url}/sites.json").json()["sites"]:
        found = tab.page.request.get(f"{tab.url}/site.json", params={"site": site["site"]}).json()
        for page in found["pages"]:
            if page["verdict"] == verdict:
                return f"/page?url={quote(page['url'], safe='')}"
    raise AssertionError(f"no page has the verdict {verdict}")


def test_links_lead_to_every_page_and_each_is_fit(demo: ServedConsole, open_tab: OpenTab) -> None:
    """0 serious or critical findings of axe, nothing wider than a telephone, no request elsewhere, no error."""
    tab = open_tab(demo)
    faults = walk(tab, unfit)
    assert demo.pages == {urlsplit(address).path for address in faults}
    more = [f"{page_with_verdict(tab, verdict)}&ruleset=c4" for verdict in ("article", "dropped")]
    faults |= {address: unfit(tab.open(address)) for address in [*more, "/sites?search=nothing"]}
    assert {address: found for address, found in faults.items() if found} == {}


def test_a_refusal_and_the_form_for_the_token_are_fit(demo: ServedConsole, open_tab: OpenTab) -> None:
    """They are pages like the others; the browser itself reports their status as an error."""
    for tab, path in ((open_tab(demo), "/site?site=no.example"), (open_tab(demo, known=False), "/")):
        assert unfit(tab.open(path)) == []
        assert all("Failed to load resource" in fault for fault in tab.faults)
        tab.faults.clear()


@pytest.mark.parametrize(("script", "plot"), [(True, ".uplot canvas"), (False, "svg.history")])
def test_the_history_is_shown(demo: ServedConsole, open_tab: OpenTab, script: bool, plot: str) -> None:
    """With script as a plot that can be read, without as a picture; both have a table."""
    page = open_tab(demo, java_script_enabled=script).page
    expect(page.locator(plot)).to_be_visible()
    page.get_by_text("of the last 30 days").click()
    expect(page.get_by_role("cell", name="50.0%")).to_be_visible()
