"""Requests of the console are counted and timed by page and status."""

from __future__ import annotations

import asyncio

from aiohttp import web
from aiohttp.test_utils import TestClient, TestServer

from farmwatch.console.live import PATH as EVENTS
from farmwatch.console.serving import timed
from stream.processing.metrics import Metrics

_COUNT = "farmwatch_console_request_duration_seconds_count"


async def _site(request: web.Request) -> web.Response:
    if request.query.get("site") == "broken":
        raise RuntimeError("nobody foresaw this")
    return web.Response(status=404 if "site" in request.query else 200)


def _counted(*paths: str) -> dict[tuple[str, str], float]:
    """(page, status) -> requests, after these."""
    metrics = Metrics()

    async def visit() -> None:
        app = web.Application(middlewares=[timed(metrics)])
        app.router.add_get("/site", _site)
        app.router.add_get(EVENTS, _site)
        async with TestClient(TestServer(app)) as client:
            for path in paths:
                await (await client.get(path)).read()

    asyncio.run(visit())
    samples = [one for family in metrics.registry.collect() for one in family.samples if one.name == _COUNT]
    return {(one.labels["page"], one.labels["status"]): one.value for one in samples}


def test_requests_count_by_page_and_status() -> None:
    """A page has one label whatever its query; an error that nobody foresaw is 500. Events have no time."""
    found = _counted("/site", "/site?site=a.example", "/site?site=b.example", "/site?site=broken", EVENTS)
    assert found == {("/site", "200"): 1, ("/site", "404"): 2, ("/site", "500"): 1}


def test_unknown_addresses_share_a_label() -> None:
    """A stranger who guesses addresses makes no series."""
    found = _counted("/a", "/b.php", "/site/../c")
    assert {page for page, _ in found} == {"other"} and sum(found.values()) == 3
