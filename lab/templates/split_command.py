"""`farmwatch lab templates split`: the pages of web archives, split into content and boilerplate.

Its folder has two files for each page, and report.jsonl.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated, Any, TextIO

from cyclopts import Parameter
from cyclopts.validators import Number

from farmwatch.commands.options import JUST_CONFIGURED, AsJson, Configured
from farmwatch.terminal.messages import counting, json_line, message, put, put_json, put_table
from lab.extras import require_sklearn
from lab.templates.archived import Archives, PageKey, Unread
from lab.templates.classes import NodeClass
from lab.templates.learning import LEARNED, Method
from lab.templates.splitting import Refused, SiteSplitter, Split
from stream.text.user_errors import Exit, FarmwatchError, UsageError
from stream.text.wording import counted, one_line

_NAMED = 100  # broken records that are named; others are in the report
_REMARKS = {"one_other_url": {"down"}, "one_snapshot": {"prev", "next"}}  # of a page compared without these


def split_archives(
    archives: Annotated[list[Path], Parameter(help="WARC files (.warc, .warc.gz).", negative="")],
    /,
    *,
    out: Annotated[Path, Parameter(help="A new or empty folder for the pages and report.jsonl.")],
    method: Annotated[
        Method,
        Parameter(
            help="runs: t002, and all text between two tags has the class of most of it; t001: text that the pages"
            " do not decide is invalid; joint: less of it is; t002: it is boilerplate; t003, t004, t005: nearest"
            " neighbours decide, of 20, 40, 60 features; t006: a random forest. t003 to t006 need the extra `train`."
        ),
    ] = Method.RUNS,
    positional: Annotated[
        float | None,
        Parameter(
            help="Find similar pages by the thesis's positional tokens, of at least this similarity (0.6 there)."
            " Default: by sets of tag paths, the most similar there are.",
            validator=Number(gt=0, lt=1),
        ),
    ] = None,
    json: AsJson = False,
    common: Configured = JUST_CONFIGURED,
) -> int:
    """Split the pages of web archives into content and boilerplate, by comparing pages of one host.

    A page is compared with the two most similar pages at other URLs, and with the snapshots of its own URL before and
    after. Text that is on the others, or changes over time, is boilerplate. A page needs another URL of its host in the
    archives, and is better judged with a second snapshot. A .cdx or .cdxj file beside an archive saves a full read.

    OUT gets, for each page, pages/HOST/ID.html, in which each text is marked and no script runs, pages/HOST/ID.txt with
    the content, and a line in report.jsonl: the pages compared, and counts; or the reason why it was not split. A
    broken record is reported and skipped: exit code 1, as if no page could be split. Pages with another reason change
    no exit code.
    """
    for file in archives:
        file.open("rb").close()  # an error comes before the folder is made
        if file.suffix == ".zst":
            raise UsageError(f"{file}: WARC files in zstd are not read; unpack it first: zstd -d {file.name}")
    if method in LEARNED:
        require_sklearn()
    config = common.load().config
    read = Archives(archives, config.crawl, int(time.time() * 1000))
    with closing(read), split_folder(out) as folder:
        for unread in read.scan(message):
            folder.add_unread(unread)
            if unread.is_fault and folder.broken <= _NAMED:
                message(f"{unread.archive}: offset {unread.offset}: {one_line(unread.reason)}")
        sites = read.sites()
        with counting(len(sites), "sites") as advance:
            for site in sites:
                for page in SiteSplitter(read, config.measure, method, positional).split(site):
                    folder.add(page)
                advance(1)
    reasons = dict(sorted(folder.reasons.items(), key=lambda item: (-item[1], item[0])))
    for file, count in read.misplaced.items():
        message(
            f"{file}: {counted(count, 'page')} not where it says: the archive is damaged, or another. Make the index"
            " again, or delete it: then the archive is read as a whole"
        )
    if json:
        counts = {"nodes": folder.nodes, "characters": folder.characters}
        put_json({"pages": folder.pages, "sites": len(sites), **counts, "not_split": reasons})
    else:
        put(f"{counted(folder.pages, 'page')} of {counted(len(sites), 'site')} split; {out / 'report.jsonl'} has each")
        put_table(
            ("class", "nodes", "characters"), [(of.value, folder.nodes[of], folder.characters[of]) for of in NodeClass]
        )
        if read.indexed:
            put(f"{counted(read.indexed, 'page')} by an index: what it does not list was not read")
        if reasons:
            put("not split: " + ", ".join(f"{reason} {count}" for reason, count in reasons.items()))
    return Exit.OK if folder.pages and not folder.broken and not read.misplaced else Exit.PROBLEM


@dataclass(slots=True)
class SplitFolder:
    """Writes pages and report, and counts."""

    folder: Path
    report: TextIO
    pages: int = 0
    broken: int = 0
    reasons: Counter[str] = field(default_factory=Counter)
    nodes: Counter[str] = field(default_factory=Counter)
    characters: Counter[str] = field(default_factory=Counter)

    def add_unread(self, unread: Unread) -> None:
        """A record without a page."""
        self.broken += unread.is_fault
        self.reasons["broken" if unread.is_fault else unread.reason] += 1
        place = {"archive": str(unread.archive), "offset": unread.offset, "url": unread.url}
        self._line(place | {"reason": unread.reason})

    def add(self, page: Split | Refused) -> None:
        """A page. Raises OSError."""
        if isinstance(page, Refused):
            self.reasons[page.reason] += 1
            self._line(_named(page.key) | {"reason": page.reason})
            return
        counts = page.counts()
        self.pages += 1
        self.nodes.update(counts["nodes"])
        self.characters.update(counts["characters"])
        file = self.folder / f"{page.name}.html"
        file.parent.mkdir(parents=True, exist_ok=True)
        html, text = page.written()
        file.write_text(html, encoding="utf-8")
        file.with_suffix(".txt").write_text(text, encoding="utf-8")
        row = {
            "file": page.name,
            "similarity": round(page.similarity, 3),
            "cross": {role: _named(key) for role, key in page.others.items()},
            "remarks": [remark for remark, roles in _REMARKS.items() if not roles & page.others.keys()],
        }
        self._line(_named(page.key) | row | counts)

    def _line(self, row: dict[str, Any]) -> None:
        self.report.write(json_line(row) + "\n")


@contextmanager
def split_folder(folder: Path) -> Iterator[SplitFolder]:
    """A new or empty folder. Raises UsageError, and FarmwatchError if it cannot be written, also later."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
        if any(folder.iterdir()):
            raise UsageError(f"--out {folder}: not empty; name a new folder")
        with (folder / "report.jsonl").open("w", encoding="utf-8") as report:
            yield SplitFolder(folder, report)
    except OSError as error:
        raise FarmwatchError(f"--out {folder}: cannot be written: {error.strerror or error}") from error


def _named(key: PageKey) -> dict[str, Any]:
    """URL and time of a page."""
    at = datetime.fromtimestamp(key.at_ms / 1000, UTC)
    return {"url": key.url, "at": at.isoformat(timespec="milliseconds").replace("+00:00", "Z")}
