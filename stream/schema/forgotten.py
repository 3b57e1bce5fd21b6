"""The ledger of forgotten hosts, in the topic `control`. It holds no host name.

`forgotten/secret` holds a random secret, `forgotten/<digest>` a `ForgottenHost`. The digest is an HMAC of the host with
the secret: without the secret nobody can find a host in the ledger by trying names.
"""

from __future__ import annotations

import hmac
import secrets
from functools import lru_cache

import msgspec

from stream.log.contract import Log, Output
from stream.schema.control_rows import ControlRows, read_row
from stream.schema.control_sites import real_host
from stream.schema.topics import CONTROL

_KEY = b"forgotten/"
_SECRET = b"forgotten/secret"
_SECRET_BYTES = 32
_HOSTS = 65_536  # answers remembered


class ForgottenHost(msgspec.Struct, array_like=True, frozen=True):
    """An entry of the ledger. Until `done_at`, records or state of the host may be left."""

    v: int = 1
    at: int = 0  # ms UTC
    by: str = ""
    done_at: int = 0


class Forgotten:
    """The ledger as of the last `refresh`."""

    def __init__(self, log: Log) -> None:
        """Read it. Raises as `refresh`."""
        self._rows = ControlRows(log)
        self._secret = b""
        self._entries: dict[str, ForgottenHost] = {}
        self.version = 0  # the number of hosts
        self.refresh()

    def refresh(self) -> bool:
        """Read new rows; True if they name a host for the first time. Raises BadRecord, SchemaTooNew."""
        for message in self._rows.new():
            if not message.key.startswith(_KEY) or message.value is None:
                continue
            if message.key == _SECRET and not message.damage:
                self._secret = message.value
            else:
                entry = read_row(message, ForgottenHost, "ledger of forgotten hosts")
                self._entries[message.key.removeprefix(_KEY).decode(errors="replace")] = entry
        if self.version == len(self._entries):
            return False
        # before the version: who sees that asks about the new hosts
        self._covers = lru_cache(_HOSTS)(lambda host: _digest(self._secret, host) in self._entries)
        self.version = len(self._entries)
        return True

    def covers(self, host: str) -> bool:
        """Whether a host is forgotten, with its control site."""
        return self.version > 0 and self._covers(real_host(host))

    @property
    def is_pending(self) -> bool:
        """Whether records or state of a host may be left."""
        return any(not entry.done_at for entry in self._entries.values())

    def entry(self, host: str) -> ForgottenHost | None:
        """The entry of a host; None if it is not forgotten."""
        return self._entries.get(_digest(self._secret, host)) if self._secret else None

    def outputs(self, host: str, entry: ForgottenHost) -> list[Output]:
        """The rows that write an entry; the first one ever brings the secret."""
        rows = []
        if not self._secret:
            self._secret = secrets.token_bytes(_SECRET_BYTES)
            rows.append(Output(CONTROL, 0, _SECRET, self._secret))
        key = _KEY + _digest(self._secret, host).encode()
        return [*rows, Output(CONTROL, 0, key, msgspec.msgpack.encode(entry))]


def site_of_key(key: bytes) -> str:
    """The site in the key of a record or of a row of state: it ends at a space or NUL, which no host name holds."""
    return key.partition(b"\0")[0].partition(b" ")[0].decode(errors="replace")


def _digest(secret: bytes, host: str) -> str:
    return hmac.digest(secret, host.encode(), "sha256").hex()
