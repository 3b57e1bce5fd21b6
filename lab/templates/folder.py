"""The folder that `farmwatch templates split` writes: two files for each page, and report.jsonl."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, TextIO

from farmwatch.terminal.messages import json_line
from lab.templates.archived import PageKey, Unread
from lab.templates.splitting import Refused, Split
from stream.text.user_errors import FarmwatchError, UsageError

_REMARKS = {"one_other_url": {"down"}, "one_snapshot": {"prev", "next"}}  # of a page compared without these


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
