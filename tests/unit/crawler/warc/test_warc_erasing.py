"""Records of a host are erased from WARC files in place; all others stay where they are."""

from __future__ import annotations

import os
import zlib
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from warcio.archiveiterator import ArchiveIterator

from crawler.fetch.jobs import Capture, RequestKind
from crawler.warc.erasing import archives_of, empty_record, erase_hosts, names_host
from crawler.warc.exchange import exchange, warcinfo
from crawler.warc.file import WarcFile
from crawler.warc.reader import WarcFault, records_of
from tests.support.torn_writes import tear_writes

HOST = "gone.example"


def capture(host: str, *, via: str = "", size: int = 200) -> Capture:
    """An exchange with a host; its body names the other host too."""
    body = os.urandom(size).hex().encode() + b" http://gone.example/linked "
    headers = [(b"Host", host.encode())]
    kind = RequestKind.PAGE
    return Capture(
        kind=kind, url=f"http://{host}/x", via=via, started_ms=1, request_headers=headers, status=200, body=body
    )


def write(path: Path, *captures: Capture) -> list[tuple[str, bytes]]:
    """A WARC file of these exchanges; its records by URL, compressed."""
    ident, info = warcinfo(path.name, 0, user_agent="a/1", contact="https://a.example")
    members = [("", info.data)]
    members += [(each.url, member.data) for each in captures for member in exchange(each, ident)]
    path.write_bytes(b"".join(data for _, data in members))
    return members


def faults(path: Path) -> list[WarcFault]:
    with path.open("rb") as stream:
        return [found for found in records_of(stream, ()) if isinstance(found, WarcFault)]


def test_records_of_a_host_become_empty(tmp_path: Path) -> None:
    """All records of the host's exchanges are erased; others keep offsets and bytes, and the file stays valid."""
    path = tmp_path / "a.warc.gz"
    hosts = ("kept.example", HOST, "agone.example", "www.gone.example", HOST)
    members = write(path, *(capture(host, size=9000) for host in hosts), capture("kept.example", via=f"http://{HOST}/"))
    assert erase_hosts(path, [HOST]) == 5  # two exchanges of two records, and one metadata record with `via`
    data, at = path.read_bytes(), 0
    for url, member in members:
        is_gone = url == f"http://{HOST}/x" or f"via: http://{HOST}/".encode() in zlib.decompress(member, 31)
        assert (data[at : at + len(member)] == member) is not is_gone
        at += len(member)
    assert at == len(data) and not faults(path)
    with path.open("rb") as stream:
        urls = [record.rec_headers.get_header("WARC-Target-URI") for record in ArchiveIterator(stream)]
    assert [url for url in urls if url and f"//{HOST}/" in url] == []
    assert urls.count("http://kept.example/x") == 4 and urls.count("http://www.gone.example/x") == 2
    assert erase_hosts(path, [HOST]) == 0


def test_a_file_that_was_closed_meanwhile_is_erased(tmp_path: Path) -> None:
    """A crawl may rename a file after the folder was listed: its records are found under the final name."""
    file = WarcFile(tmp_path, "a")
    file.append(b"".join(member.data for member in exchange(capture(HOST), "<urn:uuid:1>")))
    (path,) = archives_of(tmp_path)
    file.close()
    assert names_host(path, HOST) and not names_host(path, "kept.example")
    assert erase_hosts(path, [HOST]) == 2
    assert not any(names_host(each, HOST) for each in archives_of(tmp_path))


def test_a_file_that_is_being_written_is_erased_too(tmp_path: Path) -> None:
    """The writer continues after the erased records, and the closed file is whole."""
    file = WarcFile(tmp_path, "a")
    for host in (HOST, "kept.example"):
        file.append(b"".join(member.data for member in exchange(capture(host), "<urn:uuid:1>")))
    (path,) = archives_of(tmp_path)
    assert path.name == "a.warc.gz.open" and erase_hosts(path, [HOST]) == 2
    file.append(b"".join(member.data for member in exchange(capture("b.example"), "<urn:uuid:1>")))
    file.close()
    (path,) = archives_of(tmp_path)
    assert path.name == "a.warc.gz" and not faults(path)
    assert erase_hosts(path, [HOST]) == 0 and erase_hosts(tmp_path / "none.warc.gz", [HOST]) == 0


@pytest.mark.parametrize("writes", range(4))
def test_an_interrupted_erasure_is_completed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, writes: int) -> None:
    """After a crash during any write, the next erasure finds the record and completes it."""
    path = tmp_path / "a.warc.gz"
    write(path, capture(HOST, size=20_000), capture("kept.example"))
    before = path.read_bytes()
    tear_writes(monkeypatch, writes)
    with pytest.raises(KeyboardInterrupt):
        erase_hosts(path, [HOST])
    monkeypatch.undo()
    erase_hosts(path, [HOST])
    assert len(path.read_bytes()) == len(before) and not faults(path)
    inflated = b"".join(_members(path.read_bytes()))
    assert b"WARC-Target-URI: http://gone.example" not in inflated and b"Host: gone" not in inflated
    assert b"WARC-Target-URI: http://kept.example" in inflated


def _members(data: bytes) -> list[bytes]:
    found = []
    while data:
        inflate = zlib.decompressobj(31)
        found.append(inflate.decompress(data))
        data = inflate.unused_data
    return found


@given(st.integers(24, 200_000))
def test_an_empty_record_has_any_size(size: int) -> None:
    """An empty record is one gzip member of a given size, and a WARC record if the size permits."""
    data = empty_record(size)
    inflate = zlib.decompressobj(31)
    text = inflate.decompress(data)
    assert len(data) == size and inflate.eof and not inflate.unused_data
    assert text.startswith(b"WARC/1.1\r\n") or (size < 300 and not text)
