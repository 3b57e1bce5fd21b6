"""WARC import: archives of other tools, broken and hostile ones included."""

from __future__ import annotations

import gzip
import hashlib
import io
import random
import tracemalloc
import zlib
from collections.abc import Callable

import brotli
import msgspec
import pytest
import zstandard
from hypothesis import given, settings
from hypothesis import strategies as st

from crawler.settings import CrawlSettings
from crawler.warc.pages import ArchivedPage, Skipped, pages_of
from crawler.warc.reader import BLOCK_CAP_BYTES, WarcFault, WarcRecord, records_of
from stream.schema.records import Page
from tests.support.web.inspecting import FakeInspector

SETTINGS = CrawlSettings()
NOW_MS = 1_800_000_000_000
HTML = b"<!doctype html><html><title>t</title><body><p>words</p></body></html>"
TYPE = "Content-Type: text/html; charset=utf-8"


def http(body: bytes = HTML, *headers: str, status: str = "200 OK") -> bytes:
    """A response block."""
    lines = [f"HTTP/1.1 {status}", *(headers or (TYPE,))]
    return "\r\n".join(lines).encode() + b"\r\n\r\n" + body


def record(
    block: bytes, url: str = "http://a.test/", kind: str = "response", version: str = "1.1", **headers: str
) -> bytes:
    """A record; keywords are WARC headers with `_` for `-`, an empty one leaves the header out."""
    fields = {
        "WARC-Type": kind,
        "WARC-Record-ID": f"<urn:uuid:{hashlib.md5(block + url.encode()).hexdigest()}>",
        "WARC-Date": "2024-05-06T07:08:09Z",
        "WARC-Target-URI": url,
        "Content-Type": "application/http; msgtype=response",
        "Content-Length": str(len(block)),
    } | {name.replace("_", "-"): value for name, value in headers.items()}
    lines = [f"WARC/{version}", *(f"{name}: {value}" for name, value in fields.items() if value)]
    return "\r\n".join(lines).encode() + b"\r\n\r\n" + block + b"\r\n\r\n"


def read(data: bytes, **options: object) -> list[ArchivedPage | Skipped]:
    """What an archive gives."""
    known: dict[str, object] = {"now_ms": NOW_MS, **options}
    return list(pages_of(io.BytesIO(data), known.pop("settings", SETTINGS), **known))  # type: ignore[arg-type]


def only(data: bytes, **options: object) -> Page:
    """The one page of an archive."""
    (found,) = read(data, **options)
    assert isinstance(found, ArchivedPage), found
    return found.page


def reasons(data: bytes, **options: object) -> list[str]:
    """The reasons for records without a page."""
    found = read(data, **options)
    assert all(isinstance(one, Skipped) for one in found)
    return [one.reason for one in found if isinstance(one, Skipped)]


def body_of(page: Page) -> bytes:
    """The inflated body."""
    return zstandard.ZstdDecompressor().decompress(page.body)


@pytest.mark.parametrize("version", ["1.0", "1.1"])
@pytest.mark.parametrize("packed", [True, False])
def test_a_response_becomes_a_page_and_an_imported_hit(version: str, packed: bool) -> None:
    """Both WARC versions, compressed or not, give a page with the fields of a visit, and a hit without a crawl."""
    data = record(http(), version=version, WARC_IP_Address="93.184.215.14", WARC_Date="2024-05-06T07:08:09.25Z")
    (found,) = read(gzip.compress(data) if packed else data)
    assert isinstance(found, ArchivedPage)
    page, hit = found.page, found.hit
    assert (page.site, page.url, page.final_url, page.visit) == ("a.test", "http://a.test/", "http://a.test/", 0)
    assert (page.outcome, page.found_by, page.status, page.encoding) == ("fetched", "import", 200, "utf-8")
    assert (page.address, page.fetched_at) == ("93.184.215.14", 1_714_979_289_250)
    assert body_of(page) == HTML and page.body_bytes == len(HTML) and not page.truncated
    assert page.headers == {"content-type": "text/html; charset=utf-8"}
    assert hit.imported and page.hits == [hit.id] and (hit.site, hit.source) == ("a.test", "warc")
    assert hit.fetched_at == page.fetched_at


def test_ids_follow_the_record_and_its_url() -> None:
    """The ids of a record do not depend on its place; another record of the same URL is another fetch."""
    one, two = record(http()), record(http(HTML + b" "))
    first, second = only(one), only(two)
    again = read(two + one)[1]
    assert isinstance(again, ArchivedPage) and again.page == first
    assert first.id != second.id and first.hits != second.hits and first.page_id == second.page_id


def test_what_is_known_or_not_asked_for_is_passed_over() -> None:
    """Known hits and sites that are not asked for are skipped."""
    data = record(http())
    assert reasons(data, known=set(only(data).hits)) == ["known"]
    assert reasons(data, sites=["b.test"]) == ["other_site"]
    assert only(data, sites=["a.test"])


@pytest.mark.parametrize(
    ("data", "reason"),
    [
        (record(http(status="404 Not Found")), "http_404"),
        (record(http(status="301 Moved")), "http_301"),
        (record(http(b"%PDF-1.7", "Content-Type: application/pdf")), "content_type"),
        (record(http(b"%PDF-1.7")), "content_type"),
        (record(http(zstandard.compress(HTML), TYPE, "Content-Encoding: zstd")), "bad_encoding"),
        (record(http(brotli.compress(HTML), TYPE, "Content-Encoding: gzip")), "bad_encoding"),
        (record(http(), kind="revisit"), "revisit"),
        (record(http(), url="http://canary.invalid/"), "unusable_url"),
        (record(http(), url="http:///"), "unusable_url"),
        (record(http(), url="file:///etc/passwd"), "unusable_url"),
        (record(http(), url="http://../x"), "unusable_url"),
        (record(b"192.0.2.1", url="dns:a.test", Content_Type="text/dns"), "not_http"),
        (record(http(), WARC_IP_Address="10.0.0.1"), "private_address"),
        (record(http(), WARC_IP_Address="::ffff:127.0.0.1"), "private_address"),
        (record(http(), url="http://[::1]/"), "private_address"),
        (record(http(), url="http://2130706433/"), "private_address"),
        (record(http(), WARC_Truncated="disconnect"), "connection"),
        (record(http(), WARC_Truncated="time"), "timeout"),
    ],
)
def test_what_the_crawl_would_not_take_gives_no_page(data: bytes, reason: str) -> None:
    """A record that the crawl would refuse is skipped with the crawl's reason; it is not an error of the archive."""
    (found,) = read(data)
    assert isinstance(found, Skipped)
    assert (found.reason, found.is_fault, found.offset) == (reason, False, 0)


def test_settings_of_the_crawl_hold() -> None:
    """Opt-outs are recorded, and obeyed under that policy; a body is cut at the crawl's cap."""
    data = record(http(HTML, TYPE, "X-Robots-Tag: noai"))
    assert only(data).opt_out == ["header:noai"]
    assert reasons(data, settings=msgspec.structs.replace(SETTINGS, obey_opt_out=True)) == ["opt_out"]
    cut = only(record(http()), settings=msgspec.structs.replace(SETTINGS, body_bytes=20))
    assert (body_of(cut), cut.truncated) == (HTML[:20], True)
    assert only(record(http(), WARC_Truncated="length")).truncated
    private = msgspec.structs.replace(SETTINGS, allow_private=True)
    assert only(record(http(), WARC_IP_Address="127.0.0.1"), settings=private).address == "127.0.0.1"


@pytest.mark.parametrize(
    ("wire", "headers"),
    [
        (gzip.compress(HTML), ["Content-Encoding: gzip"]),
        (zlib.compress(HTML), ["Content-Encoding: deflate"]),
        (brotli.compress(HTML), ["Content-Encoding: br"]),
        (
            b"5\r\n" + HTML[:5] + b"\r\n%x;x=y\r\n" % len(HTML[5:]) + HTML[5:] + b"\r\n0\r\n\r\n",
            ["Transfer-Encoding: chunked"],
        ),
        (HTML, ["Transfer-Encoding: chunked"]),  # the chunks are decoded, the header is kept
        *((HTML, [f"Content-Encoding: {word}"]) for word in ("gzip", "deflate", "br", "zstd", "utf-8", "text/html")),
        (HTML, ["Content-Encoding: gzip", "Transfer-Encoding: chunked"]),
        (gzip.compress(HTML), ["Content-Encoding: gzip", "Content-Encoding: gzip"]),
        (HTML, ["X-Crawler-Transfer-Encoding: chunked", "X-Crawler-Content-Encoding: gzip"]),  # Common Crawl's form
    ],
    ids=[
        "gzip",
        "deflate",
        "br",
        "chunked",
        "no longer chunked",
        "no longer gzip",
        "no longer deflate",
        "no longer br",
        "no longer zstd",
        "no coding",
        "a type",
        "no longer gzip and chunked",
        "said twice",
        "no longer encoded",
    ],
)
def test_encodings_are_undone(wire: bytes, headers: list[str]) -> None:
    """Content and transfer encodings are decoded, in each form that archives use."""
    page = only(record(http(wire, TYPE, *headers)))
    assert (body_of(page), page.truncated) == (HTML, False)


def test_chunks_that_end_early_are_a_cut_body() -> None:
    """A chunk that declares two gigabytes allocates no memory; the available bytes are kept as a cut body."""
    page = only(record(http(b"7fffffff\r\n" + HTML, TYPE, "Transfer-Encoding: chunked")))
    assert (body_of(page), page.truncated) == (HTML, True)


def metadata(response: bytes, fields: str) -> bytes:
    """A metadata record on a response."""
    ident = response.split(b"WARC-Record-ID: ")[1].split(b"\r\n")[0].decode()
    return record(fields.encode(), kind="metadata", Content_Type="application/warc-fields", WARC_Concurrent_To=ident)


def test_metadata_names_the_url_that_was_asked_for() -> None:
    """A redirected page has the requested URL; other kinds are skipped; `via` of other crawlers is only a link."""
    moved = record(http(), url="http://www.a.test/moved")
    page = only(metadata(moved, "via: http://a.test/asked\r\nkind: page\r\n") + moved)
    assert (page.url, page.final_url, page.site) == ("http://a.test/asked", "http://www.a.test/moved", "a.test")
    assert only(metadata(moved, "via: http://a.test/asked\r\nhopsFromSeed: L\r\n") + moved).url == page.final_url
    assert only(metadata(moved, "via: http://other.test/\r\nkind: page\r\n") + moved).url == page.final_url
    assert reasons(metadata(moved, "kind: robots\r\n") + moved) == ["robots"]


def faults_and_pages(data: bytes) -> tuple[list[int], list[str]]:
    """Offsets of the broken records, and the URLs of the pages."""
    found = read(data)
    return (
        [one.offset for one in found if isinstance(one, Skipped) and one.is_fault],
        [one.page.url for one in found if isinstance(one, ArchivedPage)],
    )


FIRST, LAST = record(http(), url="http://first.test/"), record(http(), url="http://last.test/")
NOISE = random.Random(7).randbytes(300_000)


_BROKEN = [
    *(record(http(), Content_Length=said) for said in ("99999999999", "10", "-1", "9" * 5000, "")),
    *(record(http(), WARC_Date=said) for said in ("yesterday", "9024-01-01T00:00:00Z", "")),
    record(http(), version="0.18"),
    record(b"no http"),
    record(b"HTTP/1.1 two hundred\r\n\r\n"),
    b"<html>not a record</html>\r\n\r\n",
    b"WARC/1.1\r\n" + b"x" * 1_000_000,
    b"WARC/1.1\r\n" + b"a: b\r\n c\r\n" * 100_000,
]
_NOISY = gzip.compress(record(http(NOISE)))


@pytest.mark.parametrize(
    ("bad", "pack"),
    [
        *((gzip.compress(bad), gzip.compress) for bad in _BROKEN),
        # Gzip members that are cut, overwritten, with a wrong checksum, or no gzip at all
        (_NOISY[:-100_000], gzip.compress),
        (_NOISY[:100_000] + b"\xff" * 50 + _NOISY[100_000:], gzip.compress),
        (gzip.compress(record(http()))[:-8] + bytes(8), gzip.compress),
        *(
            (bad, gzip.compress)
            for bad in (b"\x1f\x8b\x08" + b"\xff" * 100, NOISE, b"\x1f\x8b" * 10_000, bytes(100_000))
        ),
        # In a plain file
        *((record(http(), Content_Length=said), bytes) for said in ("10", "x")),
        (b"rubbish\r\n" * 50_000, bytes),
    ],
)
def test_a_broken_record_is_named_by_its_offset_and_passed_over(bad: bytes, pack: Callable[[bytes], bytes]) -> None:
    """A broken record is named by its offset; reading continues at the next gzip member or record line."""
    offsets, urls = faults_and_pages(pack(FIRST) + bad + pack(LAST))
    assert urls == ["http://first.test/", "http://last.test/"]
    assert offsets[0] == len(pack(FIRST)) and (len(offsets) == 1 or pack is gzip.compress)


@pytest.mark.parametrize("pack", [gzip.compress, bytes])
@pytest.mark.parametrize("bad", [bad for bad in _BROKEN[1:] if bad.endswith(b"\n")])
def test_a_broken_record_between_others(bad: bytes, pack: Callable[[bytes], bytes]) -> None:
    """In one gzip member or a plain file a broken record costs no other, before or behind it, even if it is first."""
    both = ["http://first.test/", "http://last.test/"]
    for data in (FIRST + bad + LAST, bad + FIRST + LAST):
        offsets, urls = faults_and_pages(pack(data))
        assert urls == both and len(offsets) == 1


@pytest.mark.parametrize("pack", [gzip.compress, bytes])
def test_a_record_that_reaches_over_others_costs_these(pack: Callable[[bytes], bytes]) -> None:
    """A Content-Length beyond the end is one fault, which is read once; one within a record costs that one."""
    liar = record(http(), Content_Length="99999999")
    assert faults_and_pages(pack(FIRST + liar * 5000)) == ([len(FIRST) if pack is bytes else 0], ["http://first.test/"])
    over = record(http(), Content_Length=str(len(http()) + len(FIRST) // 2))
    assert faults_and_pages(pack(over + FIRST + LAST))[1] == ["http://last.test/"]


@pytest.mark.parametrize("line", [
    "HTTP/1.1 200", "HTTP/1.1 200 ", "HTTP/1.1  200  OK", "HTTP/2 200", "HTTP/2.0 200 OK", "HTTP/3 200", "ICY 200 OK",
    "http/1.1 200 ok", "Http/1.0 200OK", "HTTP/1.1\t200\tOK", "HTTP 200 OK",
])  # fmt: skip
@pytest.mark.parametrize("before", [
    "", "HTTP/1.1 100 Continue\r\n\r\n", "HTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\n" * 3, "\r\n",
])  # fmt: skip
def test_status_lines_of_archives(line: str, before: str) -> None:
    """Odd status lines count, interim responses do not, and lines that are no headers are skipped."""
    head = f"{before}{line}\r\n{TYPE}\r\nno header\r\n: none\r\nX-Powered By: shop\r\nServer : s\r\n\r\n"
    page = only(record(head.encode() + HTML))
    assert (page.status, body_of(page), page.headers["server"]) == (200, HTML, "s")


def test_a_range_of_a_file_counts_from_the_file() -> None:
    """The offset of a range is added to those of its records."""
    (found,) = read(gzip.compress(FIRST), offset=1000)
    assert found.offset == 1000


def test_a_truncated_file_loses_its_last_record_only() -> None:
    """Of a file cut anywhere, every record before the cut is read."""
    whole = gzip.compress(FIRST)
    data = whole + gzip.compress(LAST)
    for end in range(len(whole), len(data)):
        offsets, urls = faults_and_pages(data[:end])
        assert urls == ["http://first.test/"]
        assert offsets == ([] if end == len(whole) else [len(whole)])


@pytest.mark.slow
def test_bombs_and_giants_stay_within_bounds() -> None:
    """A member of 100 MB of zeros, or a huge record or body, takes a few caps of memory, and the rest is read."""
    zeros = bytes(1_000_000)
    packer = zlib.compressobj(9, zlib.DEFLATED, 31)
    head = record(http(b"", TYPE), Content_Length=str(100_000_000)).removesuffix(b"\r\n\r\n")
    giant = packer.compress(head) + b"".join(packer.compress(zeros) for _ in range(100)) + packer.flush()
    packer = zlib.compressobj(9, zlib.DEFLATED, 31)
    bomb = b"".join(packer.compress(zeros) for _ in range(100)) + packer.flush()
    inner = record(http(bomb, TYPE, "Content-Encoding: gzip"))
    data = giant + bomb + gzip.compress(inner) + gzip.compress(LAST)
    tracemalloc.start()
    try:
        found = read(data)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert isinstance(found[-1], ArchivedPage) and found[-1].page.url == "http://last.test/"
    assert peak < 5 * BLOCK_CAP_BYTES + len(data)


@settings(max_examples=150)
@given(st.lists(st.tuples(st.integers(0, 10_000), st.binary(min_size=1, max_size=40)), max_size=4), st.booleans())
def test_no_damage_breaks_the_reader(damage: list[tuple[int, bytes]], packed: bool) -> None:
    """With any bytes overwritten, reading ends without an error, and complete records before the damage are read."""
    pack = gzip.compress if packed else bytes
    data = bytearray(b"".join(map(pack, (FIRST, record(http(NOISE[:2000])), LAST))))
    start = len(pack(FIRST))
    for at, piece in damage:
        at = start + at % (len(data) - start)
        data[at : at + len(piece)] = piece
    found = list(records_of(io.BytesIO(bytes(data)), ("response",)))
    assert isinstance(found[0], WarcRecord) and found[0].url == "http://first.test/"
    assert all(isinstance(one, WarcRecord | WarcFault) for one in found)
    assert isinstance(read(bytes(data))[0], ArchivedPage)


def test_a_file_in_one_gzip_member_is_read() -> None:
    """A whole archive in one gzip member, against the standard, is read: some tools write it."""
    assert faults_and_pages(gzip.compress(FIRST + LAST)) == ([], ["http://first.test/", "http://last.test/"])


@pytest.mark.parametrize("head", ["HTTP/1.1 2000 OK", "HTTP/1.1 20 OK", "HTTP/1.1 OK", "200 OK", "FTP/1.1 200 OK"])
def test_what_is_no_status_line(head: str) -> None:
    """A block without a status is a broken record."""
    offsets, urls = faults_and_pages(record(head.encode() + b"\r\n\r\n" + HTML))
    assert (offsets, urls) == ([0], [])


@pytest.mark.parametrize(
    ("block", "outcome", "reason"),
    [
        (http(), "fetched", ""),
        (http(b"<p>no page: parked"), "no_page", "parked"),
        (http(b"<p>no page: challenge", status="503 Wait"), "no_page", "challenge"),
        (http(b"<p>no page: blocked", status="403 No"), "no_page", "blocked"),
        (http(b"<p>no page: soft_404", status="500 Oops"), "", "http_500"),
        (http(b"<p>no page: blocked", status="404 None"), "", "http_404"),
        (http(b"<p>oops", status="403 No"), "", "http_403"),
        (http(b"{}", "Content-Type: application/json", status="403 No"), "", "http_403"),
        (http(b"\0", TYPE, "Content-Encoding: gzip", status="403 No"), "", "http_403"),
    ],
)
def test_an_inspector_says_what_is_no_page(block: bytes, outcome: str, reason: str) -> None:
    """As in the crawl, also of errors that show why; an error that does not is skipped with its status."""
    (found,) = read(record(block), inspector=FakeInspector())
    if outcome:
        assert isinstance(found, ArchivedPage) and (found.page.outcome, found.page.reason) == (outcome, reason)
        assert body_of(found.page) == block.partition(b"\r\n\r\n")[2]
    else:
        assert isinstance(found, Skipped) and (found.reason, found.is_fault) == (reason, False)
