"""The result of an extractor: a main text, or the reason for its absence."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:  # it imports lxml
    from filters.dates.page_dates import Candidates
    from filters.segments.records import RecordTexts

RETRY_LINK_CODE_SHARE = 0.2
"""Share of characters in links or code above which Trafilatura runs again, for precision. Part of the feature epoch."""


class ExtractError(StrEnum):
    """The reason for a page's missing main text."""

    EMPTY = "empty"  # only whitespace
    NOT_HTML = "not_html"  # an image, an archive, …: binary content
    TOO_LARGE = "too_large"  # more bytes of main text than the cap
    TOO_MANY_ELEMENTS = "too_many_elements"
    TOO_MANY_ATTRIBUTES = "too_many_attributes"  # of one element
    TOO_DEEP = "too_deep"  # element nesting above the limit of `filters.extraction.html_tree`
    PARSER_STOPPED = "parser_stopped"  # the parser stopped before the end of the page: an unknown part is lost
    NO_TEXT = "no_text"  # parsed, but without a main text
    FAILED = "failed"  # the extractor raised an error
    TIMEOUT = "timeout"  # the worker was killed at the time limit
    OUT_OF_MEMORY = "out_of_memory"
    WORKER_DIED = "worker_died"


UNFINISHED = {ExtractError.FAILED, ExtractError.TIMEOUT, ExtractError.OUT_OF_MEMORY, ExtractError.WORKER_DIED}
"""Errors that leave the page's text unknown: it may be unchanged."""


@dataclass(frozen=True, slots=True)
class Extraction:
    """Main text and its block table, or the error.

    `path` is the algorithm that won: recall, precision, blocks, fallback (flat text of jusText or of the page's
    embedded data), plain (flat text of an extractor without structure) or none. Links, lists and tables of flat text
    are unknown.
    `link_code_share` is None if unknown. `tried` lists the modes that ran. `structure`: see `filters.structure.names`;
    empty for a page that was not parsed. `lines`: the different lines of the whole page. `template`: see
    `filters.structure.tag_paths`. `expected_f1`: of the text of the extractor `blocks`, also if another text was kept.
    `first_article`: probability that the first text of the extractor `auto` is an article, also if another text was
    kept. `quality`: of the text, if it was measured. `is_cut`: only the first part of the page was read. `records`:
    posts, comments, teasers, … of the whole page. `dates`: all that the page states;
    `signals`: see `filters.signals.page_signals`; None = it was not parsed.
    """

    text: str = ""
    blocks: bytes = b""
    path: str = "none"
    error: str = ""
    link_code_share: float | None = None
    tried: tuple[str, ...] = ()
    structure: Mapping[str, float | None] = field(default_factory=dict)
    lines: Collection[str] = ()
    template: bytes = b""
    expected_f1: float | None = None
    first_article: float | None = None
    quality: dict[str, list[float | None]] = field(default_factory=dict)
    is_cut: bool = False
    records: Sequence[RecordTexts] = ()
    dates: Candidates | None = None
    signals: list[str] | None = None


Extractor = Callable[[str, Any], Extraction]
"""From a page and its tree, which may be changed, to its main text. Raises ParseFailed."""
