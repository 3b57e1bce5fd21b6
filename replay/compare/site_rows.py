"""The newest rows of the sites of a run: the compared fields of rows with one ruleset, detector and site method."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from sys import intern
from typing import NamedTuple

from scoring.rates.canary import is_canary
from stream.log.contract import Log
from stream.processing.topic_reader import records_of, rows_of
from stream.schema.projection import projection_of
from stream.schema.records import Record, SiteState
from stream.schema.vocabulary import UNCLASSIFIABLE


class ComparedSite(NamedTuple):
    """The compared fields of a site row."""

    verdict: str
    pages: int
    articles: int
    scored: int
    abstained: int
    flagged: int
    sources: tuple[str, ...]
    best_rank: int
    term: int = 0

    @property
    def unscored(self) -> int:
        """Articles without a score so far."""
        return max(0, self.articles - self.scored - self.abstained)


@dataclass(frozen=True, slots=True)
class SiteRows:
    """Rows of one ruleset, detector and site method; canaries separately, with all fields."""

    rows: dict[str, ComparedSite]
    canaries: list[SiteState]
    left_out: int  # rows of other rulesets, detectors and site methods
    detector: str
    site_method: str


class _Method(NamedTuple):
    detector: str
    name: str
    digest: str


@projection_of(SiteState)
class _Row(Record, frozen=True, kw_only=True):
    """The fields of a `SiteState` that are compared."""

    verdict: str
    detector: str
    digest: str
    ruleset: str
    pages: int
    articles: int
    scored: int
    abstained: int
    flagged: int
    sources: tuple[str, ...] = ()
    best_rank: int
    method: str
    method_digest: str
    term: int

    @property
    def has_verdict(self) -> bool:
        """As `scoring.rates.site_rates.has_verdict`."""
        return bool(self.ruleset) or self.verdict != UNCLASSIFIABLE


def read_site_rows(log: Log, topic: str, digest: str, detector: str) -> SiteRows:
    """The sites of a run that are judged by the ruleset of this digest and scored by this detector.

    Where `detector` is "" it is the one of most sites. Of several site methods that of most sites counts: one changes
    by a setting, and rows change over one by one. Sites without a page count with any method. Raises as `Log.read`.
    """
    rows: dict[str, tuple[_Method, bool, ComparedSite]] = {}
    canaries: dict[str, SiteState] = {}
    others: set[str] = set()
    for partition in range(log.topics().get(topic, 0)):
        for message, row in rows_of(_Row, log.read(topic, partition)):
            site = message.key.decode(errors="replace")
            if is_canary(site):
                for _, state in records_of(SiteState, [message]):
                    canaries[site] = state
                continue
            rows.pop(site, None)
            others.discard(site)
            if row is None:
                continue
            if row.has_verdict and row.digest != digest:
                others.add(site)
                continue
            rows[intern(site)] = _method(row), row.has_verdict, compared_site(row)
    found = Counter(method for method, judged, _ in rows.values() if judged and detector in ("", method.detector))
    chosen = found.most_common(1)[0][0] if found else _Method(detector, "", "")
    kept = {
        site: row
        for site, (method, judged, row) in rows.items()
        if method == chosen or (not judged and chosen.detector in ("", method.detector))
    }
    return SiteRows(
        rows=kept,
        canaries=[row for row in canaries.values() if (row.digest, *_method(row)) == (digest, *chosen)],
        left_out=len(others) + len(rows) - len(kept),
        detector=chosen.detector,
        site_method=f"{chosen.name} {chosen.digest}".strip(),
    )


def _method(row: SiteState | _Row) -> _Method:
    return _Method(row.detector, row.method, row.method_digest)


def compared_site(row: SiteState | _Row) -> ComparedSite:
    """The compared fields of a row."""
    return ComparedSite(
        verdict=intern(row.verdict),
        pages=row.pages,
        articles=min(row.articles, row.pages),
        scored=row.scored,
        abstained=row.abstained,
        flagged=min(row.flagged, row.scored),
        sources=tuple(map(intern, row.sources)),
        best_rank=row.best_rank,
        term=row.term,
    )
