"""Makes a canary file: human sites of pages captured before November 2022, LLM sites of folders of texts.

A site needs LEAST_PAGES pages to show anything about site verdicts; smaller ones are left out and counted.
"""

from __future__ import annotations

import gzip
import os
import re
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path

import msgspec
import xxhash
import zstandard

from farmwatch.canaries.file import HUMAN_BEFORE, PAGE_CAP_BYTES, SITES_CAP, CanaryLine, read_canaries
from farmwatch.config.settings import CanarySettings
from filters.charsets import decode
from scoring.rates.canary import is_label
from stream.schema.records import Page
from stream.schema.vocabulary import FetchOutcome, Truth
from stream.text.user_errors import UsageError

LEAST_PAGES = 15
_SITES_CAP = SITES_CAP // 2  # of each truth
_LABEL_CHARS = 32  # room for a number within the cap of a label
_TEXTS = frozenset({".txt", ".md"})
_TITLE_CHARS = 150
_OTHER = re.compile(r"[^a-z0-9]+")


@dataclass(slots=True)
class CanaryMaker:
    """Gathers the pages of canary sites."""

    pages: int  # of a site, at most
    skipped: Counter[str] = field(default_factory=Counter)  # reason -> pages
    small: Counter[str] = field(default_factory=Counter)  # truth -> sites left out
    lines: list[CanaryLine] = field(default_factory=list)
    labels: dict[str, set[str]] = field(default_factory=lambda: {Truth.HUMAN: set(), Truth.LLM: set()})  # of sites
    _human: dict[str, dict[bytes, CanaryLine]] = field(default_factory=dict)  # host -> digest of the page -> page

    def add_human(self, pages: Iterable[Page]) -> None:
        """Add pages that were captured before HUMAN_BEFORE; `end_human` makes sites of them."""
        inflate = zstandard.ZstdDecompressor()
        for page in pages:
            of_site = self._human.get(page.site, {})
            made_at = datetime.fromtimestamp(page.fetched_at / 1000, UTC).date()
            if page.outcome != FetchOutcome.FETCHED or not page.body:
                self.skipped["no page"] += 1
            elif made_at >= HUMAN_BEFORE:
                self.skipped[f"captured in {HUMAN_BEFORE:%B %Y} or later"] += 1
            elif len(of_site) == self.pages or (not of_site and len(self._human) == 2 * _SITES_CAP):
                self.skipped["enough pages of the site, or sites"] += 1
            else:
                try:
                    body = inflate.decompress(page.body, max_output_size=page.body_bytes)
                except zstandard.ZstdError:
                    self.skipped["unreadable"] += 1
                    continue
                html = decode(body, page.encoding)
                if len(html.encode("utf-8", "surrogatepass")) > PAGE_CAP_BYTES or not html.strip():
                    self.skipped[f"empty, or above {PAGE_CAP_BYTES:,} bytes"] += 1
                    continue
                digest = xxhash.xxh3_128_digest(html.encode())
                line = CanaryLine(truth=Truth.HUMAN, site="", html=html, made_at=made_at)
                if self._human.setdefault(page.site, {}).setdefault(digest, line) is not line:
                    self.skipped["the same page again"] += 1

    def end_human(self) -> None:
        """Make a site of each host with enough pages."""
        for host, pages in sorted(self._human.items()):
            self._add_site(Truth.HUMAN, host, list(pages.values()))
        self._human.clear()

    def add_llm(self, folder: Path) -> None:
        """Make a site of each folder with texts (.txt, .md), subfolders included.

        Raises FarmwatchError.
        """
        if not folder.is_dir():
            raise UsageError(f"--llm {folder}: no such folder")
        files: dict[Path, list[Path]] = {}
        for file in sorted(folder.rglob("*")):
            if file.suffix.lower() in _TEXTS and file.is_file():
                files.setdefault(file.parent, []).append(file)
        for of_folder, texts in files.items():
            pages = [page for file in texts if (page := self._text_page(file)) is not None]
            for start in range(0, len(pages), self.pages):
                self._add_site(Truth.LLM, of_folder.resolve().name, pages[start : start + self.pages])

    def write(self, file: Path) -> None:
        """Write the file, compressed by its name (.zst, .gz), whole or not at all. Raises FarmwatchError."""
        content = msgspec.json.Encoder().encode_lines(self.lines)
        if file.suffix == ".zst":
            content = zstandard.ZstdCompressor(level=10).compress(content)
        elif file.suffix == ".gz":
            content = gzip.compress(content)
        new = file.with_name(f".new-{os.getpid()}-{file.name}")
        try:
            new.write_bytes(content)
            read_canaries(CanarySettings(file=str(new), pages=self.pages))
            new.rename(file)
        finally:
            new.unlink(missing_ok=True)

    def _text_page(self, file: Path) -> CanaryLine | None:
        try:
            text = file.read_text(encoding="utf-8").strip()
        except UnicodeDecodeError:
            self.skipped["no UTF-8"] += 1
            return None
        first, _, rest = text.partition("\n")
        title = first.lstrip("# ").strip()
        if not rest.strip() or len(title) > _TITLE_CHARS:
            title, rest = file.stem.replace("-", " ").replace("_", " "), text
        if not rest or len(text.encode()) > PAGE_CAP_BYTES // 2:
            self.skipped[f"empty, or above {PAGE_CAP_BYTES // 2:,} bytes of text"] += 1
            return None
        return CanaryLine(truth=Truth.LLM, site="", title=title, text=rest.strip())

    def _add_site(self, truth: str, name: str, pages: Sequence[CanaryLine]) -> None:
        labels = self.labels[truth]
        if len(pages) < LEAST_PAGES:
            self.small[truth] += 1
        elif len(labels) == _SITES_CAP:
            self.skipped["enough pages of the site, or sites"] += len(pages)
        else:
            first = _OTHER.sub("-", name.lower()).strip("-")[:_LABEL_CHARS].strip("-") or "site"
            numbered = (f"{first}-{number}" for number in range(2, _SITES_CAP + 2))
            label = next(label for label in (first, *numbered) if label not in labels)
            assert is_label(label)
            labels.add(label)
            self.lines += [msgspec.structs.replace(page, site=label) for page in pages]
