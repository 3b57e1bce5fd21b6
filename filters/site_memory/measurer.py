"""Builds features records, and measures pages without a log for the command line's pipes."""

from __future__ import annotations

import msgspec
import numpy as np
import xxhash
import zstandard

from filters.duplicates.lines import own_text
from filters.measure.epoch import feature_epoch
from filters.measure.page_measures import PageMeasures, RawPage, measure
from filters.measure.segment_measures import own_measured
from filters.measure.workers import ExtractionPool
from filters.quality.measures import measure_main
from filters.quality.names import TextName
from filters.settings import SITE_CAPS, MeasureSettings, SiteCaps
from filters.site_memory.memory import Likeness, SiteMemory
from filters.site_memory.rows import NoState
from stream.schema.dates import DateFlag, PageDates
from stream.schema.records import Features, Page, Segments


def features_of(
    page: Page, measured: PageMeasures, likeness: Likeness, epoch: str, tokenizer: str, now_ms: int
) -> Features:
    """Build the features record of a page, measured at `now_ms` under the feature epoch `epoch`."""
    return Features(
        id=page.id,
        site=page.site,
        page_id=page.page_id,
        url=page.url,
        epoch=epoch,
        extract_path=measured.path,
        extract_error=measured.error,
        text=measured.text,
        text_digest=measured.text_digest,
        measures={**measured.measures, **likeness.measures()},
        blocks=measured.blocks,
        fetched_at=page.fetched_at,
        found_by=page.found_by,
        measured_at=now_ms,
        quality=quality_of(measured, likeness.template_lines, tokenizer),
        first_at=page.first_at,
        structure=measured.structure,
        template_lines=likeness.template_lines,
        segments=own_segments_of(measured, likeness, tokenizer),
        dates=site_dates_of(measured, likeness),
        signals=measured.signals,
    )


def site_dates_of(measured: PageMeasures, likeness: Likeness) -> PageDates | None:
    """The dates of a page with the flag that only its site can tell."""
    dates = measured.dates
    if dates is None or not likeness.is_site_day:
        return dates
    return msgspec.structs.replace(dates, flags=[*dates.flags, DateFlag.SITE_DAY.value])


def own_segments_of(measured: PageMeasures, likeness: Likeness, tokenizer: str) -> list[Segments]:
    """The segments of a page without the lines that earlier pages of its site have."""
    main, records = (np.frombuffer(marks, np.bool_) for marks in (likeness.known_main, likeness.known_records))
    return own_measured(measured.text, measured.segments, main, records, tokenizer)


def quality_of(measured: PageMeasures, template_lines: bytes, tokenizer: str) -> dict[str, list[float | None]]:
    """The quality of all texts of a page; that of its own text is left out where it is the main text's."""
    if not template_lines:
        return measured.quality
    return {**measured.quality, TextName.OWN: measure_main(own_text(measured.text, template_lines), tokenizer)}


class Measurer:
    """Measures pages one by one, as a live run does. Without a pool, a hostile page may take unlimited time."""

    def __init__(
        self, settings: MeasureSettings, pool: ExtractionPool | None = None, caps: SiteCaps = SITE_CAPS
    ) -> None:
        """Start without earlier pages. The caller closes the pool."""
        self.epoch = feature_epoch(settings)
        self._settings = settings
        self._pool = pool
        self._memory = SiteMemory(caps, cached_bytes=1 << 62)

    def measure(
        self, url: str, html: bytes | str, site: str, *, encoding: str = "", page_id: str = "", fetched_at: int = 0
    ) -> Features:
        """Measure a page; `html` is text, or bytes in `encoding`. `page_id` defaults to a digest of the URL."""
        page_id = page_id or xxhash.xxh3_128_hexdigest(url.encode())
        if self._pool is None:
            measured = measure(url, html, encoding, self._settings, fetched_at=fetched_at)
        else:
            body, charset = (html.encode("utf-8", "replace"), "utf-8") if isinstance(html, str) else (html, encoding)
            stored = zstandard.ZstdCompressor(level=1).compress(body)
            measured = self._pool.map([RawPage(url, charset, stored, fetched_at=fetched_at)])[0]
        likeness = self._memory.of(NoState(), 0, site, page_id, measured)
        page = Page(id=page_id, site=site, page_id=page_id, url=url, fetched_at=fetched_at)
        return features_of(page, measured, likeness, self.epoch, self._settings.tokenizer, now_ms=0)
