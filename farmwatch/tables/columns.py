"""Columns of a list, which the terminal, files, JSON and the console share."""

from __future__ import annotations

import types
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from operator import attrgetter
from typing import Any, ClassVar, Generic, Literal, TypeVar, Union, get_args, get_origin, get_type_hints

import msgspec

from stream.schema.runs import shown_run

Kind = Literal["text", "integer", "number", "share", "truth", "time", "json"]  # time: ms since 1970, UTC; 0 = unknown
Total = Literal["", "sum", "count"]
T = TypeVar("T")
_KINDS: dict[type, Kind] = {str: "text", int: "integer", float: "number", bool: "truth"}
_TIMES = ("at", "term_start", "term_end")
_RUNS = ("run", "from_run", "to_run")
_SHARES = (
    *("share", "at_most", "low", "high", "look_low", "look_high", "bound_low", "bound_high"),
    *("judged_share", "judged_low", "judged_high", "site_share", "site_low", "site_high", "p0", "se"),
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
    values: tuple[str, ...] = ()  # of its cells, where they are few words
    said: Callable[[T], Any] | None = None  # the cell in a table and its totals, which are for people; files have `of`
    words: tuple[str, ...] = ()  # of `said`: a condition may also name one of them


def columns_of(record: type[Any], *left_out: str, path: str = "", **changed: Mapping[str, Any]) -> list[Any]:
    """A column for each field of a struct, data class or named tuple but `v`, by their types.

    `path` leads from a row to the record, such as `row.`; `changed` has fields of columns that differ, by field.
    """
    columns = []
    for name, hint in get_type_hints(record).items():
        if name not in ("v", *left_out) and get_origin(hint) is not ClassVar:
            kinds = get_args(hint) if get_origin(hint) in (Union, types.UnionType) else (hint,)
            (kind,) = [kind for kind in kinds if kind is not type(None)]
            is_word = isinstance(kind, type) and issubclass(kind, str)  # also an enum of words
            of_kind: Kind = "text" if is_word else _KINDS.get(kind, "json")
            if name in _TIMES or name.endswith("_at"):
                of_kind = "time"
            if changed.get(name, {}).get("name", name) in _SHARES:
                of_kind = "share"
            of = attrgetter(f"{path}{name}")
            column = Column(name, of_kind, _shown_run(of) if name in _RUNS else of)
            columns.append(replace(column, **changed.get(name, {})))
    return columns


def _shown_run(of: Callable[[T], str]) -> Callable[[T], str]:
    return lambda row: shown_run(of(row))


def plain(value: Any) -> Any:
    """A cell for JSON: structs as objects."""
    has_structs = isinstance(value, list) and bool(value) and isinstance(value[0], msgspec.Struct)
    return [msgspec.structs.asdict(part) for part in value] if has_structs else value


def fields_of(columns: list[Column[T]], row: T) -> dict[str, Any]:
    """A row as a JSON object."""
    return {column.name: plain(column.of(row)) for column in columns}
