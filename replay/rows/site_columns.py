"""Rows of sites in columns, in a tenth of the memory of structs.

Numbers are in arrays, each different text, list or table is stored once, rows within rows are in columns of their own.
"""

from __future__ import annotations

from array import array
from collections.abc import Iterable, Iterator
from itertools import accumulate
from typing import Any, cast

import msgspec

from stream.schema.records import SiteState

_FIELDS = [field for field in msgspec.structs.fields(SiteState) if field.name not in ("id", "site")]
_WIDER = {"b": "h", "h": "i", "i": "q"}


class _Numbers:
    """A column of whole numbers, of as few bytes each as all of them fit in."""

    def __init__(self) -> None:
        self._values = array("b")

    def append(self, value: int) -> None:
        try:
            self._values.append(value)
        except OverflowError:
            self._values = array(_WIDER[self._values.typecode], self._values)
            self.append(value)

    def __getitem__(self, place: int) -> int:
        return self._values[place]


class _Texts:
    """A column of texts; equal ones are one object."""

    def __init__(self) -> None:
        self._places = _Numbers()
        self._known: dict[str, int] = {}  # in order of their numbers
        self._different: list[str] = []

    def append(self, value: str) -> None:
        self._places.append(self._known.setdefault(value, len(self._known)))

    def close(self) -> None:
        self._different, self._known = list(self._known), {}

    def __getitem__(self, place: int) -> str:
        return self._different[self._places[place]]


class _Packed:
    """A column of lists or tables, each different one packed once."""

    def __init__(self, kind: Any) -> None:
        self._places = _Numbers()
        self._known: dict[bytes, int] = {}
        self._bytes = b""
        self._ends = array("I")
        self._decode = msgspec.msgpack.Decoder(kind).decode

    def append(self, value: Any) -> None:
        self._places.append(self._known.setdefault(msgspec.msgpack.encode(value), len(self._known)))

    def close(self) -> None:
        self._bytes = b"".join(self._known)
        self._ends = array("I", accumulate(map(len, self._known), initial=0))
        self._known = {}

    def __getitem__(self, place: int) -> Any:
        number = self._places[place]
        return self._decode(self._bytes[self._ends[number] : self._ends[number + 1]])


class _Rows:
    def __init__(self) -> None:
        self._places = _Numbers()
        self._held = SiteColumns()

    def append(self, value: SiteState | None) -> None:
        self._places.append(-1 if value is None else len(self._held))
        if value is not None:
            self._held.append(value)

    def close(self) -> None:
        self._held.close()

    def __getitem__(self, place: int) -> SiteState | None:
        number = self._places[place]
        return None if number < 0 else self._held.row(number)


class SiteColumns:
    """Rows in the order of their `append`. `close` ends the columns; after it rows can be read."""

    def __init__(self, rows: Iterable[SiteState] = ()) -> None:
        self.columns: dict[str, Any] = {}  # made with the first row: rows within rows are in columns too
        self._names = bytearray()
        self._ends = array("I", [0])
        for row in rows:
            self.append(row)
        self.close()

    def __len__(self) -> int:
        return len(self._ends) - 1

    def append(self, row: SiteState) -> None:
        if not self.columns:
            self.columns = {field.name: _column(field.type) for field in _FIELDS}
        self._names += row.site.encode()
        self._ends.append(len(self._names))
        for name, column in self.columns.items():
            column.append(getattr(row, name))

    def close(self) -> None:
        for column in self.columns.values():
            if isinstance(column, _Texts | _Packed | _Rows):
                column.close()

    def row(self, place: int) -> SiteState:
        """A view of 32 bytes that reads like the row."""
        return cast("SiteState", _View(self, place))

    def rows(self) -> Iterator[SiteState]:
        return map(self.row, range(len(self)))

    def site(self, place: int) -> str:
        return self._names[self._ends[place] : self._ends[place + 1]].decode()


class _View(msgspec.Struct, frozen=True, gc=False):
    """A row of columns, with the fields of `SiteState`."""

    held: SiteColumns
    place: int

    @property
    def site(self) -> str:
        return self.held.site(self.place)

    id = site


def _field(name: str) -> property:
    return property(lambda view: view.held.columns[name][view.place])


for _each in _FIELDS:
    setattr(_View, _each.name, _field(_each.name))


def _column(kind: Any) -> Any:
    if kind in (int, bool):
        return _Numbers()
    if kind is float:
        return array("d")
    if kind == SiteState | None:
        return _Rows()
    return _Texts() if kind is str else _Packed(kind)
