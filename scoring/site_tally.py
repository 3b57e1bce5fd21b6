"""What TALLY remembers of a site, and the site row that follows from it: pure, no log, no clock.

Hits, verdicts and scores come on three topics in any interleaving. So nothing is decided when they arrive: each is
put in its place, and the row is computed from the whole.

- Pages stand in the order of their first verdict. A page fetched again keeps its place and takes the newer fetch's
  verdict; an older fetch that arrives late changes nothing.
- Scores stand by text digest. The test takes the articles in page order, those that have a usable score, and each text
  only once: the same text under two addresses is one piece of evidence, not two.
- A row is of one detector and one ruleset. Each flag is kept under the detector that gave it, each page with the
  ruleset that judged it. The row counts the flags of the detector in use, and the pages whose newest verdict is of the
  ruleset that spoke last of the site: when it changes, a page does not count until the new one has judged it.
"""

from __future__ import annotations

import heapq
from collections import Counter
from collections.abc import Iterable

import msgspec
import xxhash

from scoring.site_verdict import DECIDED, SiteTest
from stream.records import Hit, Score, SiteState, Verdict

ARTICLE = "article"

MAX_QUERIES = 1000  # query ids of a site's row
LAYOUT = 2  # of a stored tally

_encoder = msgspec.msgpack.Encoder()


class PageEntry(msgspec.Struct, array_like=True, frozen=True):
    """The newest verdict on a page."""

    fetched_at: int
    fetch_id: str
    article: bool
    text_digest: str
    first_failed: str
    digest: str = ""  # of the ruleset


class SiteTally(msgspec.Struct, array_like=True):
    """Everything that TALLY holds of one site; stored as msgpack under the site's name."""

    hits: int = 0  # different search results
    sources: list[str] = msgspec.field(default_factory=list)  # sorted
    queries: list[str] = msgspec.field(default_factory=list)  # sorted; at most MAX_QUERIES, see add_hit
    best_rank: int = 0
    pages: dict[str, PageEntry] = msgspec.field(default_factory=dict)  # by page id, in order of first verdict
    flags: dict[str, bool | None] = msgspec.field(default_factory=dict)  # by flag_key; None = the detector abstained
    ruleset: str = ""
    digest: str = ""
    emitted: bytes = b""  # digest of the row that was emitted last
    stopped: str = ""  # reason of the decision that was emitted; "" = none yet
    layout: int = 1  # 1: flags by text digest alone, pages without ruleset; see load

    @staticmethod
    def load(data: bytes | None, detector: str) -> SiteTally:
        """Read a tally back; None is a site not seen before.

        A tally of layout 1 does not say whose its flags and verdicts are. They are taken as of `detector`, the one in
        use, and of the ruleset that spoke last: what the row was computed from when it was stored.
        """
        if data is None:
            return SiteTally(layout=LAYOUT)
        tally = _decoder.decode(data)
        if tally.layout < LAYOUT:
            tally.flags = {flag_key(text, detector): flag for text, flag in tally.flags.items()}
            pages = tally.pages.items()
            tally.pages = {name: msgspec.structs.replace(page, digest=tally.digest) for name, page in pages}
            tally.layout = LAYOUT
        return tally

    def dump(self) -> bytes:
        """Pack it for the store."""
        return _encoder.encode(self)

    def add_hit(self, hit: Hit) -> None:
        """Count a search result. The caller has made sure that it was not counted before, see `hit_key`.

        Sites that answer every query would grow a row without end, so MAX_QUERIES query ids are kept: those of the
        smallest digests, which is a fair sample and the same for every order of arrival.
        """
        self.hits += 1
        self.sources = sorted({*self.sources, hit.source})
        if hit.query_id and hit.query_id not in self.queries:
            chosen = heapq.nsmallest(MAX_QUERIES, [*self.queries, hit.query_id], key=_digest)
            self.queries = sorted(chosen)
        if hit.rank > 0:
            self.best_rank = min(hit.rank, self.best_rank or hit.rank)

    def add_verdict(self, verdict: Verdict) -> None:
        """Put a page's verdict in its place, unless a newer fetch of the page stands there."""
        self.ruleset, self.digest = verdict.ruleset, verdict.digest
        entry = PageEntry(
            verdict.fetched_at,
            verdict.id,
            verdict.verdict == ARTICLE,
            verdict.text_digest,
            verdict.first_failed,
            verdict.digest,
        )
        known = self.pages.get(verdict.page_id)
        if known is None or (entry.fetched_at, entry.fetch_id) >= (known.fetched_at, known.fetch_id):
            self.pages[verdict.page_id] = entry

    def add_score(self, score: Score) -> None:
        """Keep a text's flag, whichever detector gave it: the one in use may change, and change back."""
        self.flags[flag_key(score.text_digest, score.detector)] = score.flag

    def usable_flags(self, detector: str) -> list[bool]:
        """The detector's flags of the articles in page order, each text once, abstentions left out."""
        return self._usable(_article_keys(self._counted(), detector))

    def row(self, site: str, detector: str, test: SiteTest, run: str) -> SiteState:
        """The site's row as it follows from the tally, with updated_at left 0.

        `scored`, `abstained` and `flagged` count articles; `pages_used` counts texts.
        """
        pages = self._counted()
        keys = _article_keys(pages, detector)
        verdict = test.decide(self._usable(keys))
        flags = [self.flags[key] for key in keys if key in self.flags]
        return SiteState(
            id=site,
            site=site,
            verdict=verdict.verdict,
            detector=detector,
            digest=self.digest,
            ruleset=self.ruleset,
            pages=len(pages),
            articles=len(keys),
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
        )

    def _counted(self) -> list[PageEntry]:
        """The pages that count: their newest verdict is of the ruleset that spoke last."""
        return [page for page in self.pages.values() if page.digest == self.digest]

    def _usable(self, keys: Iterable[str]) -> list[bool]:
        return [flag for key in dict.fromkeys(keys) if (flag := self.flags.get(key)) is not None]


_decoder = msgspec.msgpack.Decoder(SiteTally)


def flag_key(text_digest: str, detector: str) -> str:
    """Under what a text's flag stands in a tally."""
    return f"{text_digest}:{detector}"


def _article_keys(pages: Iterable[PageEntry], detector: str) -> list[str]:
    return [flag_key(page.text_digest, detector) for page in pages if page.article]


def hit_key(hit: Hit) -> bytes:
    """State key that marks a hit as counted: beside the site's tally, so that the tally stays small."""
    return b"%s\0%s" % (hit.site.encode(), xxhash.xxh3_128_digest(hit.id.encode()))


def _digest(name: str) -> int:
    return xxhash.xxh3_64_intdigest(name.encode())


def stop_reason(verdict: str, usable: int, enough: int) -> str:
    """Why crawling the site may stop: decided_llm, decided_human or enough_articles; "" = go on."""
    if verdict in DECIDED:
        return f"decided_{verdict}"
    return "enough_articles" if usable >= enough else ""
