"""Attacks on who speaks HTTP: broken heads, floods, statuses, redirects."""

from __future__ import annotations

from tests.hostile.answers import (
    BAD_REDIRECT,
    BROKEN,
    CONNECTION,
    DISALLOW,
    DRIP_S,
    FAR,
    FETCHED,
    FORBIDDEN,
    OFFSITE,
    TEXT,
    TIMEOUT,
    TOO_MANY,
    Attack,
    endless,
    hops,
    html,
    on_page,
    paths,
    raw,
    to,
    turns,
)
from tests.hostile.internet import INTRANET
from tests.support.raw_web import head, reply

WIRE = [
    on_page("http-0-9", BROKEN, raw(TEXT.encode()), python=CONNECTION),
    on_page(
        "http-2", BROKEN, raw(b"\0\0\x12\x04\0\0\0\0\0" + b"\0\x03\0\0\0\x64" * 3 + b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n")
    ),
    on_page("http-9", BROKEN, raw(b"HTTP/9.9 200 OK\r\nContent-Type: text/html\r\n\r\n<p>"), python=FETCHED),
    on_page("ssh", BROKEN, raw(b"SSH-2.0-OpenSSH_9.6\r\n"), python=CONNECTION),
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
    on_page("hints-slow", TIMEOUT, endless(b"", b"HTTP/1.1 100 Continue\r\n\r\n", DRIP_S)),
    on_page("headers-many", BROKEN, html(*(f"X-{n}: y" for n in range(10_000)))),
    on_page("header-long", BROKEN, html("X: " + "y" * 2**20)),
    on_page("headers-endless", BROKEN, endless(b"HTTP/1.1 200 OK\r\n", b"X-A: b\r\n" * 500)),
    on_page("header-name-endless", BROKEN, endless(b"HTTP/1.1 200 OK\r\n", b"X" * 4096)),
    on_page(
        "header-control", FETCHED, html("Server: \x1b]0;owned\x07\x1b[2J", "X-Powered-By: a\x08b", 'ETag: "\x7f\x01"')
    ),
    on_page("header-bytes", FETCHED, html("Server: \xff\xfe\x80", "ETag: \xe2\x80\xae")),
    on_page("header-nul", BROKEN, html("Server: a\0b")),
    on_page("header-folded", FETCHED, html("Server: a\r\n b")),
    on_page("header-bare", BROKEN, html("this is no header")),
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
    # its twin with www. and back
    on_page("twins", TOO_MANY, to("http://www.twins.hostile.test:{port}/x")),
    on_page("away", OFFSITE, to("http://calendar.hostile.test:{port}/x")),
    on_page("inside", OFFSITE, to(FAR)),
    on_page("inside-v6", OFFSITE, to(f"http://[::ffff:{INTRANET}]:{{port}}/secret")),
    on_page("metadata", OFFSITE, to("http://169.254.169.254/latest/meta-data/")),
    # a redirect to its twin, which is on the intranet
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
    # four URLs that lead to one page
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
    # a handshake that is not answered
    on_page("tls-silent", ("refused", "timeout"), reply(TEXT), tls="none"),
    # plain HTTP to a port of TLS
    Attack("tls-asked-plain", ("refused", "connection"), hit="http://{host}:{tls}/x", tls="good"),
]
