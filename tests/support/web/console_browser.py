"""A browser for tests of the console: requests to a running application, with the cookie or without."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from aiohttp import web
from aiohttp.test_utils import TestClient, TestServer, unused_port

from farmwatch.config.config import Config, load
from farmwatch.config.opening import opened
from farmwatch.console.access import Access
from farmwatch.console.app import application
from farmwatch.console.read_model import ReadModel
from farmwatch.console.replays import Replays
from farmwatch.console.views import Console
from stream.log.contract import Log
from stream.schema.forgotten import Forgotten
from tests.support.front_door import PARTITIONS

TOKEN = "a token for tests"


class Answer(NamedTuple):
    """What a browser gets."""

    status: int
    text: str
    headers: Mapping[str, str]
    json: Any = None


class Browser:
    """Asks one console. `known`: with the cookie that the token gives."""

    def __init__(self, client: TestClient[web.Request, web.Application], host: str) -> None:
        self._client, self.host = client, host
        self.paths = {route.resource.canonical for route in client.app.router.routes() if route.resource}

    async def open(self, token: str = TOKEN) -> Answer:
        """Follow the address with the token; the cookie is kept."""
        return await self.get("/", {"token": token})

    def keep(self, name: str, value: str) -> None:
        """Keep a cookie of this host."""
        self._client.session.cookie_jar.update_cookies({name: value}, self._client.make_url("/"))

    async def get(
        self, path: str, query: Mapping[str, str] | None = None, headers: Mapping[str, str] | None = None
    ) -> Answer:
        """The answer, once the slow work for it is done."""
        while True:
            async with self._client.get(path, params=query, headers=headers, allow_redirects=False) as got:
                answer = await _answer(got)
            if answer.status != 202:
                return answer
            await asyncio.sleep(0.05)

    async def form(self, page: str, **fields: str) -> dict[str, str]:
        """The fields of a form of a page, with the one that shows that it is the console's own."""
        text = (await self.get(page)).text
        return {"form_token": text.partition('name="form_token" value="')[2].partition('"')[0], **fields}

    async def post(
        self, path: str, form: Mapping[str, str] | bytes, headers: Mapping[str, str] | None = None
    ) -> Answer:
        """Send a form, by default from a page of the console."""
        sent = {"Origin": f"http://{self.host}"} if headers is None else headers
        async with self._client.post(path, data=form, headers=sent, allow_redirects=False) as got:
            return await _answer(got)


Visit = Callable[[Browser], Awaitable[Any]]


async def _answer(got: Any) -> Answer:
    text = await got.text()
    return Answer(got.status, text, dict(got.headers), await got.json() if got.content_type.endswith("json") else None)


def console_of(
    log: Log, config: Config, folder: Path, port: int, hosts: Sequence[str] = (), replays: Replays | None = None
) -> tuple[Console, web.Application]:
    """The console of a log on this port, its read model in `folder` and up to date, and its application."""
    model = ReadModel(folder / "console.sqlite")
    model.follow(log, Forgotten(log))
    console = Console(log, config, model, replays=replays)
    return console, application(console, Access(TOKEN, "127.0.0.1", port, hosts))


def browse(
    url: str,
    folder: Path,
    visit: Visit,
    hosts: Sequence[str] = (),
    config: Config | None = None,
    replays: Replays | None = None,
    *,
    known: bool = True,
) -> Any:
    """Serve the console of the log at `url`, or of a configuration, and return what `visit(browser)` does.

    `known`: the browser has the cookie from the begin on.
    """
    config = config or load(flags=[f"log.url={url}", f"log.partitions={PARTITIONS}"], environment={}).config

    async def served() -> Any:
        with opened(config) as log:
            port = unused_port()
            server = TestServer(console_of(log, config, folder, port, hosts, replays)[1], port=port)
            async with TestClient(server) as client:
                browser = Browser(client, f"127.0.0.1:{port}")
                if known:
                    await browser.open()
                return await visit(browser)

    return asyncio.run(served())


def answer_with(url: str, folder: Path, part: str) -> Any:
    """A part of /answer.json that is found beside the share, once it is there."""

    async def visit(browser: Browser) -> Any:
        while not (found := (await browser.get("/answer.json")).json[part]):
            await asyncio.sleep(0.05)
        return found

    return browse(url, folder, visit)


def visited(log: str, folder: Path, *paths: str, **query: str) -> list[Answer]:
    """The answers of these paths, with the cookie."""

    async def visit(browser: Browser) -> list[Answer]:
        return [await browser.get(path, query) for path in paths]

    answers: list[Answer] = browse(log, folder, visit)
    return answers
