"""What became of canary sites: the errors of the site verdict, and of page flags, by what is known of their truth.

A canary site is sent again every round under a new name, with the same texts; a detector that gives a text the same
score every time says nothing new on it. So the rounds of one content are one site, and its newest round counts. What
is counted is what rates are made of: classifiable sites, the undecided as not llm.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence

import msgspec

from scoring.canary import HUMAN_TRUTH, LLM_TRUTH, TRUTHS, canary_name, truth_of
from scoring.error_counts import CanaryCounts
from scoring.rate_intervals import Interval, wilson
from scoring.site_rates import refuse_pooled
from scoring.site_verdict import LLM, UNCLASSIFIABLE
from stream.records import SiteState

_Z95 = 1.959963984540054


class CanaryPages(msgspec.Struct, frozen=True, kw_only=True):
    """Pages of canary sites of one truth; of each content the newest round."""

    sent: int  # by the sites' names
    measured: int  # with features
    kept: int  # articles by the ruleset
    scored: int  # articles with a usable score
    flagged: int  # of them taken for LLM text


class CanarySummary(msgspec.Struct, frozen=True, kw_only=True):
    """Canary sites of one detector and one ruleset; keys are `human` and `llm`, who wrote them."""

    sites: Mapping[str, Mapping[str, int]]  # truth -> verdict -> sites
    pages: Mapping[str, CanaryPages]
    last_at: int  # when the row of a canary site changed last, ms; 0 = never

    @property
    def counts(self) -> CanaryCounts:
        """The errors of the site verdict."""
        human, llm = self.sites[HUMAN_TRUTH], self.sites[LLM_TRUTH]
        classifiable = {truth: _classifiable(found) for truth, found in self.sites.items()}
        return CanaryCounts(
            llm_sites=classifiable[LLM_TRUTH],
            llm_found=llm.get(LLM, 0),
            human_sites=classifiable[HUMAN_TRUTH],
            human_cleared=classifiable[HUMAN_TRUTH] - human.get(LLM, 0),
        )

    def shares(self) -> dict[str, Interval]:
        """What the canaries measure, by name; what has nothing to divide by is left out.

        site_fpr and site_tpr: classifiable sites called llm; page_fpr and page_tpr: scored pages that are flagged;
        kept_human and kept_llm: pages sent that the ruleset keeps. Pages of a site agree: the intervals of page shares,
        which take them as independent, are too narrow.
        """
        shares: dict[str, tuple[int, int]] = {}
        for truth, name in ((HUMAN_TRUTH, "fpr"), (LLM_TRUTH, "tpr")):
            found, pages = self.sites[truth], self.pages[truth]
            shares[f"site_{name}"] = found.get(LLM, 0), _classifiable(found)
            shares[f"page_{name}"] = pages.flagged, pages.scored
            shares[f"kept_{truth}"] = pages.kept, pages.sent
        return {name: wilson(min(part, whole), whole, _Z95) for name, (part, whole) in shares.items() if whole}


def canary_summary(rows: Iterable[SiteState], since_ms: int = 0) -> CanarySummary:
    """Count the canary sites among rows whose row has changed since then (ms), of each content its newest round.

    Raises PooledDetectors for canary rows of several detectors, rulesets or runs.
    """
    canaries = [row for row in rows if truth_of(row.site) is not None]
    refuse_pooled(canaries)
    newest: dict[str, SiteState] = {}
    for row in sorted(canaries, key=lambda row: (row.updated_at, row.site)):
        if row.updated_at >= since_ms:
            _put_newest(newest, row)
    chosen = {truth: [row for row in newest.values() if truth_of(row.site) == truth] for truth in TRUTHS}
    return CanarySummary(
        sites={truth: dict(Counter(row.verdict for row in found)) for truth, found in chosen.items()},
        pages={truth: _pages(found) for truth, found in chosen.items()},
        last_at=max((row.updated_at for row in canaries), default=0),
    )


def canary_counts(rows: Iterable[SiteState], since_ms: int = 0) -> CanaryCounts:
    """The errors of the site verdict on the canary sites among `rows`. Raises as `canary_summary`."""
    return canary_summary(rows, since_ms).counts


def _put_newest(newest: dict[str, SiteState], row: SiteState) -> None:
    """Of one content the round with a verdict counts, and of those the newest: one under way says nothing yet."""
    name = canary_name(row.site)
    content = row.site if name is None else name.content
    known = newest.get(content)
    if known is None or row.verdict != UNCLASSIFIABLE or known.verdict == UNCLASSIFIABLE:
        newest[content] = row


def _classifiable(verdicts: Mapping[str, int]) -> int:
    return sum(count for verdict, count in verdicts.items() if verdict != UNCLASSIFIABLE)


def _pages(rows: Sequence[SiteState]) -> CanaryPages:
    names = [canary_name(row.site) for row in rows]
    return CanaryPages(
        sent=sum(row.pages if name is None else name.pages for row, name in zip(rows, names, strict=True)),
        measured=sum(row.pages for row in rows),
        kept=sum(row.articles for row in rows),
        scored=sum(row.scored for row in rows),
        flagged=sum(row.flagged for row in rows),
    )
