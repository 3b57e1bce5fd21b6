"""The command `console`."""

from __future__ import annotations

import threading
from collections.abc import Sequence

from farmwatch.commands.options import DEFAULTS, Common
from farmwatch.config.config import Config
from farmwatch.console.serving import serve
from farmwatch.daemon.signals import stopping_on_signals
from farmwatch.metrics import ALL
from farmwatch.terminal.messages import start_logging
from stream.processing.metrics import Metrics
from stream.text.user_errors import Exit


def console(*, common: Common = DEFAULTS) -> int:
    """Serve the console until Ctrl-C: the share, its history, every site and page and why it counts as it does.

    For a log on which no `up` runs: `up` serves it too. Prints the address, on a terminal with the token that lets a
    browser in. Every page has a JSON twin: /sites.json for /sites. The console reads the log beside the running roles
    and changes nothing, but for what its forms say. What it remembers is rebuilt from the log.
    """
    serve_until_signal(common.load().config, common.arguments())
    return Exit.OK


def serve_until_signal(config: Config, arguments: Sequence[str]) -> None:
    """Serve the console until SIGTERM or Ctrl-C; `arguments` give a command this configuration. Raises as `serve`."""
    start_logging(role="console")
    stop = threading.Event()
    with stopping_on_signals(stop):
        serve(config, stop, Metrics(ALL), arguments)
