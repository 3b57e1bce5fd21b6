"""Settings of the front door: the place of the log, endpoints, and canaries."""

from __future__ import annotations

from typing import Annotated, ClassVar

import msgspec

from farmwatch.config.layers import SECRET
from stream.schema.roles import Role
from stream.schema.topics import DEFAULT_PARTITIONS


class LogSettings(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The place and the layout of the log."""

    url: str = "sqlite:farmwatch-data"
    """Place of the log: sqlite:FOLDER (no server) or kafka:HOST:PORT[,HOST:PORT]."""
    prefix: str = ""
    """Prefix of every topic and group name, so that several farmwatches share one broker."""
    partitions: Annotated[int, msgspec.Meta(ge=1, le=4096)] = DEFAULT_PARTITIONS
    """Partitions of every topic; chosen once, never changed."""
    state_folder: str = "farmwatch-state"
    """Local copies of keyed state, on Kafka only; may be lost at any time."""


class MetricsSettings(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The addresses of /metrics, /healthz and /readyz."""

    host: str = "127.0.0.1"
    """Address to bind."""
    port: Annotated[int, msgspec.Meta(ge=0, le=65_000)] = 9464
    """Port of the first role; the others follow in the order crawl, measure, judge, score, tally, console. 0: any free
    port."""

    def port_of(self, role: Role) -> int:
        """Port of a role: the first port plus the role's index; 0 stays 0 (any free port)."""
        return self.port + list(Role).index(role) if self.port else 0


class ConsoleSettings(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Where the console is served, and to whom."""

    host: str = "127.0.0.1"
    """Address to bind."""
    port: Annotated[int, msgspec.Meta(ge=0, le=65_535)] = 9480
    """Port of the console; 0: any free port."""
    hosts: list[str] = []
    """HOST:PORT under which browsers reach it besides host and port, such as the name of a proxy."""
    token: Annotated[str, SECRET] = ""
    """Token of the console; empty: console.token in the folder of the log, made at the first start."""


class CanarySettings(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Canaries: pages of known truth that pass through the live stages, see docs/how-to/canaries.md."""

    file: str = ""
    """JSON lines (.zst or .gz allowed) of pages: truth (human or llm), site (a label), title, text or html, and
    made_at, the day on which it was written; empty: no canaries."""
    every_s: ClassVar[int] = 86_400  # between two rounds
    pages: Annotated[int, msgspec.Meta(ge=1, le=1000)] = 20
    """Pages sent per site, at most."""
