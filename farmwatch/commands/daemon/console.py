"""The command `console`."""

from __future__ import annotations

import asyncio
import socket
import sqlite3
import sys
import threading

from aiohttp import web

from farmwatch.commands.options import DEFAULTS, Common
from farmwatch.config.config import Config
from farmwatch.config.member_names import names_folder
from farmwatch.config.opening import opened
from farmwatch.console.access import KEPT, Access, kept_token
from farmwatch.console.app import application
from farmwatch.console.read_model import INDEX, ReadModel
from farmwatch.console.views import Console
from farmwatch.daemon.endpoints import address_refused
from farmwatch.daemon.supervisor import stop_on_signals
from farmwatch.terminal.messages import message, start_logging
from stream.log.contract import Log
from stream.text.user_errors import ConfigError, Exit, FarmwatchError

_POLL_S = 0.2
_END_S = 5.0  # most time that the read model may delay the end


def console(*, common: Common = DEFAULTS) -> int:
    """Serve the console until Ctrl-C: the share, its history, every site and page and why it counts as it does.

    Prints the address, on a terminal with the token that lets a browser in. Every page has a JSON twin: /sites.json for
    /sites. The console reads the log beside the running roles and changes nothing, but for what its forms say. What it
    remembers is rebuilt from the log.
    """
    config = common.load().config
    start_logging(role="console")
    stop = threading.Event()
    stop_on_signals(stop)
    with opened(config) as log:
        asyncio.run(_serve(config, log, stop))
    return Exit.OK


async def _serve(config: Config, log: Log, stop: threading.Event) -> None:
    """Answer requests until `stop`. Raises ConfigError for an address that cannot be used, FarmwatchError."""
    folder, settings = names_folder(config), config.console
    listener = _listen(settings.host, settings.port)
    port = listener.getsockname()[1]
    try:
        token = settings.token or kept_token(folder)
        shown = Console(log, config, ReadModel(folder / INDEX))
    except (OSError, sqlite3.Error) as error:
        raise FarmwatchError(f"{folder}: the console cannot write its index and its token: {error}") from error
    access = Access(token, settings.host, port, settings.hosts)
    runner = web.AppRunner(application(shown, access), access_log=None)
    following = threading.Thread(target=shown.follow, args=(stop,), name="follow", daemon=True)
    following.start()
    try:
        await runner.setup()
        await web.SockSite(runner, listener).start()
        address = f"http://{settings.host}:{port}/"
        if sys.stderr.isatty():
            message(f"console: {address}?token={token}")
        else:  # a journal keeps what it is given
            kept = "the setting console.token" if settings.token else f"in {folder / KEPT}"
            message(f"console: {address}; the token is {kept}")
        while not stop.is_set():
            await asyncio.sleep(_POLL_S)
    finally:
        stop.set()
        await runner.cleanup()
        following.join(_END_S)


def _listen(host: str, port: int) -> socket.socket:
    """Raises ConfigError."""
    try:
        return socket.create_server((host, port), family=socket.AF_INET6 if ":" in host else socket.AF_INET)
    except OSError as error:
        raise ConfigError(address_refused(host, port, error, "console")) from error
