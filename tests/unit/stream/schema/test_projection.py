"""A projection matches its record: it reads its fields from their places and skips the fields between."""

from __future__ import annotations

import msgspec
import pytest

from stream.log.errors import SchemaTooNew
from stream.schema.projection import projection_of
from stream.schema.records import Record, RuleOutcome, Verdict, decode, encode

VERDICT = Verdict(
    id="f1",
    site="a.example",
    page_id="p1",
    url="https://a.example/",
    verdict="dropped",
    failed=["min_tokens"],
    rules=[RuleOutcome("min_tokens", 3.0, ">=", 200, "fail")],
    digest="d1",
)


@projection_of(Verdict)
class _Part(Record, frozen=True, kw_only=True):
    digest: str
    verdict: str
    failed: tuple[str, ...] = ()

    @property
    def reasons(self) -> int:
        return len(self.failed)


def test_fields_are_read_from_their_places() -> None:
    """The declared fields, in any order, have the values of the whole record; fields between are not decoded."""
    part = decode(_Part, encode(VERDICT))
    assert (part.id, part.site, part.verdict, part.digest, part.failed) == (
        *("f1", "a.example", "dropped", "d1"),
        ("min_tokens",),
    )
    assert part.reasons == 1
    assert isinstance(getattr(part, "rules"), msgspec.Raw)  # noqa: B009  # not declared
    fields = _Part.__struct_fields__
    assert fields == Verdict.__struct_fields__[: len(fields)] and fields[-1] == "digest"


def test_a_record_of_an_older_schema_has_the_defaults() -> None:
    """A field that an older record lacks has the record's default, or the declared one."""
    old = msgspec.msgpack.encode([1, "f1", "a.example", "p1", "u", "article"])
    part = decode(_Part, old)
    assert (part.verdict, part.failed, part.digest) == ("article", (), "")


def test_a_newer_schema_is_refused_as_for_the_record() -> None:
    """A projection reads the same versions as its record."""
    newer = msgspec.msgpack.encode([Verdict.VERSION + 1, "f1", "a.example", "p1", "u", "article"])
    with pytest.raises(SchemaTooNew):
        decode(_Part, newer)


def test_a_field_that_the_record_lost_is_refused() -> None:
    """A projection of a field that its record lacks fails at import."""

    class Gone(Record, frozen=True, kw_only=True):
        colour: str

    with pytest.raises(TypeError, match="Verdict has no field colour"):
        projection_of(Verdict)(Gone)
