"""Serves the console in this process: alone, or as a role of `farmwatch up`."""

from __future__ import annotations

import asyncio
import logging
import math
import os
import sqlite3
import sys
import threading
import time
from collections.abc import Sequence
from contextlib import closing
from functools import partial

from aiohttp import web
from aiohttp.http import HttpProcessingError
from aiohttp.typedefs import Middleware

from farmwatch.config.config import Config
from farmwatch.config.member_names import names_folder
from farmwatch.config.opening import opened
from farmwatch.console.access import KEPT, Access, Handler, browsed_host, kept_token
from farmwatch.console.app import application
from farmwatch.console.live import PATH as EVENTS
from farmwatch.console.read_model import ReadModel
from farmwatch.console.replays import Replays
from farmwatch.console.views import Console
from farmwatch.daemon.endpoints import listen
from farmwatch.daemon.roles import exposed
from farmwatch.metrics import ALL, CONSOLE_BEHIND_RECORDS, CONSOLE_REQUEST_DURATION_SECONDS
from farmwatch.terminal.messages import message
from farmwatch.upkeep.console_files import INDEX
from stream.log.contract import Log
from stream.processing.health import Watchdog
from stream.processing.metrics import Metrics
from stream.schema.roles import Role
from stream.text.user_errors import FarmwatchError

_POLL_S = 0.2
_END_S = 5.0  # most time that open requests, and the read model, may each delay the end
_IDLE_S = 75.0  # of a connection: longer than browsers and proxies wait before they use it again
_LINGER_S = 1.0  # for which the rest of a refused request is read, so that the client gets the answer
_SILENT_S = 30.0  # after which a loop that does not tick is unhealthy
_NICE = 10  # below the stages, which take the processor first


def run_console(config: Config, stop: threading.Event, restarts: int, flags: Sequence[str]) -> None:
    """Run the role `console` until `stop`: the console, with metrics and health on the port of the role.

    `flags` give another command of this program the same configuration. Raises PortTaken if one of the two ports is
    taken, FarmwatchError.
    """
    os.nice(_NICE)
    metrics, watchdog = Metrics(ALL), Watchdog(_SILENT_S, time.monotonic)
    with exposed(Role.CONSOLE, config, metrics, watchdog.health, restarts):
        serve(config, stop, metrics, flags, watchdog)


def serve(
    config: Config, stop: threading.Event, metrics: Metrics, flags: Sequence[str], watchdog: Watchdog | None = None
) -> None:
    """Answer requests until `stop`; see `run_console`.

    Raises PortTaken, ConfigError for another address that cannot be used, FarmwatchError.
    """
    watchdog = watchdog or Watchdog(_SILENT_S, time.monotonic)
    with opened(config) as log, closing(Replays(flags)) as replays:
        asyncio.run(_serve(config, log, stop, metrics, watchdog, replays))


async def _serve(
    config: Config, log: Log, stop: threading.Event, metrics: Metrics, watchdog: Watchdog, replays: Replays
) -> None:
    folder, settings = names_folder(config), config.console
    listener = listen(settings.host, settings.port, "console")
    port = listener.getsockname()[1]
    try:
        token = settings.token or kept_token(folder)
        model = ReadModel(folder / INDEX)
    except (OSError, sqlite3.Error) as error:
        raise FarmwatchError(f"{folder}: the console cannot write its index and its token: {error}") from error
    metrics.watch(CONSOLE_BEHIND_RECORDS, partial(_behind, model, log))
    console = Console(log, config, model, replays=replays)
    name = browsed_host(settings.host)
    app = application(console, Access(token, name, port, settings.hosts))
    app.middlewares.insert(0, timed(metrics))  # outside of the guard, which gives most answers their status
    runner = runner_of(app)
    following = threading.Thread(target=console.follow, args=(stop,), name="follow", daemon=True)
    following.start()
    try:
        await runner.setup()
        await web.SockSite(runner, listener).start()
        address = f"http://{name}:{port}/"
        if sys.stderr.isatty():
            message(f"console: {address}?token={token}")
        else:  # a journal keeps what it is given
            where = "the setting console.token" if settings.token else f"in {folder / KEPT}"
            message(f"console: {address}; the token is {where}")
        watchdog.ready = True
        while not stop.is_set():
            if not following.is_alive():
                raise FarmwatchError("the console cannot follow the log any more: the error is above")
            watchdog.ticked()
            watchdog.progressed(idle=True)
            await asyncio.sleep(_POLL_S)
    finally:
        stop.set()
        await runner.cleanup()
        following.join(_END_S)


def runner_of(app: web.Application, idle_s: float = _IDLE_S) -> web.AppRunner:
    """The server of the application. A connection without a whole request for `idle_s` is closed.

    What a client does is no error of this process: requests that are no HTTP get their 400 without a log line.
    """

    def is_own_fault(record: logging.LogRecord) -> bool:
        error = record.exc_info[1] if record.exc_info else None
        return not isinstance(error, HttpProcessingError | ConnectionError)

    logger = logging.getLogger(__name__)
    logger.addFilter(is_own_fault)
    return web.AppRunner(
        app, access_log=None, shutdown_timeout=_END_S, keepalive_timeout=idle_s, lingering_time=_LINGER_S, logger=logger
    )


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


def _behind(model: ReadModel, log: Log) -> float:
    try:
        return model.behind(log)
    except (FarmwatchError, sqlite3.Error):  # the log is away, or closed
        return math.nan
