"""Reading records of other schema versions."""

from __future__ import annotations

import msgspec
import pytest

from stream.log.errors import BadRecord, SchemaTooNew
from stream.schema.records import Decision, Hit, decode, encode


def test_an_older_record_reads_with_defaults() -> None:
    """An older record with fewer fields gets the defaults of the missing fields."""
    old = msgspec.msgpack.encode([1, "id", "site.example", "https://site.example/"])
    hit = decode(Hit, old)
    assert (hit.id, hit.site, hit.url) == ("id", "site.example", "https://site.example/")
    assert (hit.query, hit.rank, hit.source) == ("", 0, "file")


def test_a_newer_record_is_refused_naming_both_versions() -> None:
    """A record of a newer schema raises SchemaTooNew with both versions, for any fields."""
    today = list(msgspec.msgpack.decode(encode(Decision(id="i", site="s", stop=True, reason="r"))))
    for fields in ([99, *today[1:]], [99, *today[1:], "new field"], [99, {"another": "shape"}]):
        with pytest.raises(SchemaTooNew, match=rf"99.*{Decision.VERSION}"):
            decode(Decision, msgspec.msgpack.encode(fields))


@pytest.mark.parametrize(
    "value", [b"", b"\xc1", b"text", msgspec.msgpack.encode({"v": 1}), msgspec.msgpack.encode([1])]
)
def test_what_is_no_record_is_refused(value: bytes) -> None:
    """Other bytes raise BadRecord, which names the type."""
    with pytest.raises(BadRecord, match="Hit"):
        decode(Hit, value)
