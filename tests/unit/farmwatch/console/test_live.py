"""Open pages learn that the log moved on; a browser that left, and the end of the console, end their answers."""

from __future__ import annotations

import asyncio
import threading
from pathlib import Path

import pytest
from aiohttp import ClientSession, web
from aiohttp.test_utils import TestClient, TestServer

from farmwatch.config.config import load
from farmwatch.config.opening import opened
from farmwatch.console.live import PATH, events
from farmwatch.console.read_model import ReadModel
from stream.log.errors import LogUnavailable
from tests.support.front_door import PARTITIONS
from tests.support.web.console_browser import console_of


def test_an_event_comes_for_each_change_and_the_end_ends_it() -> None:
    """No event without a change; after one there is; the answer ends with the console."""
    version, stopped = [1], threading.Event()

    async def visit() -> list[bytes]:
        app = web.Application()
        app.router.add_get(PATH, events(lambda: version[0], stopped))
        lines = []
        async with TestClient(TestServer(app)) as client, client.get(PATH) as answer:
            assert answer.headers["Content-Type"] == "text/event-stream" and "Content-Security-Policy" in answer.headers
            lines.append(await answer.content.readline())
            version[0] = 7
            while not (line := await answer.content.readline()).startswith(b"data"):
                pass
            stopped.set()
            lines += [line, await answer.content.read()]
        return lines

    retry, data, rest = asyncio.run(visit())
    assert (retry, data, rest) == (b"retry: 3000\n", b"data: 7\n", b"\n")


def test_a_browser_that_leaves_ends_its_answer() -> None:
    """The handler returns once the browser is gone, without an error."""
    version, stopped, ended = [1], threading.Event(), threading.Event()
    stream = events(lambda: version[0], stopped)

    async def followed(request: web.Request) -> web.StreamResponse:
        answer = await stream(request)
        ended.set()
        return answer

    async def visit() -> None:
        app = web.Application()
        app.router.add_get(PATH, followed)
        runner = web.AppRunner(app)  # as the console's own; a TestServer cancels handlers
        await runner.setup()
        site = web.TCPSite(runner, "127.0.0.1", 0)
        await site.start()
        async with ClientSession() as client, client.get(f"http://127.0.0.1:{runner.addresses[0][1]}{PATH}") as answer:
            await answer.content.readline()
        while not ended.is_set():
            version[0] += 1
            await asyncio.sleep(0.05)
        await runner.cleanup()

    asyncio.run(visit())


def test_pages_learn_that_the_log_is_back(finished: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The version changes once, so that a page that says that the log is away is shown again."""
    config = load(flags=[f"log.url={finished}", f"log.partitions={PARTITIONS}"], environment={}).config
    stop, outcomes = threading.Event(), iter([None, LogUnavailable("away"), LogUnavailable("away"), None])
    versions = []
    with opened(config) as log:
        console, _ = console_of(log, config, tmp_path, 0)

        def follow(*_: object) -> bool:
            versions.append(console.version())
            try:
                if error := next(outcomes):
                    raise error
            except StopIteration:
                stop.set()
            return False

        monkeypatch.setattr(ReadModel, "follow", follow)
        console.follow(stop, every_s=0)
    assert [version - versions[1] for version in versions[1:]] == [0, 0, 0, 1]
