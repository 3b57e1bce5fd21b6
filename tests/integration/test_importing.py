"""An import: later processes know the existing pages."""

from __future__ import annotations

import io
from pathlib import Path

from crawler.fetch.jobs import Capture, RequestKind
from crawler.settings import CrawlSettings
from crawler.stages.hit_records import KnownHits
from crawler.warc.pages import pages_of
from farmwatch.crawl.archive_import import ImportSummary, import_pages
from stream.log.contract import Log
from stream.schema.topics import HITS, PAGES, all_topics
from tests.support.web.warc_check import write
from tests.support.worlds import World, on_embedded

PARTITIONS = 2


def _import(log: Log, data: bytes) -> ImportSummary:
    imports = KnownHits(log)
    with imports.hold():
        pass
    pages = pages_of(io.BytesIO(data), CrawlSettings(), now_ms=2 * 10**12, known=imports.ids)
    return import_pages(log, pages, imports, print)


def archive(folder: Path) -> bytes:
    """A WARC file of six pages."""
    captures = [
        Capture(
            kind=RequestKind.PAGE,
            url=f"http://site{number}.test/",
            started_ms=1_700_000_000_000,
            status=200,
            headers=[(b"Content-Type", b"text/html")],
            body=b"<html>%d</html>" % number,
        )
        for number in range(6)
    ]
    (file,) = write(folder, captures)
    return file.read_bytes()


def assert_each_is_there_once(log: Log) -> None:
    for topic in (HITS, PAGES):
        assert sum(1 for part in range(PARTITIONS) for _ in log.read(topic, part)) == 6


@on_embedded
def test_an_import_appends_what_is_not_there_yet(world: World, tmp_path: Path) -> None:
    """After a part of an archive, then the whole twice, each by another process, each page exists once."""
    data = archive(tmp_path)
    world.log.create(all_topics(PARTITIONS, "e"))
    first = _import(world.log, data[: len(data) // 2])
    assert 0 < first.pages < 6
    assert _import(world.again(), data).pages == 6 - first.pages
    last = _import(world.again(), data)
    assert (last.pages, last.skipped, last.broken) == (0, {"known": 6}, 0)
    assert_each_is_there_once(world.log)


@on_embedded
def test_imports_side_by_side_append_a_record_once(world: World, tmp_path: Path) -> None:
    """Two imports with alternating batches: each knows the other's pages at its next batch."""
    pages = list(pages_of(io.BytesIO(archive(tmp_path)), CrawlSettings(), now_ms=2 * 10**12))
    world.log.create(all_topics(PARTITIONS, "e"))
    logs = [world.log, world.again()]
    both = [KnownHits(log, tmp_path / "lock") for log in logs]
    appended = [
        import_pages(logs[turn % 2], pages[start : start + 3], both[turn % 2], print).pages
        for turn, start in enumerate((0, 1, 2, 3, 0))
    ]
    assert appended == [3, 1, 1, 1, 0]
    assert_each_is_there_once(world.log)
