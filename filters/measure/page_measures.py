"""The measures of one page alone. `filters.site_memory` compares it with its site."""

from __future__ import annotations

import io
from collections.abc import Mapping, Sequence
from types import MappingProxyType
from urllib.parse import urlsplit

import msgspec
import numpy as np
import xxhash
import zstandard

from filters.dates.page_dates import dates_of
from filters.duplicates.chunker import Chunks, chunk
from filters.duplicates.lines import Lines, lines_of
from filters.duplicates.shingles import Outline, outline
from filters.extraction.interface import ExtractError
from filters.measure.article_first import in_order, size_measures
from filters.measure.extractors import extract
from filters.measure.segment_measures import measured_segments
from filters.no_page.inspector import reason_of
from filters.quality.language import identify
from filters.quality.measures import measure_quality
from filters.quality.names import MEASURES as QUALITY
from filters.quality.names import TextName
from filters.segments.names import SegmentKind
from filters.segments.segments import record_lines, segments_of
from filters.settings import SITE_CAPS, MeasureSettings
from stream.schema.dates import PageDates
from stream.schema.records import Segments
from stream.text.times import day_at

Measure = float | str | None

NO_HEADERS: Mapping[str, str] = MappingProxyType({})

_REPETITION = QUALITY.index("duplicate_5gram_share")

URL_CHARS = 500  # of a URL's path and query, kept as a measure


class RawPage(msgspec.Struct, array_like=True, frozen=True):
    """The input of a worker: URL ("" = none), charset ("" = UTF-8) and zstd-compressed decoded body of an answer."""

    url: str
    encoding: str
    body: bytes
    status: int = 200
    headers: dict[str, str] = {}  # names in lower case
    fetched_at: int = 0  # ms; 0 = unknown


class PageMeasures(msgspec.Struct, array_like=True, frozen=True, kw_only=True):
    """The measures of one page, without its site. `Extraction` explains text, blocks, path, error and tried.

    `measures`: tokens (whitespace words), chars (of all blocks), link_code_share, language, language_probability,
    url_path (path and query), simhash (16 hexadecimal digits), expected_f1 of the extractor `blocks`, first_article of
    `auto`, unlikely_share and surprisal_median by an n-gram model, and html_cut, 1 for a page of which only the first
    part was read; None = unknown. `quality`: see
    `filters.quality.measures`; empty for a page without a main text. `structure`: values in the order of
    `filters.structure.names.MEASURES`; empty for a page that was not parsed. `chunk_ids` are little-endian uint64,
    `chunk_lengths` uint16 bytes.
    """

    text: str = ""
    text_digest: str = ""
    blocks: bytes = b""
    path: str = "none"
    error: str = ""
    tried: tuple[str, ...] = ()
    measures: dict[str, Measure] = {}
    quality: dict[str, list[float | None]] = {}
    structure: list[float | None] = []
    chunk_ids: bytes = b""
    chunk_lengths: bytes = b""
    outline: Outline = Outline()
    lines: Lines = Lines()
    template: bytes = b""  # sketch, see `filters.structure.tag_paths`
    segments: list[Segments] = []  # with the lines that earlier pages have
    dates: PageDates | None = None  # without the flag of a site; None = not parsed
    signals: list[str] | None = None  # None = not parsed

    def chunks(self) -> Chunks:
        return Chunks(np.frombuffer(self.chunk_ids, "<u8"), np.frombuffer(self.chunk_lengths, "<u2"))


def measure_raw(page: RawPage, settings: MeasureSettings) -> PageMeasures:
    """Measure a stored page. The body is inflated up to a cap, independent of its header."""
    try:
        html = inflated(page.body, settings.max_html_bytes + 1) if page.body else b""
    except zstandard.ZstdError:
        return failed(page.url, ExtractError.FAILED)
    return measure(page.url, html, page.encoding, settings, page.status, page.headers, page.fetched_at)


def inflated(body: bytes, most_bytes: int) -> bytes:
    """The first bytes of the decoded body. The size in the frame's header is used only as an upper bound."""
    if zstandard.get_frame_parameters(body).content_size <= most_bytes:
        return zstandard.ZstdDecompressor().decompress(body)
    with zstandard.ZstdDecompressor(max_window_size=2**27).stream_reader(io.BytesIO(body)) as reader:
        return reader.read(most_bytes)


def measure(
    url: str,
    page: bytes | str,
    encoding: str,
    settings: MeasureSettings,
    status: int = 200,
    headers: Mapping[str, str] = NO_HEADERS,
    fetched_at: int = 0,
) -> PageMeasures:
    """Extract and measure an answer; names of `headers` in lower case, `fetched_at` in ms. Raises MissingExtra."""
    no_page = reason_of(status, headers, page, encoding) or "ok"
    extracted = extract(page, encoding, settings, url)
    some: dict[str, Measure] = {"html_cut": 1.0} if extracted.is_cut else {}
    dates = None
    if extracted.dates is not None:
        dates = dates_of(extracted.dates, day_at(fetched_at) if fetched_at else None)
    if extracted.error:
        text = "" if extracted.error == ExtractError.NO_TEXT else None
        structure = in_order(extracted.structure, text)
        without = failed(url, extracted.error, extracted.tried, structure, dates, extracted.signals)
        without.measures["no_page"] = no_page
        without.measures.update(some)
        return without
    data = extracted.text.encode("utf-8", "replace")
    if extracted.expected_f1 is not None:
        some["expected_f1"] = round(extracted.expected_f1, 3)
    if extracted.first_article is not None:
        some["first_article"] = extracted.first_article
    if settings.perplexity_model:
        from filters.perplexity.measures import perplexity_measures  # rarely needed

        some |= perplexity_measures(extracted.text, settings.perplexity_model)
    language, probability = identify(extracted.text)
    chunks = chunk(data)
    outlined = outline(extracted.text, SITE_CAPS.shingles_per_site)
    tokens = len(extracted.text.split())
    quality = extracted.quality or measure_quality(extracted.text, settings.tokenizer)
    repetition = quality[TextName.MAIN][_REPETITION]
    whole = Segments(
        SegmentKind.ARTICLE,
        words=tokens,
        language=language,
        language_probability=round(probability, 4),
        repetition=None if repetition is None else round(repetition, 4),
    )
    segments = segments_of(extracted.text, extracted.records)
    segments = measured_segments(extracted.text, segments, whole, settings.tokenizer)
    return PageMeasures(
        text=extracted.text,
        text_digest=xxhash.xxh3_128_hexdigest(data),
        blocks=extracted.blocks,
        path=extracted.path,
        tried=extracted.tried,
        measures={
            **size_measures(extracted),
            "language": language,
            "language_probability": round(probability, 4),
            "url_path": url_path(url),
            "no_page": no_page,
            "simhash": f"{outlined.simhash:016x}",
            **some,
        },
        quality=quality,
        structure=in_order(extracted.structure, extracted.text),
        chunk_ids=chunks.ids.astype("<u8").tobytes(),
        chunk_lengths=chunks.lengths.astype("<u2").tobytes(),
        outline=outlined,
        lines=lines_of(extracted.text, extracted.lines, SITE_CAPS.lines_per_site, record_lines(segments)),
        template=extracted.template,
        segments=segments,
        dates=dates,
        signals=extracted.signals,
    )


def failed(
    url: str,
    error: str,
    tried: tuple[str, ...] = (),
    structure: Sequence[float | None] = (),
    dates: PageDates | None = None,
    signals: list[str] | None = None,
) -> PageMeasures:
    """The measures of a page without a main text."""
    of_url: dict[str, Measure] = {"url_path": url_path(url)}
    return PageMeasures(
        error=str(error), tried=tried, measures=of_url, structure=list(structure), dates=dates, signals=signals
    )


def url_path(url: str) -> str | None:
    """Path and query of a URL, "/" at least; "" for a URL that cannot be split, None for no URL."""
    if not url:
        return None
    try:
        parts = urlsplit(url)
    except ValueError:
        return ""
    return ((parts.path or "/") + ("?" + parts.query if parts.query else ""))[:URL_CHARS]
