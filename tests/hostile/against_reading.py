"""Attacks on who reads a body: bombs, endless ones, lies about length, type and charset."""

from __future__ import annotations

import gzip

from tests.hostile.answers import (
    BAD_ENCODING,
    BROKEN,
    CHUNKED,
    CONNECTION,
    DRIP_S,
    EMPTY_BLOCK,
    FETCHED,
    HTML_HEAD,
    NOT_HTML,
    POISONED,
    TEXT,
    TIMEOUT,
    Attack,
    brotli_bomb,
    endless,
    gzip_bomb,
    html,
    keeping,
    made,
    on_page,
    packed,
    page_of_links,
    paths,
    raw,
    reset,
    silent,
    turns,
)
from tests.hostile.internet import INTRANET
from tests.support.raw_web import head, reply

BODIES = [
    on_page("gzip-bomb", FETCHED, packed(gzip_bomb, "gzip"), truncated=True),
    on_page("deflate-bomb", FETCHED, packed(lambda: gzip_bomb(window=15), "deflate"), truncated=True),
    on_page("raw-deflate-bomb", FETCHED, packed(lambda: gzip_bomb(window=-15), "deflate"), truncated=True),
    on_page("brotli-bomb", FETCHED, packed(brotli_bomb, "br"), truncated=True),
    # 1 GiB of zeros that says it is HTML
    on_page("zero-bomb", NOT_HTML, packed(lambda: gzip_bomb(text=b"\0"), "gzip"), truncated=True),
    on_page("gzip-twice", BAD_ENCODING, packed(lambda: gzip.compress(gzip_bomb()), "gzip, gzip")),
    on_page("gzip-lie", BAD_ENCODING, packed(lambda: TEXT.encode(), "gzip")),
    on_page("brotli-lie", BAD_ENCODING, packed(lambda: TEXT.encode(), "br")),
    on_page("zstd-unasked", BAD_ENCODING, packed(lambda: b"(\xb5/\xfd", "zstd")),
    on_page("gzip-cut", FETCHED, packed(lambda: gzip_bomb(0)[:500], "gzip"), truncated=True),
    # endless gzip that inflates to nothing
    on_page(
        "gzip-hollow",
        FETCHED,
        endless(
            head(content_type="text/html", content_encoding="gzip") + gzip.compress(b"", 0)[:10], EMPTY_BLOCK * 4000
        ),
        truncated=True,
    ),
    on_page("endless-body", FETCHED, endless(HTML_HEAD, b"<p>and on" * 1000), truncated=True),
    on_page("endless-chunks", FETCHED, endless(CHUNKED, b"1200\r\n" + b"<p>on and" * 512 + b"\r\n"), truncated=True),
    on_page(
        "endless-gzip",
        FETCHED,
        endless(
            head(content_type="text/html", content_encoding="gzip") + gzip_bomb(0), gzip_bomb(1)[len(gzip_bomb(0)) :]
        ),
        truncated=True,
    ),
    on_page("chunk-of-digits", BROKEN, endless(CHUNKED, b"0" * 65_536), python=CONNECTION),
    on_page("chunk-extension", BROKEN, endless(CHUNKED + b"5;", b"a" * 65_536), python=CONNECTION),
    on_page(
        "endless-trailers", BROKEN, endless(CHUNKED + b"5\r\n<p>ab\r\n0\r\n", b"A: b\r\n" * 500), python=CONNECTION
    ),
    # a chunk of 2^60 bytes that are not there
    on_page("huge-chunk", CONNECTION, raw(CHUNKED + b"1000000000000000\r\n<p>")),
    on_page("no-chunk", BROKEN, raw(CHUNKED + b"zz\r\n<p>hello\r\n0\r\n\r\n")),
    on_page("slow-headers", TIMEOUT, endless(b"HTTP/1.1 200 OK\r\nX: ", b"a", DRIP_S)),
    on_page("slow-body", TIMEOUT, endless(HTML_HEAD, b"a", DRIP_S)),
    on_page("silent", TIMEOUT, silent()),
    on_page("silent-body", TIMEOUT, silent(HTML_HEAD)),
    on_page("reset-at-once", CONNECTION, reset()),
    on_page("reset-header", CONNECTION, reset(b"HTTP/1.1 200 OK\r\nContent-Ty")),
    on_page("reset-body", CONNECTION, reset(head(content_type="text/html", content_length="9999") + b"<p>a")),
    on_page("reset-twice", FETCHED, turns(reset(), reply(TEXT))),
    on_page("deep-markup", FETCHED, reply("<div>" * 100_000)),
    on_page("deep-comment", FETCHED, reply(TEXT + "<!-- " * 300_000)),
    on_page("bad-markup", FETCHED, reply(TEXT + "<a " + "href=x " * 150_000 + ">")),
]

LENGTHS = [
    on_page("length-long", CONNECTION, html(content_length="9999")),
    on_page("length-short", BROKEN, html(content_length="20"), python=FETCHED),
    on_page("length-negative", BROKEN, html(content_length="-1")),
    on_page("length-words", BROKEN, html(content_length="all of it")),
    on_page("length-huge", BROKEN, html(content_length="9" * 40), python=CONNECTION),
    # two Content-Lengths that differ
    on_page("length-two", BROKEN, html("Content-Length: 5"), python=FETCHED),
    on_page(
        "length-chunked",
        BROKEN,
        raw(head(content_type="text/html", content_length="5", transfer_encoding="chunked") + b"3\r\n<p>\r\n0\r\n\r\n"),
    ),
    on_page("empty", CONNECTION, raw(b"")),
    on_page("no-content", FETCHED, raw(head("204 No Content"))),
    # 206 that nobody asked for
    on_page("partial", FETCHED, html()),
    # a second answer behind each, which must not pass for that of the next page
    Attack(
        "answer-after",
        FETCHED,
        {"*": keeping(head(content_type="text/html", content_length="15") + b"<a href=/y>y</a" + POISONED)},
    ),
    on_page("not-modified", ("failed", "http_304"), raw(head("304 Not Modified"))),
]

CONTENT = [
    on_page("type-image", NOT_HTML, reply(b"\x89PNG\r\n\x1a\n" + b"\0" * 100)),
    on_page("type-pdf", NOT_HTML, reply(TEXT, content_type="application/pdf")),
    on_page("type-none", FETCHED, raw(head() + TEXT.encode())),
    on_page("type-octets", FETCHED, reply(TEXT, content_type="application/octet-stream")),
    on_page("type-garbage", FETCHED, reply(TEXT, content_type="text/html; " + ";=" * 2000)),
    on_page("charset-utf16", FETCHED, reply(TEXT, content_type="text/html; charset=utf-16")),
    # UTF-7, which hides markup
    on_page("charset-utf7", FETCHED, reply(TEXT, content_type="text/html; charset=utf-7")),
    # a codec of Python's that is no charset
    on_page("charset-code", FETCHED, reply(TEXT * 5000, content_type="text/html; charset=punycode")),
    on_page("charset-none", FETCHED, reply(TEXT, content_type="text/html; charset=" + "x" * 2000)),
    on_page("charset-broken", FETCHED, reply(TEXT.encode() + b"\xff\xfe\xfd" * 99)),
    on_page(
        "meta-refresh",
        FETCHED,
        made(lambda v: f'{TEXT}<meta http-equiv=refresh content="0;url=http://{INTRANET}:{v.port}/secret">'),
    ),
    on_page("refresh-header", FETCHED, html(f"Refresh: 0; url=http://{INTRANET}/secret")),
    # a base on the intranet under its links
    on_page("base-away", FETCHED, made(lambda v: f'<base href="http://{INTRANET}:{v.port}/">{TEXT}<a href="secret">')),
    Attack(
        "links-strange",
        FETCHED,
        {
            "*": made(
                lambda v: page_of_links(
                    v,
                    iter(
                        [
                            f"http://{INTRANET}:{v.port}/secret",
                            f"//{INTRANET}:{v.port}/secret",
                            f"http:\\\\{INTRANET}:{v.port}\\secret",
                            f"\thttp://{INTRANET}:{v.port}/\nsecret",
                            "javascript:alert(1)",
                            "http://[",
                            "http://%00/",
                            "/\x1b[31m",
                            "/" + "x" * 9000,
                            "http://a@" + INTRANET,
                            "/ok\r\nHost: evil",
                            "/\u202etxt",
                        ]
                    ),
                )
            )
        },
        asks=paths("/x", "/%1B[31m", "/okHost:%20evil", "/%E2%80%AEtxt"),
    ),
    # 200 for all that does not exist
    Attack(
        "soft-404",
        FETCHED,
        {"*": made(lambda v: page_of_links(v, iter([f"{v.path}/more", f"/{v.number}"]))), "/robots.txt": reply(TEXT)},
        asks=paths("/x", "/x/more", "/1", "/x/more/more", "/1/more", "/x/more/more/more"),
    ),
]
