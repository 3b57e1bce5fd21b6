"""The numbers of the shipped rulesets on labelled pages: `python -m tests.tools.ruleset_tables docs`.

The tables are those of all pages. Tests measure every 24th site, whose tables are in tests/golden, and with
FARMWATCH_LONG (`make real`) all pages.

`default` asks the article model, which learned from these pages. So it is judged out of fold: each page by a model that
saw no page of its site. The shipped model is that of

    farmwatch lab train-articles PAGES --articles aeb=0.3 --articles readability=0.3 --articles trafilatura_eval=0.3
        --articles dragnet=0.15 --out filters/articles/articles.json

A page is of known human origin if its metadata dates it before November 2022, or if its collection is older.
"""

from __future__ import annotations

import re
import sys
import zlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

import xxhash
import zstandard

from farmwatch.labels.evaluation_tables import Table, tables_of
from farmwatch.labels.evaluation_tables import report as evaluation_report
from farmwatch.labels.labelled_pages import LabelledPage, LabelledPages
from filters.articles.inputs import LEARNED_INPUTS
from filters.articles.model import SHIPPED, load_model
from filters.rules.evaluation import evaluate
from filters.rules.judgement import judge
from filters.rules.ruleset import Ruleset, load_ruleset, shipped_rulesets
from filters.settings import MeasureSettings
from lab.articles.additive import out_of_fold
from lab.articles.held_out import Estimate, HeldOutPage, ThresholdErrors, article_errors, kept_share
from lab.articles.training import TrainingPages
from scoring.lite_ngram.detector import LiteNgram
from stream.schema.vocabulary import PageClass
from stream.text.registrable_domain import registrable_domain
from tests.support.paths import ROOT, data_root
from tests.tools.generated import document, renewed, section

COMMAND = "python -m tests.tools.ruleset_tables docs"
GOLDEN = ROOT / "tests" / "golden" / "rulesets.md"
SECTIONS = ("explanation", "reference")  # of the docs, each with a page rules.md
SOURCES = {"aeb": 0.3, "readability": 0.3, "trafilatura_eval": 0.3, "dragnet": 0.15}
"""Sources whose pages count as articles, and their weights."""

OLD_SOURCES = ("cleaneval", "dragnet")  # collected before 2013
THRESHOLDS = (0.1, 0.2, 0.3, 0.4, 0.5, 0.6)
MODEL_RULE = "article_probability"
_DATE = re.compile(r"""(?:datePublished|article:published_time)["'\s:=]+(?:content\s*=\s*)?["'](\d{4}-\d{2})""")
_LAST_MONTH = "2022-10"  # before ChatGPT


def is_sampled(site: str) -> bool:
    """Whether the tests measure the pages of this site."""
    return zlib.crc32(site.encode()) % 24 == 0


class Judged:
    """Labelled pages under rulesets, with the article model out of fold."""

    def __init__(self, measured: Sequence[LabelledPage]) -> None:
        self.measured = measured
        self.labelled = [page for page in measured if page.label.page_type]
        training = TrainingPages(measured, SOURCES)
        logits = out_of_fold(training.matrix, LEARNED_INPUTS, training.kinds, training.weights, training.domains)
        self._model = load_model(SHIPPED)
        self.predicted = training.predicted(logits, self._model)
        self._probability = {page.id: held.probability for page, held in self.predicted}

    def kept(self, ruleset: Ruleset) -> dict[str, bool]:
        """Page id -> whether the ruleset keeps the page."""
        least = next((float(r.threshold) for r in ruleset.rules if r.name == MODEL_RULE and r.threshold), 0.0)  # type: ignore[arg-type]
        others = without_model(ruleset)
        return {
            page.label.id: judge(page.features, others).verdict == PageClass.ARTICLE and self._of(page) >= least
            for page in self.measured
        }

    def _of(self, page: LabelledPage) -> float:
        """The probability of an article; by the shipped model for a page from which it did not learn."""
        if page.label.id in self._probability:
            return self._probability[page.label.id]
        logits = self._model.logits(page.features)
        return self._model.probability(logits) if logits else 0.0

    def errors(self, kept: Mapping[str, bool]) -> ThresholdErrors:
        """F1, precision, recall and kept others over the pages with a label."""
        return article_errors(_held_out(self.labelled, kept), PageClass.ARTICLE, (0.5,), 0.5).thresholds[0]


def _held_out(pages: Iterable[LabelledPage], kept: Mapping[str, bool]) -> list[HeldOutPage]:
    return [
        HeldOutPage(page.label.page_type, registrable_domain(page.features.site), float(kept[page.label.id]), "")
        for page in pages
    ]


def without_model(ruleset: Ruleset) -> Ruleset:
    return replace(ruleset, rules=tuple(rule for rule in ruleset.rules if rule.name != MODEL_RULE))


def with_threshold(ruleset: Ruleset, least: float) -> Ruleset:
    rules = (replace(rule, threshold=least) if rule.name == MODEL_RULE else rule for rule in ruleset.rules)
    return replace(ruleset, rules=tuple(rules))


def out_of_fold_tables(measured: Sequence[LabelledPage], folder: Path) -> list[Table]:
    """The tables of docs/explanation/rules.md, from all labelled pages in `folder`."""
    judged, default = Judged(measured), load_ruleset("default")
    before, now = judged.kept(without_model(default)), judged.kept(default)
    by_threshold = {least: judged.kept(with_threshold(default, least)) for least in THRESHOLDS}
    rulesets = {
        "every page with a text": judged.kept(replace(default, rules=default.rules[:1])),
        **{name: judged.kept(load_ruleset(name)) for name in shipped_rulesets() if name != "default"},
        "default without the model": before,
        "default": now,
    }
    return [
        _by_ruleset(judged, rulesets),
        _by_threshold(judged, by_threshold, before),
        _by_kind(judged, before, now),
        _false_positives(judged, folder, before, now),
        _kinds(judged),
    ]


def _by_ruleset(judged: Judged, rulesets: Mapping[str, Mapping[str, bool]]) -> Table:
    rows = []
    for name, kept in rulesets.items():
        found = judged.errors(kept)
        rows.append([name, *map(_shown, (found.f1, found.precision, found.recall, found.others_kept))])
    articles = sum(page.label.page_type == PageClass.ARTICLE for page in judged.labelled)
    title = (
        f"{len(judged.labelled)} labelled pages, {articles} of them articles (95% intervals, bootstrap over domains)"
    )
    return Table(title, ["ruleset", "F1", "precision", "recall", "others kept"], rows)


def _by_threshold(
    judged: Judged, by_threshold: Mapping[float, Mapping[str, bool]], before: Mapping[str, bool]
) -> Table:
    rows = []
    for least, kept in by_threshold.items():
        found = judged.errors(kept)
        rows.append(
            [
                f"{least:g}",
                *map(_shown, (found.f1, found.recall, found.others_kept)),
                *(f"{_share_kept(judged, source, kept, before):.3f}" for source in SOURCES),
            ]
        )
    headings = ["threshold", "F1", "recall", "others kept", *(f"{source} kept" for source in SOURCES)]
    return Table("By threshold of the model; of a source, of the English pages kept without the model", headings, rows)


def _share_kept(judged: Judged, source: str, kept: Mapping[str, bool], of: Mapping[str, bool]) -> float:
    pages = [page.label.id for page in judged.measured if page.label.source == source and of[page.label.id]]
    return sum(kept[page] for page in pages) / len(pages)


def _by_kind(judged: Judged, before: Mapping[str, bool], now: Mapping[str, bool]) -> Table:
    rows = []
    for kind in sorted({page.label.page_type for page in judged.labelled}):
        pages = [page for page in judged.labelled if page.label.page_type == kind]
        shares = [kept_share(_held_out(pages, kept), 0.5) for kept in (before, now)]
        rows.append([kind, str(len(pages)), *(_shown(Estimate(of.share, of.low, of.high)) for of in shares)])
    return Table("Kept by kind", ["kind", "pages", "without the model", "default"], rows)


def _false_positives(judged: Judged, folder: Path, before: Mapping[str, bool], now: Mapping[str, bool]) -> Table:
    detector = LiteNgram.load()
    flagged: dict[str, bool] = {}
    groups: dict[str, list[str]] = {}
    for page in judged.measured:
        if not before[page.label.id]:
            continue
        of = _origin(page, folder)
        if of:
            flagged[page.label.id] = bool(detector.score([page.features.text])[0].flag)
            groups.setdefault(of, []).append(page.label.id)
    rows = []
    for of, pages in sorted(groups.items()):
        cells = []
        for kept in (before, now):
            among = [flagged[page] for page in pages if kept[page]]
            cells.append(f"{sum(among)} of {len(among)}")
        rows.append([of, *cells])
    return Table("Kept pages that lite-ngram flags", ["pages", "without the model", "default"], rows)


def _origin(page: LabelledPage, folder: Path) -> str:
    """The group of a page; "" if nothing is known of its author and kind."""
    if page.label.source in OLD_SOURCES:
        return f"human: {page.label.source}"
    if not page.label.page_type:
        return ""
    data = (folder / page.label.source / "html" / f"{page.label.id}.html.zst").read_bytes()
    html = zstandard.ZstdDecompressor().stream_reader(data).read().decode("utf-8", "replace")
    date = _DATE.search(html)
    is_article = page.label.page_type == PageClass.ARTICLE
    if date and "1990" < date[1] <= _LAST_MONTH:
        return "human: dated articles" if is_article else "human: dated others"
    return f"of any author: {page.label.page_type}"


def _kinds(judged: Judged) -> Table:
    pages = [held for page, held in judged.predicted if page.is_labelled]
    confusion = article_errors(pages, PageClass.ARTICLE, (0.5,), 0.5).confusion
    guesses = sorted({guess for row in confusion.values() for guess in row})
    rows = [[kind, *(str(row.get(guess, 0)) for guess in guesses)] for kind, row in confusion.items()]
    return Table("Page kinds: labels in rows, guesses in columns", ["label", *(g or "no text" for g in guesses)], rows)


def _shown(number: Estimate) -> str:
    return "-" if number.value is None else f"{number.value:.3f} ({number.low:.3f}-{number.high:.3f})"


def shipped(measured: Sequence[LabelledPage]) -> list[Table]:
    """The shipped rulesets on all labelled pages, each with its rules; the article model has seen these pages."""
    names = shipped_rulesets()
    rulesets = [load_ruleset(name) for name in names]
    found = [evaluate([page.judged(ruleset) for page in measured]) for ruleset in rulesets]
    return tables_of(evaluation_report(names, rulesets, found), details=True)


def golden(docs: Path, sample: Sequence[LabelledPage]) -> str:
    """The tables of the sampled pages, with the digests of the sections in the docs that are of the same code."""
    sections = [section((docs / name / "rules.md").read_text(encoding="utf-8"), COMMAND) for name in SECTIONS]
    digests = (xxhash.xxh3_64_hexdigest(text.encode()) for text in sections)
    return "\n".join([*map(" ".join, zip(SECTIONS, digests, strict=True)), "", document(shipped(sample)), ""])


def main() -> None:
    """Print the tables, and renew the sections of both pages of rules in the given folder, and the golden file."""
    root = data_root()
    labelled = LabelledPages(root / "data" / "pages")
    measured = list(labelled.measured(MeasureSettings(workers=2, time_limit_s=60)))
    if labelled.skipped:
        sys.exit("the labelled pages are damaged")
    found = out_of_fold_tables(measured, root / "data" / "pages")
    print(document(found))
    for docs in map(Path, sys.argv[1:]):
        for name, tables in zip(SECTIONS, (found, shipped(measured)), strict=True):
            page = docs / name / "rules.md"
            page.write_text(renewed(page.read_text(encoding="utf-8"), COMMAND, document(tables)), encoding="utf-8")
        sample = [page for page in measured if is_sampled(page.features.site)]
        GOLDEN.write_text(golden(docs, sample), encoding="utf-8")


if __name__ == "__main__":
    main()
