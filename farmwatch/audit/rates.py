"""The rate of the rows as they stand, beside the rate of the rows as they follow from the log."""

from __future__ import annotations

from collections import Counter

import msgspec

from farmwatch.audit.report import RateCheck
from scoring.rates.canary import is_canary
from scoring.rates.settings import RateSettings
from scoring.rates.split_rates import RateLine, Versions, rate_lines
from stream.schema.records import SiteState

_ANY = "-"  # a site's name: a rate asks only whether it is a canary's


class RateRows:
    """Gathers rows of both kinds. Rows that count alike are one object, so that a site takes a few bytes."""

    def __init__(self) -> None:
        self._rows: list[SiteState] = []
        self._recomputed: list[SiteState] = []
        self._taken: Counter[tuple[str, str, str]] = Counter()
        self._alike: dict[tuple[object, ...], SiteState] = {}

    def add(self, row: SiteState | None, recomputed: SiteState | None) -> None:
        """A site's row, None where there is none, and what the log makes of it, None for a row of nothing."""
        if row is not None:
            self._rows.append(self._slim(row))
        if recomputed is not None:
            self._recomputed.append(self._slim(recomputed))

    def take(self, row: SiteState) -> None:
        """A row that counts as it stands: it cannot be recomputed now."""
        self.add(row, row)
        self._taken[row.digest, row.detector, row.method_digest] += 1

    def checks(self, settings: RateSettings, now_ms: int) -> list[RateCheck]:
        """The rates, one for each ruleset, detector and site method."""
        said, found = (_by_versions(rows, settings, now_ms) for rows in (self._rows, self._recomputed))
        return [
            RateCheck(v, said.get(v), found.get(v), self._taken[v.digest, v.detector, v.site_method_digest])
            for v in sorted({*said, *found})
        ]

    def _slim(self, row: SiteState) -> SiteState:
        canary = (row.site, row.updated_at) if is_canary(row.site) else ()
        versions = (row.run, row.ruleset, row.digest, row.detector, row.method, row.method_digest)
        key = (*canary, *versions, row.verdict, row.mixed, row.pages > 0, row.scored, row.flagged)
        if key not in self._alike:
            small = {} if canary else {"site": _ANY, "pages": min(row.pages, 1)}
            self._alike[key] = msgspec.structs.replace(
                row, **small, sources=[], queries=[], days=[], dropped_by={}, llr=0.0
            )
        return self._alike[key]


def _by_versions(rows: list[SiteState], settings: RateSettings, now_ms: int) -> dict[Versions, RateLine]:
    lines = rate_lines(rows, "", settings, now_ms=now_ms)
    return {_versions(line): line for line in lines if line.sites}


def _versions(line: RateLine) -> Versions:
    return Versions(line.run, line.ruleset, line.digest, line.detector, line.site_method, line.site_method_digest)
