"""Projections: structs that decode only some fields of a record, which saves most of the decoding time.

A projection declares the needed fields; order, defaults and version come from the record. Its own defaults win.
"""

from __future__ import annotations

from collections.abc import Callable
from types import FunctionType
from typing import Any, TypeVar

import msgspec
from msgspec import NODEFAULT

from stream.schema.records import Record

P = TypeVar("P", bound=Record)

_UNREAD = msgspec.Raw(b"\xc0")  # null


def projection_of(record: type[Record]) -> Callable[[type[P]], type[P]]:
    """Class decorator: make a projection of `record` from the declared fields. Raises TypeError."""

    def derive(declared: type[P]) -> type[P]:
        wanted = {field.name: field for field in msgspec.structs.fields(declared)}
        fields = {field.name: field for field in msgspec.structs.fields(record)}
        if unknown := wanted.keys() - fields.keys():
            raise TypeError(f"{record.__name__} has no field {', '.join(sorted(unknown))}")
        last = max(place for place, name in enumerate(fields) if name in wanted)
        layout: list[Any] = []
        for name in list(fields)[len(Record.__struct_fields__) : last + 1]:
            if name not in wanted:
                layout.append((name, msgspec.Raw, _UNREAD))
            else:
                layout.append((name, wanted[name].type, *(_default(wanted[name]) or _default(fields[name]))))
        methods = {name: value for name, value in vars(declared).items() if isinstance(value, FunctionType | property)}
        struct: Any = msgspec.defstruct(
            declared.__name__,
            layout,
            bases=(Record,),
            namespace=methods | {"VERSION": record.VERSION, "__doc__": declared.__doc__},
            module=declared.__module__,
            array_like=True,
            frozen=True,
            kw_only=True,
        )
        return struct  # type: ignore[no-any-return]

    return derive


def _default(field: msgspec.structs.FieldInfo) -> tuple[Any, ...]:
    if field.default_factory is not NODEFAULT:
        return (msgspec.field(default_factory=field.default_factory),)
    return () if field.default is NODEFAULT else (field.default,)
