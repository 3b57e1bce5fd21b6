"""The stages as functions on plain rows, for `farmwatch lab score`, `tally` and `estimate` without a log.

The field names of these structs are the columns of the pipes' JSON lines: do not change them.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

import msgspec

from scoring.estimate.error_counts import ErrorCounts
from scoring.estimate.fit import KnownSites
from scoring.estimate.reviewed_share import Review
from scoring.interface import PageScore
from scoring.rates.canary import truth_of
from scoring.rates.direct_share import by_review, share_of_rows
from scoring.rates.site_rates import EstimateLine, site_rate
from scoring.rates.versions import refuse_another
from scoring.sites.registry import SiteMethod
from stream.schema.records import SiteState
from stream.schema.vocabulary import SiteClass, Truth
from stream.text.ids import Ident
from stream.text.ranges import Count


class TextLine(msgspec.Struct, frozen=True, kw_only=True):
    """Input of `score`; site and URL are copied to the output, further fields of a line are ignored."""

    id: Ident
    text: str
    site: str | None = None
    url: str | None = None


class FlagLine(msgspec.Struct, frozen=True, kw_only=True):
    """Input of `tally`: one article of a site, in page order; flag and score null = abstained."""

    site: str
    flag: bool | None
    score: float | None = None
    detector: str = ""  # of the flag, if the line names it


class TallyLine(msgspec.Struct, frozen=True, kw_only=True):
    """Output of `tally`: one site, and what judged it."""

    site: str
    verdict: str
    pages_used: int
    pages: int  # lines of the site, abstentions included
    evidence: str
    mixed: bool = False  # two clear groups of scores, see scoring.sites.bimodal
    scored: int  # lines with a flag
    flagged: int  # those flagged as LLM text
    detector: str
    method: str
    method_digest: str


class SiteVerdictLine(msgspec.Struct, frozen=True, kw_only=True):
    """Input of `estimate`; further fields of a line are ignored. A line without a site is a separate site."""

    site: str | None = None
    verdict: SiteClass
    detector: str | None = None  # identity
    ruleset: str | None = None
    digest: str | None = None  # of the ruleset
    method: str | None = None  # of the site verdicts
    method_digest: str | None = None
    run: str | None = None
    scored: Count | None = None
    flagged: Count | None = None
    queries: list[str] = []

    def __post_init__(self) -> None:
        if (self.flagged or 0) > (self.scored or 0):
            raise ValueError(f"{self.flagged} flagged of {self.scored} scored pages")


def tally_scores(lines: Iterable[FlagLine], method: SiteMethod, detector: str) -> list[TallyLine]:
    """Judge each site by `method` and the scores of one detector.

    Sites are in the order of their first line, their pages in the given order.
    """
    sites: dict[str, list[FlagLine]] = {}
    for line in lines:
        sites.setdefault(line.site, []).append(line)
    judged = []
    for site, pages in sites.items():
        known = [page for page in pages if not (page.flag is None and page.score is None)]
        verdict = method.decide([PageScore(page.flag, page.score) for page in known])
        judged.append(
            TallyLine(
                site=site,
                verdict=verdict.verdict,
                pages_used=verdict.pages_used,
                pages=len(pages),
                scored=sum(page.flag is not None for page in known),
                flagged=sum(page.flag is True for page in known),
                evidence=method.evidence(verdict),
                mixed=verdict.mixed,
                detector=detector,
                method=method.name,
                method_digest=method.digest,
            )
        )
    return judged


def estimate_sites(
    lines: Iterable[SiteVerdictLine],
    errors: ErrorCounts | None = None,
    confidence: float = 0.95,
    review: Review | None = None,
) -> EstimateLine:
    """The share of LLM sites; of several lines for a site the last one counts. Canary sites are sites of known truth.

    The interval is clustered by registrable domain and query. A line without a site is a separate domain.

    Raises PooledDetectors for lines of two detectors, rulesets, site methods or runs, of which none may be left out by
    a later line of its site, and as `scoring.estimate`. Lines that do not name one are of none that others name.
    """
    sites: dict[str, SiteVerdictLine] = {}
    seen: dict[str, str] = {}
    for number, line in enumerate(lines):
        names = {
            "detector": line.detector or "",
            "ruleset": f"{line.ruleset or ''} {line.digest or ''}".strip(),
            "site method": f"{line.method or ''} {line.method_digest or ''}".strip(),
            "run": line.run or "",
        }
        if line.verdict == SiteClass.UNCLASSIFIABLE and not names["ruleset"]:
            del names["ruleset"]  # a site without a page has no ruleset yet, and counts with any
        refuse_another(names, seen)
        sites[f"line {number}" if line.site is None else line.site] = line
    truths: dict[str | None, list[SiteVerdictLine]] = {}
    for site, line in sites.items():
        truths.setdefault(truth_of(site), []).append(line)
    cells = {truth: Counter((line.scored or 0, line.flagged or 0) for line in of) for truth, of in truths.items()}
    judged = site_rate(Counter(line.verdict for line in truths.get(None, [])), errors, confidence)
    known = KnownSites(cells.get(Truth.HUMAN, {}), cells.get(Truth.LLM, {}))
    rows = []
    for line in truths.get(None, []):
        site, scored, flagged = line.site or "", line.scored or 0, line.flagged or 0
        rows.append(SiteState(id=site, site=site, scored=scored, flagged=flagged, queries=line.queries))
    share, fit = share_of_rows(rows, known, confidence)
    if review is not None and fit is not None:
        share = by_review(share, fit, rows, review, confidence)
    return EstimateLine.of(judged, share)
