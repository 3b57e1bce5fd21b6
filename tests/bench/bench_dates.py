"""Dates of labelled pages: how often a method gives one, how often it is right, and its cost.

    python -m tests.bench.bench_dates [every nth page, default 1]

Prints the tables of docs/explanation/dates.md. The pages are those of htmldate's evaluation and the dated ones of wcxb.
A page is of the half on which the rules were chosen if the digest of its id is even; the rules were not looked at on
the other half. The peer is htmldate, which no part of farmwatch calls.
"""

from __future__ import annotations

import hashlib
import json
import logging
import sys
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from datetime import date
from functools import partial
from importlib.metadata import version
from typing import Any, NamedTuple

import zstandard
from htmldate import find_date
from trafilatura import bare_extraction

from filters.dates.candidates import candidates
from filters.dates.page_dates import dates_of
from filters.extraction.html_tree import ParseFailed, parse, readable
from filters.structure.measures import by_tag
from scoring.estimate.intervals import Z95, wilson
from stream.schema.dates import CHATGPT, DECLARED, PageDates, Precision
from tests.bench.timing import argument, cpu_s, json_lines
from tests.support.paths import data_root

ROUNDS = 3  # of a time: the least counts
EVALUATION, WCXB = "evaluation", "wcxb"


class Labelled(NamedTuple):
    """A page with the day of publication by hand."""

    source: str
    is_held_out: bool
    url: str
    day: date
    html: str


class Given(NamedTuple):
    """A page's label and the day that a method gives; None = none."""

    page: Labelled
    day: date | None


def labelled(every: int) -> Iterator[Labelled]:
    """Each nth page of both sources that has a day and can be parsed."""
    root = data_root() / "data"
    gold = [json.loads(line) for line in (root / "pages" / "wcxb" / "gold.jsonl").open(encoding="utf-8")]
    folder = root / "pages" / "wcxb" / "html"
    rows = [(EVALUATION, row["id"], row["url"], row["date"], row["html"]) for row in _evaluation(root)]
    for row in gold:
        if row.get("publish_date"):
            data = (folder / f"{row['id']}.html.zst").read_bytes()
            html = zstandard.ZstdDecompressor().stream_reader(data).read().decode("utf-8", "replace")
            rows.append((WCXB, row["id"], row["url"], row["publish_date"], html))
    for source, ident, url, day, html in rows[::every]:
        try:
            known = date.fromisoformat(str(day)[:10])
            parse(readable(html))
        except (ValueError, ParseFailed):
            continue
        yield Labelled(source, bool(hashlib.sha256(ident.encode()).digest()[0] % 2), url, known, html)


def _evaluation(root: Any) -> Iterator[dict[str, Any]]:
    return json_lines(root / "dates" / "pages.jsonl.zst")


def own(page: Labelled) -> PageDates:
    elements = list(parse(readable(page.html)).iter())
    return dates_of(candidates(elements, by_tag(elements), page.html, page.url))


def peer(page: Labelled, *, extensive: bool) -> date | None:
    found = find_date(page.html, url=page.url, extensive_search=extensive, original_date=True)
    return date.fromisoformat(found) if found else None


def line_of(name: str, given: Sequence[Given]) -> str:
    """A row: pages with a date, exact, within a day, on the wrong side of ChatGPT, on the first of January."""
    days = [(page.day, day) for page, day in given if day is not None]
    if not days:
        return f"| {name} | 0 of {len(given)} | | | | |"
    exact = sum(label == day for label, day in days) / len(days)
    near = sum(abs((label - day).days) <= 1 for label, day in days)
    _, low, high = wilson(near, len(days), Z95)
    wrong = sum((label < CHATGPT) != (day < CHATGPT) for label, day in days)
    first = sum((day.month, day.day) == (1, 1) != (label.month, label.day) for label, day in days) / len(days)
    within = f"{near / len(days):.3f} ({low:.3f}-{high:.3f})"
    return (
        f"| {name} | {len(days) / len(given):.2f} of {len(given)} | {exact:.3f} | {within} | {wrong} of {len(days)} |"
        f" {first:.1%} |"
    )


def costs(pages: Sequence[Labelled]) -> dict[str, float]:
    """CPU of each method on these pages, beside a bare call of Trafilatura on the same ones."""

    def trafilatura() -> None:
        options = {"include_comments": False, "include_links": True, "include_formatting": True}
        for page in pages:
            bare_extraction(page.html, favor_recall=True, output_format="xml", with_metadata=False, **options)  # type: ignore[arg-type]

    trees = [list(parse(readable(page.html)).iter()) for page in pages]
    tagged = [by_tag(elements) for elements in trees]

    def ours() -> None:
        for page, elements, of in zip(pages, trees, tagged, strict=True):
            dates_of(candidates(elements, of, page.html, page.url))

    def theirs(*, extensive: bool) -> None:
        for page in pages:
            peer(page, extensive=extensive)

    works: dict[str, Callable[[], None]] = {
        "own": ours,
        "htmldate fast": partial(theirs, extensive=False),
        "htmldate extensive": partial(theirs, extensive=True),
    }
    bare = min(cpu_s(trafilatura) for _ in range(ROUNDS))
    return {name: min(cpu_s(work) for _ in range(ROUNDS)) / bare for name, work in works.items()}


def main() -> None:
    if not (data_root() / "data" / "dates").is_dir():
        sys.exit(f"the dated pages are not at {data_root()}: set FARMWATCH_TEST_DATA")
    logging.disable(logging.CRITICAL)
    pages = list(labelled(argument(1, 1)))
    print(f"htmldate {version('htmldate')}, trafilatura {version('trafilatura')}, {len(pages)} pages")
    found = [own(page) for page in pages]
    given: dict[str, list[Given]] = defaultdict(list)
    for page, dates in zip(pages, found, strict=True):
        of = dates.published if dates.published and dates.published.precision == Precision.DAY else None
        is_declared = of is not None and of.source in DECLARED
        given["own, trusted"].append(Given(page, dates.trusted))
        given["own, declared"].append(Given(page, of.day if of and is_declared else None))
        given["own, all"].append(Given(page, of.day if of else None))
        given["own, two sources or more"].append(Given(page, of.day if of and dates.agreeing > 1 else None))
        given["own, conflict"].append(Given(page, of.day if of and "conflict" in dates.flags else None))
        is_later = bool(of and dates.modified and (dates.modified.day - of.day).days > 30)
        given["own, changed more than 30 days later"].append(Given(page, of.day if of and is_later else None))
        given["htmldate fast"].append(Given(page, peer(page, extensive=False)))
        given["htmldate extensive"].append(Given(page, peer(page, extensive=True)))
    for source in (EVALUATION, WCXB):
        for half, is_held_out in (("chosen on", False), ("held out", True)):
            print(f"\n{source}, {half}\n")
            print("| method | a date | exact | within a day (95%) | wrong side | wrong first of January |")
            print("|---|---|---|---|---|---|")
            for name, rows in given.items():
                print(line_of(name, [row for row in rows if row.page[:2] == (source, is_held_out)]))
    print("\nboth sources, both halves\n")
    for name, rows in given.items():
        print(line_of(name, rows))
    for source in (EVALUATION, WCXB):
        old = [
            dates
            for page, dates in zip(pages, found, strict=True)
            if page.source == source and dates.trusted and dates.trusted < CHATGPT
        ]
        changed = sum(dates.modified is not None and dates.modified.day >= CHATGPT for dates in old)
        print(f"\n{source}: {changed} of {len(old)} pages trusted before {CHATGPT} state a change after it")
    for name, cost in costs(pages[::4]).items():
        print(f"CPU beside one Trafilatura call: {name} {cost:.3f}")


if __name__ == "__main__":
    main()
