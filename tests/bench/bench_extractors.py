"""Every labelled page by each extractor: F1 by source, and the CPU time of finding the text of a page.

    OMP_NUM_THREADS=1 python -m tests.bench.bench_extractors [REPORT.json]

Needs the labelled pages (FARMWATCH_TEST_DATA) and an hour: `blocks` and the article model that `auto` asks
are trained 12 times, so that none learned from the domain of a page whose text it finds. The report is
docs/explanation/extraction.json, whose tables tests/tools/extraction_tables.py makes. A tool that is not installed has
no row; rs-trafilatura has no wheels.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
from lxml import etree

from farmwatch.labels.labelled_pages import Label, LabelledPage, LabelledPages
from filters.articles.inputs import LEARNED_INPUTS
from filters.articles.model import VERSION, ArticleModel
from filters.extraction.html_tree import ParseFailed, parse, readable
from filters.extraction.learned.model import load_model
from filters.extraction.learned.model_name import model_digest
from filters.extraction.page_guards import refused
from filters.extraction.pruning import prune
from filters.measure.article_first import LEAST_PROBABILITY, article_or_other
from filters.measure.extractors import EXTRACTORS, extractor
from filters.settings import MeasureSettings
from filters.structure.names import MEASURES, Measures
from lab.articles.additive import fit, fold_of
from lab.articles.training import TrainingPages
from lab.extractor.errors import FOLDS, Text, errors_by, texts_of_other_domains, texts_out_of_fold
from lab.extractor.gold import keep_main_texts
from lab.extractor.training import MainTextPage, main_text_pages
from lab.extractor_bench.tools import TOOLS
from scoring.errors import TooFewLabels
from scoring.statistics.rounding import SCORE_DIGITS, each_float, significant
from stream.text.registrable_domain import registrable_domain
from tests.bench.timing import labelled_pages_folder
from tests.support.pages.extraction_peer import bare_text
from tests.tools.extraction_tables import BARE, Report, tables
from tests.tools.generated import document
from tests.tools.ruleset_tables import SOURCES

Find = Callable[[str, Measures], Text]
"""From a page and its structure, which MEASURE has measured, to its text."""
Texts = dict[Label, Text]


def main() -> None:
    root, settings = labelled_pages_folder(), MeasureSettings(workers=1, time_limit_s=120)
    folder = LabelledPages(root)
    measured = list(folder.measured(settings))
    keep_main_texts(folder)
    texts, spent = _texts_and_times(folder, {page.label: page for page in measured})
    pages = main_text_pages(folder, settings, lambda _: None)
    card = load_model("").card
    learned = [page for page in pages if f"{page.label.source}: " in card]
    of_source: dict[str, list[MainTextPage]] = {}
    for page in pages:
        of_source.setdefault(page.label.source, []).append(page)
    left_out = Texts()
    for tested in of_source.values():
        left_out |= texts_of_other_domains(folder, learned, tested, settings)
    unlearned = {page.label for page in pages} - {page.label for page in learned}
    texts["blocks"] = {label: left_out[label] for label in unlearned}
    texts["blocks"] |= texts_out_of_fold(folder, learned, settings)
    models, probabilities = _ArticleModels(measured, pages), dict[Label, float]()
    folds = fold_of([page.domain for page in pages], FOLDS).tolist()
    for fold in range(FOLDS):
        probabilities |= models.probabilities([page for page, of in zip(pages, folds, strict=True) if of == fold])
    texts["auto"] = _auto(texts["trafilatura"], texts["blocks"], probabilities)
    for source, tested in of_source.items():
        with suppress(TooFewLabels):  # one source alone names kinds
            probabilities |= models.probabilities(tested, without=source)
    both = {"blocks": left_out, "auto": _auto(texts["trafilatura"], left_out, probabilities)}

    def errors(found: Texts, group: Callable[[Label], str] = lambda label: label.source) -> Any:
        return errors_by(group, pages, texts["trafilatura"], found)

    report = Report(
        model=f"{model_digest('')}.json",
        card=card,
        versions={name: TOOLS[name].version or "" for name in ("trafilatura", "resiliparse", "readability")}
        | {name: tool.version for name, tool in TOOLS.items() if name == "rs-trafilatura" and tool.version},
        sources={name: errors(found) for name, found in texts.items()},
        kinds={name: errors(texts[name], lambda label: label.page_type if label.gold else "") for name in both},
        left_out={name: errors(found) for name, found in both.items()},
        cpu={name: of / spent[BARE] for name, of in spent.items()},
    )
    numbers = each_float(msgspec.to_builtins(report), lambda number: significant(number, SCORE_DIGITS))
    for file in map(Path, sys.argv[1:]):
        file.write_bytes(msgspec.json.format(msgspec.json.encode(numbers), indent=2) + b"\n")
    print(document(tables(report)))


def _texts_and_times(
    folder: LabelledPages, measured: Mapping[Label, LabelledPage]
) -> tuple[dict[str, Texts], dict[str, float]]:
    """The texts of each extractor, and its seconds of CPU for all pages."""
    own: tuple[Any, ...] = ("trafilatura", "blocks", "auto", "resiliparse")
    works: dict[str, Find] = {name: _as_measured(name) for name in own}
    works |= {f"bare Trafilatura, {focus}": _called(partial(bare_text, focus=focus)) for focus in _FOCI}
    for name in ("readability", "rs-trafilatura"):
        if TOOLS[name].version is None:
            print(f"{name} is not installed: no row")
        else:
            works[name] = _called(TOOLS[name].load(MeasureSettings()))
    spent, texts = dict.fromkeys(works, 0.0), {name: Texts() for name in works}
    for turn, (label, html) in enumerate(folder.htmls()):
        structure = measured[label].features.structure
        known = dict(zip(MEASURES, structure, strict=True)) if structure else {}
        names = list(works)
        for name in names[turn % len(names) :] + names[: turn % len(names)]:  # the first finds cold caches
            started = time.process_time()
            texts[name][label] = works[name](html, known)
            spent[name] += time.process_time() - started
    return texts, spent


_FOCI = ("recall", "balanced", "precision")


def _as_measured(name: Any) -> Find:
    """The extractor with what MEASURE does for it alone: it parses and prunes, and for `auto` it asks the model."""
    settings = MeasureSettings(extractor=name)
    run, otherwise = extractor(settings), EXTRACTORS[name].otherwise
    other = otherwise("") if otherwise else None

    def text(html: str, structure: Measures) -> Text:
        if refused(html.encode(), html, settings) is not None:
            return Text("", "none")
        with suppress(ParseFailed):
            tree = parse(html := readable(html))
            if prune(list(tree.iter()), int(structure.get("page_bytes") or 0)):
                html = etree.tostring(tree, encoding="unicode", method="html")
            found = run(html, tree)
            if other is not None:
                found = article_or_other(found, structure, settings.tokenizer, lambda: other(parse(html)))
            return Text(found.text, found.path)
        return Text("", "none")

    return text


def _called(tool: Callable[[str], str | None]) -> Find:
    def text(html: str, _: Measures) -> Text:
        with suppress(Exception):
            return Text(tool(html) or "", "")
        return Text("", "none")

    return text


def _auto(theirs: Texts, ours: Texts, probabilities: Mapping[Label, float]) -> Texts:
    """The texts of `auto`, of the texts by both of its extractors; that by `blocks` may be Trafilatura's, too."""
    return {label: theirs[label] if probabilities[label] > LEAST_PROBABILITY else ours[label] for label in ours}


class _ArticleModels:
    """The article model, trained as the one that ships, on pages of other domains than those that it is asked of."""

    def __init__(self, measured: Sequence[LabelledPage], pages: Sequence[MainTextPage]) -> None:
        self._training = TrainingPages(measured, SOURCES)
        joined = {registrable_domain(page.label.site): page.domain for page in pages}
        self._domains = [joined.get(domain, domain) for domain in self._training.domains]
        self._features = {page.label: page.features for page in measured}

    def probabilities(self, tested: Sequence[MainTextPage], without: str = "") -> dict[Label, float]:
        """The probability that Trafilatura's texts of the pages are articles; `without`: also of no page of a source.

        Raises TooFewLabels.
        """
        domains, pages = {page.domain for page in tested}, self._training
        of = zip(self._domains, pages.learned, strict=True)
        seen = np.array([domain not in domains and page.source != without for domain, page in of])
        fitted = fit(pages.matrix[seen], LEARNED_INPUTS, np.array(pages.kinds)[seen].tolist(), pages.weights[seen])
        model = ArticleModel(VERSION, "", fitted.kinds, fitted.bias, fitted.steps)
        labels = [page.label for page in tested]
        logits = [model.logits(self._features[label]) for label in labels]
        return {label: model.probability(of) if of else 0.0 for label, of in zip(labels, logits, strict=True)}


if __name__ == "__main__":
    main()
