"""WARC files, read by warcio: complete captures, also after a killed process or a full disk."""

from __future__ import annotations

import errno
import gzip
import os
import random
import re
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given
from hypothesis import settings as hypothesis_settings
from hypothesis import strategies as st
from prometheus_client import generate_latest

from crawler.errors import ArchiveUnwritable
from crawler.fetch.jobs import Capture, RequestKind
from crawler.warc.file import close_leftovers
from crawler.warc.pages import ArchivedPage, pages_of
from crawler.warc.writer import WarcWriter
from stream.processing.metrics import Metrics
from tests.support.paths import ROOT
from tests.support.waiting import wait_until
from tests.support.web.warc_check import HTML, STARTED_MS, Read, assert_clean, capture, finished, read_all, settings_in


@contextmanager
def writing(folder: Path, metrics: Metrics | None = None, **changes: Any) -> Iterator[WarcWriter]:
    """An archive that is closed at the end."""
    bounds = {name: changes.pop(name) for name in ("queue_bytes", "room_bytes") if name in changes}
    archive = WarcWriter(settings_in(folder, **changes), metrics, **bounds)
    try:
        yield archive
    finally:
        archive.close()


def written(folder: Path, *captures: Capture, **changes: Any) -> list[Read]:
    """Write captures and read them with warcio, which checks every digest."""
    with writing(folder, **changes) as archive:
        for one in captures:
            archive(one)
        archive.settle()
    assert_clean(finished(folder))
    return read_all(finished(folder))


def test_an_exchange_is_a_request_and_a_response(tmp_path: Path) -> None:
    """After a warcinfo record, each exchange is a linked request and response with time, address and digests."""
    info, request, response = written(tmp_path, capture())
    assert [one.kind for one in (info, request, response)] == ["warcinfo", "request", "response"]
    told = dict(line.split(": ", 1) for line in info.body.decode().strip().split("\r\n"))
    assert told["operator"] == "mailto@example.org" and told["robots"] == "obey"
    assert told["format"] == "WARC File Format 1.1" and told["software"].startswith("farmwatch/")
    assert told["http-header-user-agent"].endswith("(+mailto@example.org)")
    assert info.headers["WARC-Filename"] == finished(tmp_path)[0].name
    for one in (request, response):
        assert one.headers["WARC-Date"] == "2023-11-14T22:13:20.123Z"
        assert one.headers["WARC-Target-URI"] == "http://a.test/page?0"
        assert one.headers["WARC-IP-Address"] == "127.0.0.1"
        assert one.headers["WARC-Warcinfo-ID"] == info.headers["WARC-Record-ID"]
        assert re.fullmatch(r"sha1:[A-Z2-7]{32}", one.headers["WARC-Block-Digest"])
        assert re.fullmatch(r"sha1:[A-Z2-7]{32}", one.headers["WARC-Payload-Digest"])
    assert request.headers["WARC-Concurrent-To"] == response.headers["WARC-Record-ID"]
    assert request.http == [("Host", "a.test"), ("User-Agent", "farmwatch")]
    assert response.http == [("Content-Type", "text/html; charset=utf-8"), ("X-Number", "0")]
    assert (response.status, response.body) == ("200", HTML)


def test_metadata_stands_before_a_response_that_needs_it(tmp_path: Path) -> None:
    """Redirected pages and requests for other files have a metadata record; a page under its own URL has none.

    Records are counted by type, and bytes as stored on disk.
    """
    metrics = Metrics()
    moved = capture(1, via="http://a.test/old")
    records = written(tmp_path, capture(), moved, capture(2, kind=RequestKind.ROBOTS), metrics=metrics)
    page = generate_latest(metrics.registry).decode()
    for kind, count in (("warcinfo", 1), ("request", 3), ("metadata", 2), ("response", 3)):
        assert f'farmwatch_warc_records_total{{type="{kind}"}} {count}.0' in page
    assert f"farmwatch_warc_bytes_total {float(finished(tmp_path)[0].stat().st_size)}" in page
    assert [one.kind for one in records[1:]] == ["request", "response", *["request", "metadata", "response"] * 2]
    assert records[4].body == b"via: http://a.test/old\r\nkind: page\r\n"
    assert records[7].body == b"kind: robots\r\n"
    for metadata, response in ((records[4], records[5]), (records[7], records[8])):
        assert metadata.headers["WARC-Concurrent-To"] == response.headers["WARC-Record-ID"]


def test_truncation_and_an_unchanged_page_are_told_by_the_standard(tmp_path: Path) -> None:
    """WARC-Truncated has its reason; a 304 is a revisit with the profile server-not-modified."""
    _, _, cut, _, same = written(tmp_path, capture(truncated="length"), capture(1, status=304, reason="", body=b""))
    assert cut.headers["WARC-Truncated"] == "length" and "WARC-Truncated" not in same.headers
    assert (same.kind, same.status) == ("revisit", "304")
    assert same.headers["WARC-Profile"].endswith("/revisit/server-not-modified")


def test_an_undone_transfer_encoding_is_renamed(tmp_path: Path) -> None:
    """A decoded Transfer-Encoding header is renamed, so that readers do not decode again; Content-Encoding stays."""
    body = gzip.compress(HTML)
    headers = [(b"Content-Type", b"text/html"), (b"Content-Encoding", b"gzip"), (b"TRANSFER-Encoding", b"chunked")]
    response = written(tmp_path, capture(headers=headers, body=body))[-1]
    assert response.body == body
    assert response.http[1:] == [("Content-Encoding", "gzip"), ("X-Crawler-Transfer-Encoding", "chunked")]
    with finished(tmp_path)[0].open("rb") as stream:
        found = list(pages_of(stream, settings_in(tmp_path), now_ms=2 * STARTED_MS))
    assert isinstance(found[0], ArchivedPage) and found[0].page.body_bytes == len(HTML)


def test_what_would_break_the_lines_of_a_record_is_blanked(tmp_path: Path) -> None:
    """Line breaks in a reason, a header or a URL cannot forge another header or record."""
    evil = "x\r\n\r\nWARC/1.1\r\nWARC-Type: response"
    bad = capture(
        reason=evil,
        url="http://a.test/" + evil,
        via="http://a.test/" + evil,
        headers=[(b"A\r\nB: c", b"d\r\n\r\ne\0f")],
        request_headers=[(evil.encode(), evil.encode())],
    )
    records = written(tmp_path, bad)
    assert [one.kind for one in records] == ["warcinfo", "request", "metadata", "response"]
    assert records[-1].http == [("A  B", "c: d    e f")] and records[-1].body == HTML


_TOKEN = st.text("abcdefghijklmnopqrstuvwxyzABCXYZ0123456789-_!#$%&'*+.^`|~", min_size=1, max_size=20).map(str.encode)
_VALUE = st.binary(max_size=60).map(lambda value: bytes(b for b in value if b >= 0x20 and b != 0x7F).strip(b" \t"))


@hypothesis_settings(max_examples=60, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    st.lists(
        st.builds(
            capture,
            st.integers(0, 10**9),
            status=st.integers(200, 599).filter(lambda status: status != 304),
            reason=st.text(st.characters(exclude_categories=["Cs", "Cc"]), max_size=20),
            headers=st.lists(st.tuples(_TOKEN | st.just(b"Transfer-Encoding"), _VALUE), max_size=8),
            body=st.binary(max_size=3000),
            version=st.sampled_from(["HTTP/1.0", "HTTP/1.1"]),
        ),
        max_size=4,
    )
)
def test_whatever_was_captured_reads_back_byte_by_byte(tmp_path: Path, captures: list[Capture]) -> None:
    """Headers, in order and spelling, and body are stored unchanged, except for Transfer-Encoding."""
    folder = tmp_path / str(time.monotonic_ns())
    with writing(folder) as archive:
        for one in captures:
            archive(one)
    if not captures:
        assert finished(folder) == []
        return
    assert_clean(finished(folder))
    raw = b"".join(gzip.decompress(file.read_bytes()) for file in finished(folder))
    at = 0
    for one in captures:
        lines = [name.replace(b"Transfer-", b"X-Crawler-Transfer-") + b": " + value for name, value in one.headers]
        start = f"{one.version} {one.status} {one.reason}".encode()
        at = raw.find(b"\r\n\r\n" + b"\r\n".join([start, *lines, b"", b""]) + one.body + b"\r\n\r\n", at)
        assert at > 0
    responses = [one for one in read_all(finished(folder)) if one.kind == "response"]
    assert [one.body for one in responses] == [one.body for one in captures]


def test_files_rotate_by_size(tmp_path: Path) -> None:
    """A new file begins at the size limit; each has a warcinfo, and a name of time, serial number and writer."""
    noise = random.Random(3)
    with writing(tmp_path, warc_bytes=50_000) as archive:
        for number in range(20):
            archive(capture(number, body=noise.randbytes(20_000)))
    files = finished(tmp_path)
    assert len(files) == 7 and all(file.stat().st_size < 75_000 for file in files)
    assert_clean(files)
    for file in files:
        assert re.fullmatch(rf"farmwatch-\d{{17}}-\d{{5}}-{os.getpid()}\.warc\.gz", file.name)
        assert read_all([file])[0].kind == "warcinfo"
    assert [r.headers["WARC-Target-URI"][-1] for r in read_all(files) if r.kind == "response"] == [
        str(number % 10) for number in range(20)
    ]


def test_files_rotate_by_age_even_where_nothing_comes(tmp_path: Path) -> None:
    """A file is closed at the age limit, even without another capture."""
    with writing(tmp_path, warc_s=0.05) as archive:
        archive(capture())
        archive.settle()
        wait_until(lambda: list(tmp_path.glob("*.warc.gz")), "the old file to be closed", 10)
        archive(capture(1))
    assert len(finished(tmp_path)) == 2


def test_an_unfinished_file_is_told_by_its_name_and_left_alone_by_others(tmp_path: Path) -> None:
    """While the process of an unfinished file lives, a second writer in the folder does not touch the file."""
    with writing(tmp_path) as first:
        first(capture())
        first.settle()
        (unfinished,) = tmp_path.glob("*.warc.gz.open")
        with writing(tmp_path) as second:
            second(capture(1))
        assert unfinished.exists() and len(list(tmp_path.glob("*.warc.gz"))) == 1
    assert len(finished(tmp_path)) == 2
    assert_clean(finished(tmp_path))


def test_a_leftover_is_cut_at_its_last_whole_record(tmp_path: Path) -> None:
    """A leftover cut anywhere keeps its complete records under its final name; without any, it is removed."""
    written(tmp_path, capture(), capture(1))
    (file,) = finished(tmp_path)
    data = file.read_bytes()
    file.unlink()
    ends = [at for at in range(1, len(data)) if data[at : at + 3] == b"\x1f\x8b\x08"] + [len(data)]
    for length in sorted({*range(0, len(data), 37), *ends, *(end - 1 for end in ends)}):
        (tmp_path / f"{file.name}.open").write_bytes(data[:length])
        whole = max((end for end in ends if end <= length), default=0)
        assert close_leftovers(tmp_path) == ([file] if whole else [])
        assert not list(tmp_path.glob("*.open"))
        if whole:
            assert file.read_bytes() == data[:whole]
            file.unlink()


def test_a_link_in_the_place_of_a_leftover_is_not_followed(tmp_path: Path) -> None:
    """A symbolic link named like a leftover is not followed: nothing outside the folder is cut."""
    outside = tmp_path / "outside"
    outside.write_bytes(b"keep")
    folder = tmp_path / "warc"
    folder.mkdir()
    (folder / "x.warc.gz.open").symlink_to(outside)
    with pytest.raises(ArchiveUnwritable, match=r"x\.warc\.gz\.open"):
        WarcWriter(settings_in(folder))
    assert outside.read_bytes() == b"keep"


def test_a_full_disk_is_an_error_until_there_is_room(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """On a full disk `settle` raises each time; with room the archive continues, and all files are whole."""
    room = [3000]
    write = os.write

    def short(fd: int, data: memoryview) -> int:
        if room[0] <= 0:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        count = write(fd, data[: room[0]])
        room[0] -= count
        return count

    with writing(tmp_path) as archive:
        archive(capture())
        archive.settle()
        monkeypatch.setattr(os, "write", short)
        archive(capture(1, body=random.Random(1).randbytes(10_000)))
        for _ in range(3):
            with pytest.raises(ArchiveUnwritable, match=r"No space left on device.*crawl\.warc_folder") as raised:
                archive.settle()
            assert raised.value.retriable
        monkeypatch.undo()
        archive.settle()
        archive(capture(2))
        archive.settle()
    assert_clean(finished(tmp_path))
    urls = [one.headers["WARC-Target-URI"] for one in read_all(finished(tmp_path)) if one.kind == "response"]
    assert urls == ["http://a.test/page?0", "http://a.test/page?2"]


def test_a_failed_archive_waits_for_real_room(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """After a full disk, the crawl resumes only with real room, not with a few free bytes."""
    with writing(tmp_path, room_bytes=2**62) as archive:
        monkeypatch.setattr(os, "write", lambda *_: (_ for _ in ()).throw(OSError(errno.EIO, "I/O error")))
        archive(capture())
        with pytest.raises(ArchiveUnwritable, match="I/O error"):
            archive.settle()
        monkeypatch.setattr(os, "write", os.write)
        with pytest.raises(ArchiveUnwritable, match="MiB are free"):
            archive.settle()
    assert finished(tmp_path) == []


@pytest.mark.parametrize("place", ["file", "file/below"])
def test_a_folder_that_cannot_be_is_refused_at_the_start(tmp_path: Path, place: str) -> None:
    """A folder that cannot be used is refused at the start; the message names the folder and the setting."""
    (tmp_path / "file").write_text("")
    with pytest.raises(ArchiveUnwritable, match=r"file.*crawl\.warc_folder"):
        WarcWriter(settings_in(tmp_path / place))


def test_a_tap_waits_while_very_much_waits(tmp_path: Path) -> None:
    """Captures that arrive faster than the disk writes do not fill the memory: the tap waits."""
    most = 0
    with writing(tmp_path, queue_bytes=100_000) as archive:
        for number in range(100):
            archive(capture(number, body=bytes(60_000)))
            most = max(most, archive.waiting_bytes)
        archive.settle()
        assert archive.waiting_bytes == 0
    assert most <= 160_000
    assert sum(one.kind == "response" for one in read_all(finished(tmp_path))) == 100


_KILLED = """
import random, sys
from crawler.fetch.jobs import Capture
from crawler.fetch.jobs import RequestKind
from crawler.settings import CrawlSettings
from crawler.warc.writer import WarcWriter
CrawlSettings.warc_bytes = 300_000
archive = WarcWriter(CrawlSettings(contact="a@example.org", warc_folder=sys.argv[1]))
noise, number = random.Random(5), int(sys.argv[2])
while True:
    for _ in range(3):
        body = noise.randbytes(noise.randrange(40_000))
        url = f"http://a.test/page?{number}"
        archive(Capture(kind=RequestKind.PAGE, url=url, via="http://a.test/", started_ms=number, status=200, body=body))
        number += 1
    archive.settle()
    print(number, flush=True)
"""


@pytest.mark.slow
def test_kill_9_loses_nothing_that_was_settled(tmp_path: Path) -> None:
    """After four processes are killed at random moments, all files check clean and have every settled page."""
    moments = random.Random(11)
    settled: list[int] = []
    folder = tmp_path / "warc"
    for run in range(4):
        first = run * 1_000_000
        process = subprocess.Popen(
            [sys.executable, "-c", _KILLED, str(folder), str(first)], stdout=subprocess.PIPE, cwd=ROOT
        )
        assert process.stdout is not None
        while not (line := process.stdout.readline()).strip().isdigit():  # it reports the leftover first
            assert line, "it did not begin"
        for _ in range(moments.randrange(8)):
            line = process.stdout.readline()
        process.send_signal(signal.SIGKILL)
        said = process.stdout.read().split()
        process.stdout.close()
        process.wait()
        settled += range(first, int(said[-1] if said else line))
    WarcWriter(settings_in(folder)).close()
    assert_clean(finished(folder))
    found = {one.headers["WARC-Target-URI"] for one in read_all(finished(folder)) if one.kind == "response"}
    assert {f"http://a.test/page?{number}" for number in settled} <= found


def test_another_reader_reads_the_same(tmp_path: Path) -> None:
    """FastWARC, with its own HTTP parser, confirms every digest and reads chunked bodies whole."""
    warc = pytest.importorskip("fastwarc.warc")
    body = gzip.compress(HTML)
    headers = [(b"Content-Encoding", b"gzip"), (b"Transfer-Encoding", b"chunked"), (b"Content-Type", b"text/html")]
    with writing(tmp_path) as archive:
        for one in (capture(), capture(1, headers=headers, body=body, via="http://a.test/"), capture(2, status=304)):
            archive(one)
    found = []
    with finished(tmp_path)[0].open("rb") as stream:
        for record in warc.ArchiveIterator(stream, parse_http=False, strict_mode=True):
            assert record.verify_block_digest()
            if record.record_type == warc.WarcRecordType.response:
                record.parse_http()
                assert record.verify_payload_digest()
                found.append((record.headers["WARC-Target-URI"], record.http_headers.status_code, record.reader.read()))
    assert found == [("http://a.test/page?0", 200, HTML), ("http://a.test/page?1", 200, body)]
