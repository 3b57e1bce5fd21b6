"""The way of somebody who knows nothing but the start page."""

from __future__ import annotations

import re
from urllib.parse import quote

import pytest
from playwright.sync_api import expect

from tests.browser.conftest import OpenTab
from tests.browser.served import ServedConsole
from tests.support.web.console_browser import TOKEN

pytestmark = [pytest.mark.slow, pytest.mark.xdist_group("browser")]


def test_links_lead_from_the_share_to_its_reasons(demo: ServedConsole, open_tab: OpenTab) -> None:
    """From the printed address, without script: the share, a site's verdict and pages, why one was dropped, replays."""
    page = open_tab(demo, known=False, java_script_enabled=False).page
    page.goto(f"{demo.url}/?token={quote(TOKEN)}")
    main = page.locator("main")
    expect(main).to_contain_text("of 22 sites with scored articles 95% interval")
    page.get_by_role("link", name="decided llm").click()
    main.get_by_role("rowheader").first.get_by_role("link").click()
    expect(main).to_contain_text(re.compile("scored articles (are )?flagged"))
    dropped = page.get_by_role("cell", name="dropped", exact=True)
    page.get_by_role("row").filter(has=dropped).first.get_by_role("link").first.click()
    expect(main).to_contain_text("first by")
    expect(page.get_by_role("row").filter(has_text="fail").first).to_be_visible()
    page.get_by_label("Also judge it by").select_option("c4")
    page.get_by_role("button", name="Show").click()
    expect(page.get_by_role("table").filter(has_text="Ruleset c4")).to_be_visible()
    page.get_by_role("link", name="Rules and runs").click()
    page.get_by_role("row").filter(has_text="stricter").get_by_role("link", name="compare with live").click()
    expect(main).to_contain_text("Shares, paired by site")
    expect(main).to_contain_text("By the rule that failed first")
