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
    only_page,
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
    Attack("gzip-bomb", "1 GiB in 1 MiB of gzip", FETCHED, only_page(packed(gzip_bomb, "gzip")), truncated=True),
    Attack(
        "deflate-bomb",
        "1 GiB in deflate",
        FETCHED,
        only_page(packed(lambda: gzip_bomb(window=15), "deflate")),
        truncated=True,
    ),
    Attack(
        "raw-deflate-bomb",
        "1 GiB in deflate without its header",
        FETCHED,
        only_page(packed(lambda: gzip_bomb(window=-15), "deflate")),
        truncated=True,
    ),
    Attack(
        "brotli-bomb", "64 MiB in some bytes of brotli", FETCHED, only_page(packed(brotli_bomb, "br")), truncated=True
    ),
    Attack(
        "zero-bomb",
        "1 GiB of zeros that says it is HTML",
        NOT_HTML,
        only_page(packed(lambda: gzip_bomb(text=b"\0"), "gzip")),
        truncated=True,
    ),
    Attack(
        "gzip-twice",
        "a bomb within a bomb",
        BAD_ENCODING,
        only_page(packed(lambda: gzip.compress(gzip_bomb()), "gzip, gzip")),
    ),
    Attack("gzip-lie", "says gzip and sends text", BAD_ENCODING, only_page(packed(lambda: TEXT.encode(), "gzip"))),
    Attack("brotli-lie", "says brotli and sends text", BAD_ENCODING, only_page(packed(lambda: TEXT.encode(), "br"))),
    Attack(
        "zstd-unasked",
        "an encoding that nobody asked for",
        BAD_ENCODING,
        only_page(packed(lambda: b"(\xb5/\xfd", "zstd")),
    ),
    Attack(
        "gzip-cut",
        "half of a gzip stream",
        FETCHED,
        only_page(packed(lambda: gzip_bomb(0)[:500], "gzip")),
        truncated=True,
    ),
    Attack(
        "gzip-hollow",
        "endless gzip that inflates to nothing",
        FETCHED,
        only_page(
            endless(
                head(content_type="text/html", content_encoding="gzip") + gzip.compress(b"", 0)[:10],
                EMPTY_BLOCK * 4000,
            )
        ),
        truncated=True,
    ),
    Attack(
        "endless-body",
        "a body without an end",
        FETCHED,
        only_page(endless(HTML_HEAD, b"<p>and on" * 1000)),
        truncated=True,
    ),
    Attack(
        "endless-chunks",
        "chunks without an end",
        FETCHED,
        only_page(endless(CHUNKED, b"1200\r\n" + b"<p>on and" * 512 + b"\r\n")),
        truncated=True,
    ),
    Attack(
        "endless-gzip",
        "gzip without an end",
        FETCHED,
        only_page(
            endless(
                head(content_type="text/html", content_encoding="gzip") + gzip_bomb(0),
                gzip_bomb(1)[len(gzip_bomb(0)) :],
            )
        ),
        truncated=True,
    ),
    Attack(
        "chunk-of-digits",
        "a chunk's size without an end",
        BROKEN,
        only_page(endless(CHUNKED, b"0" * 65_536)),
        python=CONNECTION,
    ),
    Attack(
        "chunk-extension",
        "a chunk's extension without an end",
        BROKEN,
        only_page(endless(CHUNKED + b"5;", b"a" * 65_536)),
        python=CONNECTION,
    ),
    Attack(
        "endless-trailers",
        "trailers without an end",
        BROKEN,
        only_page(endless(CHUNKED + b"5\r\n<p>ab\r\n0\r\n", b"A: b\r\n" * 500)),
        python=CONNECTION,
    ),
    Attack(
        "huge-chunk",
        "a chunk of 2^60 bytes that are not there",
        CONNECTION,
        only_page(raw(CHUNKED + b"1000000000000000\r\n<p>")),
    ),
    Attack(
        "no-chunk", "a chunk's size that is no number", BROKEN, only_page(raw(CHUNKED + b"zz\r\n<p>hello\r\n0\r\n\r\n"))
    ),
    Attack(
        "slow-headers",
        "a byte of the header now and then",
        TIMEOUT,
        only_page(endless(b"HTTP/1.1 200 OK\r\nX: ", b"a", DRIP_S)),
    ),
    Attack("slow-body", "a byte of the body now and then", TIMEOUT, only_page(endless(HTML_HEAD, b"a", DRIP_S))),
    Attack("silent", "takes the request and says nothing", TIMEOUT, only_page(silent())),
    Attack("silent-body", "a header, and nothing after it", TIMEOUT, only_page(silent(HTML_HEAD))),
    Attack("reset-at-once", "a reset instead of an answer", CONNECTION, only_page(reset())),
    Attack("reset-header", "a reset in the header", CONNECTION, only_page(reset(b"HTTP/1.1 200 OK\r\nContent-Ty"))),
    Attack(
        "reset-body",
        "a reset in the body",
        CONNECTION,
        only_page(reset(head(content_type="text/html", content_length="9999") + b"<p>a")),
    ),
    Attack("reset-twice", "two resets, and then the page", FETCHED, only_page(turns(reset(), reply(TEXT)))),
    Attack(
        "deep-markup",
        "100,000 elements within each other, and no end tag",
        FETCHED,
        only_page(reply("<div>" * 100_000)),
    ),
    Attack("deep-comment", "comments that are not closed", FETCHED, only_page(reply(TEXT + "<!-- " * 300_000))),
    Attack("bad-markup", "a tag of a megabyte", FETCHED, only_page(reply(TEXT + "<a " + "href=x " * 150_000 + ">"))),
]

LENGTHS = [
    Attack("length-long", "less than the Content-Length says", CONNECTION, only_page(html(content_length="9999"))),
    Attack(
        "length-short",
        "more than the Content-Length says",
        BROKEN,
        only_page(html(content_length="20")),
        python=FETCHED,
    ),
    Attack("length-negative", "Content-Length: -1", BROKEN, only_page(html(content_length="-1"))),
    Attack("length-words", "Content-Length: all of it", BROKEN, only_page(html(content_length="all of it"))),
    Attack(
        "length-huge",
        "Content-Length of 40 digits",
        BROKEN,
        only_page(html(content_length="9" * 40)),
        python=CONNECTION,
    ),
    Attack(
        "length-two", "two Content-Lengths that differ", BROKEN, only_page(html("Content-Length: 5")), python=FETCHED
    ),
    Attack(
        "length-chunked",
        "Content-Length and chunks",
        BROKEN,
        only_page(
            raw(
                head(content_type="text/html", content_length="5", transfer_encoding="chunked")
                + b"3\r\n<p>\r\n0\r\n\r\n"
            )
        ),
    ),
    Attack("empty", "ends without a byte", CONNECTION, only_page(raw(b""))),
    Attack("no-content", "204", FETCHED, only_page(raw(head("204 No Content")))),
    Attack("partial", "206 that nobody asked for", FETCHED, only_page(html())),
    Attack(
        "answer-after",
        "a second answer behind each, which must not pass for that of the next page",
        FETCHED,
        {"*": keeping(head(content_type="text/html", content_length="15") + b"<a href=/y>y</a" + POISONED)},
    ),
    Attack("not-modified", "304 to a first visit", ("failed", "http_304"), only_page(raw(head("304 Not Modified")))),
]

CONTENT = [
    Attack(
        "type-image", "an image that says it is HTML", NOT_HTML, only_page(reply(b"\x89PNG\r\n\x1a\n" + b"\0" * 100))
    ),
    Attack("type-pdf", "HTML that says it is a PDF", NOT_HTML, only_page(reply(TEXT, content_type="application/pdf"))),
    Attack("type-none", "HTML that says nothing", FETCHED, only_page(raw(head() + TEXT.encode()))),
    Attack(
        "type-octets",
        "HTML that says it is bytes",
        FETCHED,
        only_page(reply(TEXT, content_type="application/octet-stream")),
    ),
    Attack(
        "type-garbage",
        "a Content-Type that is none",
        FETCHED,
        only_page(reply(TEXT, content_type="text/html; " + ";=" * 2000)),
    ),
    Attack(
        "charset-utf16",
        "UTF-8 that says it is UTF-16",
        FETCHED,
        only_page(reply(TEXT, content_type="text/html; charset=utf-16")),
    ),
    Attack(
        "charset-utf7",
        "UTF-7, which hides markup",
        FETCHED,
        only_page(reply(TEXT, content_type="text/html; charset=utf-7")),
    ),
    Attack(
        "charset-code",
        "a codec of Python's that is no charset",
        FETCHED,
        only_page(reply(TEXT * 5000, content_type="text/html; charset=punycode")),
    ),
    Attack(
        "charset-none",
        "a charset that is none",
        FETCHED,
        only_page(reply(TEXT, content_type="text/html; charset=" + "x" * 2000)),
    ),
    Attack(
        "charset-broken",
        "bytes that are no UTF-8 in a page that says so",
        FETCHED,
        only_page(reply(TEXT.encode() + b"\xff\xfe\xfd" * 99)),
    ),
    Attack(
        "meta-refresh",
        "a meta refresh to the intranet",
        FETCHED,
        only_page(made(lambda v: f'{TEXT}<meta http-equiv=refresh content="0;url=http://{INTRANET}:{v.port}/secret">')),
    ),
    Attack(
        "refresh-header",
        "a Refresh header to the intranet",
        FETCHED,
        only_page(html(f"Refresh: 0; url=http://{INTRANET}/secret")),
    ),
    Attack(
        "base-away",
        "a base on the intranet under its links",
        FETCHED,
        only_page(made(lambda v: f'<base href="http://{INTRANET}:{v.port}/">{TEXT}<a href="secret">')),
    ),
    Attack(
        "links-strange",
        "links of every strange form",
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
    Attack(
        "soft-404",
        "200 for all that does not exist",
        FETCHED,
        {"*": made(lambda v: page_of_links(v, iter([f"{v.path}/more", f"/{v.number}"]))), "/robots.txt": reply(TEXT)},
        asks=paths("/x", "/x/more", "/1", "/x/more/more", "/1/more", "/x/more/more/more"),
    ),
]
