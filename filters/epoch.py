"""The feature epoch: what has to be equal for two features records to mean the same."""

from __future__ import annotations

from importlib.metadata import version

import msgspec
import xxhash

from filters.settings import MeasureSettings

MEASURES_VERSION = 1
"""Raised with every change of this package's code that changes text, block table or measures."""

_LIBRARIES = ("trafilatura", "justext", "lxml", "py3langid")


def feature_epoch(settings: MeasureSettings) -> str:
    """Digest (12 hex digits) of everything that changes the meaning of features; imports none of the libraries.

    In it: the versions of the libraries and of this package's measures, the extractor, its guards and its retry, how
    chunks are cut and how many are remembered. Not in it: numbers of processes, time and memory limits, cache sizes.
    """
    meaning = {
        "measures": MEASURES_VERSION,
        "libraries": {name: version(name) for name in _LIBRARIES},
        "extractor": settings.extractor,
        "retry_link_code_share": settings.retry_link_code_share,
        "max_html_bytes": settings.max_html_bytes,
        "max_elements": settings.max_elements,
        "max_text_bytes": settings.max_text_bytes,
        "chunk_mode": settings.chunk_mode,
        "chunk_ids_per_site": settings.chunk_ids_per_site,
    }
    return xxhash.xxh3_64_hexdigest(msgspec.json.encode(meaning, order="deterministic"))[:12]
