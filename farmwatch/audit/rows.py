"""A site's row, computed again from the hits, verdicts and scores that the log has of the site.

The fold is TALLY's own (`scoring.site_tally`). Its result does not depend on how the three topics were interleaved, so
the topics are folded one after the other. There is one exception: of a site with more than SPARE_TEXTS scored texts
TALLY may have dropped scores that came long before their verdicts.

A row differs lawfully, and is unprovable, in what rests on records that the log has no more:

- hits that retention removed: the row then counts more hits than the log has;
- verdicts that retention removed: not where all hits of the site are kept, and were found and appended after what was
  removed, for a site's verdicts come after its first hit (a hit that was removed may be appended again, see its time);
- scores that a newer one superseded beyond the end of the run's window: within it compaction keeps one of each text;
- records that cannot be read;
- a site method that the log does not know: that of a run that keeps none.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import NamedTuple

import msgspec

from farmwatch.audit.partition_reader import PartitionReader
from farmwatch.audit.scope import Audited, StoredRecord
from farmwatch.config.config import Config
from replay.runs.configured import site_method_of
from scoring.errors import ScoringError
from scoring.interface import SiteMethod, SiteVerdict
from scoring.rates.canary import is_canary
from scoring.site_tally import SPARE_TEXTS, JudgedPage, SiteTally
from stream.schema.records import Hit, Score, SiteState
from stream.schema.runs import Run
from stream.schema.topics import HITS, SCORES
from stream.schema.vocabulary import UNCLASSIFIABLE
from stream.text.user_errors import FarmwatchError
from stream.text.wording import one_line

_COMPARED = tuple(name for name in SiteState.__struct_fields__ if name != "v")
_OF_HITS = frozenset({"hits", "sources", "queries", "best_rank", "days"})
_METHOD = frozenset({"method", "method_digest"})
_OF_METHOD = _METHOD | {"verdict", "pages_used", "llr", "mixed", "decided_at"}
_OF_SCORES = _OF_METHOD | {"scored", "abstained", "flagged"}
_OF_VERDICTS = _OF_SCORES | {"pages", "articles", "dropped_by", "updated_at"}
_OF_RULESET = frozenset({"ruleset", "digest"})
_NO_EVIDENCE = SiteVerdict(verdict=UNCLASSIFIABLE, pages_used=0, flagged=0, llr=0.0, pages=0)
_CLOSE = 1e-8  # of two floats: the last bits depend on the processor
_SHOWN = 60  # characters of a value
_DAY_MS = 86_400_000


@dataclass(slots=True)
class Evidence:
    """What the log has of a site, each topic in its order."""

    hits: list[StoredRecord[Hit]] = field(default_factory=list)
    verdicts: list[StoredRecord[JudgedPage]] = field(default_factory=list)
    scores: list[StoredRecord[Score]] = field(default_factory=list)
    later: list[StoredRecord[Score]] = field(default_factory=list)  # beyond the run's window

    def is_unread(self, reader: PartitionReader, verdicts: str) -> bool:
        """Whether TALLY has still to read a record of it."""
        topics = ((HITS, self.hits), (verdicts, self.verdicts), (SCORES, self.scores))
        return any(kept and reader.unread("tally", topic, kept[-1].offset) for topic, kept in topics)


class Recomputed(NamedTuple):
    """A row computed from the log, and where the stored row differs from it."""

    row: SiteState | None  # None = there is no row, nor is it known by which method it would be made
    wrong: str  # what nothing excuses; "" = nothing
    is_proved: bool  # every field follows from the log


@dataclass(slots=True)
class Methods:
    """By which method a run's sites are judged: the one that it keeps, else the configured one."""

    run: Run
    config: Config
    _known: dict[str, SiteMethod | None] = field(init=False, default_factory=dict)

    def of(self, detector: str, digest: str | None) -> SiteMethod | None:
        """The method of a row that names this one, None for a row that is not there; None where it is not known."""
        if detector not in self._known:
            self._known[detector] = self._found(detector)
        method = self._known[detector]
        is_said = digest is None or self.run.site_method  # else the configuration may have changed
        return method if method is not None and (is_said or method.digest == digest) else None

    def _found(self, detector: str) -> SiteMethod | None:
        try:
            return site_method_of(self.config, msgspec.structs.replace(self.run, detector=detector))
        except (FarmwatchError, ScoringError):
            return None


def recomputed(
    site: str, row: SiteState | None, evidence: Evidence, methods: Methods, audited: Audited, reader: PartitionReader
) -> Recomputed:
    """What the log says of a site beside its row."""
    detector = audited.run.detector or ("" if row is None else row.detector)
    tally = folded(evidence, detector)
    pages = tally.evidence(detector)
    method = methods.of(detector, None if row is None else row.method_digest)
    verdict = _NO_EVIDENCE if method is None else method.decide(pages)
    if row is None:
        found = None if method is None else tally.row(site, detector, verdict, method.digest, audited.run.name)
        return Recomputed(found, "no row", is_proved=False)
    found = tally.row(site, detector, verdict, "" if method is None else method.digest, audited.run.name)
    found = msgspec.structs.replace(found, updated_at=_latest_update(row, tally))
    if method is None:  # without evidence every method says the same
        found = _as_said(found, row, _OF_METHOD if pages else _METHOD)
    differing = [name for name in _COMPARED if not _same(getattr(row, name), getattr(found, name))]
    lawful = _unknown(row, found, evidence, audited, reader) if differing else frozenset()
    wrong = [name for name in differing if name not in lawful]
    return Recomputed(
        _as_said(found, row, lawful),
        "; ".join(f"row says {name} {_shown(row, name)}, the log says {_shown(found, name)}" for name in wrong),
        is_proved=not differing and (method is not None or not pages),
    )


def folded(evidence: Evidence, detector: str) -> SiteTally:
    """The tally of a site's records, with the scores of one detector."""
    tally = SiteTally.load(None)
    tally.add_hits([*{kept.record.id: kept.record for kept in reversed(evidence.hits)}.values()])  # one of each id
    for judged in evidence.verdicts:
        tally.add_verdict(judged.record)
    for score in evidence.scores:
        if score.record.detector == detector:
            tally.add_score(score.record, detector)
    return tally


def _unknown(
    row: SiteState, found: SiteState, evidence: Evidence, audited: Audited, reader: PartitionReader
) -> frozenset[str]:
    """Fields of a row that may rest on what the log has no more."""
    names, unknown = audited.names, frozenset[str]()
    hits_begin, _ = reader.window("tally", HITS)
    if row.hits > found.hits and reader.beginning(HITS) > hits_begin:
        unknown |= _OF_HITS
    since = reader.kept_since(names.verdicts)
    if row.hits == found.hits and row.days[:1] < found.days[:1] and reader.beginning(HITS) > hits_begin:
        unknown |= {"days"}  # the hits were removed and appended again, without a time of their own
    if since and not _is_younger(row, found, evidence, since):
        unknown |= _OF_VERDICTS if evidence.verdicts else _OF_VERDICTS | _OF_RULESET
    texts = {kept.record.text_digest for kept in evidence.scores if kept.record.detector == found.detector}
    superseded = {kept.record.text_digest for kept in evidence.later if kept.record.detector == found.detector} - texts
    if len(texts) > SPARE_TEXTS or superseded:
        unknown |= _OF_SCORES
    if not row.method_digest:  # a row of before methods had digests
        unknown |= {"method_digest"}
    if reader.is_damaged(HITS, row.site):
        unknown |= _OF_HITS
    if reader.is_damaged(SCORES, row.site):
        unknown |= _OF_SCORES
    if reader.is_damaged(names.verdicts, row.site):
        unknown |= _OF_VERDICTS | _OF_RULESET
    return unknown


def _is_younger(row: SiteState, found: SiteState, evidence: Evidence, since_ms: int) -> bool:
    """Whether the log has all hits of the site, and none was found or appended before `since_ms`."""
    return (
        row.hits == found.hits > 0
        and min(row.days, default=0) >= since_ms // _DAY_MS
        and all(min(kept.timestamp_ms, kept.record.fetched_at) >= since_ms for kept in evidence.hits)
    )


def _latest_update(row: SiteState, tally: SiteTally) -> int:
    """The row's time, which only a canary's pages bound: corrections by canaries depend on it."""
    if not is_canary(row.site):
        return row.updated_at
    return min(row.updated_at, max((page.fetched_at for page in tally.pages.values()), default=0))


def _as_said(found: SiteState, row: SiteState, names: frozenset[str]) -> SiteState:
    """What was found, but for some fields, which stay as the row has them."""
    return msgspec.structs.replace(found, **{name: getattr(row, name) for name in names})


def _same(one: object, other: object) -> bool:
    if isinstance(one, float) and isinstance(other, float):
        return math.isclose(one, other, rel_tol=_CLOSE, abs_tol=_CLOSE)
    return one == other


def _shown(row: SiteState, name: str) -> str:
    text = one_line(str(getattr(row, name)))
    return text if len(text) <= _SHOWN else f"{text[: _SHOWN - 1]}…"
