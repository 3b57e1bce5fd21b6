"""Opens a log by its URL."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from stream.log.contract import Log
from stream.log.errors import StreamError
from stream.text.user_errors import MissingExtra

FORMS = "sqlite:DIR or kafka:HOST:PORT[,HOST:PORT]"


def open_log(url: str, *, prefix: str = "", read_only: bool = False, **options: Any) -> Log:
    """Open the log at `url`; `prefix` separates several farmwatches on one log.

    `read_only`: an embedded log must exist, its files do not change, and calls that write raise StreamError.
    `options`: `clock`, for Kafka `state_folder`. Raises StreamError for another URL, MissingExtra, LogUnavailable.
    """
    kind, _, place = url.partition(":")
    if kind == "sqlite" and place:
        from stream.embedded.log import EmbeddedLog

        return EmbeddedLog(Path(place).expanduser(), prefix=prefix, read_only=read_only, **options)
    if kind == "kafka" and ":" in place:
        try:
            from stream.kafka.log import KafkaLog
        except ModuleNotFoundError as error:
            if error.name is None or error.name.split(".")[0] != "kafka":
                raise
            raise MissingExtra("a Kafka log needs the client", extra="kafka") from error
        return KafkaLog(place, prefix=prefix, **options)
    raise StreamError(f"no log has the URL {url!r}: give {FORMS}")
