"""MEASURE: turns pages into features. Extracts in killable processes, compares with the site on keyed state."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import chain, compress
from typing import Any, ClassVar

from filters.measure.epoch import feature_epoch
from filters.measure.extractors import EXTRACTORS
from filters.measure.page_measures import PageMeasures, RawPage
from filters.measure.workers import ExtractionPool
from filters.settings import SITE_CAPS, MeasureSettings, SiteCaps
from filters.site_memory.measurer import features_of
from filters.site_memory.memory import SiteMemory
from filters.stages.canary_expiry import expire_canary, expired_canaries
from filters.stages.metrics import (
    EXTRACT_ATTEMPTS,
    PAGE_DUPLICATE_RATIO,
    PAGE_TEMPLATE_BLOCK_RATIO,
    PAGE_TEMPLATE_RATIO,
    SITE_MEMORY_BYTES,
    SITE_MEMORY_SITES,
)
from stream.processing.metrics import STAGE_RECORDS, Metrics
from stream.processing.stage import Context, Series, Stage
from stream.schema import topics
from stream.schema.control_sites import is_control_site
from stream.schema.records import Page, Record, Template
from stream.schema.runs import LIVE, RunNames, memory_store, names_of
from stream.schema.vocabulary import FetchOutcome
from stream.text.times import DAY_MS

_CANARY = "canary"  # found_by of a canary page
_CANARY_KEPT_MS = 7 * DAY_MS


class MeasureStage(Stage):
    """Emits features of each fetched page and rows of templates. Forgets a canary site after a week."""

    name: ClassVar[str] = "measure"
    inputs: Mapping[str, type[Record]] = {topics.PAGES: Page}
    # a page takes tens of milliseconds: small batches give early results and repeat little after a crash
    max_records = 64

    def __init__(
        self,
        settings: MeasureSettings,
        *,
        run: str = LIVE,
        names: RunNames | None = None,
        replays: bool = False,
        pool: ExtractionPool | None = None,
        metrics: Metrics | None = None,
        caps: SiteCaps = SITE_CAPS,
    ) -> None:
        """Start workers unless a pool is given; `close` closes it. Each features topic has its own site memory."""
        self.epoch = feature_epoch(settings)
        self.run = run
        names = names or names_of(run)
        self._features, self._templates = names.features, names.templates
        self.store = memory_store(self._features, self.epoch)
        self.forward = None if replays else self._features
        self.heartbeat_input = "" if replays else None
        self._pool = pool or ExtractionPool(settings)
        self._memory = SiteMemory(caps)
        self._metrics = metrics
        self._tokenizer = settings.tokenizer

    def prepare(self, records: Sequence[Any]) -> Sequence[PageMeasures | None]:
        """Measure the fetched pages of a batch in the worker processes; None for the others."""
        is_fetched = [isinstance(page, Page) and page.outcome == FetchOutcome.FETCHED for page in records]
        raw = [  # the content belongs to the final URL of the redirects
            RawPage(
                page.final_url or page.url, page.encoding, page.body, page.status or 200, page.headers, page.fetched_at
            )
            for page in compress(records, is_fetched)
        ]
        results = iter(self._pool.map(raw))
        return [next(results) if fetched else None for fetched in is_fetched]

    def process(self, record: Page, prepared: PageMeasures | None, ctx: Context) -> None:
        if prepared is None:
            self._count(ctx, "skipped")
            return
        if record.found_by == _CANARY:
            expire_canary(ctx, record.site, _CANARY_KEPT_MS)
        place = ctx.state, ctx.partition, record.site
        is_known = record.found_by == _CANARY or is_control_site(record.site)  # its truth: no site of the web
        known = set[str]() if is_known else self._memory.templates(*place)
        likeness = self._memory.of(*place, record.page_id, prepared)
        features = features_of(record, prepared, likeness, self.epoch, self._tokenizer, ctx.now_ms)
        ctx.emit(self._features, features, headers={"feature_epoch": self.epoch})
        if not is_known:
            left = self._memory.templates(*place)
            for name in left - known:  # that of this page
                row = Template(id=name, site=record.site, url=record.url, sketch=prepared.template)
                ctx.emit(self._templates, row, key=f"{record.site} {name}")
            for name in sorted(known - left):
                ctx.tombstone(self._templates, f"{record.site} {name}")
        self._count(ctx, "extract_error" if prepared.error else "measured")
        for mode in prepared.tried or ("none",):
            ctx.meter.count(EXTRACT_ATTEMPTS, mode=mode, outcome=prepared.error or "ok")
        if likeness.duplicate_share is not None and likeness.template_share is not None:
            ctx.meter.observe(PAGE_DUPLICATE_RATIO, likeness.duplicate_share)
            ctx.meter.observe(PAGE_TEMPLATE_RATIO, likeness.template_share)
        if likeness.template_block_share is not None:
            ctx.meter.observe(PAGE_TEMPLATE_BLOCK_RATIO, likeness.template_block_share)

    def _count(self, ctx: Context, result: str) -> None:
        ctx.meter.count(STAGE_RECORDS, run=self.run, ruleset="", stage=self.name, result=result)

    def tick(self, contexts: Mapping[int, Context]) -> None:
        for ctx in contexts.values():
            for site in expired_canaries(ctx):
                self._memory.forget(ctx.state, ctx.partition, site)

    def lost(self, partitions: Sequence[int]) -> None:
        self._memory.drop(partitions)

    def committed(self) -> None:
        if self._metrics is not None:
            self._metrics.set(SITE_MEMORY_SITES, self._memory.sites)
            self._metrics.set(SITE_MEMORY_BYTES, self._memory.size_bytes)

    def ready(self) -> bool:
        return self._pool.ready()

    def metric_series(self, run: str) -> Iterator[Series]:
        yield from super().metric_series(run)
        for mode in chain.from_iterable(row.modes for row in EXTRACTORS.values()):
            yield EXTRACT_ATTEMPTS, {"mode": mode, "outcome": "ok"}
        for result in ("measured", "skipped", "extract_error"):
            yield STAGE_RECORDS, {"run": run, "ruleset": "", "stage": self.name, "result": result}

    def close(self) -> None:
        self._pool.close()
