"""Pages from WARC files, by the rules of the live crawl: the same page gives the same record, apart from its origin.

A response that the crawl would have refused or failed is skipped with the same reason; one that an inspector finds to
be no page has a record that says so. The target of a redirect is stored under the requested URL if our own metadata
names it (`crawler.warc.writer`).
"""

from __future__ import annotations

import ipaddress
import re
from collections import OrderedDict
from collections.abc import Collection, Iterator
from dataclasses import dataclass, field
from typing import BinaryIO

import msgspec
import xxhash
import zstandard

from crawler.errors import UnusableUrl
from crawler.fetch.address_guard import is_public
from crawler.fetch.jobs import RequestKind
from crawler.fetch.page_checks import ERROR_CAP_BYTES, check_page, may_say_more
from crawler.fetch.response_headers import kept_headers
from crawler.settings import CrawlSettings
from crawler.warc.reader import WarcFault, WarcRecord, records_of
from crawler.web import content_type as content
from crawler.web.content_encoding import BadEncoding, Inflater
from crawler.web.hits_file import make_hit
from crawler.web.inspection import Inspector
from crawler.web.response_head import HEAD_CAP_BYTES, head_end, is_interim, read_head
from crawler.web.urls import host_of, normalise, page_id_of_normal, twin_of
from stream.schema.control_sites import control_site, control_url
from stream.schema.dates import CHATGPT
from stream.schema.records import Hit, Page
from stream.schema.vocabulary import FetchOutcome
from stream.text.times import day_ms, read_time

_WANTED = ("response", "metadata")
_CHUNK = re.compile(rb"([0-9A-Fa-f]{1,8})[ \t]*(?:;[^\n]{0,1000})?\r?\n")
_METADATA_CAP_BYTES = 256 * 1024
_METADATA_KEPT = 64  # metadata records that wait for their response
_ZSTD_LEVEL = 3


@dataclass(frozen=True, slots=True)
class ArchivedPage:
    """A page of an archive, and its hit; append them together."""

    offset: int  # of the record in its file, bytes
    hit: Hit
    page: Page


@dataclass(frozen=True, slots=True)
class Skipped:
    """A response without a page. `is_fault`: the archive is broken there, so the operator should look."""

    offset: int
    url: str
    reason: str
    is_fault: bool = False


class _NoPage(Exception):
    """Control flow: the reason why a record has no page."""


def pages_of(
    stream: BinaryIO,
    settings: CrawlSettings,
    *,
    now_ms: int,
    source: str = "warc",
    sites: Collection[str] = (),
    known: Collection[str] = (),
    offset: int = 0,
    inspector: Inspector | None = None,
    as_controls: bool = False,
) -> Iterator[ArchivedPage | Skipped]:
    """The pages of a WARC file, or of a range of whole records, uncompressed or compressed record by record.

    `sites` restricts the hosts, if it is not empty; `known` are ids of imported hits; `offset` is the start of the
    stream in its file; `inspector` says which answers are no page, None: none is asked; `as_controls` takes pages
    fetched before ChatGPT, under the names of control sites. Memory is bounded by a few times the caps. A broken record
    gives a Skipped with `is_fault`, and reading continues behind it. Raises OSError from the stream.
    """
    reader = _Reader(settings, inspector, now_ms, source, frozenset(sites), known, as_controls)
    for record in records_of(stream, _WANTED, offset=offset):
        page = reader.read(record)
        if page is not None:
            yield page


@dataclass(slots=True)
class _Reader:
    _settings: CrawlSettings
    _inspector: Inspector | None
    _now_ms: int
    _source: str
    _sites: Collection[str]
    _known: Collection[str]
    _as_controls: bool
    _metadata: OrderedDict[str, tuple[str, str]] = field(default_factory=OrderedDict)  # response id -> via, kind
    _packer: zstandard.ZstdCompressor = field(default_factory=lambda: zstandard.ZstdCompressor(level=_ZSTD_LEVEL))

    def read(self, record: WarcRecord | WarcFault) -> ArchivedPage | Skipped | None:
        if isinstance(record, WarcFault):
            return Skipped(record.offset, "", record.reason, is_fault=True)
        if record.kind == "metadata":
            self._remember(record)
            return None
        if record.kind not in ("response", "revisit"):
            return None
        try:
            return self._page(record)
        except _NoPage as why:
            return Skipped(record.offset, record.url, str(why))
        except UnusableUrl:
            return Skipped(record.offset, record.url, "unusable_url")
        except ValueError as error:
            return Skipped(record.offset, record.url, str(error), is_fault=True)

    def _remember(self, record: WarcRecord) -> None:
        """Keep our metadata on the next response. Heritrix also writes `via`; only ours has `kind`."""
        fields = {}
        for line in record.block[:_METADATA_CAP_BYTES].decode("utf-8", "replace").splitlines():
            name, _, value = line.partition(":")
            fields[name.strip().lower()] = value.strip()
        meant = record.headers.get("warc-concurrent-to", "")
        if meant and "kind" in fields:
            self._metadata[meant] = (fields.get("via", ""), fields["kind"])
            if len(self._metadata) > _METADATA_KEPT:
                self._metadata.popitem(last=False)

    def _page(self, record: WarcRecord) -> ArchivedPage:
        """The page of a response. Raises _NoPage, UnusableUrl, or ValueError for a broken record."""
        ident = record.headers.get("warc-record-id", "")
        via, kind = self._metadata.pop(ident, ("", RequestKind.PAGE.value))
        if record.kind == "revisit":
            raise _NoPage("revisit")
        if kind != RequestKind.PAGE.value:
            raise _NoPage(kind)
        if not record.headers.get("content-type", "").lower().startswith("application/http"):
            raise _NoPage("not_http")
        final_url = normalise(record.url)
        url = normalise(via) if via else final_url
        if host_of(final_url) not in (host_of(url), twin_of(host_of(url))):
            url = final_url  # the crawl would not have followed the redirect
        hit = make_hit({"url": url}, self._source, self._now_ms)
        if self._sites and hit.site not in self._sites:
            raise _NoPage("other_site")
        try:
            fetched_at = read_time(record.headers.get("warc-date", ""), self._now_ms)
        except ValueError as error:
            raise ValueError(f"WARC-Date {error}") from None
        if self._as_controls:
            if fetched_at >= day_ms(CHATGPT):
                raise _NoPage("fetched_later")
            url = control_url(url)
            hit = msgspec.structs.replace(hit, site=control_site(hit.site), url=url)
        # The record's id, instead of the query, separates the visits of an archive to one URL
        mark = ident or record.headers["warc-date"]
        hit_id = xxhash.xxh3_128_hexdigest(msgspec.msgpack.encode(("archive", mark, url)))
        if hit_id in self._known:
            raise _NoPage("known")
        address = self._address_of(record, final_url)
        hit = msgspec.structs.replace(hit, id=hit_id, fetched_at=fetched_at, imported=True)
        page = Page(
            id=xxhash.xxh3_128_hexdigest(f"0\n{url}\n{mark}".encode()),
            site=hit.site,
            page_id=page_id_of_normal(url),
            url=url,
            visit=0,
            outcome=FetchOutcome.FETCHED,
            final_url=final_url,
            fetched_at=fetched_at,
            found_by="import",
            hits=[hit_id],
            address=address,
        )
        return ArchivedPage(record.offset, hit, self._filled(page, record))

    def _filled(self, page: Page, record: WarcRecord) -> Page:
        """The page with the content of the response. Raises _NoPage and ValueError as `_page`."""
        why_cut = record.headers.get("warc-truncated", "").lower()
        if why_cut in ("time", "disconnect"):
            raise _NoPage({"time": "timeout", "disconnect": "connection"}[why_cut])
        status, pairs, wire = _response(record.block)
        headers = kept_headers(pairs)
        is_ok = 200 <= status < 300
        if not is_ok and (self._inspector is None or not may_say_more(status, headers)):
            raise _NoPage(f"http_{status}")
        if not content.may_be_html(headers.get("content-type", "")):
            raise _NoPage("content_type")
        cap = self._settings.body_bytes if is_ok else ERROR_CAP_BYTES
        try:
            body, is_cut = _body(pairs, wire, headers.get("content-encoding", ""), cap)
        except BadEncoding:
            raise _NoPage("bad_encoding" if is_ok else f"http_{status}") from None
        is_cut = is_cut or record.cut or bool(why_cut)
        checked = check_page(
            self._settings,
            self._inspector,
            page.final_url,
            status,
            headers,
            body,
            truncated=is_cut,
            robots_tags=[value for name, value in pairs if name.lower() == "x-robots-tag"],
        )
        if checked.outcome not in (FetchOutcome.FETCHED, FetchOutcome.NO_PAGE):
            raise _NoPage(checked.reason)
        return msgspec.structs.replace(
            page,
            outcome=checked.outcome.value,
            reason=checked.reason,
            status=status,
            headers=headers,
            content_type=content.media_type(headers.get("content-type", "")),
            encoding=checked.encoding if checked.keeps_body else "",
            body=self._packer.compress(body) if checked.keeps_body else b"",
            body_bytes=len(body) if checked.keeps_body else 0,
            truncated=is_cut,
            opt_out=list(checked.opt_out),
        )

    def _address_of(self, record: WarcRecord, url: str) -> str:
        """The address of the server, "" if unknown. Raises _NoPage if it is not public."""
        said = record.headers.get("warc-ip-address", "")
        for literal in (said, host_of(url).strip("[]")):
            try:
                ipaddress.ip_address(literal)
            except ValueError:
                continue
            if not self._settings.allow_private and not is_public(literal):
                raise _NoPage("private_address")
        try:
            return str(ipaddress.ip_address(said))
        except ValueError:
            return ""


def _response(block: bytes) -> tuple[int, list[tuple[str, str]], bytes]:
    start = 0
    while (end := head_end(block, start)) is not None and end - start <= HEAD_CAP_BYTES:
        try:
            head = read_head(block[start:end])
        except ValueError as error:
            raise ValueError(f"the block is no HTTP response: {error}") from None
        start = end
        if not is_interim(head.status):
            pairs = [(name.decode(), value.decode("utf-8", "surrogateescape")) for name, value in head.headers]
            return head.status, pairs, block[end:]
    raise ValueError("the block is no HTTP response: its headers have no end")


def _body(pairs: list[tuple[str, str]], wire: bytes, encoding: str, cap: int) -> tuple[bytes, bool]:
    is_cut = False
    if any(name.lower() == "transfer-encoding" and "chunked" in value.lower() for name, value in pairs):
        wire, is_cut = _unchunked(wire)
    inflater = Inflater(encoding, cap)
    inflater.feed(wire)
    return inflater.body(), inflater.cut_short or is_cut


def _unchunked(wire: bytes) -> tuple[bytes, bool]:
    """The data of chunks (RFC 9112 section 7.1), and whether the last chunk is missing.

    Some archives keep the header without the chunks: a body that does not begin with a chunk is returned as it is.
    """
    pieces: list[bytes] = []
    at = 0
    while (size := _CHUNK.match(wire, at)) is not None:
        count = int(size[1], 16)
        if count == 0:
            return b"".join(pieces), False
        pieces.append(wire[size.end() : size.end() + count])
        at = size.end() + count
        if wire[at : at + 1] == b"\r":
            at += 1
        if wire[at : at + 1] != b"\n":
            break
        at += 1
    return (b"".join(pieces), True) if at else (wire, False)
