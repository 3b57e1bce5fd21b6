"""The feature epoch: a digest of everything that changes the meaning of features."""

from __future__ import annotations

from collections.abc import Callable
from importlib.metadata import PackageNotFoundError, version

import msgspec
import xxhash

from filters.settings import MeasureSettings

MEASURES_VERSION = 2
"""Version of this package's code; raise it with every change of text, block table or measures, or a new measure."""

_SETTINGS = (
    *("extractor", "retry_link_code_share", "max_html_bytes", "max_elements", "max_text_bytes", "tokenizer"),
    *("chunk_mode", "chunk_ids_per_site", "shingles_per_site", "pages_per_site"),
)
_LIBRARIES = ("py3langid", "rensa")
_OF_EXTRACTOR = {"trafilatura": ("trafilatura", "justext", "lxml"), "resiliparse": ("resiliparse",)}


def feature_epoch(settings: MeasureSettings, *, version_of: Callable[[str], str] = version) -> str:
    """Digest of the settings marked (epoch) and the library versions. `version_of` raises for a missing library."""
    libraries = (*_LIBRARIES, *_OF_EXTRACTOR.get(settings.extractor, ()))
    meaning = {
        "measures": MEASURES_VERSION,
        "libraries": {name: _version(name, version_of) for name in libraries},
        **{name: getattr(settings, name) for name in _SETTINGS},
    }
    return xxhash.xxh3_64_hexdigest(msgspec.json.encode(meaning, order="deterministic"))[:12]


def epoch_settings(settings: MeasureSettings) -> dict[str, str]:
    """Name -> value of the settings marked (epoch) that differ from their defaults."""
    defaults = MeasureSettings()
    return {
        f"measure.{name}": str(getattr(settings, name))
        for name in _SETTINGS
        if getattr(settings, name) != getattr(defaults, name)
    }


def _version(name: str, version_of: Callable[[str], str]) -> str:
    try:
        return version_of(name)
    except PackageNotFoundError:
        return ""
