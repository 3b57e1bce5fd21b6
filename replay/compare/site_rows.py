"""The newest rows of the sites of a run, with one ruleset, detector and site method."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from sys import intern
from typing import NamedTuple

import msgspec

from replay.rows.site_table import slim
from scoring.rates.canary import is_canary
from scoring.rates.versions import has_verdict
from stream.log.contract import Log
from stream.processing.topic_reader import rows_of
from stream.schema.records import SiteState


@dataclass(frozen=True, slots=True)
class SiteRows:
    """Rows of one ruleset, detector and site method, `slim`; canaries separately, with all fields."""

    rows: dict[str, SiteState]
    canaries: list[SiteState]
    left_out: int  # rows of other rulesets, detectors and site methods
    detector: str
    site_method: str


class _Method(NamedTuple):
    detector: str
    name: str
    digest: str


def read_site_rows(log: Log, topic: str, digest: str, detector: str) -> SiteRows:
    """The sites of a run that are judged by the ruleset of this digest and scored by this detector.

    If `detector` is "", it is the one of most sites. Of several site methods, that of most sites counts: a setting
    changes it, and rows change one by one. Sites without a page count with any method. Raises as `Log.read`.
    """
    rows: dict[str, SiteState] = {}
    canaries: dict[str, SiteState] = {}
    others: set[str] = set()
    for partition in range(log.topics().get(topic, 0)):
        for message, row in rows_of(SiteState, log.read(topic, partition)):
            site = message.key.decode(errors="replace")
            if is_canary(site):
                if row is not None:
                    canaries[site] = row
                continue
            rows.pop(site, None)
            others.discard(site)
            if row is None:
                continue
            if has_verdict(row) and row.digest != digest:
                others.add(site)
                continue
            rows[intern(site)] = compared(row)
    found = Counter(_method(row) for row in rows.values() if has_verdict(row) and detector in ("", row.detector))
    chosen = found.most_common(1)[0][0] if found else _Method(detector, "", "")
    kept = {
        site: row
        for site, row in rows.items()
        if _method(row) == chosen or (not has_verdict(row) and chosen.detector in ("", row.detector))
    }
    return SiteRows(
        rows=kept,
        canaries=[row for row in canaries.values() if (row.digest, *_method(row)) == (digest, *chosen)],
        left_out=len(others) + len(rows) - len(kept),
        detector=chosen.detector,
        site_method=f"{chosen.name} {chosen.digest}".strip(),
    )


def compared(row: SiteState) -> SiteState:
    """The row with the compared fields only, and counts that fit each other."""
    counts = {"articles": min(row.articles, row.pages), "flagged": min(row.flagged, row.scored)}
    return msgspec.structs.replace(slim(row), **counts)


def _method(row: SiteState) -> _Method:
    return _Method(row.detector, row.method, row.method_digest)
