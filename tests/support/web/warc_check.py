"""Archives under test: captures, their files, and the results of warcio's checker and reader."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from warcio import cli
from warcio.archiveiterator import ArchiveIterator
from warcio.bufferedreaders import BufferedReader

from crawler.fetch.jobs import Capture, RequestKind
from crawler.settings import CrawlSettings
from crawler.warc.writer import WarcWriter
from tests.support.web.crawl_driver import crawl_settings

STARTED_MS = 1_700_000_000_123
HTML = b"<!doctype html><html><body><p>words</p></body></html>"


def capture(number: int = 0, **fields: object) -> Capture:
    known: dict[str, object] = {
        "kind": RequestKind.PAGE,
        "url": f"http://a.test/page?{number}",
        "started_ms": STARTED_MS + number,
        "address": "127.0.0.1",
        "request_headers": [(b"Host", b"a.test"), (b"User-Agent", b"farmwatch")],
        "status": 200,
        "reason": "OK",
        "headers": [(b"Content-Type", b"text/html; charset=utf-8"), (b"X-Number", b"%d" % number)],
        "body": HTML,
    }
    return Capture(**(known | fields))  # type: ignore[arg-type]


def settings_in(folder: Path, **changes: Any) -> CrawlSettings:
    return crawl_settings(contact="mailto@example.org", warc_folder=str(folder), allow_private=True, **changes)


class Read(NamedTuple):
    """A record as warcio reads it; `body` is without HTTP headers, otherwise as in the file."""

    kind: str
    headers: dict[str, str]
    status: str
    http: list[tuple[str, str]]
    body: bytes


def assert_clean(files: Sequence[Path]) -> None:
    """Assert that `warcio check` finds no error, and that each record has a verifiable digest."""
    assert files
    # warcio fails with Google's module `brotli`; without any it checks the bodies as sent
    BufferedReader.DECOMPRESSORS.pop("br", None)
    with pytest.raises(SystemExit) as ended:
        cli.main(["check", *map(str, files)])
    assert ended.value.code == 0


def read_all(files: Sequence[Path]) -> list[Read]:
    """Every record, in order; each must be a separate gzip member."""
    found = []
    for file in files:
        with file.open("rb") as stream:
            records: Any = ArchiveIterator(stream, check_digests="raise")
            for record in records:
                http = record.http_headers
                body = record.raw_stream.read()
                found.append(
                    Read(
                        record.rec_type,
                        dict(record.rec_headers.headers),
                        http.get_statuscode() if http else "",
                        list(http.headers) if http else [],
                        body,
                    )
                )
            assert records.err_count == 0, "see stderr"
    return found


def finished(folder: Path) -> list[Path]:
    """The closed files of a folder, sorted by name; no open one may be left."""
    assert not list(folder.glob("*.open")), sorted(folder.iterdir())
    return sorted(folder.glob("farmwatch-*.warc.gz"))


def write(folder: Path, captures: Iterable[Capture], **changes: Any) -> list[Path]:
    """The files that the crawler's writer makes of the captures."""
    archive = WarcWriter(crawl_settings(contact="a@example.org", warc_folder=str(folder), **changes))
    for capture in captures:
        archive(capture)
    archive.close()
    return finished(folder)
