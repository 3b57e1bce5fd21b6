"""The quality of main texts by the extractor `blocks` beside those by Trafilatura, on pages of other domains."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from copy import copy
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import NamedTuple

import msgspec
import numpy as np

from farmwatch.labels.labelled_pages import Label, LabelledPages
from filters.extraction.learned.model import BlockModel
from filters.model_file import digest_of
from filters.settings import MeasureSettings
from lab.articles.additive import fold_of
from lab.extractor.training import MainTextPage, learn
from scoring.estimate.paired_bootstrap import FEWEST_SITES
from scoring.statistics.shares import quantile_of_sum


class Text(NamedTuple):
    """A main text, and the algorithm that found it."""

    text: str
    path: str


FOLDS = 5
Texts = Mapping[Label, Text]
Advance = Callable[[int], None]


class Errors(msgspec.Struct, frozen=True, kw_only=True):
    """F1 of the texts of pages; the interval of the difference is paired, over domains, and unknown for few domains."""

    pages: int
    domains: int
    trafilatura: float
    blocks: float
    difference: float
    low: float | None
    high: float | None
    trafilatura_share: float  # pages whose text by `blocks` is by Trafilatura


def write_model(folder: Path, model: BlockModel) -> Path:
    """Write a model into a folder. Raises OSError."""
    data = msgspec.json.encode(model) + b"\n"
    file = folder / f"{digest_of(data)}.json"
    file.write_bytes(data)
    return file


def texts_of(folder: LabelledPages, settings: MeasureSettings, advance: Advance = lambda _: None) -> dict[Label, Text]:
    """The main texts of pages as MEASURE extracts them."""
    measured = folder.measured(settings, advance)
    return {page.label: Text(page.features.text, page.features.extract_path) for page in measured}


def texts_of_other_domains(
    folder: LabelledPages, pages: Sequence[MainTextPage], tested: Sequence[MainTextPage], settings: MeasureSettings
) -> dict[Label, Text]:
    """The texts of `tested` by a model of those of `pages`, all of the folder, that have other domains.

    `settings`: those of MEASURE, whose extractor does not matter. Raises TooFewLabels.
    """
    domains, part = {page.domain for page in tested}, copy(folder)
    model = learn([page for page in pages if page.domain not in domains])
    part.narrow({page.label for page in tested}.__contains__)
    with TemporaryDirectory() as place:
        file = write_model(Path(place), model)
        return texts_of(part, msgspec.structs.replace(settings, extractor="blocks", extractor_model=str(file)))


def texts_out_of_fold(
    folder: LabelledPages, pages: Sequence[MainTextPage], settings: MeasureSettings, advance: Advance = lambda _: None
) -> dict[Label, Text]:
    """The texts of all pages, each by a model that learned nothing of its domain. Raises TooFewLabels."""
    texts = dict[Label, Text]()
    folds = fold_of([page.domain for page in pages], FOLDS).tolist()
    for fold in range(FOLDS):
        tested = [page for page, of in zip(pages, folds, strict=True) if of == fold]
        texts |= texts_of_other_domains(folder, pages, tested, settings)
        advance(1)
    return texts


def errors_by(
    group: Callable[[Label], str], pages: Iterable[MainTextPage], theirs: Texts, ours: Texts
) -> dict[str, Errors]:
    """The errors of the pages in `ours` by a name of each; pages with the name "" are left out."""
    groups: dict[str, list[MainTextPage]] = {}
    for page in pages:
        if page.label in ours:
            groups.setdefault(group(page.label), []).append(page)
    return {name: _errors(groups[name], theirs, ours) for name in sorted(groups) if name}


def _errors(pages: Sequence[MainTextPage], theirs: Texts, ours: Texts) -> Errors:
    domains, of = np.unique([page.domain for page in pages], return_inverse=True)
    sums = np.zeros((len(domains), 4))
    for domain, page in zip(of.tolist(), pages, strict=True):
        sums[domain] += *page.truth.hits(theirs[page.label].text), *page.truth.hits(ours[page.label].text)
    hits, totals = sums[:, ::2], sums[:, 1::2]  # [domains, extractors]
    f1 = hits.sum(0) / totals.sum(0)
    difference, half = float(f1[1] - f1[0]), None
    if len(domains) >= FEWEST_SITES:
        # The difference of two ratios is nearly the sum of these (W. G. Cochran, Sampling Techniques, 1977, ch. 6)
        moves = ((hits - f1 * totals) / totals.sum(0)) @ np.array([-1, 1])
        squares, fourths = float(moves @ moves), float((moves**4).sum())
        variance = squares * len(domains) / (len(domains) - 1)
        half = quantile_of_sum(squares, fourths, len(domains)) * float(np.sqrt(variance))
    return Errors(
        pages=len(pages),
        domains=len(domains),
        trafilatura=float(f1[0]),
        blocks=float(f1[1]),
        difference=difference,
        low=None if half is None else difference - half,
        high=None if half is None else difference + half,
        trafilatura_share=sum(ours[page.label].path not in ("blocks", "none") for page in pages) / len(pages),
    )
