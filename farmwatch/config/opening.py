"""Opens the configured log. Checks for a listening broker first, because a client would retry for long."""

from __future__ import annotations

import socket
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from functools import partial
from pathlib import Path
from typing import Any

from crawler.frontier.forgetting import forget_sites
from farmwatch.config.config import Config
from farmwatch.terminal.messages import message
from stream.log.contract import Log
from stream.log.errors import StreamError
from stream.masked import masked
from stream.opening import open_log
from stream.processing.topic_reader import UnreadableCounter, reporting_to
from stream.schema.topics import FRONTIER_STORE, UNFINISHED
from stream.text.user_errors import ConfigError, FarmwatchError
from stream.text.wording import one_line


@contextmanager
def opened(config: Config, *, write: bool = False, create: bool = False, is_masked: bool = True) -> Iterator[Log]:
    """Open the configured log for reading (default) or writing; `create` also creates a missing log. Closed at the end.

    `is_masked`: without its forgotten hosts. Unreadable records are reported on stderr, one line per topic. Raises
    LogUnavailable, and FarmwatchError for an unavailable broker or a missing log: a read-only command must not answer
    from an empty log in the wrong folder.
    """
    log = open_checked(config, write=write, create=create, is_masked=is_masked)
    unreadable = UnreadableCounter()
    try:
        with reporting_to(unreadable):
            yield log
    finally:
        log.close()
        for line in unreadable.lines():
            message(one_line(f"{line}; see `farmwatch doctor`"))


def open_checked(config: Config, *, write: bool = False, create: bool = False, is_masked: bool = True) -> Log:
    """As `opened`, for a caller that closes the log and receives unreadable records."""
    if not create and not log_exists(config):
        raise FarmwatchError(
            f"{config.log.url}: there is no log yet; `farmwatch up`, `hits add` or `log import` makes one."
            " Or set log.url (--log)"
        )
    require_broker(config)  # only roles wait for the broker
    log = open_configured(config, read_only=not (write or create), is_masked=is_masked)
    try:
        refuse_unfinished(log)
    except BaseException:
        log.close()
        raise
    return log


def open_configured(config: Config, *, read_only: bool = False, is_masked: bool = True) -> Log:
    """The configured log, with or without its forgotten hosts. Raises StreamError, ConfigError, LogUnavailable."""
    options: dict[str, Any] = {}
    check_log_url(config)
    if config.log.url.startswith("kafka:"):
        options["state_folder"] = Path(config.log.state_folder)
        options["settings"] = config.kafka
    log = open_log(config.log.url, prefix=config.log.prefix, read_only=read_only, **options)
    return as_read(log, config) if is_masked else log


def as_read(log: Log, config: Config) -> Log:
    """The log without its forgotten hosts."""
    return masked(log, {FRONTIER_STORE: partial(forget_sites, config.crawl)})


def log_exists(config: Config) -> bool:
    """False for an embedded log that does not exist (no folder, or an empty one)."""
    check_log_url(config)
    scheme, _, place = config.log.url.partition(":")
    if scheme != "sqlite":
        return True
    try:
        return any(Path(place).expanduser().iterdir())
    except FileNotFoundError:
        return False
    except OSError:  # opening reports it
        return True


def check_log_url(config: Config) -> list[tuple[str, int]]:
    """The (host, port) of each broker of a Kafka log, none of an embedded one.

    Raises ConfigError for an invalid URL, and for an embedded log whose folder is a file.
    """
    url = config.log.url
    scheme, _, place = url.partition(":")
    if scheme not in ("sqlite", "kafka") or not place:
        raise ConfigError(f"log.url is {url!r}: give sqlite:FOLDER or kafka:HOST:PORT")
    if scheme == "sqlite":
        folder = Path(place).expanduser()
        with suppress(PermissionError):  # opening reports it
            if folder.exists() and not folder.is_dir():
                raise ConfigError(f"log.url is {url!r}: {folder} is a file; an embedded log is a folder")
        return []
    brokers = []
    for server in place.split(","):
        host, _, port = server.strip().rpartition(":")
        if not host or not port.isascii() or not port.isdigit() or not 0 < int(port) < 65_536:
            raise ConfigError(f"log.url: {server!r} is no HOST:PORT; a Kafka log is kafka:HOST:PORT[,HOST:PORT]")
        brokers.append((host.strip("[]"), int(port)))
    return brokers


def refuse_unfinished(log: Log) -> None:
    """Raises StreamError for the target of an interrupted copy."""
    if UNFINISHED in log.topics():
        raise StreamError(
            "this log is an unfinished copy: run the same `farmwatch log copy` again, which begins it anew"
        )


def require_broker(config: Config) -> None:
    """Try each broker of a Kafka log once, for a few seconds. Raises FarmwatchError if none answers."""
    said = []
    for host, port in check_log_url(config):
        try:
            socket.create_connection((host, port), config.kafka.connect_timeout_s).close()
            return
        except OSError as error:
            said.append(f"{host}:{port}: {error.strerror or error}")
    if said:
        raise FarmwatchError(
            f"{config.log.url}: no broker answers ({'; '.join(said)}); start it, or set log.url (--log)"
        )
