"""Debian's Chromium, as installed by tests/browser/install.sh, and what a page in it did."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest
from playwright.sync_api import Browser, Dialog, Page, expect, sync_playwright

from tests.support.web.console_browser import TOKEN

REQUIRED = "FARMWATCH_REQUIRE_CHROMIUM"
_ONLY_HERE = "--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE 127.0.0.1"  # a request elsewhere is seen, and fails
_PATIENCE_MS = 60_000


def program() -> str:
    """The browser; skips if it is missing, fails if it is required (as in CI)."""
    found = shutil.which("chromium")
    if found is None:
        said = "chromium is not here: tests/browser/install.sh installs it on Debian"
        if os.environ.get(REQUIRED):
            pytest.fail(said)
        pytest.skip(said)
    return found


@contextmanager
def launched(path: str) -> Iterator[Browser]:
    """The running browser."""
    expect.set_options(timeout=_PATIENCE_MS)
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=path, args=[_ONLY_HERE])
        try:
            yield browser
        finally:
            browser.close()


class Tab:
    """A page of the console at `url`. It notes what no page of the console may do."""

    def __init__(self, page: Page, url: str) -> None:
        self.page, self.url = page, url
        self.faults: list[str] = []  # requests elsewhere, errors and dialogs
        page.on("request", lambda request: self._check(request.url))
        page.on(
            "console", lambda said: self.faults.append(f"{page.url}: {said.text}") if said.type == "error" else None
        )
        page.on("pageerror", lambda error: self.faults.append(f"{page.url}: {error}"))
        page.on("dialog", self._dismiss)

    def open(self, path: str = "/") -> Page:
        """Show the page at this path, with its result if the console works on it."""
        self.page.goto(self.url + path)
        if self.page.evaluate("document.querySelector('meta[http-equiv=refresh]') !== null"):
            expect(self.page.locator("meta[http-equiv=refresh]")).to_have_count(0)
        return self.page

    def _dismiss(self, dialog: Dialog) -> None:
        self.faults.append(f"{self.page.url}: a dialog: {dialog.message}")
        dialog.dismiss()

    def _check(self, url: str) -> None:
        if not url.startswith(f"{self.url}/"):
            self.faults.append(f"{self.page.url}: a request to {url}")


@contextmanager
def tab(browser: Browser, url: str, *, known: bool = True, **options: Any) -> Iterator[Tab]:
    """An empty page in a browser profile of its own; `known`: the token let the profile in."""
    with browser.new_context(**options) as profile:
        profile.set_default_timeout(_PATIENCE_MS)
        if known:
            profile.request.get(f"{url}/", params={"token": TOKEN}, max_redirects=0)
        yield Tab(profile.new_page(), url)
