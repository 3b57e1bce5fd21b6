"""A verdict as TALLY reads it: without the outcomes of the rules, which are nine tenths of the decoding."""

from __future__ import annotations

from stream.schema.projection import projection_of
from stream.schema.records import Record, Verdict


@projection_of(Verdict)
class JudgedPage(Record, frozen=True, kw_only=True):
    """The fields of a `Verdict` that a tally or an audit needs."""

    page_id: str
    url: str
    verdict: str
    first_failed: str
    ruleset: str
    digest: str
    epoch: str
    extract_path: str
    text_digest: str
    fetched_at: int
