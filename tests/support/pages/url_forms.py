"""Pages under URLs of the usual forms: labelled pages may have none, a crawled page always has one."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

import msgspec

from filters.dates.page_dates import Candidates, dates_of
from filters.dates.parsing import read_path
from filters.measure.page_measures import url_path
from filters.structure.names import MEASURES
from filters.structure.page_url import url_measures
from stream.schema.dates import DateSource, PageDate, PageDates
from stream.schema.records import Features

URL_FORMS: Mapping[str, str] = MappingProxyType(
    {
        "slug": "https://site.example/the-river-rose-in-the-night",
        "dated": "https://site.example/2008/01/07/the-river-rose-in-the-night/",
        "id": "https://site.example/node/12345",
        "query": "https://site.example/?p=12345",
    }
)
"""Form of a URL -> an example. No shipped rule takes one of them for the URL of a page that is no article."""


def with_url(features: Features, url: str) -> Features:
    """The features as if the page had this URL."""
    structure = dict(zip(MEASURES, features.structure, strict=True)) if features.structure else {}
    return msgspec.structs.replace(
        features,
        url=url,
        measures={**features.measures, "url_path": url_path(url)},
        structure=list({**structure, **url_measures(url)}.values()) if structure else [],
        dates=_dates(features.dates, url) if features.dates else None,
    )


def _dates(of: PageDates, url: str) -> PageDates:
    """The dates with that of this URL as a further source."""
    published = [of.published] if of.published and of.published.source != DateSource.URL else []
    if read := read_path(url):
        published.append(PageDate(read.day, read.precision.value, DateSource.URL.value))
    return dates_of(Candidates(published, [of.modified] if of.modified else []))
