"""Tells open pages that the log moved on: server-sent events (https://html.spec.whatwg.org/#server-sent-events)."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from contextlib import suppress

from aiohttp import web

from farmwatch.console.access import Handler, secured

PATH = "/events"
_LOOK_S = 0.5
_EVERY_S = 2.0  # the shortest time between two events
_ALIVE_S = 15.0  # a line that says nothing, so that a browser that left is noticed


def events(version: Callable[[], int], stopped: threading.Event) -> Handler:
    """A handler whose answer has an event for each new `version`, until `stopped` is set or the browser leaves."""

    async def stream(request: web.Request) -> web.StreamResponse:
        answer = secured(web.StreamResponse(headers={"Content-Type": "text/event-stream"}))
        since = request.query.get("since", "")[:18]  # what the page shows
        told, quiet_s = int(since) if since.isdecimal() else version(), _EVERY_S
        with suppress(ConnectionResetError):  # the browser left
            await answer.prepare(request)
            await answer.write(b"retry: 3000\n\n")
            while not stopped.is_set():
                await asyncio.sleep(_LOOK_S)
                quiet_s += _LOOK_S
                now = version()
                if now != told and quiet_s >= _EVERY_S:
                    await answer.write(f"data: {now}\n\n".encode())
                    told, quiet_s = now, 0.0
                elif quiet_s >= _ALIVE_S:
                    await answer.write(b":\n\n")
                    quiet_s = 0.0
        return answer

    return stream
