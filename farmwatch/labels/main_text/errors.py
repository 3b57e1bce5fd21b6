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
from farmwatch.labels.main_text.training import MainTextPage, encode_model, learn
from filters.extraction.learned.model import BlockModel
from filters.extraction.learned.model_name import digest_of
from filters.settings import MeasureSettings
from scoring.rates.paired_bootstrap import FEWEST_SITES, paired_change
from scoring.training.additive import fold_of

FOLDS = 5
_SEED = 0


class Text(NamedTuple):
    """A main text, and the algorithm that found it."""

    text: str
    path: str


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
    trafilatura_share: float  # pages whose text by `blocks` is not its own


def write_model(folder: Path, model: BlockModel) -> Path:
    """Write a model into a folder. Raises OSError."""
    data = encode_model(model)
    file = folder / f"{digest_of(data)}.json"
    file.write_bytes(data)
    return file


def texts_of(folder: LabelledPages, settings: MeasureSettings, advance: Advance = lambda _: None) -> dict[Label, Text]:
    """The main texts of pages as MEASURE extracts them."""
    measured = folder.measured(settings, advance)
    return {page.label: Text(page.features.text, page.features.extract_path) for page in measured}


class Held:
    """Main texts by models that learned nothing from the domain of the page."""

    def __init__(self, folder: LabelledPages, pages: Sequence[MainTextPage], settings: MeasureSettings) -> None:
        """Take all pages of the folder, and the settings of MEASURE, whose extractor and model do not matter."""
        self._folder, self._pages = folder, pages
        self._settings = msgspec.structs.replace(settings, extractor="blocks")

    def out_of_fold(self, advance: Advance = lambda _: None) -> dict[Label, Text]:
        """The texts of all pages. `advance` gets 1 after each of FOLDS models. Raises TooFewLabels."""
        folds = fold_of([page.domain for page in self._pages], FOLDS).tolist()
        found: dict[Label, Text] = {}
        for fold in range(FOLDS):
            tested = [page for page, of in zip(self._pages, folds, strict=True) if of == fold]
            found |= self._texts(tested)
            advance(1)
        return found

    def of_source(self, source: str) -> dict[Label, Text]:
        """The texts of a source by a model that learned from no page of its domains. Raises TooFewLabels."""
        return self._texts([page for page in self._pages if page.label.source == source])

    def _texts(self, tested: Sequence[MainTextPage]) -> dict[Label, Text]:
        domains, part = {page.domain for page in tested}, copy(self._folder)
        model = learn([page for page in self._pages if page.domain not in domains])
        part.narrow({page.label for page in tested}.__contains__)
        with TemporaryDirectory() as place:
            file = write_model(Path(place), model)
            settings = msgspec.structs.replace(self._settings, extractor_model=str(file))
            return texts_of(part, settings)


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
    change = paired_change(sums, np.random.default_rng(_SEED))
    assert change is not None  # every page has a word or a segment to find
    is_known = len(domains) >= FEWEST_SITES
    return Errors(
        pages=len(pages),
        domains=len(domains),
        trafilatura=change.a,
        blocks=change.b,
        difference=change.difference,
        low=change.low if is_known else None,
        high=change.high if is_known else None,
        trafilatura_share=sum(ours[page.label].path != "blocks" for page in pages) / len(pages),
    )
