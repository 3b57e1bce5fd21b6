"""Pages under URLs of the usual forms: labelled pages may have none, a crawled page always has one."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

import msgspec

from filters.measure.page_measures import url_path
from filters.structure.names import MEASURES
from filters.structure.page_url import url_measures
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
    )
