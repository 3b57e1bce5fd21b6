"""The addresses of a Kafka log, and whether anybody listens there, asked before a client would try for long."""

from __future__ import annotations

import socket

from farmwatch.config.config import Config
from stream.text.user_errors import ConfigError, FarmwatchError

_KAFKA = "kafka:"


class BrokerAway(FarmwatchError):
    """Nobody listens at the broker's addresses. The operator starts the broker, or names another log."""


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
