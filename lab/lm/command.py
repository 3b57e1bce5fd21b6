"""`farmwatch lab lm`: a corpus → an n-gram model; labelled pages → the limit above which sentences go."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Annotated, Literal

from cyclopts import Parameter
from cyclopts.validators import Number

from farmwatch.commands.options import DEFAULTS, AsJson, Common, Jobs
from farmwatch.labels.labelled_pages import LabelledPages
from farmwatch.terminal.messages import Advance, counting, put, put_json, put_table, put_wrapped
from filters.model_file import digest_of
from filters.perplexity.fluent import Unit
from filters.perplexity.model import Formula, load_model
from filters.perplexity.model_file import SUFFIX, Card, encode
from filters.perplexity.names import DANGER, SHIPPED
from filters.settings import MeasureSettings
from lab.lm.calibration import best, curve
from lab.lm.pruning import pruned
from lab.lm.tag_remover import text_without_tags
from lab.lm.training import train
from stream.text.user_errors import Exit, FarmwatchError, UsageError
from stream.text.whole_files import write_whole
from stream.text.wording import counted

Model = Annotated[str, Parameter(help="The shipped model, english, or a file DIGEST.ngrams.")]
OfFormula = Annotated[
    Formula, Parameter(help="interpolated is a probability; published is that of the paper, to compare with it.")
]
OfUnit = Annotated[Unit, Parameter(help="What is kept or dropped as a whole; a paragraph is a line.")]
Take = Annotated[
    Literal["tags", "main"], Parameter(help="The text of HTML: all without its tags, or the main text of MEASURE.")
]


def train_lm(
    corpus: Annotated[list[Path], Parameter(help="Text files in UTF-8, and folders of them.", negative="")],
    /,
    *,
    out: Annotated[Path, Parameter(help="Folder for the model, DIGEST.ngrams.")],
    licence: Annotated[str, Parameter(help="The licence of the corpus, for the model's card.")],
    name: Annotated[str, Parameter(help="The corpus in words, for the card. Default: the names in CORPUS.")] = "",
    language: Annotated[str, Parameter(help="Code of its language, for the card.")] = "en",
    order: Annotated[Literal[2, 3], Parameter(help="Words of the longest n-grams.")] = 2,
    ngrams: Annotated[
        int,
        Parameter(help="Bigrams, and trigrams, to keep: those that save most bits; 0 = all.", validator=Number(gte=0)),
    ] = 0,
) -> int:
    """Count the n-grams of a corpus into a model, for `lab clean`.

    The model is one file, named by the digest of its content, with a card: corpus, licence, words, sentences. An n-gram
    has 12 bytes; the counts of all must fit into memory while the command runs. General text makes a better model than
    text of one subject. Exit code 1: the corpus is too small.
    """
    files = _files(corpus)
    said = name or ", ".join(path.resolve().name for path in corpus)
    card = Card(corpus=said, licence=licence, language=language)
    with counting(order * sum(file.stat().st_size for file in files), "bytes") as advance:
        tables = train(files, order, card, advance)
    if ngrams:
        tables = pruned(tables, ngrams)
    data = encode(tables)
    out.mkdir(parents=True, exist_ok=True)
    path = out / f"{digest_of(data)}{SUFFIX}"
    write_whole(path, data, force=True)
    card, kinds = tables.header.card, zip(("word", "bigram", "trigram"), tables.header.counts, strict=False)
    put_wrapped(f"{path}: {', '.join(counted(count, kind) for kind, count in kinds)}; {len(data):,} bytes")
    put_wrapped(f"corpus: {card.corpus}; {counted(card.words, 'word')} in {counted(card.sentences, 'sentence')}")
    put_wrapped(f"licence: {card.licence}")
    return Exit.OK


def calibrate_lm(
    labels: Annotated[Path, Parameter(help="Folder with <source>/gold.jsonl and <source>/html/<id>.html.zst.")],
    /,
    *,
    model: Model = SHIPPED,
    formula: OfFormula = Formula.INTERPOLATED,
    unit: OfUnit = Unit.SENTENCE,
    text: Take = "tags",
    source: Annotated[
        list[str] | None, Parameter(help="Read only this source of the folder; may be repeated.", negative="")
    ] = None,
    jobs: Jobs = 0,
    json: AsJson = False,
    common: Common = DEFAULTS,
) -> int:
    """Find the limit that brings the texts of labelled pages nearest to their main texts, by the F1 of their words.

    A line of gold.jsonl needs the field `articleBody`. One row per limit, and one for the whole text: mean F1 over
    pages, and the shares of the sentences and of the characters that go. Damaged entries are reported and skipped: exit
    code 1.
    """
    ngrams = load_model(model)
    folder = LabelledPages(labels, source or ())
    folder.narrow(lambda label: bool(label.gold))
    if not folder.labels:
        raise FarmwatchError(f"{labels}: no page has a labelled main text: of all lines, none has `articleBody`")
    settings = common.load(f"measure.workers={jobs}").config.measure
    with counting(len(folder.labels), "pages") as advance:
        texts = _main_texts(folder, settings, advance) if text == "main" else _without_tags(folder, advance)
        points = curve(texts, ngrams, formula, unit)
    chosen = best(points)
    if json:
        put_json(
            {"model": ngrams.digest, "formula": formula, "unit": unit, "best": chosen._asdict()}
            | {"curve": [point._asdict() for point in points]}
        )
        return folder.exit
    rows = [
        (
            f"{point.limit:,}" if point.limit else "none",
            f"{point.f1:.4f}",
            f"{point.sentences:.1%}",
            f"{point.chars:.1%}",
        )
        for point in points
    ]
    put_table(("limit", "F1", "sentences that go", "characters that go"), rows, f"model {ngrams.digest}, {formula}")
    put("")
    for_rulesets = "" if text == "main" else "; for a ruleset, which has main texts, take --text main"
    put_wrapped(
        f"best on {counted(len(folder.labels), 'page')}, by which it was chosen:"
        f" {f'--limit {chosen.limit}' if chosen.limit else 'no limit'}{for_rulesets}"
    )
    put_wrapped(DANGER)
    return folder.exit


def _without_tags(folder: LabelledPages, advance: Advance) -> Iterator[tuple[str, str]]:
    for label, html in folder.htmls(advance):
        yield text_without_tags(html), label.gold or ""


def _main_texts(folder: LabelledPages, settings: MeasureSettings, advance: Advance) -> Iterator[tuple[str, str]]:
    for page in folder.measured(settings, advance):
        yield page.features.text, page.label.gold or ""


def files_in(path: Path) -> list[Path]:
    """A file, or the files of a folder in the order of their paths."""
    return sorted(file for file in path.rglob("*") if file.is_file()) if path.is_dir() else [path]


def _files(corpus: Sequence[Path]) -> list[Path]:
    """The files of a corpus; those of a folder in the order of their paths. Raises UsageError, OSError."""
    files = [file for path in corpus for file in files_in(path)]
    if not files:
        raise UsageError(f"{', '.join(map(str, corpus))}: no file in it")
    return files
