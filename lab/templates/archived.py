"""The pages of archives, listed by site in a temporary database, and read one by one at their offsets."""

from __future__ import annotations

import sqlite3
from collections import Counter, deque
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import BinaryIO, NamedTuple

import zstandard

from crawler.errors import UnusableUrl
from crawler.settings import CrawlSettings
from crawler.warc.pages import ArchivedPage, Skipped, pages_of
from crawler.web.content_type import may_be_html
from crawler.web.urls import host_of, normalise
from lab.templates.cdx import BadIndex, index_of, read_index
from stream.text.user_errors import FarmwatchError


class PageKey(NamedTuple):
    """A page of an archive: its site, normal URL, time, the number of its archive, and its offset there."""

    site: str
    url: str
    at_ms: int
    archive: int
    offset: int


class Unread(NamedTuple):
    """A record without a page, and the reason. `is_fault`: the archive is broken there."""

    archive: Path
    offset: int
    url: str
    reason: str
    is_fault: bool = False


class NoPage(Exception):
    """A page cannot be read or used; the text is the reason."""


class Archives:
    """Web archives. Sites are many, so their pages are listed in a database that SQLite keeps in a temporary file.

    `indexed`: pages that an index lists. `misplaced`: index or archive -> pages that are not where it says.
    """

    def __init__(self, files: Sequence[Path], settings: CrawlSettings, now_ms: int) -> None:
        self._files = files
        self._settings = settings
        self._now_ms = now_ms
        self._streams: dict[int, BinaryIO] = {}
        self._indexes: dict[int, Path] = {}
        self.indexed = 0
        self.misplaced: Counter[Path] = Counter()
        self._database = sqlite3.connect("")
        self._database.execute("CREATE TABLE pages (site, url, at_ms, archive, offset)")

    def close(self) -> None:
        """Close the files."""
        for stream in self._streams.values():
            stream.close()
        self._database.close()

    def scan(self, on_warning: Callable[[str], None]) -> Iterator[Unread]:
        """List the pages, by an archive's index if there is one; yields the records without a page.

        Raises FarmwatchError if a file cannot be read.
        """
        for number, file in enumerate(self._files):
            if (index := _usable_index(file, on_warning)) is None:
                yield from self._by_reading(number, file)
            else:
                self._indexes[number] = index
                yield from self._by_index(number, file, index)
        self._database.execute("CREATE INDEX by_site ON pages (site, url, at_ms)")

    def sites(self) -> list[str]:
        """The hosts that have pages."""
        return [site for (site,) in self._database.execute("SELECT DISTINCT site FROM pages ORDER BY site")]

    def pages(self, site: str) -> list[PageKey]:
        """The pages of a host by URL and time; in two archives some may have the same."""
        rows = self._database.execute(
            "SELECT * FROM pages WHERE site = ? ORDER BY url, at_ms, archive, offset", (site,)
        )
        return [PageKey(*row) for row in rows]

    def body(self, key: PageKey) -> tuple[bytes, str]:
        """The HTML of a page, and its charset. Raises NoPage, and FarmwatchError for a file that cannot be read."""
        try:
            stream = self._stream(key.archive)
            stream.seek(key.offset)
            record = next(pages_of(stream, self._settings, now_ms=self._now_ms, offset=key.offset), None)
        except OSError as error:
            raise FarmwatchError(f"{self._files[key.archive]}: cannot be read: {error.strerror or error}") from error
        if isinstance(record, Skipped) and record.offset == key.offset and not record.is_fault:
            raise NoPage(record.reason)
        page = record.page if isinstance(record, ArchivedPage) and record.offset == key.offset else None
        if page is None or (page.url, page.fetched_at // 1000) != (key.url, key.at_ms // 1000):  # an index has seconds
            self.misplaced[self._indexes.get(key.archive, self._files[key.archive])] += 1
            raise NoPage("not_at_offset")
        if page.truncated:
            raise NoPage("truncated")
        html = zstandard.ZstdDecompressor().decompress(page.body, self._settings.body_bytes)
        return html, page.encoding

    def _by_reading(self, number: int, file: Path) -> Iterator[Unread]:
        try:
            stream = self._stream(number)
            stream.seek(0)
            last = -1
            for record in pages_of(stream, self._settings, now_ms=self._now_ms):
                if isinstance(record, Skipped):
                    yield Unread(file, record.offset, record.url, record.reason, record.is_fault)
                elif record.offset == last:  # it cannot be read alone
                    yield Unread(file, record.offset, record.page.url, "packed_together")
                else:
                    self._add(PageKey(record.hit.site, record.page.url, record.page.fetched_at, number, record.offset))
                last = record.offset
            if last < 0:
                yield Unread(file, 0, "", "empty_archive")
        except OSError as error:
            raise FarmwatchError(f"{file}: cannot be read: {error.strerror or error}") from error

    def _by_index(self, number: int, file: Path, index: Path) -> Iterator[Unread]:
        for record in read_index(index, file):
            reason = ""
            if record.status and not record.status.startswith("2"):
                reason = f"http_{record.status}"
            elif record.mime and not may_be_html(record.mime):
                reason = "content_type"
            else:
                try:
                    url = normalise(record.url)
                    self._add(PageKey(host_of(url), url, record.at_ms, number, record.offset))
                    self.indexed += 1
                except UnusableUrl:
                    reason = "unusable_url"
            if reason:
                yield Unread(file, record.offset, record.url, reason)

    def _add(self, key: PageKey) -> None:
        self._database.execute("INSERT INTO pages VALUES (?, ?, ?, ?, ?)", key)

    def _stream(self, number: int) -> BinaryIO:
        if number not in self._streams:
            for stream in self._streams.values():
                stream.close()  # thousands of archives are more files than a process may open
            self._streams = {number: self._files[number].open("rb")}
        return self._streams[number]


def _usable_index(file: Path, on_warning: Callable[[str], None]) -> Path | None:
    """The index of an archive, read through once: a fault must not appear after half of it is used."""
    if (index := index_of(file)) is None:
        return None
    try:
        if next(iter(deque(read_index(index, file), maxlen=1)), None) is None:
            raise BadIndex("it lists no record of this archive")
    except BadIndex as error:
        on_warning(f"{index}: not used, {file.name} is read as a whole: {error}")
        return None
    return index
