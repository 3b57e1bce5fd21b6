"""Opening the configured log. Whether a broker listens is asked first, before a client would try for long."""

from __future__ import annotations

import socket
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from farmwatch.config.config import Config
from farmwatch.terminal.messages import message
from filters.measure.epoch import feature_epoch
from stream.log.contract import Log
from stream.opening import open_log
from stream.processing.topic_reader import UnreadableCounter, reporting_to
from stream.schema.topics import all_topics
from stream.text.user_errors import ConfigError, FarmwatchError
from stream.text.wording import one_line

_KAFKA = "kafka:"


class NoLog(FarmwatchError):
    """The embedded log's folder does not exist. The operator names the right one, or starts `farmwatch up`."""


class BrokerAway(FarmwatchError):
    """Nobody listens at the broker's addresses. The operator starts the broker, or names another log."""


@contextmanager
def opened(config: Config, *, write: bool = False, create: bool = False) -> Iterator[Log]:
    """The configured log, closed at the end: to be read; or written, which `create` includes, making what is not there.

    Records that could not be read by then are told on stderr, in a line a topic. Raises LogUnavailable, BrokerAway, and
    NoLog: a command that only looks must not answer from an empty log in the wrong folder.
    """
    if not create and not log_exists(config):
        raise NoLog(
            f"{config.log.url}: there is no log yet; `up`, `search`, `crawl --hits` or `import` makes one."
            " Or set log.url (--log)"
        )
    require_broker(config)  # a command says at once that it is away; only roles wait for it
    log = open_configured(config, read_only=not (write or create))
    unreadable = UnreadableCounter()
    try:
        with reporting_to(unreadable):
            yield log
    finally:
        log.close()
        for line in unreadable.lines():
            message(one_line(line))


def open_configured(config: Config, *, read_only: bool = False) -> Log:
    """The configured log; `read_only` as for `open_log`.

    Raises StreamError, ConfigError for a URL of no known form, LogUnavailable.
    """
    options: dict[str, Any] = {}
    check_log_url(config)
    if config.log.url.startswith("kafka:"):
        options["state_folder"] = Path(config.log.state_folder)
        options["settings"] = config.kafka
    return open_log(config.log.url, prefix=config.log.prefix, read_only=read_only, **options)


def log_exists(config: Config) -> bool:
    """False for an embedded log that was never made (no folder, or an empty one); a broker is asked at the opening."""
    check_log_url(config)
    scheme, _, place = config.log.url.partition(":")
    if scheme != "sqlite":
        return True
    try:
        return any(Path(place).expanduser().iterdir())
    except FileNotFoundError:
        return False
    except OSError:  # opening says what is wrong
        return True


def check_log_url(config: Config) -> None:
    """Raises ConfigError for a URL that cannot be a log's, and for an embedded log where a file stands."""
    scheme, _, place = config.log.url.partition(":")
    if scheme not in ("sqlite", "kafka") or not place:
        raise ConfigError(f"log.url is {config.log.url!r}: give sqlite:FOLDER or kafka:HOST:PORT")
    broker_addresses(config.log.url)  # the client would fail at a wrong one with an error of Python's
    folder = Path(place).expanduser()
    with suppress(PermissionError):  # opening says so
        if scheme == "sqlite" and folder.exists() and not folder.is_dir():
            raise ConfigError(f"log.url is {config.log.url!r}: {folder} is a file; an embedded log is a folder")


def create_topics(log: Log, config: Config) -> None:
    """Create the topics that are missing. Raises TopicMismatch where log.partitions was another one."""
    log.create(all_topics(config.log.partitions, feature_epoch(config.measure)))


def broker_addresses(url: str) -> list[tuple[str, int]]:
    """(host, port) of each server of a kafka: URL; none for another log. Raises ConfigError for what is no address."""
    if not url.startswith(_KAFKA):
        return []
    found = []
    for server in url.removeprefix(_KAFKA).split(","):
        host, _, port = server.strip().rpartition(":")
        if not host or not port.isascii() or not port.isdigit() or not 0 < int(port) < 65_536:
            raise ConfigError(f"log.url: {server!r} is no HOST:PORT; a Kafka log is kafka:HOST:PORT[,HOST:PORT]")
        found.append((host.strip("[]"), int(port)))
    return found


def require_broker(config: Config) -> None:
    """Return once one of the servers takes a connection; nothing to do for a log without a broker.

    Each server is tried once, for kafka.connect_timeout_s. Raises BrokerAway, ConfigError.
    """
    said = []
    for host, port in broker_addresses(config.log.url):
        try:
            socket.create_connection((host, port), config.kafka.connect_timeout_s).close()
            return
        except OSError as error:
            said.append(f"{host}:{port}: {error.strerror or error}")
    if said:
        raise BrokerAway(f"{config.log.url}: no broker answers ({'; '.join(said)}); start it, or set log.url (--log)")
