"""What the canaries measured, one line for each ruleset, detector and site method."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import msgspec

from farmwatch.canaries.file import CanarySite, read_canaries
from farmwatch.config.config import Config
from farmwatch.config.detector_config import caveats
from farmwatch.share.words import sentence
from replay.rows.site_table import read_sites
from scoring.estimate.intervals import Interval
from scoring.rates.canary import is_canary
from scoring.rates.canary_counts import CanarySummary, by_canaries, recent_canaries
from scoring.rates.versions import Versions, comparable
from stream.log.contract import Log
from stream.schema.control_sites import is_control_site

SAID = {
    "site_fpr": "human sites called llm",
    "site_tpr": "LLM sites called llm",
    "page_fpr": "human pages flagged",
    "page_tpr": "LLM pages flagged",
    "kept_human": "human pages kept by the ruleset",
    "kept_llm": "LLM pages kept by the ruleset",
}
"""The measured shares in words."""


class MeasuredCanaries(NamedTuple):
    """The canaries of one ruleset, detector and site method."""

    versions: Versions
    summary: CanarySummary
    correction: str  # in words
    through: int  # sites of the present round that came through
    sent: int  # sites of a round
    warning: str

    @property
    def shares(self) -> dict[str, Interval]:
        return self.summary.shares()

    def fields(self) -> dict[str, Any]:
        """As JSON."""
        return {
            **self.versions._asdict(),
            "sites": self.summary.sites,
            "pages": msgspec.to_builtins(self.summary.pages),
            "counts": msgspec.to_builtins(self.summary.counts),
            "shares": {kind: share._asdict() for kind, share in self.shares.items()},
            "last_at": self.summary.last_at,
            "present_round": {"sent": self.sent, "through": self.through},
            "correction": self.correction,
            "warning": self.warning,
        }


def read_canary_lines(
    log: Log, config: Config, now_ms: int
) -> tuple[Sequence[CanarySite], int, list[MeasuredCanaries]]:
    """The sites that are sent, the present round, and what was measured. Raises ConfigError, and as `Log.read`."""
    sent = read_canaries(config.canary)
    rows = [row for row in read_sites(log) if is_canary(row.site) and not is_control_site(row.site)]
    number = now_ms // (config.canary.every_s * 1000)
    present = {site.name(number).site for site in sent}
    lines = []
    for versions, of in comparable(rows) if rows else ():
        summary = recent_canaries(config.rate, of, now_ms)
        remark = by_canaries(summary).remark
        said = sentence(remark) if remark else "no canary has come through lately"
        through = sum(row.site in present and row.pages > 0 for row in of)
        warning = caveats(config, [versions.detector])[versions.detector]
        lines.append(MeasuredCanaries(versions, summary, said, through, len(sent), warning))
    return sent, number, lines
