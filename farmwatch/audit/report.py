"""The result of an audit: counts per step, broken and waiting records, and the recomputed rate."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from operator import attrgetter
from typing import Any, NamedTuple

from farmwatch.share.words import short_judged, short_share
from replay.rows.site_table import slim
from replay.rows.stated_accounts import StatedAccounts
from scoring.estimate.reviewed_share import Review
from scoring.rates.settings import RateSettings
from scoring.rates.split_rates import RateLine, RateQuery, rate_lines
from scoring.rates.versions import Versions
from stream.schema.records import SiteState
from stream.text.wording import counted


class FieldDifference(NamedTuple):
    """A field of which the stored row and the recomputed row have different values."""

    field: str
    stored: Any
    recomputed: Any


@dataclass(frozen=True, slots=True)
class BrokenRecord:
    """A record that breaks a step: missing, duplicated or different."""

    step: str
    id: str
    site: str
    how: str
    differences: tuple[FieldDifference, ...] = ()  # of a row


@dataclass(frozen=True, slots=True)
class UnreadableRecord:
    """An unreadable record. `state` names its count in the step: dead, waiting, expired, …"""

    step: str
    topic: str
    partition: int
    offset: int
    why: str
    state: str

    @property
    def text(self) -> str:
        """The record with its place and the reason."""
        return f"{self.topic}/{self.partition} offset {self.offset}: {self.why} ({self.state})"


@dataclass(frozen=True, slots=True)
class ExpiredOffsets:
    """Offsets that retention removed before a stage read them."""

    stage: str
    topic: str
    partition: int
    offset: int
    records: int

    @property
    def text(self) -> str:
        """The lost offsets, and the stage."""
        return (
            f"{self.topic}/{self.partition}: {counted(self.records, 'record')} from offset {self.offset} on"
            f" {'was' if self.records == 1 else 'were'} removed by retention before {self.stage.upper()} read them"
        )


@dataclass(frozen=True, slots=True)
class RateCheck:
    """A rate as `farmwatch rate` computes it: from the stored rows, and from recomputed rows; None = no such rows.

    `taken` rows could not be recomputed: their stored values count in both.
    """

    versions: Versions
    rows: RateLine | None
    recomputed: RateLine | None
    taken: int = 0

    @property
    def ok(self) -> bool:
        """Whether both rates are equal."""
        return self.rows == self.recomputed

    @property
    def text(self) -> str:
        """Both rates in one line."""
        text = f"share recomputed from the log: {_share(self.recomputed)}"
        text += " (as in the stored rows)" if self.ok else f"; the stored rows give {_share(self.rows)}"
        return text + (f"; {counted(self.taken, 'row')} could not be recomputed" if self.taken else "")


@dataclass(slots=True)
class AuditStep:
    """Counts of one step: every input record is done, dead, waiting, expired, unprovable or broken."""

    name: str
    records: int = 0
    done: int = 0
    dead: int = 0
    waiting: int = 0
    expired: int = 0
    unprovable: int = 0  # rows with missing evidence
    unreadable: int = 0  # of `records`
    broken: int = 0
    reasons: Counter[str] = field(default_factory=Counter)  # why records are done without a page or a score


@dataclass(slots=True)
class AuditReport:
    """The counts per step, and the broken, waiting, unreadable and lost records."""

    steps: dict[str, AuditStep]
    broken: list[BrokenRecord] = field(default_factory=list)
    waiting: Counter[str] = field(default_factory=Counter)  # stage -> unprocessed records
    unreadable: list[UnreadableRecord] = field(default_factory=list)
    lost: list[ExpiredOffsets] = field(default_factory=list)
    rates: list[RateCheck] = field(default_factory=list)

    @property
    def ok(self) -> bool:
        """Whether nothing is lost, duplicated or different."""
        return not self.broken and not self.lost and all(rate.ok for rate in self.rates)

    @property
    def settled(self) -> bool:
        """Whether nothing waits."""
        return not self.waiting.total() and all(step.waiting == 0 for step in self.steps.values())

    @property
    def text(self) -> str:
        """The report in one line."""
        if not self.ok:
            unreadable = sum(record.state == "broken" for record in self.unreadable)
            faults = {
                "unaccounted for": len(self.broken) - unreadable,
                "unreadable": unreadable,
                "removed by retention before being read": sum(lost.records for lost in self.lost),
            }
            said = [f"{counted(number, 'record')} {fault}" for fault, number in faults.items() if number]
            return ", ".join([*said, *([] if all(rate.ok for rate in self.rates) else ["the share differs"])])
        if self.settled:
            unprovable = sum(step.unprovable for step in self.steps.values())
            return f"clean; {counted(unprovable, 'row')} unprovable" if unprovable else "clean"
        stages = ", ".join(f"{stage}: {count}" for stage, count in self.waiting.items() if count)
        number = self.waiting.total()
        return f"nothing broken; {counted(number, 'record')} {'waits' if number == 1 else 'wait'} ({stages})"


def _share(line: RateLine | None) -> str:
    if line is None:
        return "none"
    return f"{short_share(line)}; by site verdicts alone: {short_judged(line)}"


class RateRows:
    """Collects stored and recomputed rows, without the fields of which no share depends, to save memory."""

    def __init__(self, stated: StatedAccounts) -> None:
        self._stated = stated
        self._rows: list[SiteState] = []
        self._recomputed: list[SiteState] = []
        self._taken: Counter[tuple[str, str, str]] = Counter()

    def add(self, row: SiteState | None, recomputed: SiteState | None) -> None:
        """Add the stored row of a site (None = no row) and the recomputed row (None = no evidence)."""
        stored = row and slim(self._stated.added_to(row))
        made = recomputed and slim(self._stated.added_to(recomputed))
        if stored is not None:
            self._rows.append(stored)
        if made is not None:
            self._recomputed.append(stored if stored == made else made)

    def take(self, row: SiteState) -> None:
        """Add a row that cannot be recomputed now."""
        self.add(row, row)
        self._taken[row.digest, row.detector, row.method_digest] += 1

    def checks(self, settings: RateSettings, now_ms: int, review: Review | None) -> list[RateCheck]:
        """The rates, one for each ruleset, detector and site method."""
        query = RateQuery(settings=settings, now_ms=now_ms, review=review)
        stored, recomputed = (
            {
                Versions(of.run, of.ruleset, of.digest, of.detector, of.site_method, of.site_method_digest): of
                for of in rate_lines(sorted(rows, key=attrgetter("site")), query)  # as `farmwatch rate` reads them
                if of.sites
            }
            for rows in (self._rows, self._recomputed)
        )
        return [
            RateCheck(v, stored.get(v), recomputed.get(v), self._taken[v.digest, v.detector, v.site_method_digest])
            for v in sorted({*stored, *recomputed})
        ]
