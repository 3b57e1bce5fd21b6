"""What TALLY keeps of a site's pages and of their scores."""

from __future__ import annotations

from collections.abc import Mapping

import msgspec

from stream.schema.projection import projection_of
from stream.schema.records import Record, Verdict
from stream.schema.vocabulary import KEPT, PageClass


@projection_of(Verdict)
class JudgedPage(Record, frozen=True, kw_only=True):
    """A verdict without the outcomes of the rules, which take nine tenths of the decoding."""

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
    first_at: int
    published: str
    age: str
    signals: list[str]
    needs_script: bool


class FirstArticle(msgspec.Struct, array_like=True, frozen=True):
    """The first fetch of a page that was an article: the evidence of the page."""

    fetched_at: int
    fetch_id: str
    text_digest: str
    digest: str  # of the ruleset of that verdict
    by_segments: bool = False


class PageEntry(msgspec.Struct, array_like=True, frozen=True):
    """The verdict on the newest fetch of a page, and its first fetch as an article."""

    fetched_at: int
    fetch_id: str
    article: bool
    text_digest: str
    first_failed: str
    digest: str = ""  # of the ruleset
    evidence: FirstArticle | None = None
    by_segments: bool = False
    age: str = ""  # PageAge
    published: str = ""  # trusted day of publication
    signals: list[str] = []
    needs_script: bool = False


class TextFlag(msgspec.Struct, array_like=True, frozen=True):
    """A detector's score of a text; flag None = it abstained, score None = not a finite number."""

    flag: bool | None
    score: float | None = None


class TermPages(msgspec.Struct, array_like=True):
    """The pages of a term."""

    pages: dict[str, PageEntry]  # by page id
    ruleset: str
    digest: str
    emitted: bytes = b""  # digest of the last emitted row
    epoch: str = ""  # feature epoch of the pages; "" = unknown


def texts_of(pages: Mapping[str, PageEntry]) -> set[str]:
    """Texts of articles, now or at their first fetch."""
    texts = {page.text_digest for page in pages.values() if page.article}
    return texts | {page.evidence.text_digest for page in pages.values() if page.evidence is not None}


def first_article(known: FirstArticle | None, verdict: Verdict | JudgedPage) -> FirstArticle | None:
    """The first fetch of a page that is an article, after another verdict on the page.

    Of two rulesets the later one counts, and for one fetch the later verdict.
    """
    if verdict.verdict not in KEPT:
        return None if known is not None and known.fetch_id == verdict.id else known
    by_segments = verdict.verdict == PageClass.SEGMENTS
    article = FirstArticle(verdict.fetched_at, verdict.id, verdict.text_digest, verdict.digest, by_segments)
    if known is None or known.digest != verdict.digest:
        return article
    return known if (known.fetched_at, known.fetch_id) < (article.fetched_at, article.fetch_id) else article
