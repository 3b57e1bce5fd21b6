"""A small inspector: pages say themselves what they are, and a heading is an outline."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import NamedTuple

from crawler.reasons import NO_PAGES
from stream.schema.vocabulary import FetchOutcome

_SAID = re.compile(r"no page: (\w+)")
_HEADING = re.compile(r"<h1>(.*?)</h1>")


class Found(NamedTuple):
    reason: str = ""
    outline: bytes = b""


class FakeInspector:
    """A page with `no page: REASON` in its text is none; two pages are the same if their headings are."""

    def inspect(
        self,
        url: str,
        status: int,
        headers: Mapping[str, str],
        body: bytes | str,
        encoding: str,
        has_outline: bool = True,
    ) -> Found:
        text = body if isinstance(body, str) else body.decode(encoding, "replace")
        said = _SAID.search(text)
        reason = "challenge" if "cf-mitigated" in headers else said[1] if said else ""
        assert not reason or reason in NO_PAGES
        heading = _HEADING.search(text)
        return Found(reason, heading[1].encode() if heading and has_outline else b"")

    def same(self, outline: bytes, other: bytes) -> bool:
        return outline == other != b""


def no_page(reason: str, code: int = 200, **fields: object) -> dict[str, object]:
    """The fields of an answer that is no page. A challenge may pass, others may with a status that may."""
    may_pass = reason == "challenge" or code == 429 or code >= 500
    known = {"outcome": FetchOutcome.NO_PAGE, "reason": reason, "status": code, "transient": may_pass}
    return known | {"body": b"<p>no page", "packed": b"packed"} | fields
