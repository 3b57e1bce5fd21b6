"""The headers of a page record on its topic."""

from __future__ import annotations

from stream.schema.records import Page


def page_headers(page: Page) -> dict[str, str]:
    """Its trace (W3C Trace Context), which begins with the fetch. A page belongs to no run."""
    return {"traceparent": f"00-{page.id}-{page.page_id[:16]}-01"}
