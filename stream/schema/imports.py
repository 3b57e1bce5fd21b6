"""Imports of hits from files, in the topic `control`: `import/<id>` holds an `Import`.

Its hits have the header `import` with the id. The hits of an import that was undone are not read: `stream.masked`.
"""

from __future__ import annotations

import msgspec

from stream.log.contract import Headers, Log, Output
from stream.schema.control_rows import ControlRows, read_row
from stream.schema.topics import CONTROL

_HEADER = "import"
_KEY = b"import/"


class Import(msgspec.Struct, array_like=True, frozen=True):
    """One file that was imported."""

    v: int = 1
    id: str = ""
    at: int = 0  # ms UTC
    by: str = ""
    file: str = ""
    hits: int = 0  # new ones; 0 until it is complete
    sites: int = 0
    undone_at: int = 0
    undone_by: str = ""


class Imports:
    """The imports as of the last `refresh`."""

    def __init__(self, log: Log) -> None:
        """Read them. Raises as `refresh`."""
        self._rows = ControlRows(log)
        self.by_id: dict[str, Import] = {}
        self.undone: set[str] = set()
        self.version = 0  # grows with each change of `undone`
        self.refresh()

    def refresh(self) -> None:
        """Read new rows. Raises BadRecord, SchemaTooNew."""
        for message in self._rows.new():
            if message.key.startswith(_KEY) and message.value is not None:
                row = read_row(message, Import, "import of hits")
                self.by_id[row.id] = row
                if (row.id in self.undone) != bool(row.undone_at):
                    self.undone ^= {row.id}
                    self.version += 1


def import_of(headers: Headers) -> str:
    """The id of the import that brought a hit; "" = none."""
    return headers.get(_HEADER, "")


def headers_of_import(ident: str) -> Headers:
    """The headers of its hits."""
    return {_HEADER: ident}


def import_row(row: Import) -> Output:
    """The row that writes an import."""
    return Output(CONTROL, 0, _KEY + row.id.encode(), msgspec.msgpack.encode(row))
