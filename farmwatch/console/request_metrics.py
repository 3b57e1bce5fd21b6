"""Counts and times the requests of the console."""

from __future__ import annotations

import time

from aiohttp import web
from aiohttp.typedefs import Middleware

from farmwatch.console.access import Handler
from farmwatch.console.live import PATH as EVENTS
from farmwatch.metrics import CONSOLE_REQUEST_DURATION_SECONDS
from stream.processing.metrics import Metrics


def timed(metrics: Metrics) -> Middleware:
    """A middleware that observes the time of each answer, by page and status; events last as long as their tab."""

    @web.middleware
    async def measure(request: web.Request, handler: Handler) -> web.StreamResponse:
        started, status = time.monotonic(), "none"  # at the end of the console
        try:
            answer = await handler(request)
            status = str(answer.status)
            return answer
        except Exception:
            status = "500"
            raise
        finally:
            resource = request.match_info.route.resource
            page = resource.canonical if isinstance(resource, web.PlainResource) else "other"  # a page has one address
            if page != EVENTS:
                spent_s = time.monotonic() - started
                metrics.observe(CONSOLE_REQUEST_DURATION_SECONDS, spent_s, page=page, status=status)

    return measure
