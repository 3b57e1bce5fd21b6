"""`farmwatch log import`: appends the pages of archives to the log, each once."""

from __future__ import annotations

import gzip
import json
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from pathlib import Path

import msgspec
import pytest

from crawler.fetch.jobs import Capture, RequestKind
from crawler.settings import CrawlSettings
from crawler.stages.hit_records import KnownHits
from crawler.warc.pages import ArchivedPage, Skipped, pages_of
from farmwatch.crawl.archive_import import import_pages
from filters.measure.epoch import feature_epoch
from filters.settings import MeasureSettings
from stream.log.contract import Log, Output, partition_of
from stream.log.errors import LogUnavailable
from stream.memory.log import MemoryLog
from stream.opening import open_log
from stream.processing import heartbeat
from stream.schema.records import Hit, Page, decode
from stream.schema.topics import HITS, ON_ONE_MACHINE, PAGES, all_topics
from stream.text.user_errors import Exit
from tests.support.front_door import PARTITIONS, Runner
from tests.support.paths import ROOT
from tests.support.web.warc_check import capture as captured
from tests.support.web.warc_check import write


def _known(log: Log) -> KnownHits:
    imports = KnownHits(log)
    with imports.hold():
        return imports


def capture(number: int, **fields: object) -> Capture:
    """A page of one of the three sites."""
    known = {"url": f"http://site{number % 3}.test/{number}", "address": "", "body": b"<!doctype html><p>%d" % number}
    return captured(number, **(known | fields))


def on(log: Log) -> tuple[list[Hit], list[Page]]:
    """Every hit and page, each read from its site's partition."""
    hits: list[Hit] = []
    pages: list[Page] = []
    for partition in range(PARTITIONS):
        for message in log.read(HITS, partition):
            hits.append(decode(Hit, message.value or b""))
            assert partition_of(hits[-1].site, PARTITIONS) == partition
        for message in log.read(PAGES, partition):
            pages.append(decode(Page, message.value or b""))
            assert message.key == pages[-1].site.encode()
            assert partition_of(pages[-1].site, PARTITIONS) == partition
            assert "run" not in message.headers and pages[-1].id in message.headers["traceparent"]
    return hits, pages


@contextmanager
def _memory_log() -> Iterator[MemoryLog]:
    with closing(MemoryLog()) as log:
        log.create(all_topics(PARTITIONS, "e"))
        yield log


@pytest.fixture
def archives(tmp_path: Path) -> list[Path]:
    """Two files with nine pages, a robots.txt and an error."""
    captures = [capture(number) for number in range(9)]
    captures.insert(3, capture(20, kind=RequestKind.ROBOTS))
    captures.insert(5, capture(21, status=404))
    first = write(tmp_path / "first", captures[:6])
    return [*first, *write(tmp_path / "second", captures[6:])]


def test_pages_and_their_hits_are_appended_once(farmwatch: Runner, tmp_path: Path, archives: list[Path]) -> None:
    """A second import skips all known pages; skipped records are counted by reason."""
    url = f"sqlite:{tmp_path / 'log'}"
    ran = farmwatch("log", "import", *archives, "--log", url)
    assert (ran.code, ran.err) == (Exit.OK, "")
    assert ran.out == "9 pages imported, 0 broken records; passed over: 1 http_404, 1 robots\n"
    ran = farmwatch("log", "import", archives[1], archives[0], "--json", "--log", url)
    assert ran.json == {
        "pages": 0,
        "no_page_reasons": {},
        "skipped": 11,
        "skipped_reasons": {"known": 9, "http_404": 1, "robots": 1},
        "broken": 0,
    }
    with closing(open_log(url)) as log:
        hits, pages = on(log)
    assert sorted(page.url for page in pages) == sorted(f"http://site{n % 3}.test/{n}" for n in range(9))
    assert {hit.id for hit in hits} == {ident for page in pages for ident in page.hits} and len(hits) == 9
    assert all(hit.imported and hit.source == "warc" for hit in hits)


def test_sites_and_the_source_can_be_chosen(farmwatch: Runner, tmp_path: Path, archives: list[Path]) -> None:
    """Hosts may have any spelling; the rate can be cut by the source."""
    url = f"sqlite:{tmp_path / 'log'}"
    sites = ["--site", "Site1.test", "--site", "http://site2.test/x"]
    ran = farmwatch("log", "import", *archives, "--source", "library", *sites, "--log", url)
    assert ran.out.startswith("6 pages imported")
    with closing(open_log(url)) as log:
        hits, pages = on(log)
    assert {page.site for page in pages} == {"site1.test", "site2.test"}
    assert {hit.source for hit in hits} == {"library"}


def test_broken_records_are_named_and_in_the_exit_code(farmwatch: Runner, tmp_path: Path, archives: list[Path]) -> None:
    """File, offset and reason are on stderr, the rest is imported, the exit code is 1; a long list is cut."""
    url = f"sqlite:{tmp_path / 'log'}"
    bad = tmp_path / "bad.warc.gz"
    start = archives[0].read_bytes()
    bad.write_bytes(start + gzip.compress(b"WARC/1.1\r\n\x1b[2J: \r\n\r\n") + archives[1].read_bytes())
    ran = farmwatch("log", "import", bad, "--log", url)
    assert ran.code == Exit.PROBLEM
    assert ran.err == f"{bad}: offset {len(start)}: a record without a usable Content-Length\n"
    assert ran.out.startswith("9 pages imported, 1 broken record; ")
    bad.write_bytes(gzip.compress(b"x\r\n\r\n") * 150)
    ran = farmwatch("log", "import", bad, "--log", url)
    assert len(ran.err.splitlines()) == 101 and ran.err.endswith("50 more broken records\n")


@pytest.mark.parametrize(
    ("arguments", "code", "said"),
    [
        (["gone.warc.gz"], Exit.UNAVAILABLE, "gone.warc.gz: No such file or directory"),
        (["."], Exit.UNAVAILABLE, ".: Is a directory"),
        (["x.warc.zst"], Exit.USAGE, "zstd -d x.warc.zst"),
        (["x.warc", "--source", "A B"], Exit.USAGE, "--source 'A B'"),
        (["x.warc", "--site", "a b"], Exit.USAGE, "--site 'a b'"),
        ([], Exit.USAGE, ""),
    ],
)
def test_wrong_arguments_are_refused_before_anything_is_done(
    farmwatch: Runner, tmp_path: Path, arguments: list[str], code: Exit, said: str
) -> None:
    """Wrong arguments end with a message and their exit code before a log is created."""
    (tmp_path / "x.warc").write_text("")
    ran = farmwatch("log", "import", *arguments, "--log", f"sqlite:{tmp_path / 'log'}")
    assert ran.code == code and said in ran.err
    assert not (tmp_path / "log").exists()


def test_an_empty_import_is_a_problem(farmwatch: Runner, tmp_path: Path) -> None:
    """An empty file, or only pages of private addresses: exit 1 with the remedy. Only known pages: exit 0."""
    url = f"sqlite:{tmp_path / 'log'}"
    (tmp_path / "empty.warc").write_bytes(b"")
    ran = farmwatch("log", "import", "empty.warc", "--log", url)
    assert ran.code == Exit.PROBLEM and ran.err == "nothing was imported: there is no record\n"
    (file,) = write(tmp_path / "private", [capture(1, address="10.0.0.1")])
    ran = farmwatch("log", "import", file, "--log", url)
    assert ran.code == Exit.PROBLEM and "--set crawl.allow_private=true lets in" in ran.err
    for _ in range(2):
        assert farmwatch("log", "import", file, "--log", url, "--set", "crawl.allow_private=true").code == Exit.OK


class _Interrupted(Exception):
    """Any error that ends an import."""


def test_an_interrupted_import_can_be_repeated(tmp_path: Path) -> None:
    """After an interruption at any batch, the next import appends the rest, and no record twice."""
    captures = [capture(number) for number in range(6)]
    (file,) = write(tmp_path, captures + captures[:2])  # the last two are other records of the same URLs
    file.write_bytes(file.read_bytes() * 2)  # each record twice
    for batches in range(9):
        with _memory_log() as log:
            for end in (batches, 99):
                _import(log, file, end)
            hits, pages = on(log)
            assert len(pages) == len({page.id for page in pages}) == 8
            assert len(hits) == len({hit.id for hit in hits}) == 8
            assert _known(log).ids == {hit.id for hit in hits}


def _import(log: MemoryLog, file: Path, batches: int) -> None:
    """Import until this many pages are read."""
    imports = _known(log)
    with file.open("rb") as stream:

        def found() -> Iterator[ArchivedPage | Skipped]:
            for number, one in enumerate(pages_of(stream, CrawlSettings(), now_ms=2 * 10**12, known=imports.ids)):
                if number == batches:
                    raise _Interrupted
                yield one

        try:
            import_pages(log, found(), imports, lambda bad: pytest.fail(bad.reason), batch_bytes=1)
        except _Interrupted:
            return


def _pages(file: Path) -> list[ArchivedPage | Skipped]:
    with file.open("rb") as stream:
        return list(pages_of(stream, CrawlSettings(), now_ms=2 * 10**12))


def test_a_single_import_reads_the_log_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Hits are read again only after another import held the lock, or an append failed: on Kafka this is slow."""
    (file,) = write(tmp_path, [capture(number) for number in range(6)])
    pages = _pages(file)
    looks: list[str] = []
    with _memory_log() as log:
        end, append = log.end, log.append

        def looked(topic: str) -> list[int]:
            looks.append(topic)
            return end(topic)

        monkeypatch.setattr(log, "end", looked)
        ours, other = (KnownHits(log, tmp_path / "lock") for _ in range(2))
        for number in range(3):
            import_pages(log, pages[number : number + 1], ours, print)
        assert len(looks) == 1
        import_pages(log, pages[3:4], other, print)
        import_pages(log, pages[4:5], ours, print)
        assert len(looks) == 3

        def lost(outputs: Sequence[Output]) -> None:
            append(outputs)
            raise LogUnavailable("it may have happened")

        with monkeypatch.context() as patched, pytest.raises(LogUnavailable):
            patched.setattr(log, "append", lost)
            import_pages(log, pages[5:], ours, print)
        assert import_pages(log, pages, ours, print).pages == 0
        assert len(looks) == 4 and len(on(log)[1]) == 6


def test_processes_beside_each_other_append_a_record_once(tmp_path: Path) -> None:
    """Two concurrent imports of one file, in small batches, append and count every page and its hit once."""
    (file,) = write(tmp_path / "warc", [capture(number) for number in range(40)])
    url = f"sqlite:{tmp_path / 'log'}"
    with closing(open_log(url)) as log:
        log.create(all_topics(PARTITIONS, feature_epoch(MeasureSettings()), defaults=ON_ONE_MACHINE))
    code = (
        "import sys; from farmwatch.__main__ import main\n"
        "from farmwatch.crawl import archive_import as importing\n"
        "do = importing.import_pages\n"
        "def when_all_are_here(*given):\n"
        "    print('ready', file=sys.stderr, flush=True); sys.stdin.readline()\n"
        "    return do(*given, batch_bytes=1)\n"
        "importing.import_pages = when_all_are_here\n"
        f"sys.argv = ['farmwatch', 'log', 'import', {str(file)!r}, '--json', '--log', {url!r}, *sys.argv[1:]]\n"
        "main()\n"
    )
    command = [sys.executable, "-c", code, "--set", f"log.partitions={PARTITIONS}"]
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    imports = [subprocess.Popen(command, cwd=ROOT, text=True, **pipes) for _ in range(2)]  # type: ignore[call-overload]
    for one in imports:
        assert one.stderr.readline() == "ready\n"
    for one in imports:
        one.stdin.write("\n")
        one.stdin.flush()
    told = [json.loads(one.communicate(timeout=60)[0]) for one in imports]
    assert sum(one["pages"] for one in told) == 40 and sum(one["skipped"] for one in told) == 40
    with closing(open_log(url)) as log:
        hits, pages = on(log)
    assert len(pages) == len({page.id for page in pages}) == len(hits) == 40


def test_heartbeats_among_the_hits_are_passed_over(tmp_path: Path) -> None:
    """Pages imported before and after a heartbeat are known."""
    (file,) = write(tmp_path, [capture(number) for number in range(3)])
    with _memory_log() as log:
        heartbeat.beat(log, PARTITIONS, 1)
        _import(log, file, 99)
        heartbeat.beat(log, PARTITIONS, 2)
        assert len(_known(log).ids) == 3


def test_a_lock_that_cannot_be_created_is_reported(farmwatch: Runner, tmp_path: Path, archives: list[Path]) -> None:
    """The message has the file and the remedy; nothing is appended."""
    url = f"sqlite:{tmp_path / 'log'}"
    (tmp_path / "log" / "search" / "imports.lock").mkdir(parents=True)
    ran = farmwatch("log", "import", archives[0], "--log", url)
    assert ran.code == Exit.UNAVAILABLE and "imports.lock: cannot be written" in ran.err
    with closing(open_log(url)) as log:
        assert on(log) == ([], [])


def test_small_pages_do_not_make_a_large_batch(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Thousands of tiny pages are appended in batches of at most 2,000 records."""
    (file,) = write(tmp_path, [capture(1)])
    (page,) = _pages(file)
    assert isinstance(page, ArchivedPage)
    hits = (msgspec.structs.replace(page.hit, id=f"{number:032x}") for number in range(5000))
    sizes: list[int] = []
    with _memory_log() as log:
        append = log.append

        def watched(outputs: Sequence[Output]) -> None:
            sizes.append(len(outputs))
            append(outputs)

        monkeypatch.setattr(log, "append", watched)
        assert import_pages(log, (ArchivedPage(0, hit, page.page) for hit in hits), _known(log), print).pages == 5000
    assert sum(sizes) == 10_000 and max(sizes) <= 2000
