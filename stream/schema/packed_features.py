"""Features whose large fields stay packed until a rule reads them.

Most of a record is its text, which JUDGE only passes on, and lists of numbers, of which few rules read more than one.
Packed they cost nothing; unpacked one by one they need no memory for a whole batch.
"""

from __future__ import annotations

from typing import Any, TypeVar

import msgspec
from msgspec import Raw

from stream.log.errors import BadRecord
from stream.schema.records import Features, Segments

T = TypeVar("T")


def _packed(value: object) -> Raw:
    return Raw(msgspec.msgpack.encode(value))


_EMPTY = _packed([])
_TEXT = msgspec.msgpack.Decoder(str)
_NUMBERS = msgspec.msgpack.Decoder(list[float | None])
_SEGMENTS = msgspec.msgpack.Decoder(list[Segments] | None)


class PackedFeatures(Features, frozen=True, kw_only=True):
    """Features as JUDGE decodes them; a packed field is checked when the functions below read it, as of others too."""

    text: Raw = _packed("")  # type: ignore[assignment]
    quality: dict[str, Raw] = msgspec.field(default_factory=dict)  # type: ignore[assignment]
    structure: Raw = _EMPTY  # type: ignore[assignment]
    segments: Raw = _packed(None)  # type: ignore[assignment]


def text_of(features: Features) -> str:
    """The main text."""
    return _unpacked(_TEXT, features.text, "text")


def quality_of(features: Features, text: str) -> list[float | None]:
    """The quality measures of a text of the page; none if the page lacks it."""
    values = features.quality.get(text)
    return [] if values is None else _unpacked(_NUMBERS, values, f"quality {text}")


def structure_of(features: Features) -> list[float | None]:
    """The measures of the structure; none of a page that was not parsed."""
    return _unpacked(_NUMBERS, features.structure, "structure")


def is_parsed(features: Features) -> bool:
    """Whether the page has measures of its structure."""
    return features.structure not in ([], _EMPTY)


def segments_of(features: Features) -> list[Segments] | None:
    """The segments; None = of an older epoch."""
    return _unpacked(_SEGMENTS, features.segments, "segments")


def _unpacked(decoder: msgspec.msgpack.Decoder[Any], value: T, field: str) -> T:
    """The value of a field, which may be packed. Raises BadRecord."""
    if not isinstance(value, Raw):
        return value
    try:
        unpacked: T = decoder.decode(value)
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise BadRecord(f"not a Features record, {field}: {error}") from error
    return unpacked
