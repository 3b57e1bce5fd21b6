"""Packed features equal whole ones: each field as it is read, the record as it is written."""

from __future__ import annotations

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from stream.log.errors import BadRecord, SchemaTooNew
from stream.schema.packed_features import PackedFeatures, is_parsed, quality_of, segments_of, structure_of, text_of
from stream.schema.records import Features, Segments, decode, encode

NUMBERS = st.lists(st.none() | st.floats(allow_nan=False), max_size=20)
TEXTS = st.text(st.characters(codec="utf-8"), max_size=300)
FEATURES = st.builds(
    Features,
    id=TEXTS,
    site=TEXTS,
    page_id=TEXTS,
    url=TEXTS,
    epoch=TEXTS,
    text=TEXTS,
    measures=st.dictionaries(TEXTS, st.none() | st.floats(allow_nan=False) | TEXTS, max_size=3),
    quality=st.dictionaries(st.sampled_from(["main", "c4", "own"]), NUMBERS),
    structure=NUMBERS,
    segments=st.none() | st.lists(st.builds(Segments, kind=TEXTS, texts=st.lists(TEXTS, max_size=2)), max_size=3),
)
PACKED = {"text", "quality", "structure", "segments"}


@given(FEATURES)
def test_what_is_read_equals_the_whole(whole: Features) -> None:
    """Packed fields are unpacked to their values, of whole features they are the values, and all others are equal."""
    packed = decode(PackedFeatures, encode(whole))
    for features in (packed, whole):
        assert text_of(features) == whole.text
        assert {text: quality_of(features, text) for text in features.quality} == whole.quality
        assert quality_of(features, "nopunc") == []
        assert structure_of(features) == whole.structure
        assert is_parsed(features) == bool(whole.structure)
        assert segments_of(features) == whole.segments
    for field in set(Features.__struct_fields__) - PACKED:
        assert getattr(packed, field) == getattr(whole, field)


@given(FEATURES)
def test_the_record_is_written_as_it_was(whole: Features) -> None:
    """Packed features have the bytes of the whole ones."""
    assert encode(decode(PackedFeatures, encode(whole))) == encode(whole)


def test_an_older_record_has_the_defaults() -> None:
    """Fields that a record of an older schema lacks are empty, as in whole features; a newer one is refused."""
    old = msgspec.msgpack.encode([1, "f", "a.example", "p", "u", "e"])
    packed, whole = decode(PackedFeatures, old), decode(Features, old)
    assert (text_of(packed), structure_of(packed), segments_of(packed), packed.quality) == ("", [], None, {})
    assert not is_parsed(packed)
    assert encode(packed) == encode(whole)
    with pytest.raises(SchemaTooNew, match=r"^Features record"):
        decode(PackedFeatures, msgspec.msgpack.encode([2, "f", "a.example", "p", "u", "e"]))


def test_a_wrong_field_is_a_bad_record_when_it_is_read() -> None:
    """Numbers where a text belongs, or bytes that are no UTF-8, raise BadRecord as soon as the field is read."""
    start = [1, "f", "a.example", "p", "u", "e", "", ""]
    packed = decode(PackedFeatures, msgspec.msgpack.encode([*start, 5]))
    with pytest.raises(BadRecord, match="Expected `str`"):
        text_of(packed)
    no_text = msgspec.msgpack.encode([*start, "x"])[:-1] + b"\xff"
    with pytest.raises(BadRecord):
        text_of(decode(PackedFeatures, no_text))
