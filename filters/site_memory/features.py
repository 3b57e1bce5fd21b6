"""The features record of a page: what was measured on it alone, and what its site had of it."""

from __future__ import annotations

from filters.measure.page_measures import Measured
from filters.site_memory.memory import Likeness
from stream.schema.records import Features, Page


def features_of(page: Page, measured: Measured, likeness: Likeness, epoch: str, now_ms: int) -> Features:
    """The features of a page, measured at `now_ms` under the feature epoch `epoch`; the page's body is not read."""
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
        measures={**measured.measures, **likeness._asdict()},
        blocks=measured.blocks,
        fetched_at=page.fetched_at,
        found_by=page.found_by,
        measured_at=now_ms,
        quality=measured.quality,
    )
