"""The feature epoch: a digest of everything that changes the meaning of features.

A library is part of it by its verified version, also in another version that measures the golden pages alike. So an
update that changes no output changes no epoch.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from functools import cache
from importlib.metadata import PackageNotFoundError, version

import msgspec
import xxhash

from filters.articles.model import shipped_model
from filters.extraction.interface import RETRY_LINK_CODE_SHARE
from filters.extraction.learned.model_name import model_digest
from filters.measure.extractors import EXTRACTORS, MAX_TEXT_BYTES
from filters.measure.golden import OUTPUTS, VERIFIED, golden_outputs
from filters.settings import SITE_CAPS, MeasureSettings
from stream.text.user_errors import FarmwatchError

MEASURES_VERSION = 9
"""Version of this package's code; raise it with every change of what features say of a page, and with a new part."""

_SETTINGS = ("extractor", "max_html_bytes", "max_elements", "tokenizer")
_CONSTANTS = {
    "retry_link_code_share": RETRY_LINK_CODE_SHARE,
    "max_text_bytes": MAX_TEXT_BYTES,
    "chunk_mode": "text",
    **msgspec.structs.asdict(SITE_CAPS),
}
_LIBRARIES = ("py3langid", "rensa")
installed_version = cache(version)


def feature_epoch(
    settings: MeasureSettings,
    *,
    version_of: Callable[[str], str] = installed_version,
    outputs: Callable[[str], str] = golden_outputs,
) -> str:
    """Digest of the settings marked (epoch) and the library versions. Raises BadModel for a model without a digest.

    `version_of` raises for a missing library; `outputs` measures the golden pages, for versions that are not verified.
    """
    versions = library_versions(settings, version_of)
    verified = {name: VERIFIED[name] for name in versions}
    if versions != verified:
        with suppress(FarmwatchError, ImportError):  # the extractor is not installed
            ran = (settings.extractor, *EXTRACTORS[settings.extractor].calls)
            versions = verified if all(outputs(name) == OUTPUTS.get(name) for name in ran) else versions
    meaning = {
        "measures": MEASURES_VERSION,
        "libraries": versions,
        **{name: getattr(settings, name) for name in _SETTINGS},
        **_CONSTANTS,
    }
    if EXTRACTORS[settings.extractor].takes_model:
        meaning["model"] = model_digest(settings.extractor_model)
    if EXTRACTORS[settings.extractor].otherwise:
        meaning["article_model"] = shipped_model().digest
    if settings.perplexity_model:
        from filters.perplexity.model import model_digest as ngrams_digest  # numpy, rarely needed

        meaning["ngrams"] = ngrams_digest(settings.perplexity_model)
    return xxhash.xxh3_64_hexdigest(msgspec.json.encode(meaning, order="deterministic"))[:12]


def library_versions(settings: MeasureSettings, version_of: Callable[[str], str] = installed_version) -> dict[str, str]:
    """Library -> installed version, of those that features depend on; "" = not installed."""
    versions = {}
    for name in (*_LIBRARIES, *EXTRACTORS[settings.extractor].libraries):
        try:
            versions[name] = version_of(name)
        except PackageNotFoundError:
            versions[name] = ""
    return versions


def epoch_settings(settings: MeasureSettings) -> dict[str, str]:
    """Name -> value of the settings marked (epoch) that differ from their defaults, and the extractor's model."""
    defaults = MeasureSettings()
    changed = {
        f"measure.{name}": str(getattr(settings, name))
        for name in _SETTINGS
        if getattr(settings, name) != getattr(defaults, name)
    }
    if EXTRACTORS[settings.extractor].takes_model:
        changed["measure.extractor_model"] = settings.extractor_model or f"{model_digest('')}.json"
    if settings.perplexity_model:
        changed["measure.perplexity_model"] = settings.perplexity_model
    return changed
