"""Records of a file of hits or queries: CSV with a header, JSONL, or a plain list with one record a line.

| the file | is read as |
|---|---|
| begins with `{` | JSONL |
| names the needed column in its first line, or with others in one of its first | CSV with `,`, `;`, tab or `|` |
| begins as a CSV without that column | nothing; one report |
| is packed, Excel, UTF-16, a JSON array or object of several lines | nothing; one report that names it |
| is anything else | a list |

Blank lines, lines that begin with `#` and Excel's `sep=;` come before the first line; other lines above a header are
reported. A row of CSV may leave out its last cells.
Records of CSV, and the ends of lines in each format, are those of the csv module: an end is CR, LF or CR LF alone.
"""

from __future__ import annotations

import csv
import io
import itertools
import re
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from typing import Any

import msgspec

from crawler.web.columns import FileColumns
from stream.text.wording import one_line

LINE_CAP = 1_000_000  # characters of one record
_OPENING = 20  # lines in which the header of a table is looked for
_SPAN_CAP = 50  # lines that one quoted CSV record may span before its first line counts as broken
_DELIMITERS = (",", ";", "\t", "|")
_UTF8_MARK = b"\xef\xbb\xbf"
_SEPARATOR = re.compile(r'"?sep=.?"?\s*', re.IGNORECASE)  # a first line of Excel
_FIRST_URL = re.compile(r"https?://(?P<host>[^/?#]*)", re.IGNORECASE)
_NEXT_URL = re.compile(r"\shttps?://", re.IGNORECASE)
_OTHER_KINDS = [  # how the file begins, and the message
    (rb"\x1f\x8b", "it looks like a gzip file: end its name in .gz, such as .csv.gz"),
    (rb"\x28\xb5\x2f\xfd", "it looks like a zstd file: end its name in .zst, such as .csv.zst"),
    (rb"PK\x03\x04|\xd0\xcf\x11\xe0", "it looks like an Excel or zip file: save the table as CSV"),
    (rb"\xff\xfe|\xfe\xff|.?\x00", "it looks like UTF-16: save it as UTF-8"),
    (rb"\s*\{\s*$", "it looks like a JSON object over several lines: write one JSON object a line"),
    (rb"\s*\[\s*(?:[{\]]|$|\"[^\"]*\"\s*[,\]])", "it looks like a JSON array: write one JSON object a line"),
]

_Line = tuple[int, "str | None"]  # its number, from 1, and its text; None = not UTF-8, or too long
_Found = Iterator[tuple[int, "dict[str, Any] | str"]]  # line number -> the fields, or the fault of the line


def read_records(lines: Iterable[bytes], columns: FileColumns, *, is_table: bool = False) -> _Found:
    """Line number, and fields or an error, of each record.

    A plain list has only the needed column. `is_table`: by its name, the file is no list. Raises UnknownColumn.
    """
    lines, is_urls = iter(lines), columns.needed == "url"
    ahead = [next(lines, b"").removeprefix(_UTF8_MARK)]
    while not ahead[-1].strip():
        if (line := next(lines, None)) is None:
            return
        ahead.append(line)
    if wrong := next((said for pattern, said in _OTHER_KINDS if re.match(pattern, ahead[-1])), ""):
        yield len(ahead), wrong
        return
    texts = _split(itertools.chain(ahead, lines))
    opening = list(itertools.islice(texts, len(ahead) + _OPENING))
    rest = itertools.chain(opening, texts)
    first = next((place for place, (_, text) in enumerate(opening) if text is None or not _is_idle(text)), 0)
    number, start = opening[first]
    header = next(
        (place for place, (_, text) in enumerate(opening) if _is_header(text, columns, is_table, place == first)), None
    )
    if start is not None and start.lstrip().startswith("{"):
        yield from _from_each(
            rest, lambda text: {} if _is_idle(text) else columns.fields(msgspec.json.decode(text, type=dict[str, Any]))
        )
    elif header is not None:
        for above, text in opening[:header]:
            if text is None or not _is_idle(text):
                yield above, "it stands above the header of the table"
        yield from _from_csv(itertools.islice(rest, header, None), _delimiter(opening[header][1], columns), columns)
    elif start is not None and (is_table or (is_urls and _is_headless(start))):
        shown = one_line(" ".join(start[:400].split()))
        yield number, f"a CSV needs a header with a column {columns.needed_name}; found: {shown[:200]}"
    else:
        for number, fields in _from_each(rest, lambda text: {} if text.startswith("#") else {columns.needed: text}):
            is_one = not is_urls or isinstance(fields, str) or not _NEXT_URL.search(fields["url"])
            yield number, fields if is_one else "two URLs on one line: write one a line"


def _is_idle(text: str) -> bool:
    return not text.strip() or text.startswith("#") or _SEPARATOR.fullmatch(text) is not None


def _is_header(text: str | None, columns: FileColumns, is_table: bool, is_first: bool) -> bool:
    """Whether a line is a header: below the first line of a list, a query or one word may look like one."""
    if text is None or not _delimiter(text, columns):
        return False
    return is_first or is_table or (columns.needed == "url" and any(mark in text.strip() for mark in _DELIMITERS))


def _split(lines: Iterable[bytes]) -> Iterator[_Line]:
    numbers = itertools.count(1)
    for line in lines:
        try:
            text = line.decode("utf-8") if len(line) <= LINE_CAP else None
        except UnicodeDecodeError:
            text = None
        if text is None or "\r" not in text[:-2]:
            yield next(numbers), text
        else:
            yield from ((next(numbers), part) for part in io.StringIO(text, newline=""))


def _from_each(lines: Iterator[_Line], read: Callable[[str], dict[str, Any]]) -> _Found:
    """Fields of formats with one record a line; lines without fields are skipped."""
    for number, text in lines:
        if text is None:
            yield number, "not UTF-8, or longer than a million characters"
        elif text.strip():
            try:
                fields = read(text.strip())
            except (msgspec.DecodeError, RecursionError) as error:
                yield number, f"not a JSON object: {error}"
                continue
            if fields:
                yield number, fields


def _from_csv(lines: Iterator[_Line], delimiter: str, columns: FileColumns) -> _Found:
    """Fields of CSV records below their header. A broken quote costs its own line, not the rest of the file."""
    header: list[str] = []
    repeated: list[str] = []
    waiting: deque[_Line] = deque()
    while first := waiting.popleft() if waiting else next(lines, None):
        number, text = first
        if text is None or "\0" in text:
            yield number, "not UTF-8 text, or longer than a million characters"
            continue
        row, taken, fault = _row(text, waiting, lines, delimiter)
        names = [name.strip().lower() for name in row]
        if not header:
            header, repeated = [name.strip() for name in row], names
        if not fault and (not text.strip() or names == repeated):  # joined files repeat the header
            continue
        fields = columns.fields(dict(itertools.zip_longest(header, row[: len(header)], fillvalue="")))
        if taken and not fault and (len(row) > len(header) or "\n" in fields.get("url", "")):
            fault = "a quote is opened and closed on another line, inside of the url"
        elif not fault and len(row) > len(header):
            fault = f"{len(row)} columns where the header has {len(header)}"
        if fault:
            waiting.extendleft(reversed(taken))
        yield number, fault or fields


def _row(
    text: str, waiting: deque[_Line], lines: Iterator[_Line], delimiter: str
) -> tuple[list[str], list[_Line], str]:
    """The cells of the record that begins with `text`, the further lines taken for it, and its fault."""
    taken: list[_Line] = []

    def record() -> Iterator[str]:
        yield text
        while len(taken) < _SPAN_CAP and (line := waiting.popleft() if waiting else next(lines, None)):
            taken.append(line)
            if line[1] is None:
                break
            yield line[1]

    try:
        return next(csv.reader(record(), delimiter=delimiter, strict=True), []), taken, ""
    except csv.Error as error:
        if taken or "end of data" in str(error):
            return [], taken, f"a quote is opened, and not closed at the end of a cell: {error}"
    try:  # with quotes inside of a cell, as they stand
        return next(csv.reader([text], delimiter=delimiter), []), [], ""
    except csv.Error as error:
        return [], [], f"not CSV: {error}"


def _delimiter(text: str | None, columns: FileColumns) -> str:
    names = "" if text is None or "://" in text else text
    return next((mark for mark in _DELIMITERS if any(map(columns.is_needed, names.split(mark)))), "")


def _is_headless(text: str) -> bool:
    """Whether a first line is CSV without a column `url`, and so cannot begin a list of URLs.

    A URL may contain each delimiter but a tab: such a line is CSV only if it also has white space.
    """
    text = text.strip()
    if not any(delimiter in text for delimiter in _DELIMITERS):
        return False
    url = _FIRST_URL.match(text)
    return url is None or bool(re.search(r"[,;|\s]", url["host"]) or re.search(r"\s", text))
