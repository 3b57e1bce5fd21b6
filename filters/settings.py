"""Settings of the stages MEASURE and JUDGE."""

from __future__ import annotations

from typing import Annotated, Literal

import msgspec
from msgspec import Meta

from stream.text.ranges import MOST_BYTES, MOST_PROCESSES, PositiveBytes, PositiveCount, PositiveSeconds


class MeasureSettings(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """Settings of MEASURE. A field marked (epoch) changes the meaning of features, see `filters.measure.epoch`."""

    workers: Annotated[int, Meta(ge=0, le=MOST_PROCESSES)] = 0
    """Extraction processes; 0 = one per core."""
    time_limit_s: PositiveSeconds = 10.0
    """Seconds of wall clock that a page may take before its worker is killed."""
    recycle_pages: PositiveCount = 5_000
    """Pages after which a worker is replaced by a fresh one."""
    memory_bytes: Annotated[int, Meta(ge=512 * 1024**2, le=MOST_BYTES)] = 1024**3
    """Address space of one worker, in bytes; the libraries alone take 350 MiB of it."""
    extractor: Literal["trafilatura", "blocks", "resiliparse"] = "trafilatura"
    """Extractor of the main text (epoch). `blocks` is a learned classifier of text blocks, and Trafilatura where that
    finds next to no words. `resiliparse` is faster, its text has no known links, lists and tables, and `pip install
    'farmwatch[resiliparse]'` installs it."""
    extractor_model: str = ""
    """Model of `farmwatch train-extractor` for the extractor `blocks`, a file DIGEST.json; empty: the model that ships
    (epoch). Of the stages only MEASURE reads the file."""
    retry_link_code_share: Annotated[float, Meta(ge=0, le=1)] = 0.2
    """Share of characters in links or code above which Trafilatura runs again, for precision (epoch)."""
    max_html_bytes: PositiveBytes = 2 * 1024**2
    """Decoded bytes read of a page; of a larger one, the first part is extracted and `html_cut` is measured (epoch)."""
    max_elements: PositiveCount = 50_000
    """Elements of a page beyond which it is not extracted (epoch); the largest of 3,247 real pages has 15,793."""
    max_text_bytes: PositiveBytes = 2 * 1024**2
    """UTF-8 bytes of main text beyond which it is given up, so that a record stays below the log's cap (epoch)."""
    tokenizer: Literal["whitespace", "words"] = "whitespace"
    """Tokens of the quality measures (epoch): `whitespace` takes any text between white space as one token, `words`
    separates words and punctuation marks."""
    chunk_mode: Literal["text", "block"] = "text"
    """`text` cuts the main text as a whole, `block` restarts the chunker at each line (epoch)."""
    chunk_ids_per_site: PositiveCount = 5_000
    """Chunk identities remembered per site; the oldest pages lose theirs first (epoch)."""
    shingles_per_site: PositiveCount = 20_000
    """Shingles remembered per site; of the oldest pages only a sketch stays (epoch)."""
    lines_per_site: PositiveCount = 20_000
    """Lines remembered per site; the oldest pages lose theirs first (epoch)."""
    pages_per_site: PositiveCount = 500
    """Pages remembered per site; the oldest page is dropped first (epoch)."""
    site_cache_bytes: PositiveBytes = 200_000_000
    """Memory for the remembered sites, in bytes; beyond it, the least recently used site is read again."""

    def __post_init__(self) -> None:
        if self.extractor_model and self.extractor != "blocks":
            raise ValueError(
                f"extractor_model is only for the extractor blocks, and extractor is {self.extractor!r}:"
                " set extractor to blocks, or extractor_model to nothing"
            )


class JudgeSettings(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """Settings of JUDGE."""

    ruleset: str = "default"
    """Name of a shipped ruleset, or path of a TOML file."""
