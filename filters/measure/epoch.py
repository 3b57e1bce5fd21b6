"""The feature epoch: what has to be equal for two features records to mean the same."""

from __future__ import annotations

from collections.abc import Callable
from importlib.metadata import PackageNotFoundError, version

import msgspec
import xxhash

from filters.settings import MeasureSettings

MEASURES_VERSION = 2
"""Raised with every change of this package's code that changes text, block table or measures."""

_LIBRARIES = ("py3langid", "rensa")
_OF_EXTRACTOR = {"trafilatura": ("trafilatura", "justext", "lxml"), "resiliparse": ("resiliparse",)}


def feature_epoch(settings: MeasureSettings, *, version_of: Callable[[str], str] = version) -> str:
    """Digest (12 hex digits) of everything that changes the meaning of features; imports none of the libraries.

    In it: the versions of the libraries in use and of this package's measures, the extractor, its guards and its retry,
    what counts as a token, how chunks are cut and how much is remembered of a site. Not in it: numbers of processes,
    time and memory limits, cache sizes.

    `version_of` tells a package's version, and raises PackageNotFoundError where it is not installed: that an extractor
    is missing is for the workers to say, see `filters.extraction.extractor.extractor`.
    """
    libraries = (*_LIBRARIES, *_OF_EXTRACTOR.get(settings.extractor, ()))
    meaning = {
        "measures": MEASURES_VERSION,
        "libraries": {name: _version(name, version_of) for name in libraries},
        "extractor": settings.extractor,
        "retry_link_code_share": settings.retry_link_code_share,
        "max_html_bytes": settings.max_html_bytes,
        "max_elements": settings.max_elements,
        "max_text_bytes": settings.max_text_bytes,
        "tokenizer": settings.tokenizer,
        "chunk_mode": settings.chunk_mode,
        "chunk_ids_per_site": settings.chunk_ids_per_site,
        "shingles_per_site": settings.shingles_per_site,
        "pages_per_site": settings.pages_per_site,
    }
    return xxhash.xxh3_64_hexdigest(msgspec.json.encode(meaning, order="deterministic"))[:12]


def epoch_settings(settings: MeasureSettings) -> dict[str, str]:
    """Name -> value of the settings in which these make another feature epoch than the defaults do."""
    defaults = MeasureSettings()
    epoch = feature_epoch(defaults)
    differ = {
        name: value for name, value in msgspec.structs.asdict(settings).items() if value != getattr(defaults, name)
    }
    return {
        f"measure.{name}": str(value)
        for name, value in differ.items()
        if feature_epoch(msgspec.structs.replace(defaults, **{name: value})) != epoch
    }


def _version(name: str, version_of: Callable[[str], str]) -> str:
    try:
        return version_of(name)
    except PackageNotFoundError:
        return ""
