"""Columns of a list, which the terminal, files, JSON and the console share."""

from __future__ import annotations

import types
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from operator import attrgetter
from typing import Any, ClassVar, Generic, Literal, TypeVar, Union, get_args, get_origin, get_type_hints

import msgspec

Kind = Literal["text", "integer", "number", "share", "truth", "time", "json"]  # time: ms since 1970, UTC; 0 = unknown
Total = Literal["", "sum", "count"]
T = TypeVar("T")
_KINDS: dict[type, Kind] = {str: "text", int: "integer", float: "number", bool: "truth"}
_TIMES = ("at", "term_start", "term_end")
_SHARES = (
    *("share", "low", "high", "look_low", "look_high", "bound_low", "bound_high"),
    *("judged_share", "judged_low", "judged_high"),
)


@dataclass(frozen=True, slots=True)
class Column(Generic[T]):
    """A column: its name, the type of its cells, and the function that takes a cell from a row."""

    name: str
    kind: Kind
    of: Callable[[T], Any]
    total: Total = ""  # below a table: the sum of its numbers, or how often each text occurs
    meaning: str = ""  # below a table, where the name does not say it
    then_by: Callable[[T], Any] | None = None  # orders rows whose cells are equal


def columns_of(record: type[Any], *left_out: str, renamed: Mapping[str, str] | None = None) -> list[Any]:
    """A column for each field of a struct or named tuple but `v`, by their types."""
    columns = []
    for name, hint in get_type_hints(record).items():
        if name not in ("v", *left_out) and get_origin(hint) is not ClassVar:
            kinds = get_args(hint) if get_origin(hint) in (Union, types.UnionType) else (hint,)
            (kind,) = [kind for kind in kinds if kind is not type(None)]
            is_word = isinstance(kind, type) and issubclass(kind, str)  # also an enum of words
            of_kind: Kind = "text" if is_word else _KINDS.get(kind, "json")
            if name in _TIMES or name.endswith("_at"):
                of_kind = "time"
            called = (renamed or {}).get(name, name)
            columns.append(Column(called, "share" if called in _SHARES else of_kind, attrgetter(name)))
    return columns


def plain(value: Any) -> Any:
    """A cell for JSON: structs as objects."""
    has_structs = isinstance(value, list) and bool(value) and isinstance(value[0], msgspec.Struct)
    return [msgspec.structs.asdict(part) for part in value] if has_structs else value


def fields_of(columns: list[Column[T]], row: T) -> dict[str, Any]:
    """A row as a JSON object."""
    return {column.name: plain(column.of(row)) for column in columns}
