"""TALLY: folds hits, verdicts and scores of a site into its row, and tells CRAWL when the site is decided.

A verdict holds for a term. At its end the live run tells CRAWL to measure the site again, also where nothing comes of
the site: its tally is due then. Which term a page belongs to follows from the records alone. In the first minutes of a
process its clock may be wrong: nothing is due, and only pages begin terms. A term that a wrong clock began is taken
back with the next record of its site.

The records of a batch are folded site by site: a site's tally is read with its first record and judged once, after the
last. Where a record or a site fails, the batch is tried again with each record on its own, so that the record at fault
is dead-lettered alone.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, ClassVar

import msgspec
import structlog
import xxhash

from scoring.errors import FoldFailed
from scoring.interface import SiteVerdict
from scoring.rates.canary import is_canary
from scoring.sites.registry import SiteMethod, site_method
from scoring.sites.settings import TallySettings
from scoring.stages.metrics import SITES_REOPENED
from scoring.stages.site_pages import JudgedPage
from scoring.stages.site_tally import SiteTally, hit_key, term_key
from stream.log.contract import Headers
from stream.processing.batch import concerns_one_record
from stream.processing.metrics import STAGE_RECORDS
from stream.processing.stage import Context, Series, Stage
from stream.schema import topics
from stream.schema.records import Decision, Hit, Score, SiteState, encode
from stream.schema.runs import LIVE, RunNames, names_of
from stream.schema.vocabulary import DECIDED
from stream.text.times import DAY_MS

_log = structlog.get_logger()

Canaries = Callable[[Mapping[int, Context]], None]

MARK_MS = 100 * DAY_MS  # how long a counted hit is remembered: longer than the log keeps hits
_MOST_TRIED_MS = 600_000  # a clock that is wrong at the start of a machine is mostly corrected by then
_DUE_AT_ONCE = 200  # keys of a partition in one tick


class _Site:
    """A site of the current batch: its tally with the records of the batch."""

    __slots__ = ("headers", "name", "tally")

    def __init__(self, name: str, before: bytes | None, term_ms: int) -> None:
        self.name = name
        self.tally = SiteTally.load(before, 0 if is_canary(name) else term_ms)  # nobody crawls a canary
        self.headers: Headers = {}  # headers that its row passes on, of its last record


class TallyStage(Stage):
    """Folds the hits, verdicts and scores of each site into one row.

    State: a `SiteTally` per site, due at the end of its term, and a mark per hit that was counted lately. The stage
    emits a row when it differs from the last one of its term, and a stop decision once per term: when the site is
    decided, or has enough articles; a mixed site stays open for longer, and so does one that it `follows` to see
    whether it turned, if its articles are from before ChatGPT and since. Until the site closes, later pages may still
    correct the row. Scores of another detector than `detector` are kept, counted apart, and left out of the row:
    identities are never pooled. Canary sites are sites like any other.

    A replay emits no decisions, and marks no site as decided: once its run is live, the next record of the site makes
    the decision. It reads scores while no verdict waits, and counts no heartbeat.

    Rows, decisions and counts are of the stage's own run and ruleset, whatever run the records were made for.
    """

    name: ClassVar[str] = "tally"
    forward: str | None = None

    def __init__(
        self,
        detector: str,
        settings: TallySettings | None = None,
        run: str = LIVE,
        method: SiteMethod | None = None,
        canaries: Canaries | None = None,
        names: RunNames | None = None,
        decides: bool = True,
        follows: Callable[[str], bool] = lambda _: False,
    ) -> None:
        """Tally scores of the identity `detector` (a whole identity, threshold tag included), and send canaries.

        Works as `run` between the topics of `names`, by default the run's own; one that `decides` not is a replay.
        `method` judges sites, by default that of `settings` for the detector. Raises as `site_method`: NoSiteTest,
        BadSiteNumbers.
        """
        self.run = run
        self._settings = settings or TallySettings()
        self._detector = detector
        self._method = method or site_method(self._settings, detector)
        self._canaries = canaries
        self._decides = decides
        self._follows = follows
        names = names or names_of(run)
        self._rows, self._terms = names.sites, names.terms
        self._term_ms = self._settings.term_ms
        self.store = names.tally_store
        self.inputs = {topics.HITS: Hit, names.verdicts: JudgedPage, topics.SCORES: Score}
        self.heartbeat_input = topics.SCORES if decides else ""  # those on other topics have not passed all stages
        if not decides:
            self.background = (topics.SCORES,)
        self._sites: dict[int, dict[str, _Site]] = {}  # of the current batch, by partition
        self._one_by_one = False
        self._clock_since_ms = 0  # when its time began; 0 = it has not

    def process(self, record: Any, prepared: Any, ctx: Context) -> None:
        """Fold the record into the site's tally. Raises FoldFailed, see the module."""
        del prepared  # no slow work here
        if isinstance(record, Hit):
            result = "hit" if ctx.state.get(hit_key(record)) is None else "repeated_hit"
        elif isinstance(record, Score):
            result = "score" if record.detector == self._detector else "other_detector"
        else:
            result = record.verdict
        ruleset = "" if isinstance(record, Hit | Score) else record.ruleset
        ctx.meter.count(STAGE_RECORDS, run=self.run, ruleset=ruleset, stage=self.name, result=result)
        if result == "repeated_hit":
            return
        if isinstance(record, Hit):
            ctx.state.put(hit_key(record), b"1", ctx.now_ms + MARK_MS)
        if self._one_by_one:
            site = self._read(record.site, ctx)
            self._fold(record, site, ctx)
            self._settle(site, ctx)
            return
        sites = self._sites.setdefault(ctx.partition, {})
        with self._whole_batch():
            site = sites.get(record.site) or sites.setdefault(record.site, self._read(record.site, ctx))
            self._fold(record, site, ctx)

    def tick(self, contexts: Mapping[int, Context]) -> None:
        """Judge the sites of the batch, and send due canary pages. Raises FoldFailed, see the module."""
        for ctx in contexts.values():
            if not 0 < self._clock_since_ms <= ctx.now_ms:
                self._clock_since_ms = ctx.now_ms  # again if it was set back
        with self._whole_batch():
            for partition, sites in self._sites.items():
                for site in sites.values():
                    self._settle(site, contexts[partition])
        self._sites.clear()
        for ctx in contexts.values() if self._decides else ():
            if not self._is_tried(ctx.now_ms):
                continue
            for key, value, _ in ctx.state.due(ctx.now_ms, _DUE_AT_ONCE):
                self._take_due(key, value, ctx)
        if self._canaries is not None:
            self._canaries(contexts)

    @contextmanager
    def _whole_batch(self) -> Iterator[None]:
        """If a record or a site fails, retry the batch record by record: raises FoldFailed."""
        try:
            yield
        except Exception as error:
            if not concerns_one_record(error):
                raise
            self._one_by_one = True
            raise FoldFailed(f"{type(error).__name__}: {error}") from error

    def metric_series(self, run: str) -> Iterator[Series]:
        yield from super().metric_series(run)
        yield SITES_REOPENED, {"run": run}

    def lost(self, partitions: Sequence[int]) -> None:
        """Drop the sites: the batch was rolled back, or partitions moved before it began."""
        del partitions  # a batch is rolled back as a whole
        self._sites.clear()

    def on_dead_letter(self, partition: int) -> None:
        """Do nothing: a dead-lettered record leaves nothing in the sites of the batch."""

    def committed(self) -> None:
        """The batch that was processed record by record is committed."""
        self._one_by_one = False

    def _read(self, site: str, ctx: Context) -> _Site:
        return _Site(site, ctx.state.get(site.encode()), self._term_ms)

    def _take_due(self, key: bytes, value: bytes, ctx: Context) -> None:
        """Drop the mark of a hit, or begin the next term of a site."""
        if key.startswith(b"\0"):
            return  # of the canaries
        if b"\0" in key:
            ctx.state.delete(key)
            return
        try:
            with ctx.savepoint():
                self._settle(_Site(key.decode(), value, self._term_ms), ctx)
        except Exception as error:
            if not concerns_one_record(error):
                raise
            _log.exception("site_not_reopened", site=key.decode(errors="replace"))
            ctx.state.put(key, value)  # the next record of the site is dead-lettered

    def _fold(self, record: Hit | JudgedPage | Score, site: _Site, ctx: Context) -> None:
        site.headers = ctx.headers
        if isinstance(record, Hit):
            site.tally.add_hits([record])
        elif isinstance(record, Score):
            site.tally.add_score(record, self._detector)
        else:
            site.tally.add_verdict(record)

    def _settle(self, site: _Site, ctx: Context) -> None:
        tally, former = site.tally, None
        for term, of in tally.earlier.items():
            _, earlier, of.emitted = self._emit_row(site, term, of.emitted, ctx)
            former = earlier if term == tally.term - 1 else former
        verdict, row, tally.emitted = self._emit_row(site, tally.term, tally.emitted, ctx, former)
        for term in tally.dropped:
            ctx.tombstone(self._terms, term_key(site.name, term))
        tally.dropped = []
        due_at = None
        if not is_canary(site.name):
            if self._decides:
                tally.forget_terms()
                self._decide(site, verdict, row, ctx)
            due_at = tally.start_of(max(tally.reopened, tally.term) + 1) or None
        ctx.state.put(site.name.encode(), tally.dump(), due_at)

    def _emit_row(
        self, site: _Site, term: int, emitted: bytes, ctx: Context, former: SiteState | None = None
    ) -> tuple[SiteVerdict, SiteState, bytes]:
        """The verdict of a term, its row and the row's digest; a row with another digest than `emitted` is emitted."""
        tally = site.tally
        verdict = self._method.decide(list(tally.evidence(self._detector, term).values()))
        row = tally.row(site.name, self._detector, verdict, self._method.digest, self.run, term, former)
        digest = xxhash.xxh3_128_digest(encode(row))
        if digest != emitted:
            changed = msgspec.structs.replace(row, updated_at=self._updated_at(site, ctx.now_ms))
            if term == tally.term:
                ctx.emit(self._rows, changed, headers=self._headers(site, row.digest))
            else:
                ctx.emit(self._terms, changed, key=term_key(site.name, term), headers=self._headers(site, row.digest))
        return verdict, row, digest

    def _headers(self, site: _Site, ruleset: str) -> Headers:
        """Of this run, because another run may have requested the last score."""
        return {**site.headers, "run": self.run, "ruleset": ruleset}

    def _decide(self, site: _Site, verdict: SiteVerdict, row: SiteState, ctx: Context) -> None:
        """Reopen a site whose term has ended, and stop a site that is decided in the present term."""
        tally = site.tally
        term = max(tally.term, tally.term_of(ctx.now_ms) if self._is_tried(ctx.now_ms) else tally.reopened)
        if term != tally.reopened:  # an earlier one if a clock that was ahead began that
            tally.reopened, tally.stopped = term, ""
            ctx.meter.count(SITES_REOPENED, run=self.run)
            self._emit_decision(site, term, ctx, stop=False, reason="term_began")
        if tally.stopped or tally.term < tally.reopened:
            return
        # A mixed site stays open until it has `mixed_articles` usable scores, is no longer mixed, or has closed: later
        # pages change neither its verdict nor its mark.
        if verdict.mixed and not verdict.closed and verdict.pages < self._settings.enough_if_mixed:
            return
        is_enough = verdict.pages >= self._settings.enough_articles
        if row.before_scored and row.since_scored and not is_enough and self._follows(site.name):
            return
        if verdict.verdict in DECIDED:
            tally.stopped = f"decided_{verdict.verdict}"
        elif is_enough:
            tally.stopped = "enough_articles"
        if tally.stopped:
            self._emit_decision(site, term, ctx, stop=True, reason=tally.stopped)

    def _is_tried(self, now_ms: int) -> bool:
        """Whether this process has had its time for long enough that a term may follow from it."""
        return 0 < self._clock_since_ms <= now_ms - min(_MOST_TRIED_MS, self._term_ms // 1000)

    def _emit_decision(self, site: _Site, term: int, ctx: Context, *, stop: bool, reason: str) -> None:
        decision = Decision(
            id=site.name,
            site=site.name,
            stop=stop,
            reason=reason,
            decided_at=ctx.now_ms,
            term=term,
            first_at=site.tally.first,
        )
        ctx.emit(topics.DECISIONS, decision, headers=self._headers(site, site.tally.digest))

    def _updated_at(self, site: _Site, now_ms: int) -> int:
        """When the row changed, ms; for a canary, the time of its newest page.

        Canaries count for some days after their round. Neither a replay nor a late score, as after a cutover, may make
        old rounds new. A canary with scores but without a page has the oldest time.
        """
        if not is_canary(site.name):
            return now_ms
        return max((page.fetched_at for page in site.tally.pages.values()), default=0)
