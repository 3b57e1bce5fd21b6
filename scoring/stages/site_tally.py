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
- A row is of one term: a page belongs to the term of its fetch, counted from the first page that was crawled of the
  site, which each record names. Each term is judged by its own pages. A site that is not crawled, but comes from an
  archive or a canary file, has but the term 0. So a term follows from the records, and not from the clock.
"""

from __future__ import annotations

import heapq
import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from datetime import date
from typing import Literal

import msgspec
import xxhash

from scoring.interface import PageScore, SiteVerdict
from scoring.sites.turn import DatedScore, flags_of_quarters, turn_of
from scoring.stages.site_pages import FirstArticle, JudgedPage, PageEntry, TermPages, TextFlag, first_article, texts_of
from stream.schema.page_age import PageAge
from stream.schema.records import Hit, Score, SiteState, Verdict
from stream.schema.vocabulary import KEPT, PageClass, SiteClass
from stream.text.times import DAY_MS

MAX_QUERIES = 1000  # query ids of a site's row
MAX_DAYS = 400  # days with a hit of a site's row: the newest
MAX_SIGNALS = 200  # of a site's row: the most frequent
SPARE_TEXTS = 256  # scores of a detector for texts without a page: more than arrive before their verdicts
MAX_DETECTORS = 6  # whose scores are kept: the one in use, and those with the newest scores


_HUMAN_AGES = PageAge.CONTROL, PageAge.DECLARED
_encoder = msgspec.msgpack.Encoder()


class SiteTally(msgspec.Struct, array_like=True):
    """TALLY's state of one site; stored as msgpack under the site's name."""

    hits: int = 0  # different search results
    sources: list[str] = msgspec.field(default_factory=list)  # sorted
    queries: list[str] = msgspec.field(default_factory=list)  # sorted; at most MAX_QUERIES, see add_hits
    best_rank: int = 0
    pages: dict[str, PageEntry] = msgspec.field(default_factory=dict)  # of the newest term, by page id
    unused: dict[str, None] = msgspec.field(default_factory=dict)  # keeps the place of the following fields
    ruleset: str = ""
    digest: str = ""
    emitted: bytes = b""  # digest of the last emitted row
    stopped: str = ""  # reason of the last emitted decision; "" = none yet
    layout: Literal[3] = 3  # of the fields
    scores: dict[str, dict[str, TextFlag]] = msgspec.field(default_factory=dict)  # by detector, then text digest
    days: list[int] = msgspec.field(default_factory=list)  # since 1970, UTC, with a hit; sorted, the newest MAX_DAYS
    first: int = 0  # fetch time of the first crawled page, ms; 0 = unknown
    term_ms: int = 0  # length of a term; 0 = there is only one
    term: int = 0  # the newest with a page
    earlier: dict[int, TermPages] = msgspec.field(default_factory=dict)  # by term
    kept_from: int = 0  # ms; the pages of earlier terms are dropped and their rows stay
    reopened: int = 0  # the last term for which CRAWL was told to measure the site again
    dropped: list[int] = msgspec.field(default_factory=list)  # terms with a row but without pages: it must go
    epoch: str = ""  # feature epoch of the pages of the newest term; "" = unknown

    @staticmethod
    def load(data: bytes | None, term_ms: int) -> SiteTally:
        """Read a tally back; None is a site not seen before. With other terms than before its pages are regrouped."""
        tally = SiteTally() if data is None else _decoder.decode(data)
        if tally.term_ms != term_ms:
            tally.term_ms = term_ms
            tally._regroup()
            tally.reopened = tally.term
        return tally

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
            self.queries = sorted(
                heapq.nsmallest(
                    MAX_QUERIES, [*self.queries, *new], key=lambda query: xxhash.xxh3_64_intdigest(query.encode())
                )
            )
        ranks = [rank for rank in (self.best_rank, *(hit.rank for hit in hits)) if rank > 0]
        self.best_rank = min(ranks, default=0)
        days = {hit.fetched_at // DAY_MS for hit in hits if hit.fetched_at > 0}
        if days:
            self.days = sorted({*self.days, *days})[-MAX_DAYS:]

    def add_verdict(self, verdict: Verdict | JudgedPage) -> None:
        """Store a page's verdict: of its term the newest fetch counts, and the first article is the evidence."""
        if verdict.first_at and (self.first == 0 or verdict.first_at < self.first):
            self.first = verdict.first_at
            self._regroup()
        term = self.term_of(verdict.fetched_at)
        if term < self.term and self.start_of(term) < self.kept_from:
            return
        pages = self._open(term, verdict.ruleset, verdict.digest, verdict.epoch)
        known = pages.get(verdict.page_id)
        evidence = first_article(known.evidence if known else None, verdict)
        if known is None or (verdict.fetched_at, verdict.id) >= (known.fetched_at, known.fetch_id):
            entry = PageEntry(
                verdict.fetched_at,
                verdict.id,
                verdict.verdict in KEPT,
                verdict.text_digest,
                verdict.first_failed,
                verdict.digest,
                evidence,
                verdict.verdict == PageClass.SEGMENTS,
                verdict.age,
                verdict.published,
                verdict.signals,
                verdict.needs_script,
            )
        else:
            entry = msgspec.structs.replace(known, evidence=evidence)
        pages[verdict.page_id] = entry

    def term_of(self, at_ms: int) -> int:
        """The term of the site that contains this time; 0 if no page or no term is known."""
        return (at_ms - self.first) // self.term_ms if self.first and self.term_ms and at_ms > self.first else 0

    def start_of(self, term: int) -> int:
        """When a term of the site begins, ms; 0 = unknown."""
        return self.first + term * self.term_ms if self.first and self.term_ms else 0

    def forget_terms(self) -> None:
        """Drop pages and scores of all terms but the newest two: no more of their records will come."""
        for term in [term for term in self.earlier if term + 1 < self.term]:
            texts = texts_of(self.earlier.pop(term).pages)
            self.kept_from = max(self.kept_from, self.start_of(term + 1))
            for text in texts - self._needed():
                for said in self.scores.values():
                    said.pop(text, None)

    def _open(self, term: int, ruleset: str, digest: str, epoch: str) -> dict[str, PageEntry]:
        """The pages of a term, of which this ruleset judges one now, measured in this epoch.

        Features of two epochs cannot be compared, so that pages of another one are dropped.
        """
        if term > self.term and self.pages:
            self.earlier[self.term] = TermPages(self.pages, self.ruleset, self.digest, epoch=self.epoch)
            self.pages, self.stopped = {}, ""
        if term >= self.term:
            if self.epoch not in ("", epoch):
                self.pages.clear()
            self.term, self.ruleset, self.digest, self.epoch = term, ruleset, digest, epoch
            return self.pages
        of = self.earlier.setdefault(term, TermPages({}, ruleset, digest, epoch=epoch))
        if of.epoch not in ("", epoch):
            of.pages.clear()
        of.ruleset, of.digest, of.epoch = ruleset, digest, epoch
        return of.pages

    def _regroup(self) -> None:
        """Assign every page to its term again, because the first page or the length of a term has changed."""
        terms = [*self.earlier.values(), self.of_term(self.term)]
        pages = [(name, page, of) for of in terms for name, page in of.pages.items()]
        rows = {*self.earlier, *self.dropped}
        stopped, self.pages, self.earlier, self.term = self.stopped, {}, {}, 0
        for name, page, of in sorted(pages, key=lambda kept: kept[1].fetched_at):
            at, first, entries = page.fetched_at, page.evidence, [page]
            if first is not None and self.term_of(first.fetched_at) != self.term_of(at):
                again = None
                if page.article:
                    again = FirstArticle(at, page.fetch_id, page.text_digest, page.digest, page.by_segments)
                at, of_segments = first.fetched_at, first.by_segments
                entries = [
                    PageEntry(at, first.fetch_id, True, first.text_digest, "", first.digest, first, of_segments),
                    msgspec.structs.replace(page, evidence=again),
                ]
            for entry in entries:
                self._open(self.term_of(entry.fetched_at), of.ruleset, of.digest, of.epoch)[name] = entry
        self.stopped = stopped
        self.dropped = sorted(rows.difference(self.earlier))

    def add_score(self, score: Score, in_use: str) -> None:
        """Keep a score of any detector: the one in use may change, and change back."""
        of_detector = self.scores.pop(score.detector, {})
        self.scores[score.detector] = of_detector  # the detector with the newest score is last
        of_detector.pop(score.text_digest, None)
        number = score.score if score.score is not None and math.isfinite(score.score) else None
        of_detector[score.text_digest] = TextFlag(score.flag, number)
        # the oldest scores that no page needs go
        if len(self.scores) > MAX_DETECTORS:
            del self.scores[next(name for name in self.scores if name != in_use)]
        if all(len(said) <= SPARE_TEXTS for said in self.scores.values()):
            return
        needed = self._needed()
        for said in self.scores.values():
            for text in [text for text in said if text not in needed][:-SPARE_TEXTS]:
                del said[text]

    def _needed(self) -> set[str]:
        return set().union(texts_of(self.pages), *(texts_of(of.pages) for of in self.earlier.values()))

    def of_term(self, term: int) -> TermPages:
        """The pages of a term; none if it is not kept."""
        if term == self.term:
            return TermPages(self.pages, self.ruleset, self.digest, epoch=self.epoch)
        return self.earlier.get(term) or TermPages({}, "", "")

    def evidence(self, detector: str, term: int) -> dict[str, PageScore]:
        """The detector's scores of a term's texts by page: each text once, in the order of their first fetch."""
        said, of = self.scores.get(detector, {}), self.of_term(term)
        order = sorted(
            (page.evidence.fetched_at, name, page.evidence.text_digest)
            for name, page in of.pages.items()
            if page.digest == of.digest and page.evidence is not None and page.evidence.digest == of.digest
        )
        scores: dict[str, PageScore] = {}
        seen: set[str] = set()
        for fetched_at, name, text in order:
            scored = said.get(text)
            if text not in seen and scored is not None and scored != _ABSTAINED:
                seen.add(text)
                scores[name] = PageScore(scored.flag, scored.score, fetched_at)
        return scores

    def row(
        self,
        site: str,
        detector: str,
        verdict: SiteVerdict,
        method_digest: str,
        run: str,
        term: int,
        former: SiteState | None = None,
    ) -> SiteState:
        """The site's row of a term, with a method's verdict on `evidence(detector, term)`; updated_at is left 0.

        `scored`, `abstained` and `flagged` count articles; `pages_used` counts texts. A page counts through segments if
        its first fetch does, on which the verdict rests. Search results come at any time,
        so only the row of the newest term has theirs. `former` is the row of the term before.
        """
        said, of, newest = self.scores.get(detector, {}), self.of_term(term), term == self.term
        pages = [page for page in of.pages.values() if page.digest == of.digest]
        articles = [page for page in pages if page.article]
        # the verdict of a row stands in for one that the term after it does not have yet
        open_still = verdict.verdict == SiteClass.UNCLASSIFIABLE
        stands_in = former and open_still and former.verdict != verdict.verdict and former.digest == of.digest
        known = [(page, said[page.text_digest].flag) for page in articles if page.text_digest in said]
        flags = [flag for _, flag in known]
        ages = Counter((page.age, flag) for page, flag in known if flag is not None)
        control, declared = ({flag: ages[age, flag] for flag in (False, True)} for age in _HUMAN_AGES)
        dated = _dated(articles, said)
        first = [page.evidence for page, flag in known if page.evidence is not None and flag is not None]
        return SiteState(
            id=site,
            site=site,
            verdict=verdict.verdict,
            detector=detector,
            digest=of.digest,
            ruleset=of.ruleset,
            pages=len(pages),
            articles=len(articles),
            scored=len(flags) - flags.count(None),
            abstained=flags.count(None),
            flagged=flags.count(True),
            pages_used=verdict.pages_used,
            llr=round(verdict.llr, 9),
            dropped_by=dict(sorted(Counter(page.first_failed for page in pages if not page.article).items())),
            sources=self.sources if newest else [],
            queries=self.queries if newest else [],
            best_rank=self.best_rank if newest else 0,
            hits=self.hits if newest else 0,
            run=run,
            method=verdict.method,
            mixed=verdict.mixed,
            decided_at=verdict.decided_at,
            days=self.days if newest else [],
            method_digest=method_digest,
            term=term,
            term_start=self.start_of(term),
            term_end=self.start_of(term + 1),
            epoch=of.epoch,
            former=former if stands_in else None,
            through_segments=sum(evidence.by_segments for evidence in first),
            control_scored=sum(control.values()),
            control_flagged=control[True],
            declared_scored=sum(declared.values()),
            declared_flagged=declared[True],
            **turn_of(dated)._asdict(),
            quarters=flags_of_quarters(dated),
            signals=_signals(pages),
            needs_script=sum(page.needs_script for page in pages if not page.article),
        )


def _dated(articles: Iterable[PageEntry], said: Mapping[str, TextFlag]) -> list[DatedScore]:
    """The scored articles with a trusted day of publication: each text once, on its first day."""
    first: dict[str, str] = {}
    for page in articles:
        if page.published and page.published < first.get(page.text_digest, "~"):
            first[page.text_digest] = page.published
    scored = ((day, said[text]) for text, day in sorted(first.items()) if text in said)
    return [
        DatedScore(date.fromisoformat(day), of.flag, of.score)
        for day, of in scored
        if of.flag is not None and of.score is not None
    ]


def _signals(pages: Sequence[PageEntry]) -> dict[str, int]:
    """Signal -> pages with it; of a site with very many the most frequent ones."""
    counts = Counter(signal for page in pages for signal in page.signals)
    return dict(sorted(heapq.nsmallest(MAX_SIGNALS, counts.items(), key=lambda item: (-item[1], item[0]))))


_ABSTAINED = TextFlag(None, None)
_decoder = msgspec.msgpack.Decoder(SiteTally)


def hit_key(hit: Hit) -> bytes:
    """State key that marks a hit as counted: beside the site's tally, so that the tally stays small."""
    return b"%s\0%s" % (hit.site.encode(), xxhash.xxh3_128_digest(hit.id.encode()))


def term_key(site: str, term: int) -> str:
    """Key of a row on the topic of earlier terms."""
    return f"{site} {term}"
