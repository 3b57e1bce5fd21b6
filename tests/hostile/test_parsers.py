"""Every parser of foreign input raises nothing but its one declared error, whatever it is given."""

from __future__ import annotations

import gzip
import io
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path

import brotli
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from crawler.errors import UnusableUrl
from crawler.fetch.response_headers import kept_headers, retry_after_s
from crawler.robots.opt_outs import opt_outs
from crawler.robots.rules import RobotsRules, explain
from crawler.robots.tdmrep import TdmRep
from crawler.settings import CrawlSettings
from crawler.sources.brave import Brave
from crawler.sources.commoncrawl import CommonCrawl
from crawler.sources.queries import read_queries
from crawler.sources.settings import BraveSettings, CommonCrawlSettings
from crawler.sources.source import SourceAnswer, SourceError
from crawler.warc.pages import pages_of
from crawler.web.ads_txt import StatedOwner
from crawler.web.content_encoding import BadEncoding, Inflater
from crawler.web.content_type import charset_of, is_html, may_be_html
from crawler.web.exclusions import exclusion_of
from crawler.web.hits_file import BadLine, read_hits
from crawler.web.links import internal_links
from crawler.web.sitemaps import first_sitemaps, read_sitemap
from crawler.web.urls import hit_url, host_of, is_skipped, normalise, port_of
from farmwatch.canaries.file import read_canaries
from farmwatch.config.settings import CanarySettings
from farmwatch.labels.label_lines import LabelFile
from farmwatch.pipes.lines import FeaturesLine, PageLine
from farmwatch.terminal.jsonl import JsonLines
from filters.charsets import decode
from filters.no_page.inspector import inspect, reason_of
from lab.detector.overlaps import KnownTexts
from lab.detector.texts import read_pages, read_texts
from lab.templates.cdx import BadIndex, read_index
from scoring.errors import BadTrainingData
from stream.text.times import read_time
from stream.text.user_errors import ConfigError, FarmwatchError

NOW_MS = 1_795_341_600_000
URL = "https://a.example/dir/page"
SETTINGS = CrawlSettings(contact="https://farm.example/", body_bytes=2000)


@dataclass(frozen=True)
class Parser:
    """A parser: what reads an input, the error that it may raise, and pieces that its inputs are made of."""

    name: str
    read: Callable[[bytes, Path], object]
    error: type[Exception] | None
    pieces: list[bytes]


def text(data: bytes) -> str:
    """As aiohttp decodes headers: any bytes are a text, with lone surrogates."""
    return data.decode("utf-8", "surrogateescape")


def all_of(items: Iterable[object]) -> None:
    """Read a generator to its end."""
    for _ in items:
        pass


def a_url(data: bytes, _: Path) -> None:
    """Whatever is done with a URL of a page, a file or an option."""
    for read in (normalise, hit_url, exclusion_of, lambda url: normalise(url, URL)):
        try:
            found = read(text(data))
        except UnusableUrl:
            continue
        if "://" in found:
            host_of(found), port_of(found), is_skipped(found)
            assert normalise(found) == found


def a_robots_txt(data: bytes, _: Path) -> None:
    rules = RobotsRules(data, "farmwatch")
    rules.allows(URL)
    explain(data, "farmwatch", URL)
    assert first_sitemaps(rules.sitemaps, "https://a.example", 5)


def a_header(data: bytes, _: Path) -> None:
    names = ("content-type", "retry-after", "location", "x-robots-tag", "tdm-reservation")
    headers = kept_headers((name, text(data)) for name in names)
    for value in (text(data), headers.get("content-type", "")):
        may_be_html(value), is_html(value, data), charset_of(value, data), retry_after_s(value, 0.0)
    opt_outs(headers, data, "farmwatch", [text(data)])


def a_page(data: bytes, _: Path) -> None:
    for truncated in (False, True):
        charset = charset_of("", data, truncated=truncated)
        assert isinstance(decode(data, charset), str)
        all_of(internal_links(data, charset, URL))
        opt_outs({}, data, "farmwatch", encoding=charset)
    inspect(URL, 200, {}, data, charset), reason_of(404, {}, data, charset)
    decode(data, text(data))


def a_body(data: bytes, _: Path) -> None:
    for encoding in ("gzip", "deflate", "br", "identity", text(data)):
        try:
            inflater = Inflater(encoding, 1000)
            inflater.feed(data)
            inflater.feed(data[::-1])
            inflater.body(), inflater.cut_short
        except BadEncoding:
            continue


def lines_of_json(data: bytes, folder: Path) -> None:
    file = folder / "lines"
    file.write_bytes(data)
    for kind in (PageLine, FeaturesLine):
        lines = JsonLines([file], kind, "measure", on_bad=lambda _: None)
        all_of(lines)
        lines.end()


def labels(data: bytes, folder: Path) -> None:
    for name in ("labels.jsonl", "labels.csv"):
        (folder / name).write_bytes(data)
        found = LabelFile(folder / name)
        try:
            all_of(found)
        except FarmwatchError:
            continue
        found.end()


def canaries(data: bytes, folder: Path) -> None:
    file = folder / "canaries"
    file.write_bytes(data)
    read_canaries(CanarySettings(file=str(file)))


def training(data: bytes, folder: Path) -> None:
    file = folder / "training"
    file.write_bytes(data)
    for read in (lambda: read_texts(file, 0, KnownTexts()), lambda: read_pages(file, KnownTexts())):
        try:
            read()
        except BadTrainingData:
            continue


def an_index(data: bytes, folder: Path) -> None:
    archive, index = folder / "a.warc", folder / "a.cdx"
    archive.write_bytes(bytes(1000))
    index.write_bytes(data)
    all_of(read_index(index, archive))


def hits(data: bytes, _: Path) -> None:
    for found in read_hits(io.BytesIO(data), now_ms=NOW_MS):
        assert not isinstance(found, BadLine) or found.reason
    read_queries(io.BytesIO(data)), read_queries(io.BytesIO(data), is_table=True)


def answers(data: bytes, _: Path) -> None:
    sources = Brave(BraveSettings(), "key"), CommonCrawl(CommonCrawlSettings(crawl="CC-MAIN-2024-10"))
    for source in sources:
        for status in (200, 429, 500):
            try:
                source.results(SourceAnswer(status, {"retry-after": text(data)}, data, 1.0), 1)
            except SourceError:
                continue


_MARKUP = [
    b"<a href=", b"<meta charset=", b"<meta name=robots content=", b"<base href='", b"<!--", b"-->", b"<script>",
    b"\xff", b"utf-16", b"koi8-r", b"replacement", b"x-user-defined", b"'", b'"', b">", b"\x00", b"<?xml encoding=",
    b"\xef\xbb\xbf", b"\xff\xfe", b"\xfe\xff", b"\x1b$B", b"iso-2022-jp", b"<title>", b"</title>", b"&#x110000;",
    b"&amp;", b"<body",
]  # fmt: skip
_SITEMAP = [
    b"<urlset>", b"</urlset>", b"<url>", b"</url>", b"<loc>", b"</loc>", b"<sitemap>", b"<sitemapindex>", b"<item>",
    b"<link>", b"<link href='", b"<entry>", b"</", b"<![CDATA[", b"]]>", b"<!--", b"<!DOCTYPE x [", b"]>",
    b"<!ENTITY x '", b"&x;", b"&#0;", b"https://a.example/1", b"http://a.1../", b"<?xml encoding='utf-16'?>", b"\x00",
    b"\xed\xa0\x80", b"\x1f\x8b", b"xmlns:a='", b"&#xD83D;", b"&#56832;", b"<1a>",
]  # fmt: skip
_URLS = [
    b"http://", b"https:", b"//", b"/", b"\\", b".", b"..", b"a", b"1", b"0x", b"09", b"xn--", b"xn--a", b"@", b":",
    b"80", b"[", b"]", b"::", b"?", b"#", b"%", b"%2e", b"%00", b"\xe3\x80\x82", b"\xc2\xad", b"\xed\xa0\x80",
    b"\xff", b"*", b"\t", b"invalid", b"\xe2\x80\x8b",
]  # fmt: skip
_JSON = [
    b"{", b"}", b"[", b"]", b'"url"', b'"html"', b":", b",", b'"', b"null", b"1e999", b"\\ud800", b"\n", b"\r",
    b"\xef\xbb\xbf", b"\xff", b'"a"', b'{"url":"http://a.1../","html":""}\n', b'{"label":"llm","text":"a"}\n',
    b"[" * 3000, b'{"a":' * 2000, b"-0", b'"measures"',
    b'{"truth":"llm","site":"s","title":"t","text":"x","made_at":"2026-01-02"}\n', b'{"results":[',
    b'{"response":{"results":[{',
    b'{"id":1,"domain":"d","generator":"g","label":"llm","text":"a","src":"s","lic":"l"}\n', b'"location"',
    b'"tdm-reservation"',
]  # fmt: skip
_TABLE = [
    b"url", b"query", b"rank", b",", b";", b"\t", b"|", b"\n", b"\r", b"\r\n", b'"', b'""', b"#",
    b"http://a.example/", b"http://a.1../", b"{", b"[", b"\x85", b"\xe2\x80\xa8", b"\x00", b"\xff", b"\xef\xbb\xbf",
    b"1e999", b"url,query\n", b"2026-11-22", b"x" * 300, b"PK\x03\x04",
]  # fmt: skip
_ROBOTS = [
    b"User-agent: ", b"*", b"\n", b"Disallow: ", b"Allow: ", b"Sitemap: ", b"http://a.1../", b"/", b"$", b"%",
    b"Crawl-delay: ", b"1e999", b"\xff", b"\xef\xbb\xbf", b"\x00", b"farmwatch", b"#", b"\r",
]  # fmt: skip
_HEADERS = [
    b"text/html", b";", b"charset=", b'"', b"\\", b"utf-8", b"hz", b",", b"noindex", b"farmwatch:",
    b"Sun, 06 Nov 1994 08:49:37 GMT", b"99999", b"31 Dec 99999", b"-", b"0", b":", b" ", b"\xff", b"\x00",
    b"unavailable_after:", b"GMT+99999999", b"Mon, 00 Jan 0000 25:61:61 +9999",
]  # fmt: skip
_WARC = [
    b"WARC/1.0\r\n", b"WARC-Type: response\r\n", b"WARC-Date: 2024-05-06T07:08:09Z\r\n",
    b"WARC-Target-URI: http://a.1../\r\n", b"\r\n", b"\r\n\r\n", b"WARC-Target-URI: http://a.example/\r\n",
    b"Content-Length: 40\r\n", b"Content-Length: -1\r\n", b"Content-Length: 1e9\r\n", b"\xff", b"\x00",
    b"Content-Type: application/http; msgtype=response\r\n", b"HTTP/1.1 200 OK\r\n", b"Content-Type: text/html\r\n",
    b"<p>x", b"WARC-Record-ID: <urn:uuid:1>\r\n", b"Transfer-Encoding: chunked\r\n", b"5\r\n",
    b"Content-Encoding: gzip\r\n", b"\x1f\x8b\x08\x00", b"WARC-Type: metadata\r\n", b"via: http://a.1../\r\n",
    b"WARC-IP-Address: 1.2.3\r\n", gzip.compress(b"WARC/1.1\r\n"),
]  # fmt: skip
_PACKED = [
    gzip.compress(b"<p>x"), gzip.compress(b"")[:9], brotli.compress(b"<p>x"), b"\x1f\x8b", b"\x78\x9c", b"x", b"gzip",
    b"br", b",",
]  # fmt: skip
_INDEX = [
    b" CDX N b a m s k r M S V g\n", b"com,a)/ 20240506070809 ", b'{"url": "http://a.1../", "offset": "0"}', b"\n",
    b"- ", b"0 ", b"\xff", b"99999999999999 ", b'{"offset": 1e99}', b"!", b'{"url":1}', b"text/html 200 ",
    b"20240231000000 ",
]  # fmt: skip
_ADS_TXT = [
    b"OWNERDOMAIN=", b"managerdomain = ", b"a.example", b"google.com, ", b"pub-1234567890", b", DIRECT", b"\n", b"\r",
    b"#", b"<", b":99999",
    b"\xef\xbb\xbf", b"\xff\xfe", b"\0", b"//", b"[::1]", b"xn--", b"..", b"co.uk", b"\xc3\xbc", b"%41", b"@",
]  # fmt: skip
_TIMES = [
    b"2024", b"-", b"05", b"06", b"T", b":", b"Z", b"+", b"99", b".", b"1e999", b"nan", b"W", b"\xd9\xa3", b"00",
    b"2024-02-30", b" ",
]  # fmt: skip

PARSERS = [
    Parser("URL", a_url, None, _URLS),
    Parser("robots.txt", a_robots_txt, None, _ROBOTS),
    Parser("tdmrep.json", lambda data, _: TdmRep.parse(data).reserves(URL), None, _JSON),
    Parser("ads.txt", lambda data, _: StatedOwner.read(data), None, _ADS_TXT),
    Parser("sitemap", lambda data, _: read_sitemap(data, "https://a.example/s.xml", 1000), None, _SITEMAP),
    Parser("header", a_header, None, _HEADERS),
    Parser("page", a_page, None, _MARKUP),
    Parser("body", a_body, None, _PACKED),
    Parser("WARC", lambda data, _: all_of(pages_of(io.BytesIO(data), SETTINGS, now_ms=NOW_MS)), None, _WARC),
    Parser("index of an archive", an_index, BadIndex, _INDEX),
    Parser("hits and queries", hits, None, _TABLE + _URLS + _JSON[:16]),
    Parser("JSON lines", lines_of_json, None, _JSON),
    Parser("labels", labels, None, [*_JSON, *_TABLE, b"label,score\n"]),
    Parser("canaries", canaries, ConfigError, _JSON),
    Parser("training texts", training, None, _JSON),
    Parser("answers of search engines", answers, None, _JSON),
    Parser("time", lambda data, _: read_time(text(data), NOW_MS), ValueError, _TIMES),
]


@pytest.mark.parametrize("parser", PARSERS, ids=lambda parser: parser.name)
def test_a_parser_raises_only_its_declared_error(parser: Parser, tmp_path_factory: pytest.TempPathFactory) -> None:
    """Of random bytes, and of pieces of real inputs in any order, nothing escapes but the declared error."""
    folder = tmp_path_factory.mktemp("parser")
    pieces = st.lists(st.sampled_from(parser.pieces) | st.binary(max_size=6), max_size=12).map(b"".join)

    @settings(max_examples=250, deadline=None)
    @given(st.one_of(pieces, pieces, st.binary(max_size=200)))
    def holds(data: bytes) -> None:
        try:
            parser.read(data, folder)
        except Exception as error:
            if parser.error is None or not isinstance(error, parser.error):
                raise

    holds()
