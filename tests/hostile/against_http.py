"""Attacks by what a server sends: bodies, lengths, types, broken heads, statuses, redirects, TLS."""

from __future__ import annotations

import gzip

from tests.hostile.answers import (
    BAD_ENCODING,
    BAD_REDIRECT,
    BROKEN,
    CHUNKED,
    CONNECTION,
    DISALLOW,
    DRIP_S,
    EMPTY_BLOCK,
    FAR,
    FETCHED,
    FORBIDDEN,
    HTML_HEAD,
    NOT_HTML,
    OFFSITE,
    POISONED,
    TEXT,
    TIMEOUT,
    TOO_MANY,
    Attack,
    brotli_bomb,
    endless,
    gzip_bomb,
    hops,
    html,
    made,
    on_page,
    packed,
    page_of_links,
    paths,
    raw,
    reset,
    silent,
    to,
    turns,
)
from tests.hostile.internet import INTRANET
from tests.support.web.raw_web import head, reply

BODIES = [
    on_page("gzip-bomb", FETCHED, packed(gzip_bomb, "gzip"), truncated=True),
    on_page("deflate-bomb", FETCHED, packed(lambda: gzip_bomb(window=15), "deflate"), truncated=True),
    on_page("raw-deflate-bomb", FETCHED, packed(lambda: gzip_bomb(window=-15), "deflate"), truncated=True),
    on_page("brotli-bomb", FETCHED, packed(brotli_bomb, "br"), truncated=True),
    # 1 GiB of zeros with the content type of HTML
    on_page("zero-bomb", NOT_HTML, packed(lambda: gzip_bomb(text=b"\0"), "gzip"), truncated=True),
    on_page("gzip-twice", FETCHED, packed(lambda: gzip.compress(gzip_bomb()), "gzip, gzip"), truncated=True),
    on_page("gzip-lie", FETCHED, packed(lambda: TEXT.encode(), "gzip")),
    on_page("brotli-lie", FETCHED, packed(lambda: TEXT.encode(), "br")),
    # with the time in its header, one gzip file in ten is no error to brotli
    on_page("brotli-of-gzip", BAD_ENCODING, packed(lambda: gzip.compress(TEXT.encode(), mtime=0), "br")),
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
    # a chunk of 2^60 bytes that does not arrive
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
    on_page("length-short", FETCHED, html(content_length="20")),
    on_page("length-negative", BROKEN, html(content_length="-1")),
    on_page("length-words", BROKEN, html(content_length="all of it")),
    on_page("length-huge", BROKEN, html(content_length="9" * 40), python=CONNECTION),
    # two different Content-Lengths
    on_page("length-two", BROKEN, html("Content-Length: 5")),
    on_page(
        "length-chunked",
        FETCHED,
        raw(head(content_type="text/html", content_length="5", transfer_encoding="chunked") + b"3\r\n<p>\r\n0\r\n\r\n"),
    ),
    on_page("empty", CONNECTION, raw(b"")),
    on_page("no-content", FETCHED, raw(head("204 No Content"))),
    # 206 without a range request
    on_page("partial", FETCHED, html()),
    # a second answer after each, which must not count as that of the next page
    Attack(
        "answer-after",
        FETCHED,
        {"*": raw(head(content_type="text/html", content_length="15") + b"<a href=/y>y</a" + POISONED, keep=True)},
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
    # a Python codec that is no charset
    on_page("charset-code", FETCHED, reply(TEXT * 5000, content_type="text/html; charset=punycode")),
    on_page("type-raw", FETCHED, reply(TEXT, content_type="text/html\xe9")),
    on_page("charset-raw", FETCHED, reply(TEXT, content_type="text/html; charset=\xe9")),
    on_page("charset-idna", FETCHED, reply(TEXT, content_type="text/html; charset=idna")),
    on_page("charset-none", FETCHED, reply(TEXT, content_type="text/html; charset=" + "x" * 2000)),
    on_page("charset-broken", FETCHED, reply(TEXT.encode() + b"\xff\xfe\xfd" * 99)),
    on_page(
        "meta-refresh",
        FETCHED,
        made(lambda v: f'{TEXT}<meta http-equiv=refresh content="0;url=http://{INTRANET}:{v.port}/secret">'),
    ),
    on_page("refresh-header", FETCHED, html(f"Refresh: 0; url=http://{INTRANET}/secret")),
    # links with a base on the intranet
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
    # 200 for every missing page
    Attack(
        "soft-404",
        FETCHED,
        {"*": made(lambda v: page_of_links(v, iter([f"{v.path}/more", f"/{v.number}"]))), "/robots.txt": reply(TEXT)},
        asks=paths("/x", "/x/more", "/1", "/x/more/more", "/1/more", "/x/more/more/more"),
    ),
]

WIRE = [
    on_page("http-0-9", BROKEN, raw(TEXT.encode())),
    on_page(
        "http-2", BROKEN, raw(b"\0\0\x12\x04\0\0\0\0\0" + b"\0\x03\0\0\0\x64" * 3 + b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n")
    ),
    on_page("http-9", FETCHED, raw(b"HTTP/9.9 200 OK\r\nContent-Type: text/html\r\n\r\n<p>")),
    on_page("ssh", BROKEN, raw(b"SSH-2.0-OpenSSH_9.6\r\n")),
    on_page("status-words", BROKEN, raw(b"HTTP/1.1 fine OK\r\n\r\n")),
    on_page("status-99", BROKEN, raw(b"HTTP/1.1 99 What\r\n\r\n")),
    on_page("status-1000", BROKEN, raw(b"HTTP/1.1 1000 What\r\n\r\n")),
    on_page("status-999", ("failed", "http_999"), raw(head("999 Denied"))),
    on_page("status-control", FETCHED, raw(b"HTTP/1.1 200 \x1b[31m\x07OK\r\nContent-Type: text/html\r\n\r\n<p>")),
    on_page("status-long", BROKEN, raw(b"HTTP/1.1 200 " + b"A" * 2**20 + b"\r\nContent-Type: text/html\r\n\r\n<p>")),
    on_page(
        "switching",
        ("failed", "http_101"),
        raw(head("101 Switching Protocols", upgrade="evil", connection="upgrade") + b"hello"),
    ),
    on_page("continues", BROKEN, endless(b"", b"HTTP/1.1 100 Continue\r\nX: " + b"y" * 4000 + b"\r\n\r\n")),
    on_page("hints", BROKEN, endless(b"", b"HTTP/1.1 103 Early Hints\r\nLink: </" + b"a" * 4000 + b">\r\n\r\n")),
    on_page("hints-slow", TIMEOUT, endless(b"", b"HTTP/1.1 100 Continue\r\n\r\n", 0.5)),
    on_page("headers-many", BROKEN, html(*(f"X-{n}: y" for n in range(10_000)))),
    on_page("header-long", BROKEN, html("X: " + "y" * 2**20)),
    on_page("headers-endless", BROKEN, endless(b"HTTP/1.1 200 OK\r\n", b"X-A: b\r\n" * 500)),
    on_page("header-name-endless", BROKEN, endless(b"HTTP/1.1 200 OK\r\n", b"X" * 4096)),
    on_page(
        "header-control", FETCHED, html("Server: \x1b]0;owned\x07\x1b[2J", "X-Powered-By: a\x08b", 'ETag: "\x7f\x01"')
    ),
    on_page("header-bytes", FETCHED, html("Server: \xff\xfe\x80", "ETag: \xe2\x80\xae")),
    # non-ASCII bytes in each header that is read
    *(on_page(f"raw-{name}", FETCHED, html(f"{name}: \xe9")) for name in ("etag", "last-modified", "x-robots-tag")),
    *(on_page(f"raw-{name}", FETCHED, html(f"{name}: \xe9")) for name in ("retry-after", "location")),
    on_page("raw-content-encoding", FETCHED, html("Content-Encoding: \xe9")),
    on_page("header-nul", FETCHED, html("Server: a\0b")),
    on_page("header-folded", FETCHED, html("Server: a\r\n b")),
    on_page("header-bare", FETCHED, html("this is no header")),
    Attack("cookies", FETCHED, {"*": html("Set-Cookie: who=you; Path=/; Domain=hostile.test", "Set-Cookie: a=b")}),
    on_page("cookies-huge", FETCHED, html(*(f"Set-Cookie: c{n}={'x' * 6000}" for n in range(100)))),
]

STATUSES = [
    on_page("gone", ("failed", "http_404"), reply("", "404 None")),
    on_page("auth", ("failed", "http_401"), reply("", "401 Who", www_authenticate='Basic realm="x"')),
    on_page("busy", ("failed", "http_429"), reply("", "429 Slower", retry_after="9" * 30)),
    on_page("busy-date", ("failed", "http_503"), reply("", "503 Busy", retry_after="Mon, 99 Foo 99999 99:99:99 GMT")),
    on_page("busy-minus", ("failed", "http_503"), reply("", "503 Busy", retry_after="-1")),
    on_page("busy-heals", FETCHED, turns(reply("", "429 Slower", retry_after="0"), reply(TEXT))),
]

REDIRECTS = [
    on_page("loop", TOO_MANY, to("/x")),
    Attack("loop-two", TOO_MANY, {"/x": to("/y"), "/y": to("/x")}, at_most=60),
    Attack("loop-sessions", TOO_MANY, {"*": to("/x?n={n}"), "/robots.txt": reply("", "404 None")}, at_most=60),
    Attack("chain", TOO_MANY, {"*": hops}, at_most=60),
    # to its www twin and back
    on_page("twins", TOO_MANY, to("http://www.twins.hostile.test:{port}/x")),
    on_page("away", OFFSITE, to("http://calendar.hostile.test:{port}/x")),
    on_page("inside", OFFSITE, to(FAR)),
    on_page("inside-v6", OFFSITE, to(f"http://[::ffff:{INTRANET}]:{{port}}/secret")),
    on_page("metadata", OFFSITE, to("http://169.254.169.254/latest/meta-data/")),
    # a redirect to its twin on the intranet
    on_page("twin-inside", ("failed", "robots_unavailable"), to("http://www.twin-inside.hostile.test:{port}/x")),
    on_page(
        "twin-waits",
        FETCHED,
        to("http://www.twin-waits.hostile.test:{port}/x"),
        twin={"/robots.txt": turns(reply("", "503 Busy"), reply("", "404 None")), "*": reply(TEXT)},
        asks=paths("/x", "www/x"),
    ),
    on_page(
        "twin-closed",
        ("failed", "robots_unavailable"),
        to("http://www.twin-closed.hostile.test:{port}/x"),
        twin={"*": reply(TEXT), "/robots.txt": reply("", "503 Busy")},
        asks=paths("/x"),
    ),
    on_page(
        "twin-forbids",
        FORBIDDEN,
        to("http://www.twin-forbids.hostile.test:{port}/x"),
        twin={"*": reply(TEXT), "/robots.txt": reply(DISALLOW, content_type="text/plain")},
        asks=paths("/x"),
    ),
    on_page("to-port", ("refused", "redirect_port"), to("http://to-port.hostile.test:{other}/x"), asks=paths("/x")),
    on_page("to-port-25", BAD_REDIRECT, to("http://to-port-25.hostile.test:25/x")),
    # four URLs that redirect to one page
    Attack(
        "to-one",
        FETCHED,
        dict.fromkeys(("/x", "/1", "/2", "/3"), to("/end")) | {"/end": reply(TEXT)},
        asks=paths("/x", "/1", "/2", "/3", "/end"),
        more=("/1", "/2", "/3"),
    ),
    on_page("nowhere", ("failed", "http_302"), raw(head("302 Found", content_length="0"))),
    on_page("to-script", BAD_REDIRECT, to("javascript:alert(1)")),
    on_page("to-file", BAD_REDIRECT, to("file:///etc/passwd")),
    on_page("to-long", BAD_REDIRECT, to("/" + "y" * 6000)),
    on_page("to-control", ("failed", "http_404"), to("/y\x1b[2J\x07z")),
]

TLS = [
    on_page("tls-good", FETCHED, reply(TEXT), tls="good"),
    on_page("tls-expired", ("refused", "tls_expired"), reply(TEXT), tls="expired"),
    on_page("tls-self", ("refused", "tls_untrusted"), reply(TEXT), tls="self-signed"),
    on_page("tls-other", ("refused", "tls_name"), reply(TEXT), tls="other name"),
    # a handshake without an answer
    on_page("tls-silent", ("refused", "timeout"), reply(TEXT), tls="none"),
    # plain HTTP on a TLS port
    Attack("tls-asked-plain", ("refused", "connection"), hit="http://{host}:{tls}/x", tls="good"),
]
