"""Settings of the stages MEASURE and JUDGE."""

from __future__ import annotations

from typing import Annotated, Literal

import msgspec
from msgspec import Meta

from stream.text.ranges import MOST_BYTES, MOST_PROCESSES, PositiveBytes, PositiveCount, PositiveSeconds


class SiteCaps(msgspec.Struct, frozen=True, kw_only=True):
    """What MEASURE remembers of a site at most; the oldest pages lose theirs first. Part of the feature epoch."""

    chunk_ids_per_site: int = 5_000
    shingles_per_site: int = 20_000  # of the pages beyond, only a sketch stays
    lines_per_site: int = 20_000
    pages_per_site: int = 500


SITE_CAPS = SiteCaps()


class MeasureSettings(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """Settings of MEASURE. A field marked (epoch) changes the meaning of features, see `filters.measure.epoch`."""

    workers: Annotated[int, Meta(ge=0, le=MOST_PROCESSES)] = 0
    """Extraction processes; 0 = one per core."""
    time_limit_s: PositiveSeconds = 10.0
    """Seconds of wall clock that a page may take before its worker is killed."""
    memory_bytes: Annotated[int, Meta(ge=512 * 1024**2, le=MOST_BYTES)] = 1024**3
    """Address space of one worker, in bytes; the libraries alone take 350 MiB of it."""
    extractor: Literal["trafilatura", "blocks", "auto", "resiliparse"] = "trafilatura"
    """Extractor of the main text (epoch). `blocks` is a learned classifier of text blocks, and Trafilatura where that
    finds next to no words. `auto` is Trafilatura, and `blocks` where the article model gives that text at most .2.
    `resiliparse` is faster, its text has no known links, lists and tables, and it needs the extra `resiliparse`."""
    extractor_model: str = ""
    """Trained model for the extractors `blocks` and `auto`, a file DIGEST.json; empty: the model that ships (epoch). Of
    the stages only MEASURE reads the file."""
    perplexity_model: str = ""
    """N-gram model of the measures `unlikely_share` and `surprisal_median`, `english` or a file DIGEST.ngrams; empty:
    they are not measured (epoch)."""
    max_html_bytes: PositiveBytes = 2 * 1024**2
    """Decoded bytes read of a page; of a larger one, the first part is extracted and `html_cut` is measured (epoch)."""
    max_elements: PositiveCount = 50_000
    """Elements of a page beyond which it is not extracted (epoch); the largest of 3,247 real pages has 15,793."""
    tokenizer: Literal["whitespace", "words"] = "whitespace"
    """Tokens of the quality measures (epoch): `whitespace` takes any text between white space as one token, `words`
    separates words and punctuation marks."""


class JudgeSettings(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """Settings of JUDGE."""

    ruleset: str = "default"
    """Name of a shipped ruleset, or path of a TOML file."""
