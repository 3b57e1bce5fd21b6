"""The feature epoch: a digest of everything that changes the meaning of features.

A library is part of it by its verified version, also in another version that measures the golden pages alike. So an
update that changes no output changes no epoch.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from importlib.metadata import PackageNotFoundError, version

import msgspec
import xxhash

from filters.errors import FiltersError
from filters.extraction.learned.model_name import model_digest
from filters.measure.golden import OUTPUTS, VERIFIED, golden_outputs
from filters.settings import MeasureSettings

MEASURES_VERSION = 6
"""Version of this package's code; raise it with every change of text, block table or measures, or a new measure."""

_SETTINGS = (
    *("extractor", "retry_link_code_share", "max_html_bytes", "max_elements", "max_text_bytes", "tokenizer"),
    *("chunk_mode", "chunk_ids_per_site", "shingles_per_site", "lines_per_site", "pages_per_site"),
)
_LIBRARIES = ("py3langid", "rensa")
installed_version = cache(version)
_OF_EXTRACTOR = {
    "trafilatura": ("trafilatura", "justext", "lxml"),
    "blocks": ("trafilatura", "justext", "lxml"),
    "resiliparse": ("resiliparse",),
}


def feature_epoch(
    settings: MeasureSettings,
    *,
    version_of: Callable[[str], str] = installed_version,
    outputs: Callable[[str], str] = golden_outputs,
) -> str:
    """Digest of the settings marked (epoch) and the library versions. `version_of` raises for a missing library.

    `outputs` measures the golden pages with an extractor; it is called only for versions that are not verified.
    The file of an extractor's model is not read. Raises BadModel if its name has no digest.
    """
    versions = library_versions(settings, version_of)
    verified = {name: VERIFIED[name] for name in versions}
    if versions != verified and _same_outputs(settings.extractor, outputs):
        versions = verified
    meaning = {
        "measures": MEASURES_VERSION,
        "libraries": versions,
        **{name: getattr(settings, name) for name in _SETTINGS},
    }
    if settings.extractor == "blocks":
        meaning["model"] = model_digest(settings.extractor_model)
    return xxhash.xxh3_64_hexdigest(msgspec.json.encode(meaning, order="deterministic"))[:12]


def library_versions(settings: MeasureSettings, version_of: Callable[[str], str] = installed_version) -> dict[str, str]:
    """Library -> installed version, of those that features depend on; "" = not installed."""
    libraries = (*_LIBRARIES, *_OF_EXTRACTOR.get(settings.extractor, ()))
    return {name: _version(name, version_of) for name in libraries}


def _same_outputs(extractor: str, outputs: Callable[[str], str]) -> bool:
    names = ("blocks", "trafilatura") if extractor == "blocks" else (extractor,)  # `blocks` calls Trafilatura, too
    try:
        return all(outputs(name) == OUTPUTS.get(name) for name in names)
    except (FiltersError, ImportError):  # the extractor is not installed
        return False


def epoch_settings(settings: MeasureSettings) -> dict[str, str]:
    """Name -> value of the settings marked (epoch) that differ from their defaults, and the extractor's model."""
    defaults = MeasureSettings()
    found = {
        f"measure.{name}": str(getattr(settings, name))
        for name in _SETTINGS
        if getattr(settings, name) != getattr(defaults, name)
    }
    if settings.extractor == "blocks":
        found["measure.extractor_model"] = settings.extractor_model or f"{model_digest('')}.json"
    return found


def _version(name: str, version_of: Callable[[str], str]) -> str:
    try:
        return version_of(name)
    except PackageNotFoundError:
        return ""
