"""Record types that decode some fields only: the others stay raw bytes, which cost nothing to skip."""

from __future__ import annotations

from typing import TypeVar, cast

import msgspec

from stream.schema.records import Record

R = TypeVar("R", bound=Record)


def partial_record(record: type[R], *names: str) -> type[R]:
    """The type `record` with only the fields of these names, and `v`, `id` and `site`, decoded."""
    fields: list[tuple[str, type] | tuple[str, type, object]] = []
    for field in msgspec.structs.fields(record)[len(Record.__struct_fields__) :]:
        if field.required:
            fields.append((field.name, field.type if field.name in names else msgspec.Raw))
        elif field.name not in names:
            fields.append((field.name, msgspec.Raw, msgspec.Raw(b"")))
        else:
            default = field.default
            if default is msgspec.NODEFAULT:
                default = msgspec.field(default_factory=field.default_factory)
            fields.append((field.name, field.type, default))
    made = msgspec.defstruct(
        f"Partial{record.__name__}",
        fields,
        bases=(Record,),
        namespace={"VERSION": record.VERSION},
        frozen=True,
        kw_only=True,
        array_like=True,
    )
    return cast(type[R], made)
