"""Labelled texts and labelled scores from a file: JSON lines, or CSV with a header.

A line of JSON is {label, text} for an unscored text, or {label, score, detector} as `farmwatch lab score` prints it,
with a label added. Both may have `site`, `genre` (or `domain`) and `words`; other names are ignored. In CSV the same
names are columns, and two may have other names. A label is human or llm; 0 and 1, false and true are accepted too,
for columns such as "generated". A repeated text is left out; for scores without texts, `id` identifies texts. In
lines of `farmwatch review label`, which have a `fetch_id`, each person's last one of a page counts, and those with an
empty label (no author label) are skipped.
"""

from __future__ import annotations

import csv
import hashlib
import io
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import msgspec

from farmwatch.terminal.jsonl import JsonLines, binary_input
from farmwatch.terminal.messages import message
from scoring.detectors.registry import refuse_bad_identity
from scoring.errors import BadIdentity
from stream.text.ids import Ident
from stream.text.packed_files import unpacked_name
from stream.text.user_errors import Exit, FarmwatchError, UsageError
from stream.text.wording import counted

_LABELS = {"human": False, "0": False, "false": False, "llm": True, "1": True, "true": True}
_LINES = "a line is {label, text} or {label, score, detector}, and label is human or llm"
_LARGEST_SCORE = 1_000_000  # scores beyond it come from no detector, and fits lose their digits
_CELL_CAP_CHARACTERS = 8_000_000  # of a text in a CSV cell


class LabelLine(msgspec.Struct, kw_only=True):
    """A line as in the file."""

    label: str | bool | int | None = None
    fetch_id: str | None = None
    page_type: str = ""
    by: str = ""
    id: Ident | None = None
    text: str | None = None
    score: float | None = None
    p_llm: float | None = None
    detector: str | None = None
    abstain: str = ""
    words: int | None = None
    site: str | None = None
    genre: str | None = None
    domain: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class LabelledText:
    """A text of known origin, scored or not (`text` is None for a scored one)."""

    place: str
    llm: bool
    text: str | None
    score: float | None
    p_llm: float | None
    detector: str  # identity; "" = not in the line
    words: int  # -1 = unknown
    site: str
    genre: str


class LabelFile:
    """The labelled lines of a file; errors in lines are reported on stderr by number. Call `end` at the end."""

    def __init__(self, file: Path, score_column: str = "score", label_column: str = "label") -> None:
        """Read `file`; `.csv` is CSV, anything else JSON lines; a final `.zst` or `.gz` is inflated, `-` is stdin."""
        self._file = file
        self._columns = {score_column: "score", label_column: "label"}
        self._lines = JsonLines([file], LabelLine, "calibrate")
        self._seen: dict[bytes, tuple[bool, str]] = {}  # digest of a text -> its label and place
        self._copies = 0
        self._unsaid = 0  # judged pages without an author label

    def __iter__(self) -> Iterator[LabelledText]:
        """Raises FarmwatchError for an unreadable file or one without a label, UsageError for a missing column."""
        is_csv = unpacked_name(self._file).endswith(".csv")
        for place, line in self._standing(self._csv() if is_csv else iter(self._lines)):
            try:
                labelled = _labelled(place, line)
                if not self._is_new(line, labelled):
                    continue
            except ValueError as error:
                self.bad(place, error)
            else:
                yield labelled

    def _standing(self, lines: Iterator[tuple[str, LabelLine]]) -> Iterator[tuple[str, LabelLine]]:
        """All lines but replaced or withdrawn judgements and those without a label; judgements come last."""
        judged: dict[tuple[str, str], tuple[str, LabelLine]] = {}
        is_labelled = is_sample = False
        for place, line in lines:
            if line.label is None:
                is_sample = is_sample or line.fetch_id is not None
                self.bad(place, "no label")
                continue
            is_labelled = True
            if line.fetch_id is None or line.detector is not None:
                yield place, line
            else:
                judged[line.fetch_id, line.by] = place, line
        if not is_labelled and self._lines.skipped:
            how = f"`farmwatch review label {self._file}` asks for those of a sample" if is_sample else _LINES
            raise FarmwatchError(f"{self._file}: no line has a label: {how}")
        for place, line in judged.values():
            if line.label != "":
                yield place, line
            else:
                self._unsaid += bool(line.page_type)

    def _is_new(self, line: LabelLine, labelled: LabelledText) -> bool:
        """False for a copy, which is no other independent text. Raises ValueError if it has the other label."""
        if line.text is not None:
            what = " ".join(line.text.split())
            if not what:
                return True  # no text or id to compare
        elif line.id is not None:
            what = f"{(line.detector or '').rpartition('/')[0]} {line.id}"  # scores of two detectors are no copies
        else:
            return True
        key = hashlib.blake2b(f"{line.text is None} {what}".encode(errors="surrogatepass"), digest_size=16).digest()
        first = self._seen.setdefault(key, (labelled.llm, labelled.place))
        if first[0] is not labelled.llm:
            raise ValueError(f"the same text as {first[1]}, with the other label")
        if first[1] is labelled.place:
            return True
        self._copies += 1
        return False

    def bad(self, place: str, reason: object) -> None:
        """Report a line that could not be used."""
        self._lines.bad(place, reason)

    def end(self) -> Exit:
        """Report the number of omitted copies; PROBLEM if a line was skipped."""
        if self._copies:
            message(f"{counted(self._copies, 'line')} left out: copies of texts that came before count once")
        if self._unsaid:
            message(f"{counted(self._unsaid, 'page')} left out: no author label")
        return self._lines.end()

    def _csv(self) -> Iterator[tuple[str, LabelLine]]:
        csv.field_size_limit(_CELL_CAP_CHARACTERS)
        with binary_input(self._file) as stream:
            rows = csv.reader(io.TextIOWrapper(stream, encoding="utf-8-sig", errors="replace", newline=""))
            names = self._names(next(rows, []))
            while True:
                try:
                    cells = next(rows, None)
                    if cells is None:
                        return
                    if cells and len(cells) != len(names):
                        raise ValueError(f"{len(cells)} cells, the header has {len(names)}")
                    row = {name: cell for name, cell in zip(names, cells, strict=False) if cell and name in _FIELDS}
                    if cells:
                        yield f"line {rows.line_num}", msgspec.convert(row, LabelLine, strict=False)
                except (csv.Error, ValueError) as error:  # msgspec's errors are ValueErrors
                    self.bad(f"line {rows.line_num}", error)

    def _names(self, header: list[str]) -> list[str]:
        own = {named: column for column, named in self._columns.items()}  # another column of that name is ignored
        names = [self._columns.get(column, "" if column in own else column) for column in header]
        for wanted, column in (("label", "--label-column"), ("score", "--score-column")):
            if wanted not in names and not (wanted == "score" and "text" in names):
                raise UsageError(
                    f"{self._file}: no column {own.get(wanted, wanted)!r} among"
                    f" {', '.join(map(repr, header[:20])) or 'none'}: name the one that it is by {column}"
                )
        twice = sorted({name for name in names if name in _FIELDS and names.count(name) > 1})
        if twice:
            raise FarmwatchError(f"{self._file}: several columns {twice[0]!r}: leave one of them")
        return names


_FIELDS = frozenset(LabelLine.__struct_fields__)


def _labelled(place: str, line: LabelLine) -> LabelledText:
    """Raises ValueError in plain words for an incomplete line."""
    llm = _LABELS.get(str(line.label).strip().lower())
    if llm is None:
        raise ValueError(f"label is human or llm, not {str(line.label)[:40]!r}")
    scored = line.score is not None or bool(line.abstain) or (line.detector is not None and line.text is None)
    if not scored and line.text is None:
        raise ValueError("neither a text nor a score")
    for name in ("score", "p_llm"):
        number = getattr(line, name)
        if number is not None and not abs(number) <= _LARGEST_SCORE:  # including NaN
            raise ValueError(f"{name} is {number:g}, not a number within {_LARGEST_SCORE:,} of 0")
    if line.detector:
        try:
            refuse_bad_identity(line.detector)
        except BadIdentity as error:
            raise ValueError(f"detector: {error}") from error
    if line.p_llm is not None and not 0 <= line.p_llm <= 1:
        raise ValueError(f"p_llm is {line.p_llm}, not between 0 and 1")
    words = line.words if line.words is not None else -1 if line.text is None else len(line.text.split())
    if words < -1 or words > 1 << 40:
        raise ValueError(f"words is {words}")
    return LabelledText(
        place=place,
        llm=llm,
        text=None if scored else line.text,
        score=line.score,
        p_llm=line.p_llm,
        detector=line.detector or "",
        words=words,
        site=line.site or "",
        genre=line.genre or line.domain or "",
    )
