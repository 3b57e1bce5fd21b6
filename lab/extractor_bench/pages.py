"""The labelled pages of a bench, from folders of labelled pages."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import compress
from pathlib import Path
from typing import NamedTuple

import numpy as np
import zstandard

from farmwatch.labels.labelled_pages import Label, LabelledPages
from filters.measure.page_measures import RawPage


class BenchPage(NamedTuple):
    """A page with a labelled main text."""

    label: Label
    gold: str
    raw: RawPage


class BenchPages(NamedTuple):
    """The pages, and those left out: damaged or there twice, and without a labelled main text."""

    pages: list[BenchPage]
    skipped: int
    without_text: int


def read_pages(
    datasets: Sequence[Path], most: int, on_bad: Callable[[str], None], advance: Callable[[int], None]
) -> BenchPages:
    """The pages of datasets, each a folder with sources or one source; of more than `most` (0: all), every n-th one.

    Raises FarmwatchError.
    """
    places, twice, without = dict[tuple[str, str], str](), 0, 0
    folders = list[LabelledPages]()
    for dataset in datasets:
        is_source = (dataset / "gold.jsonl").is_file()
        folder = LabelledPages(dataset.parent if is_source else dataset, [dataset.name] * is_source, on_bad=on_bad)
        with_text = [label for label in folder.labels if (label.gold or "").strip()]
        without += len(folder.labels) - len(with_text)
        folder.labels = []
        for label in with_text:
            key = label.source, label.id
            if key in places:
                on_bad(f"{label.place}: the page is in {places[key]} already, under the same source")
                twice += 1
            else:
                places[key] = label.place
                folder.labels.append(label)
        folders.append(folder)
    taken = np.zeros(len(places), bool)
    taken[np.linspace(0, len(places) - 1, min(most or len(places), len(places))).astype(int)] = True
    chosen, pages = iter(taken.tolist()), list[BenchPage]()
    for folder in folders:
        folder.labels = list(compress(folder.labels, [next(chosen) for _ in folder.labels]))
        for label, html in folder.htmls(advance):
            body = zstandard.compress(html.encode("utf-8", "replace"), 1)
            pages.append(BenchPage(label, label.gold or "", RawPage(label.url, "utf-8", body)))
    return BenchPages(pages, twice + sum(folder.skipped for folder in folders), without)
