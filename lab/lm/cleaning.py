"""`farmwatch lab clean`: files → texts without sentences that are too unlikely."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Annotated

from cyclopts import Parameter
from cyclopts.validators import Number

from farmwatch.commands.options import JUST_CONFIGURED, Configured
from farmwatch.terminal.messages import counting, message, put_wrapped
from filters.measure.extractors import extract
from filters.perplexity.fluent import Unit, kept_text, parts_of
from filters.perplexity.model import Formula, load_model
from filters.perplexity.names import DANGER, SHIPPED, UNLIKELY
from filters.rules.kinds import MOST
from filters.settings import MeasureSettings
from lab.lm.command import Model, OfFormula, OfUnit, Take, files_in
from lab.lm.tag_remover import text_without_tags
from stream.text.user_errors import Exit, UsageError
from stream.text.whole_files import write_whole
from stream.text.wording import counted

_HTML = {".htm", ".html", ".xhtml"}


def clean(
    files: Annotated[list[Path], Parameter(help="Text and HTML files, and folders of them.", negative="")],
    /,
    *,
    out: Annotated[Path, Parameter(help="Folder for the texts, NAME.txt, in the folders of their files.")],
    limit: Annotated[
        float, Parameter(help="Perplexity above which text goes.", validator=Number(gt=1, lte=MOST))
    ] = UNLIKELY,
    model: Model = SHIPPED,
    formula: OfFormula = Formula.INTERPOLATED,
    unit: OfUnit = Unit.SENTENCE,
    text: Take = "tags",
    common: Configured = JUST_CONFIGURED,
) -> int:
    """Write the texts of files without the sentences that a language model finds too unlikely: menus, lists, noise.

    Names that end in .html, .htm or .xhtml are HTML, all others text in UTF-8. A text of which nothing goes stays as
    it is. Human text without its least likely sentences looks more like a language model's to a detector that divides
    by perplexity: measure your detector on human pages before you rely on its scores of such text. Exit code 1: a file
    could not be read, and was skipped.
    """
    ngrams = load_model(model)
    settings = common.load().config.measure
    found = list(_inputs(files, out))
    counts = Counter[str]()
    with counting(len(found), "files") as advance:
        for source, target in found:
            try:
                is_html = source.suffix.lower() in _HTML
                whole = source.read_bytes().decode("utf-8", "replace" if is_html else "strict")
            except (OSError, UnicodeDecodeError) as error:
                message(f"{source}: {getattr(error, 'strerror', None) or 'no text in UTF-8'}")
                counts["unread"] += 1
                continue
            if is_html:
                whole = _text(whole, text, settings)
            parts = parts_of(whole, ngrams.surprisals(whole, formula), unit)
            above = parts.above(limit)
            cleaned = kept_text(whole, parts.bounds, above)
            target.parent.mkdir(parents=True, exist_ok=True)
            write_whole(target, cleaned.encode("utf-8", "replace"), force=True)
            counts.update(files=1, parts=len(above), gone=int(above.sum()), chars=len(whole), kept=len(cleaned))
            advance(1)
    put_wrapped(
        f"{out}: {counted(counts['files'], 'text')}, without {counts['gone']:,} of {counted(counts['parts'], unit)};"
        f" {counts['kept']:,} of {counted(counts['chars'], 'character')}"
    )
    put_wrapped(DANGER)
    return Exit.PROBLEM if counts["unread"] else Exit.OK


def _text(html: str, taken: str, settings: MeasureSettings) -> str:
    return extract(html, "", settings).text if taken == "main" else text_without_tags(html)


def _inputs(files: Sequence[Path], out: Path) -> Iterator[tuple[Path, Path]]:
    """Each file, and where its text goes. Raises UsageError for no file, and for two with one place."""
    taken = dict[Path, Path]()
    for path in files:
        for source in files_in(path):
            place = source.relative_to(path) if path.is_dir() else Path(source.name)
            target = out / place.with_name(f"{place.name}.txt" if place.suffix != ".txt" else place.name)
            if target in taken:
                raise UsageError(f"{source} and {taken[target]}: both would be written to {target}")
            taken[target] = source
            yield source, target
    sources = {source.resolve() for source in taken.values()}
    if over := next((target for target in taken if target.resolve() in sources), None):
        raise UsageError(f"{over}: a file that is read would be written over: take another folder for --out")
    if not taken:
        raise UsageError(f"{', '.join(map(str, files))}: no file in it")
