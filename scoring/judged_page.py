"""A verdict as TALLY reads it: what the rules measured is passed over unread, which is nine tenths of the decoding."""

from __future__ import annotations

import msgspec

from stream.schema.records import Record, Verdict

_UNREAD = msgspec.Raw(b"\xc0")


class JudgedPage(Record, frozen=True, kw_only=True):
    """The fields of a `Verdict` up to the last that a tally takes in, in their order."""

    VERSION = Verdict.VERSION

    page_id: str
    url: str
    verdict: str
    first_failed: str = ""
    failed: msgspec.Raw = _UNREAD
    rules: msgspec.Raw = _UNREAD
    ruleset: str = ""
    digest: str = ""
    epoch: str = ""
    extract_path: str = ""
    text_digest: str = ""
    fetched_at: int = 0
