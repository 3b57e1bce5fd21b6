"""Each page of the console, found by its links: readable for all, on a wide and a narrow screen, light and dark."""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal, NamedTuple, TypeVar
from urllib.parse import parse_qs, quote, urlsplit

import pytest
from axe_playwright_python.base import AXE_SCRIPT
from playwright.sync_api import Browser, Page, expect

from tests.browser.chromium import Tab, tab
from tests.browser.conftest import OpenTab
from tests.browser.served import ServedConsole

pytestmark = [pytest.mark.slow, pytest.mark.xdist_group("browser")]

Found = TypeVar("Found")
# The size and the colours of a screen matter to few rules
_SCREENS: tuple[tuple[int, Literal["light", "dark"], list[str] | None], ...] = (
    (1280, "light", None),
    (390, "dark", ["color-contrast", "scrollable-region-focusable", "target-size"]),
)
_OFF_SCREEN = """() => [...document.querySelectorAll("button")].filter(button => button.checkVisibility()
    && button.getBoundingClientRect().right > innerWidth).map(button => button.textContent)"""
_HOLD = """async () => {
    source.close();
    while (fetching) await new Promise(done => setTimeout(done, 20));
}"""
_DROP_ALIKE = """() => {
    const seen = new Set();
    for (const row of document.querySelectorAll("tr, li")) {
        const form = [row.parentNode, ...row.querySelectorAll("*")].map(e => e.tagName + e.className).join();
        if (seen.has(form)) row.remove();
        seen.add(form);
    }
}"""
_STOPS = """() => {
    const kinds = "a[href], button, input:not([type=hidden]), select, textarea, summary, [tabindex='0']";
    return [...document.querySelectorAll(kinds)].filter(e => e.checkVisibility() && !e.disabled);
}"""
COUNT_STOPS = f"({_STOPS})().length"
_STOP = f"""() => {{
    const here = document.activeElement, style = getComputedStyle(here);
    return [({_STOPS})().indexOf(here), style.outlineStyle !== "none" && parseFloat(style.outlineWidth) > 0];
}}"""


class Look(NamedTuple):
    """What is unfit on a page, and for each press of Tab: the place of the stop, and whether it has an outline."""

    faults: list[str]
    stops: list[list[int | bool]]


@pytest.fixture(scope="module")
def looks(chromium: Browser, demo: ServedConsole) -> dict[str, Look]:
    """A look at each page to which links lead, and at one of either verdict, and with segments, by another ruleset."""
    with tab(chromium, demo.url) as shown:
        found = walk(shown, look)
        more = [f"{page_with_verdict(shown, verdict)}&ruleset=c4" for verdict in ("article", "dropped")]
        more.append(f"/page?url={quote('http://happytailguide.example/', safe='')}&ruleset=whole-web")
        found |= {path: look(shown.open(path)) for path in [*more, "/sites?search=nothing"] if path not in found}
        assert shown.faults == []
    return found


def walk(shown: Tab, look: Callable[[Page], Found]) -> dict[str, Found]:
    """What a look finds on each page to which links lead from the start page; one of those that differ in values."""
    addresses, kinds, found = ["/answer"], {("/answer",)}, {}
    for path in addresses:
        page = shown.open(path)
        own = (
            "a[href]:not([download]):not([rel='noopener noreferrer nofollow'])"  # of the others, only the address shows
        )
        for href in page.eval_on_selector_all(own, "links => links.map(a => a.href)"):
            assert href.startswith(f"{shown.url}/"), f"{path} leads to {href}"
            address = href.removeprefix(shown.url)
            parts = urlsplit(address)
            kind = (parts.path, *sorted(parse_qs(parts.query)))
            if kind not in kinds and not parts.path.endswith(".json"):
                addresses.append(address)
                kinds.add(kind)
        found[path] = look(page)
    return found


def look(page: Page) -> Look:
    """What the page is like while it stays as it is."""
    page.evaluate(_HOLD)
    page.evaluate(f"window.stops = []; document.addEventListener('focusin', () => window.stops.push(({_STOP})()))")
    for _ in range(page.evaluate(COUNT_STOPS)):
        page.keyboard.press("Tab")
    return Look(stops=page.evaluate("window.stops"), faults=unfit(page))


def unfit(page: Page) -> list[str]:
    """What is wrong with the page on a wide light screen and on a narrow dark one: no style depends on both.

    What axe finds serious or critical: of rows that are alike in the first alone.
    """
    faults = []
    for width, scheme, _ in _SCREENS:
        show(page, width, scheme)
        if page.evaluate("document.scrollingElement.scrollWidth") > width:
            faults.append(f"{width}: wider than the screen")
        faults += [f"{width}: off the screen: {button}" for button in page.evaluate(_OFF_SCREEN)]
    page.evaluate(_DROP_ALIKE)
    page.evaluate(AXE_SCRIPT)
    for width, scheme, rules in _SCREENS:
        show(page, width, scheme)
        options = {"resultTypes": ["violations"]} | ({"runOnly": rules} if rules else {})
        violations = page.evaluate("async options => (await axe.run(options)).violations", options)
        faults += [
            f"{width} {scheme}: {found['id']}: {found['nodes'][0]['html'][:200]}"
            for found in violations
            if found["impact"] in ("serious", "critical")
        ]
    return faults


def show(page: Page, width: int, scheme: Literal["light", "dark"]) -> None:
    page.set_viewport_size({"width": width, "height": 800})
    page.emulate_media(color_scheme=scheme)


def page_with_verdict(shown: Tab, verdict: str) -> str:
    """The address of a page with this verdict, of the first site that has one."""
    for site in shown.page.request.get(f"{shown.url}/sites.json").json()["sites"]:
        found = shown.page.request.get(f"{shown.url}/site.json", params={"site": site["site"]}).json()
        for page in found["pages"]:
            if page["result"] == verdict:
                return f"/page?url={quote(page['url'], safe='')}"
    raise AssertionError(f"no page has the verdict {verdict}")


def test_links_lead_to_every_page_and_each_is_fit(demo: ServedConsole, looks: dict[str, Look]) -> None:
    """0 serious or critical findings of axe, nothing wider than a telephone, no request elsewhere, no error."""
    assert demo.pages == {urlsplit(path).path for path in looks}
    assert {path: look.faults for path, look in looks.items() if look.faults} == {}


def test_tab_reaches_all_in_order_and_shows_where_it_is(looks: dict[str, Look]) -> None:
    """On each page: every link, field and button once, in the order of the page, each with an outline."""
    for path, (_, stops) in looks.items():
        assert len(stops) > 7 and stops == [[number, True] for number in range(len(stops))], path


def test_a_refusal_and_the_form_for_the_token_are_fit(demo: ServedConsole, open_tab: OpenTab) -> None:
    """They are pages like the others; the browser itself reports their status as an error."""
    for shown, path in ((open_tab(demo), "/site?site=no.example"), (open_tab(demo, known=False), "/")):
        assert unfit(shown.open(path)) == []
        assert all("Failed to load resource" in fault for fault in shown.faults)
        shown.faults.clear()


def test_the_history_is_shown(demo: ServedConsole, open_tab: OpenTab) -> None:
    """As a picture that names its numbers, without script, and as a table."""
    page = open_tab(demo, java_script_enabled=False).open()
    expect(page.get_by_role("img", name="Share of LLM sites over time")).to_be_visible()
    page.get_by_text("of the last 30 days").click()
    expect(page.get_by_role("cell", name="50.0%", exact=True)).to_be_visible()
