"""The state of a site in TALLY, and the site row that follows from it: pure, no log, no clock.

Hits, verdicts and scores come on three topics in any interleaving. So each is only stored when it arrives, and the row
is computed from all of them: a function of the records, not of their order.

- The row's counts are of each page's newest fetch; an older fetch that arrives late changes nothing.
- The site method reads each page as it was first fetched as an article, in the order of those fetches. A page that is
  fetched again months later moves the counts, and neither the evidence nor its place.
- Scores are kept by detector and text digest, and the method takes each text once. Texts on which the detector
  abstained are left out.
- A score may come before its verdict, so scores of texts without a page are kept for a while: of each detector the
  last SPARE_TEXTS, of the MAX_DETECTORS detectors with the newest scores. A tally grows with the site's pages, and not
  with the number of times that they change.
- A row is of one feature epoch, that of the newest verdict: the first verdict of another one drops the pages before.
- A row is of one detector and one ruleset: the detector in use, and the ruleset of the newest verdict. When the ruleset
  changes, a page does not count until the new one has judged it.
"""

from __future__ import annotations

import heapq
import math
from collections import Counter
from collections.abc import Sequence
from typing import Literal

import msgspec
import xxhash

from scoring.interface import PageScore, SiteVerdict
from stream.schema.projection import projection_of
from stream.schema.records import Hit, Record, Score, SiteState, Verdict
from stream.schema.vocabulary import DECIDED

ARTICLE = "article"

MAX_QUERIES = 1000  # query ids of a site's row
MAX_DAYS = 400  # days with a hit of a site's row: the newest
SPARE_TEXTS = 256  # scores of a detector whose texts no page has: more than come before their verdicts
MAX_DETECTORS = 6  # whose scores are kept: the one in use, and those that spoke last

_DAY_MS = 86_400_000

_encoder = msgspec.msgpack.Encoder()


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


class FirstArticle(msgspec.Struct, array_like=True, frozen=True):
    """The first fetch of a page that was an article: the evidence of the page."""

    fetched_at: int
    fetch_id: str
    text_digest: str
    digest: str  # of the ruleset that said so


class PageEntry(msgspec.Struct, array_like=True, frozen=True):
    """The verdict on the newest fetch of a page, and its first fetch as an article."""

    fetched_at: int
    fetch_id: str
    article: bool
    text_digest: str
    first_failed: str
    digest: str = ""  # of the ruleset
    evidence: FirstArticle | None = None


class TextFlag(msgspec.Struct, array_like=True, frozen=True):
    """A detector's score of a text; flag None = it abstained, score None = it was no finite number."""

    flag: bool | None
    score: float | None = None


class SiteTally(msgspec.Struct, array_like=True):
    """TALLY's state of one site; stored as msgpack under the site's name."""

    hits: int = 0  # different search results
    sources: list[str] = msgspec.field(default_factory=list)  # sorted
    queries: list[str] = msgspec.field(default_factory=list)  # sorted; at most MAX_QUERIES, see add_hits
    best_rank: int = 0
    pages: dict[str, PageEntry] = msgspec.field(default_factory=dict)  # by page id
    unused: dict[str, None] = msgspec.field(default_factory=dict)  # keeps the place of the fields that follow
    ruleset: str = ""
    digest: str = ""
    emitted: bytes = b""  # digest of the row that was emitted last
    stopped: str = ""  # reason of the decision that was emitted; "" = none yet
    layout: Literal[3] = 3  # of the fields
    scores: dict[str, dict[str, TextFlag]] = msgspec.field(default_factory=dict)  # by detector, then text digest
    days: list[int] = msgspec.field(default_factory=list)  # since 1970, UTC, with a hit; sorted, the newest MAX_DAYS
    epoch: str = ""  # feature epoch of the pages; "" = not known

    @staticmethod
    def load(data: bytes | None) -> SiteTally:
        """Read a tally back; None is a site not seen before."""
        return SiteTally() if data is None else _decoder.decode(data)

    def dump(self) -> bytes:
        return _encoder.encode(self)

    def add_hits(self, hits: Sequence[Hit]) -> None:
        """Count search results of which none was counted before, see `hit_key`; many at once are faster.

        The row is bounded: MAX_QUERIES query ids are kept, those of the smallest digests, which is a fair sample and
        the same for every order of arrival.
        """
        self.hits += len(hits)
        self.sources = sorted({*self.sources, *(hit.source for hit in hits)})
        new = {hit.query_id for hit in hits if hit.query_id}.difference(self.queries)
        if new:
            self.queries = sorted(heapq.nsmallest(MAX_QUERIES, [*self.queries, *new], key=_digest))
        ranks = [rank for rank in (self.best_rank, *(hit.rank for hit in hits)) if rank > 0]
        self.best_rank = min(ranks, default=0)
        days = {hit.fetched_at // _DAY_MS for hit in hits if hit.fetched_at > 0}
        if days:
            self.days = sorted({*self.days, *days})[-MAX_DAYS:]

    def add_verdict(self, verdict: Verdict | JudgedPage) -> None:
        """Store a page's verdict: the newest fetch counts, the first article is the evidence."""
        self.ruleset, self.digest = verdict.ruleset, verdict.digest
        if verdict.epoch != self.epoch:
            if self.epoch:
                self.pages.clear()  # features of two epochs cannot be compared
            self.epoch = verdict.epoch
        known = self.pages.get(verdict.page_id)
        evidence = _first_article(known.evidence if known else None, verdict)
        if known is None or (verdict.fetched_at, verdict.id) >= (known.fetched_at, known.fetch_id):
            entry = PageEntry(
                verdict.fetched_at,
                verdict.id,
                verdict.verdict == ARTICLE,
                verdict.text_digest,
                verdict.first_failed,
                verdict.digest,
                evidence,
            )
        else:
            entry = msgspec.structs.replace(known, evidence=evidence)
        self.pages[verdict.page_id] = entry

    def add_score(self, score: Score, in_use: str) -> None:
        """Keep a score of any detector: the one in use may change, and change back."""
        of_detector = self.scores.pop(score.detector, {})
        self.scores[score.detector] = of_detector  # the detector with the newest score is last
        of_detector.pop(score.text_digest, None)
        number = score.score if score.score is not None and math.isfinite(score.score) else None
        of_detector[score.text_digest] = TextFlag(score.flag, number)
        self._forget(in_use)

    def _forget(self, in_use: str) -> None:
        """Drop the oldest scores that no page needs."""
        if len(self.scores) > MAX_DETECTORS:
            del self.scores[next(name for name in self.scores if name != in_use)]
        if all(len(said) <= SPARE_TEXTS for said in self.scores.values()):
            return
        needed = {page.text_digest for page in self.pages.values() if page.article}
        needed |= {page.evidence.text_digest for page in self.pages.values() if page.evidence is not None}
        for said in self.scores.values():
            for text in [text for text in said if text not in needed][:-SPARE_TEXTS]:
                del said[text]

    def evidence(self, detector: str) -> list[PageScore]:
        """The detector's scores of the site's texts: each once, in the order of their first fetch."""
        said = self.scores.get(detector, {})
        order = sorted(
            (page.evidence.fetched_at, name, page.evidence.text_digest)
            for name, page in self.pages.items()
            if page.digest == self.digest and page.evidence is not None and page.evidence.digest == self.digest
        )
        found: dict[str, PageScore] = {}
        for fetched_at, _, text in order:
            scored = said.get(text)
            if text not in found and scored is not None and scored != _ABSTAINED:
                found[text] = PageScore(scored.flag, scored.score, fetched_at)
        return list(found.values())

    def row(self, site: str, detector: str, verdict: SiteVerdict, method_digest: str, run: str) -> SiteState:
        """The site's row, with a method's verdict on `evidence(detector)`; updated_at is left 0.

        `scored`, `abstained` and `flagged` count articles; `pages_used` counts texts.
        """
        said = self.scores.get(detector, {})
        pages = [page for page in self.pages.values() if page.digest == self.digest]
        articles = [page for page in pages if page.article]
        flags = [said[page.text_digest].flag for page in articles if page.text_digest in said]
        return SiteState(
            id=site,
            site=site,
            verdict=verdict.verdict,
            detector=detector,
            digest=self.digest,
            ruleset=self.ruleset,
            pages=len(pages),
            articles=len(articles),
            scored=len(flags) - flags.count(None),
            abstained=flags.count(None),
            flagged=flags.count(True),
            pages_used=verdict.pages_used,
            llr=round(verdict.llr, 9),
            dropped_by=dict(sorted(Counter(page.first_failed for page in pages if not page.article).items())),
            sources=self.sources,
            queries=self.queries,
            best_rank=self.best_rank,
            hits=self.hits,
            run=run,
            method=verdict.method,
            mixed=verdict.mixed,
            decided_at=verdict.decided_at,
            days=self.days,
            method_digest=method_digest,
            epoch=self.epoch,
        )


_ABSTAINED = TextFlag(None, None)
_decoder = msgspec.msgpack.Decoder(SiteTally)


def _first_article(known: FirstArticle | None, verdict: Verdict | JudgedPage) -> FirstArticle | None:
    """The first fetch of a page that is an article, after one more verdict on the page.

    Of two rulesets the one that spoke last is right, and of one fetch the verdict that was given last.
    """
    if verdict.verdict != ARTICLE:
        return None if known is not None and known.fetch_id == verdict.id else known
    found = FirstArticle(verdict.fetched_at, verdict.id, verdict.text_digest, verdict.digest)
    if known is None or known.digest != verdict.digest:
        return found
    return known if (known.fetched_at, known.fetch_id) < (found.fetched_at, found.fetch_id) else found


def hit_key(hit: Hit) -> bytes:
    """State key that marks a hit as counted: beside the site's tally, so that the tally stays small."""
    return b"%s\0%s" % (hit.site.encode(), xxhash.xxh3_128_digest(hit.id.encode()))


def _digest(name: str) -> int:
    return xxhash.xxh3_64_intdigest(name.encode())


def stop_reason(verdict: SiteVerdict, enough: int, enough_if_mixed: int) -> str:
    """The reason to stop crawling the site: decided_llm, decided_human or enough_articles; "" = none.

    A mixed site stays open until it has `enough_if_mixed` usable scores, is no longer mixed, or has closed: later pages
    change neither its verdict nor its mark.
    """
    if verdict.mixed and not verdict.closed and verdict.pages < enough_if_mixed:
        return ""
    if verdict.verdict in DECIDED:
        return f"decided_{verdict.verdict}"
    return "enough_articles" if verdict.pages >= enough else ""
