"""Recomputes the row of a site from its hits, verdicts and scores in the log.

The fold is TALLY's own (`scoring.stages.site_tally`). Its result does not depend on how the three topics were
interleaved, so the topics are folded one after the other. There is one exception: for a site with more than
SPARE_TEXTS scored texts TALLY may have dropped scores that arrived long before their verdicts.

A row may differ, and is then unprovable, in fields that depend on records missing from the log:

- expired hits: the row then counts more hits than the log has;
- expired verdicts, unless the log has all hits of the site and all were found and appended after the expired verdicts:
  the verdicts of a site come after its first hit (an expired hit may be appended again, see its time);
- scores that a newer score replaced after the end of the window: compaction keeps one score of each text;
- in the live run, records of an earlier term that came more than a term after its end: TALLY has forgotten its pages;
- unreadable records;
- an unknown site method, for a run without a stored one.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

import msgspec

from farmwatch.audit.partition_reader import PartitionReader
from farmwatch.audit.report import FieldDifference
from farmwatch.audit.scope import AuditScope, StoredRecord
from farmwatch.config.config import Config
from replay.runs.configured import site_method_of
from scoring.interface import SiteVerdict
from scoring.rates.canary import is_canary
from scoring.sites.registry import SiteMethod
from scoring.stages.site_pages import JudgedPage
from scoring.stages.site_tally import SPARE_TEXTS, SiteTally
from stream.schema.records import Hit, Score, SiteState
from stream.schema.runs import Run
from stream.schema.topics import HITS, SCORES
from stream.schema.vocabulary import SiteClass
from stream.text.times import DAY_MS
from stream.text.user_errors import FarmwatchError

_COMPARED = tuple(name for name in SiteState.__struct_fields__ if name != "v")
_HITS_FIELDS = frozenset({"hits", "sources", "queries", "best_rank", "days"})
_METHOD_NAME_FIELDS = frozenset({"method", "method_digest"})
_METHOD_FIELDS = _METHOD_NAME_FIELDS | {"verdict", "pages_used", "llr", "mixed", "decided_at", "former"}
_AGE_FIELDS = frozenset({"control_scored", "control_flagged", "declared_scored", "declared_flagged"})
_TURN_FIELDS = frozenset({"before_scored", "before_flagged", "since_scored", "since_flagged", "turn_p", "quarters"})
_SCORES_FIELDS = _METHOD_FIELDS | {"scored", "abstained", "flagged", "through_segments"} | _AGE_FIELDS | _TURN_FIELDS
_VERDICTS_FIELDS = _SCORES_FIELDS | {"pages", "articles", "dropped_by", "signals", "updated_at"}
_VERSION_FIELDS = frozenset({"ruleset", "digest", "epoch"})
_TERM_FIELDS = frozenset({"term", "term_start", "term_end"})
_NO_EVIDENCE = SiteVerdict(verdict=SiteClass.UNCLASSIFIABLE, pages_used=0, flagged=0, llr=0.0, pages=0)
_CLOSE = 1e-8  # relative difference of floats: the last bits depend on the processor


@dataclass(slots=True)
class Evidence:
    """The records of a site in the log, each topic in its order."""

    hits: list[StoredRecord[Hit]] = field(default_factory=list)
    verdicts: list[StoredRecord[JudgedPage]] = field(default_factory=list)
    scores: list[StoredRecord[Score]] = field(default_factory=list)
    later: list[StoredRecord[Score]] = field(default_factory=list)  # after the window of the run

    def is_unread(self, reader: PartitionReader, verdicts: str) -> bool:
        """Whether TALLY has not read all of it."""
        topics = ((HITS, self.hits), (verdicts, self.verdicts), (SCORES, self.scores))
        return any(kept and reader.is_unread("tally", topic, kept[-1].offset) for topic, kept in topics)


class RowCheck(NamedTuple):
    """A row of a term recomputed from the log, and its differences from the stored row."""

    row: SiteState | None  # None = no stored row and no known site method
    fault: str  # "" = none
    is_proved: bool  # every field follows from the log
    earlier: Sequence[int] = ()  # terms before the newest, by the log
    differences: tuple[FieldDifference, ...] = ()  # without an excuse


@dataclass(slots=True)
class Methods:
    """The site method of a run: the stored one, else the configured one."""

    run: Run
    config: Config
    _known: dict[str, SiteMethod | None] = field(init=False, default_factory=dict)

    def of(self, detector: str, digest: str | None) -> SiteMethod | None:
        """The site method for a row with this method digest; None if unknown. `digest` = None: there is no row."""
        if detector not in self._known:
            try:
                self._known[detector] = site_method_of(
                    self.config, msgspec.structs.replace(self.run, detector=detector)
                )
            except FarmwatchError:
                self._known[detector] = None
        method = self._known[detector]
        is_certain = digest is None or self.run.site_method  # otherwise the configuration may have changed
        return method if method is not None and (is_certain or method.digest == digest) else None


def check_row(
    site: str,
    row: SiteState | None,
    evidence: Evidence,
    methods: Methods,
    scope: AuditScope,
    reader: PartitionReader,
    *,
    is_newest: bool = True,
) -> RowCheck:
    """Recompute the row of a site from the log, for its newest term or that of `row`, and compare the two."""
    detector = scope.run.detector or ("" if row is None else row.detector)
    tally = fold_records(evidence, detector, row, methods.config.tally.term_ms)
    term = tally.term if is_newest or row is None else row.term
    pages = list(tally.evidence(detector, term).values())
    method = methods.of(detector, None if row is None else row.method_digest)
    verdict = _NO_EVIDENCE if method is None else method.decide(pages)
    if row is None:
        recomputed = None if method is None else tally.row(site, detector, verdict, method.digest, scope.run.name, term)
        return RowCheck(recomputed, "no row", is_proved=False)
    former = None
    if is_newest and method is not None and term - 1 in tally.earlier:
        before = method.decide(list(tally.evidence(detector, term - 1).values()))
        former = tally.row(site, detector, before, method.digest, scope.run.name, term - 1)
    recomputed = tally.row(
        site, detector, verdict, "" if method is None else method.digest, scope.run.name, term, former
    )
    updated_at = row.updated_at
    if is_canary(row.site):  # its pages limit the time of the row, for corrections by canaries depend on it
        updated_at = min(updated_at, max((page.fetched_at for page in tally.pages.values()), default=0))
    recomputed = msgspec.structs.replace(recomputed, updated_at=updated_at)
    if method is None:  # without pages all methods agree
        recomputed = _copy_fields(recomputed, row, _METHOD_FIELDS if pages or row.former else _METHOD_NAME_FIELDS)
    differing = [name for name in _COMPARED if not _same(getattr(row, name), getattr(recomputed, name))]
    lawful = _unknown(row, recomputed, evidence, scope, reader) if differing else frozenset()
    if differing and not is_newest and scope.is_live and _came_late(row, tally, evidence):
        lawful |= _VERDICTS_FIELDS
    wrong = [name for name in differing if name not in lawful]
    return RowCheck(
        _copy_fields(recomputed, row, lawful),
        "the row differs" if wrong else "",
        is_proved=not differing and (method is not None or not (pages or row.former)),
        earlier=sorted(tally.earlier),
        differences=tuple(FieldDifference(name, getattr(row, name), getattr(recomputed, name)) for name in wrong),
    )


def fold_records(evidence: Evidence, detector: str, row: SiteState | None, term_ms: int) -> SiteTally:
    """The tally of the records of a site, with the scores of one detector, in terms of the row's length.

    Records of an older farmwatch do not have the first page of their site; then the row has it.
    """
    first = 0
    if row is not None and row.term_end:
        term_ms = row.term_end - row.term_start
        if not all(judged.record.first_at for judged in evidence.verdicts):
            first = row.term_start - row.term * term_ms
    tally = SiteTally.load(None, term_ms)
    tally.first = first
    tally.add_hits([*{kept.record.id: kept.record for kept in reversed(evidence.hits)}.values()])  # one per id
    for judged in evidence.verdicts:
        tally.add_verdict(judged.record)
    for score in evidence.scores:
        if score.record.detector == detector:
            tally.add_score(score.record, detector)
    return tally


def _unknown(
    row: SiteState, recomputed: SiteState, evidence: Evidence, scope: AuditScope, reader: PartitionReader
) -> frozenset[str]:
    names, unknown = scope.names, frozenset[str]()
    hits_begin, _ = reader.window("tally", HITS)
    if row.hits > recomputed.hits and reader.beginning(HITS) > hits_begin:
        unknown |= _HITS_FIELDS
    since = reader.kept_since(names.verdicts)
    if row.hits == recomputed.hits and row.days[:1] < recomputed.days[:1] and reader.beginning(HITS) > hits_begin:
        unknown |= {"days"}  # the hits expired and were appended again, without their first time
    # younger: the log has all hits of the site, and none was found or appended before `since`
    is_younger = row.hits == recomputed.hits > 0 and min(row.days, default=0) >= since // DAY_MS
    is_younger &= all(min(kept.timestamp_ms, kept.record.fetched_at) >= since for kept in evidence.hits)
    if since and not is_younger:
        has_verdict = bool(recomputed.digest)  # of this term
        unknown |= _VERDICTS_FIELDS if has_verdict else _VERDICTS_FIELDS | _VERSION_FIELDS | _TERM_FIELDS
    texts, later_texts = (
        {kept.record.text_digest for kept in scores if kept.record.detector == recomputed.detector}
        for scores in (evidence.scores, evidence.later)
    )
    if len(texts) > SPARE_TEXTS or later_texts - texts or reader.is_damaged(SCORES, row.site):
        unknown |= _SCORES_FIELDS
    if reader.is_damaged(HITS, row.site):
        unknown |= _HITS_FIELDS
    if reader.is_damaged(names.verdicts, row.site):
        unknown |= _VERDICTS_FIELDS | _VERSION_FIELDS | _TERM_FIELDS
    return unknown


def _came_late(row: SiteState, tally: SiteTally, evidence: Evidence) -> bool:
    """Whether a record of the term arrived after TALLY had dropped its pages."""
    forgotten_at = 2 * row.term_end - row.term_start
    pages = tally.of_term(row.term).pages.values()
    texts = {page.text_digest for page in pages} | {page.evidence.text_digest for page in pages if page.evidence}
    return any(
        kept.timestamp_ms >= forgotten_at and tally.term_of(kept.record.fetched_at) == row.term
        for kept in evidence.verdicts
    ) or any(kept.timestamp_ms >= forgotten_at and kept.record.text_digest in texts for kept in evidence.scores)


def _copy_fields(recomputed: SiteState, row: SiteState, names: frozenset[str]) -> SiteState:
    return msgspec.structs.replace(recomputed, **{name: getattr(row, name) for name in names})


def _same(one: object, other: object) -> bool:
    if isinstance(one, float) and isinstance(other, float):
        return math.isclose(one, other, rel_tol=_CLOSE, abs_tol=_CLOSE)
    if isinstance(one, SiteState) and isinstance(other, SiteState):
        return all(_same(getattr(one, name), getattr(other, name)) for name in _COMPARED)
    return one == other
