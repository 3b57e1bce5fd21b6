"""One Chromium for all tests, and the console of the demo's log. A tab that did what it may not fails its test."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from typing import Any

import pytest
from playwright.sync_api import Browser

from farmwatch.config.config import load
from tests.browser.chromium import Tab, launched, program, tab
from tests.browser.served import ServedConsole, prepared, served
from tests.support.front_door import PARTITIONS, finished_log
from tests.support.processes.demo_run import demo_run

OpenTab = Callable[..., Tab]


@pytest.fixture(scope="package")  # not longer: while Playwright runs, its thread can run no other event loop
def chromium() -> Iterator[Browser]:
    with launched(program()) as browser:
        yield browser


@pytest.fixture(scope="package")
def demo(chromium: Browser, tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServedConsole]:
    """The console of the demo's log, with a history, a dead letter, an exclusion; tests do not change it."""
    folder = tmp_path_factory.mktemp("demo")
    demo_run(tmp_path_factory, folder / "kept")
    with served(prepared(folder / "kept"), folder) as console:
        yield console


@pytest.fixture(scope="package")
def small(chromium: Browser, tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServedConsole]:
    """The console of `finished_log`, for tests that change it: each in its own place, or back at its end."""
    folder = tmp_path_factory.mktemp("small")
    flags = [f"log.url={finished_log(folder / 'log')}", f"log.partitions={PARTITIONS}"]
    with served(load(flags=flags, environment={}).config, folder) as console:
        yield console


@pytest.fixture
def open_tab(chromium: Browser) -> Iterator[OpenTab]:
    """Opens a tab of a console, see `tab`."""
    with ExitStack() as stack:
        tabs: list[Tab] = []

        def opened(console: ServedConsole, **options: Any) -> Tab:
            tabs.append(stack.enter_context(tab(chromium, console.url, **options)))
            return tabs[-1]

        yield opened
        assert [fault for one in tabs for fault in one.faults] == []
