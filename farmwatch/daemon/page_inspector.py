"""The inspector of answers that CRAWL gets, a `crawler.web.inspection.Inspector`."""

from __future__ import annotations

from filters.no_page.inspector import inspect
from filters.no_page.outline import same

__all__ = ["inspect", "same"]
