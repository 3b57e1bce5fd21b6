"""A sample of pages to label, and the labels: both are JSON, one object per line.

A label is one of four answers (`ANSWERS`): not an article, an article, or an article with a known author. It includes
the labelled text, so that it can be used after retention has removed the page from the log.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

import msgspec

from farmwatch.terminal.jsonl import JsonLines
from stream.schema.vocabulary import PageClass, Truth
from stream.text.user_errors import FarmwatchError

LONGEST_NAME = 64  # of a person who labels
OTHER = "other"  # page_type of other pages than articles


class Answer(NamedTuple):
    """The meaning of a key for a page."""

    page_type: str
    label: str  # "" = unknown
    words: str


ANSWERS = {
    "a": Answer(PageClass.ARTICLE, "", "article"),
    "n": Answer(OTHER, "", "not an article"),
    "l": Answer(PageClass.ARTICLE, Truth.LLM, "article, written by a language model"),
    "h": Answer(PageClass.ARTICLE, Truth.HUMAN, "article, written by a human"),
}
"""Key -> answer."""


class SamplePage(msgspec.Struct, frozen=True, kw_only=True):
    """A line of a sample, as `farmwatch compare` writes it. `fetched_at` in milliseconds UTC."""

    fetch_id: str
    url: str
    site: str
    text: str | None = None  # None = it was no longer in the log
    page_id: str = ""
    text_cut: int = 0  # characters omitted at the end of the text
    text_digest: str = ""
    run_a: str = ""
    run_b: str = ""
    verdict_a: str = ""
    verdict_b: str = ""
    fetched_at: int = 0
    ruleset_a: str = ""  # as in a command: a shipped ruleset by name, otherwise RUN.toml; "" = unknown
    ruleset_b: str = ""
    log: str = ""
    labelled_at: int = 0  # of a judgement, which is not a page of a sample
    drawn: int = 0  # of a review: sites of the sample
    drawn_at: int = 0  # ms UTC
    place: int = 0  # of a review: of its site in the sample, from 1


class Judgement(msgspec.Struct, frozen=True, kw_only=True):
    """A line of a labels file. A person's last line of a fetch id counts; without `page_type` it withdraws the label.

    `farmwatch rulesets evaluate` reads `page_type`, `farmwatch lab calibrate` reads `label` and `text`.
    """

    fetch_id: str
    url: str = ""
    site: str = ""
    page_id: str = ""
    page_type: str = ""  # article | other
    label: str = ""  # llm | human; "" = unknown
    by: str = ""
    labelled_at: int = 0  # ms UTC
    text_digest: str = ""
    text: str = ""
    drawn: int = 0  # of a review: sites of the sample, labelled or not
    drawn_at: int = 0  # ms UTC
    place: int = 0  # of a review: of its site in the sample, from 1


_OF_PAGE = ("fetch_id", "url", "site", "page_id", "text_digest", "drawn", "drawn_at", "place")


def judgement(page: SamplePage, answer: Answer, by: str, at: int) -> Judgement:
    """The label that `by` gives a page at `at` (ms UTC)."""
    of_page = {name: getattr(page, name) for name in _OF_PAGE}
    said: dict[str, Any] = {"page_type": answer.page_type, "label": answer.label, "by": by, "labelled_at": at}
    return Judgement(**of_page, **said, text=page.text or "")


def retraction(page: SamplePage, by: str, at: int) -> Judgement:
    """The line that withdraws the label of a page."""
    return Judgement(fetch_id=page.fetch_id, by=by, labelled_at=at)


class PageLabel(msgspec.Struct, frozen=True, kw_only=True):
    """The part of a judgement that rulesets are evaluated with. Without a fetch id it is another kind of label."""

    fetch_id: str = ""
    url: str = ""
    site: str = ""
    page_type: str = ""
    by: str = ""


S = TypeVar("S", Judgement, PageLabel)


def latest_judgements(judgements: Iterable[S]) -> Iterator[S]:
    """Each person's last judgement of each page, in the order of these, without withdrawn ones."""
    last: dict[tuple[str, str], S] = {}
    for one in judgements:
        last.pop((one.fetch_id, one.by), None)
        last[one.fetch_id, one.by] = one
    return (one for one in last.values() if one.page_type)


class LabelSample:
    """The pages of a sample file in order, each once; errors in lines are reported on stderr by number."""

    def __init__(self, file: Path) -> None:
        """Read the file.

        Raises FarmwatchError for an unreadable file, for one of judgements, and for one without a page.
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
        self.exit = lines.end()  # PROBLEM if a line was skipped
        self.pages = list(pages.values())
        if not pages:
            raise FarmwatchError(f"{file}: no page to label: name a sample of `review draw` or `compare --out`")
