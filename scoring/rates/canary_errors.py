"""What a rate is corrected by: counts of the configuration, else those of the canaries, else nothing."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from scoring.rates.canary_counts import CanarySummary, Measured, canary_summary
from scoring.rates.error_counts import ErrorCounts
from scoring.rates.settings import RateSettings
from stream.schema.records import SiteState

_DAY_MS = 86_400_000


@dataclass(frozen=True, slots=True)
class Correction:
    """The error counts in force, None for none, and what is to be said of them where canaries have a part in it."""

    errors: ErrorCounts | None = None
    remark: str = ""


def errors_in_force(
    settings: RateSettings, rows: Iterable[SiteState], now_ms: int, sites: Iterable[Measured]
) -> Correction:
    """The error counts for `sites` of one ruleset, detector and site method; `rows` hold their canaries.

    The configuration's own come first. The canaries of the last `rate.canary_days`, as long as the sites, take their
    place where at least `rate.canary_least` of each truth are classifiable. Raises PooledDetectors.
    """
    if settings.errors is not None:
        return Correction(settings.errors)
    return by_canaries(recent_canaries(settings, rows, now_ms), settings.canary_least, sites)


def recent_canaries(settings: RateSettings, rows: Iterable[SiteState], now_ms: int) -> CanarySummary:
    """The canaries that count now, of `rows` of one ruleset, detector and site method. Raises PooledDetectors.

    A canary is as old as its row's `updated_at`, which is the time of its round.
    """
    return canary_summary(rows, now_ms - int(settings.canary_days * _DAY_MS))


def by_canaries(found: CanarySummary, least: int, sites: Iterable[Measured] = ()) -> Correction:
    """The canaries' error counts, if they suffice to correct the sites; if not, why not, where there are any."""
    counts = found.counts_as_long_as(sites)
    if not any(found.sites.values()):
        return Correction()
    if min(counts.llm_sites, counts.human_sites) < least:
        return Correction(
            remark=f"not corrected by canaries: {counts.llm_sites} LLM and {counts.human_sites} human ones could be"
            f" classified, {least} of each are needed"
        )
    if counts.unusable:
        return Correction(remark=f"not corrected by canaries: {counts.unusable}")
    return Correction(
        counts,
        f"corrected by {counts.llm_sites} LLM canary sites, of which {counts.llm_found} were found, and"
        f" {counts.human_sites} human ones, of which {counts.human_sites - counts.human_cleared} were called llm"
        + (", had they as few articles as the sites" if counts != found.counts else ""),
    )
