"""Simulated webs with farms: how many listed ones are false."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np

from scoring.rates.certain_sites import certain_llm_sites
from scoring.rates.farm_signs import FarmSigns
from scoring.rates.settings import RateSettings
from stream.schema.records import Sitemaps, SiteState

SITES = 300
KNOWN = 40  # canary sites of each kind


def false_farms(seeds: Iterable[int], most_false: float = 0.05, share: float = 0.3) -> tuple[int, int]:
    """The false and all entries of the lists of farms, over webs in which ads are on .2 of LLM sites, .6 of others."""
    false = number = 0
    for seed in seeds:
        rng = np.random.default_rng(seed)
        is_llm = rng.random(SITES) < share
        has_ads = rng.random(SITES) < np.where(is_llm, 0.2, 0.6)
        n = np.minimum(rng.geometric(0.12, SITES), 20)
        k = rng.binomial(n, np.where(is_llm, rng.beta(19, 5, SITES), rng.beta(0.5, 11, SITES)))
        rows = [_row(f"s{i}.example", int(n[i]), int(k[i]), ads=bool(has_ads[i])) for i in range(SITES)]
        listed = {row.site: _listed(row.site) for row in rows}
        for kind, mean in (("human", rng.beta(0.5, 11, KNOWN)), ("llm", rng.beta(19, 5, KNOWN))):
            known = rng.binomial(10, mean)
            rows += [_row(f"k.{i:016x}.10.7.{kind}.canary.invalid", 10, int(known[i]), ads=False) for i in range(KNOWN)]
        signs = FarmSigns.of(rows, listed)
        certain = certain_llm_sites(rows, RateSettings(), 1, most_false, signs=signs).sites
        number += len(certain)
        false += sum(not is_llm[int(site[1:].partition(".")[0])] for site in certain)
    return false, number


def _row(site: str, n: int, k: int, *, ads: bool) -> SiteState:
    signals = {"ads:gam": 2} if ads else {"cms:wix": 2}
    counts: dict[str, Any] = {"scored": n, "flagged": k, "pages": 20, "articles": 20}
    return SiteState(id=site, site=site, ruleset="r", epoch="e", signals=signals, updated_at=1, **counts)


def _listed(site: str) -> Sitemaps:
    return Sitemaps(id=site, site=site, urls=500, files_read=1, files_listed=1, months={})
