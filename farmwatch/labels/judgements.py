"""A sample of pages to judge, and the judgements: both JSON, an object a line.

What a person says of a page is one of four things (`ANSWERS`): no article, an article, or an article of which they can
also tell who wrote it. A judgement carries the text that was read, so that it is worth something after the log's
retention took the page.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

import msgspec

from farmwatch.terminal.jsonl import JsonLines
from filters.rules.judgement import ARTICLE
from stream.text.user_errors import FarmwatchError

OTHER = "other"  # page_type of what is no article
LLM, HUMAN = "llm", "human"  # labels, as `farmwatch calibrate` reads them


class Answer(NamedTuple):
    """What a key says of a page."""

    page_type: str
    label: str  # "" = not said
    words: str


ANSWERS = {
    "a": Answer(ARTICLE, "", "article"),
    "n": Answer(OTHER, "", "not an article"),
    "l": Answer(ARTICLE, LLM, "article, written by a language model"),
    "h": Answer(ARTICLE, HUMAN, "article, written by a human"),
}
"""Key -> answer."""


class SampleFailedRule(msgspec.Struct, frozen=True, kw_only=True):
    """A rule that a page fails; what else a sample says of it is passed over."""

    name: str


class SamplePage(msgspec.Struct, frozen=True, kw_only=True):
    """A line of a sample, as `farmwatch compare` writes it. `fetched_at` in milliseconds UTC."""

    fetch_id: str
    url: str
    site: str
    text: str | None = None  # None = it was in the log no longer
    page_id: str = ""
    text_cut: int = 0  # characters that are left out at the end of the text
    text_digest: str = ""
    run_a: str = ""
    run_b: str = ""
    verdict_a: str = ""
    verdict_b: str = ""
    failed_a: list[SampleFailedRule] = []
    failed_b: list[SampleFailedRule] = []
    fetched_at: int = 0
    ruleset_a: str = ""  # as a command names it: one that is shipped by its name, else RUN.toml; "" = not said
    ruleset_b: str = ""
    log: str = ""
    labelled_at: int = 0  # of a judgement, which is no page of a sample
    drawn: int = 0  # of a review: sites of the sample
    drawn_at: int = 0  # ms UTC


class Judgement(msgspec.Struct, frozen=True, kw_only=True):
    """A line of a labels file. Of a fetch id the last line counts; one without `page_type` takes back what was said.

    `farmwatch rulesets evaluate` reads `page_type`, `farmwatch calibrate` reads `label` and `text`.
    """

    fetch_id: str
    url: str = ""
    site: str = ""
    page_id: str = ""
    page_type: str = ""  # article | other
    label: str = ""  # llm | human; "" = not said
    by: str = ""
    labelled_at: int = 0  # ms UTC
    text_digest: str = ""
    text: str = ""
    drawn: int = 0  # of a review: sites of the sample, labelled or not
    drawn_at: int = 0  # ms UTC


_OF_PAGE = ("fetch_id", "url", "site", "page_id", "text_digest", "drawn", "drawn_at")


def judgement(page: SamplePage, answer: Answer, by: str, at: int) -> Judgement:
    """What `by` says of a page at `at` (ms UTC)."""
    of_page = {name: getattr(page, name) for name in _OF_PAGE}
    said: dict[str, Any] = {"page_type": answer.page_type, "label": answer.label, "by": by, "labelled_at": at}
    return Judgement(**of_page, **said, text=page.text or "")


def retraction(page: SamplePage, by: str, at: int) -> Judgement:
    """The line that takes back what was said of a page."""
    return Judgement(fetch_id=page.fetch_id, by=by, labelled_at=at)


class PageLabel(msgspec.Struct, frozen=True, kw_only=True):
    """The part of a judgement by which rulesets are evaluated; a line without a fetch id is a label of another kind."""

    fetch_id: str = ""
    url: str = ""
    site: str = ""
    page_type: str = ""


S = TypeVar("S", Judgement, PageLabel)


def latest_judgements(judgements: Iterable[S]) -> Iterator[S]:
    """What counts: the last judgement of each page, in the order of those, but for what was taken back."""
    last: dict[str, S] = {}
    for one in judgements:
        last.pop(one.fetch_id, None)
        last[one.fetch_id] = one
    return (one for one in last.values() if one.page_type)


class LabelSample:
    """The pages of a sample file in its order, each once; what is wrong with a line goes to stderr with its number."""

    def __init__(self, file: Path) -> None:
        """Read it. Raises FarmwatchError for a file that cannot be read, for one of judgements, and for one without a
        page.
        """
        lines = JsonLines([file], SamplePage, "label")
        pages: dict[str, SamplePage] = {}
        for place, page in lines:
            if page.labelled_at:
                raise FarmwatchError(
                    f"{file}: {place} is a judgement, and no page of a sample: name the sample that `farmwatch compare"
                    f" --out` wrote, and this file by --out"
                )
            if page.fetch_id and pages.setdefault(page.fetch_id, page) is page:
                continue
            lines.bad(place, "its page stands in the sample already" if page.fetch_id else "fetch_id is empty")
        self.exit = lines.end()  # PROBLEM where a line was skipped
        self.pages = list(pages.values())
        if not pages:
            raise FarmwatchError(f"{file}: no page to label: take a sample that `farmwatch compare --out` wrote")
