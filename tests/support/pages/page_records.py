"""Records of made-up pages: a fetched page and a score, from the fields that differ."""

from __future__ import annotations

from typing import Any

import zstandard

from crawler.web.urls import fetch_id, host_of, page_id
from stream.schema.records import Page, Score


def fetched_page(url: str, html: str, **more: Any) -> Page:
    """The first visit of a page with this body, on the site of its host."""
    known = {"id": fetch_id(url, 1), "site": host_of(url), "page_id": page_id(url), **more}
    return Page(url=url, body=zstandard.compress(html.encode()), **known)


def text_score(
    site: str, digest: str, detector: str, flag: bool | None, page: str = "", fetch: str = "", **more: Any
) -> Score:
    """A detector's score of the text with this digest."""
    name = f"{digest}:{detector}"
    return Score(
        id=name, site=site, page_id=page, fetch_id=fetch, text_digest=digest, detector=detector, flag=flag, **more
    )
