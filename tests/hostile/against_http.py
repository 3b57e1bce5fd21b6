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
    TEXT,
    TIMEOUT,
    Attack,
    endless,
    hops,
    html,
    only_page,
    paths,
    raw,
    to,
    turns,
)
from tests.hostile.internet import INTRANET
from tests.support.raw_web import head, reply

WIRE = [
    Attack("http-0-9", "HTTP/0.9: a body and no header", BROKEN, only_page(raw(TEXT.encode())), python=CONNECTION),
    Attack(
        "http-2",
        "frames of HTTP/2",
        BROKEN,
        only_page(raw(b"\0\0\x12\x04\0\0\0\0\0" + b"\0\x03\0\0\0\x64" * 3 + b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n")),
    ),
    Attack(
        "http-9",
        "a version that is none",
        BROKEN,
        only_page(raw(b"HTTP/9.9 200 OK\r\nContent-Type: text/html\r\n\r\n<p>")),
        python=FETCHED,
    ),
    Attack("ssh", "another protocol", BROKEN, only_page(raw(b"SSH-2.0-OpenSSH_9.6\r\n")), python=CONNECTION),
    Attack("status-words", "a status that is no number", BROKEN, only_page(raw(b"HTTP/1.1 fine OK\r\n\r\n"))),
    Attack("status-99", "a status of two digits", BROKEN, only_page(raw(b"HTTP/1.1 99 What\r\n\r\n"))),
    Attack("status-1000", "a status of four digits", BROKEN, only_page(raw(b"HTTP/1.1 1000 What\r\n\r\n"))),
    Attack("status-999", "a status that nobody knows", ("failed", "http_999"), only_page(raw(head("999 Denied")))),
    Attack(
        "status-control",
        "control characters in the status line",
        FETCHED,
        only_page(raw(b"HTTP/1.1 200 \x1b[31m\x07OK\r\nContent-Type: text/html\r\n\r\n<p>")),
    ),
    Attack(
        "status-long",
        "a status line of a megabyte",
        BROKEN,
        only_page(raw(b"HTTP/1.1 200 " + b"A" * 2**20 + b"\r\nContent-Type: text/html\r\n\r\n<p>")),
    ),
    Attack(
        "switching",
        "101 to a protocol of its own",
        ("failed", "http_101"),
        only_page(raw(head("101 Switching Protocols", upgrade="evil", connection="upgrade") + b"hello")),
    ),
    Attack(
        "continues",
        "100 Continue without an end",
        BROKEN,
        only_page(endless(b"", b"HTTP/1.1 100 Continue\r\nX: " + b"y" * 4000 + b"\r\n\r\n")),
    ),
    Attack(
        "hints",
        "103 Early Hints without an end",
        BROKEN,
        only_page(endless(b"", b"HTTP/1.1 103 Early Hints\r\nLink: </" + b"a" * 4000 + b">\r\n\r\n")),
    ),
    Attack(
        "hints-slow",
        "100 Continue now and then",
        TIMEOUT,
        only_page(endless(b"", b"HTTP/1.1 100 Continue\r\n\r\n", DRIP_S)),
    ),
    Attack("headers-many", "10,000 headers", BROKEN, only_page(html(*(f"X-{n}: y" for n in range(10_000))))),
    Attack("header-long", "a header of a megabyte", BROKEN, only_page(html("X: " + "y" * 2**20))),
    Attack(
        "headers-endless",
        "headers without an end",
        BROKEN,
        only_page(endless(b"HTTP/1.1 200 OK\r\n", b"X-A: b\r\n" * 500)),
    ),
    Attack(
        "header-name-endless",
        "the name of a header without an end",
        BROKEN,
        only_page(endless(b"HTTP/1.1 200 OK\r\n", b"X" * 4096)),
    ),
    Attack(
        "header-control",
        "control characters in headers that are kept",
        FETCHED,
        only_page(html("Server: \x1b]0;owned\x07\x1b[2J", "X-Powered-By: a\x08b", 'ETag: "\x7f\x01"')),
    ),
    Attack(
        "header-bytes",
        "bytes that are no text in headers that are kept",
        FETCHED,
        only_page(html("Server: \xff\xfe\x80", "ETag: \xe2\x80\xae")),
    ),
    Attack("header-nul", "a zero byte in a header", BROKEN, only_page(html("Server: a\0b"))),
    Attack("header-folded", "a header over two lines, as long ago", FETCHED, only_page(html("Server: a\r\n b"))),
    Attack("header-bare", "a header line without a colon", BROKEN, only_page(html("this is no header"))),
    Attack(
        "cookies",
        "a cookie with every answer",
        FETCHED,
        {"*": html("Set-Cookie: who=you; Path=/; Domain=hostile.test", "Set-Cookie: a=b")},
    ),
    Attack(
        "cookies-huge",
        "a cookie of 6 KiB a hundred times",
        FETCHED,
        only_page(html(*(f"Set-Cookie: c{n}={'x' * 6000}" for n in range(100)))),
    ),
]

STATUSES = [
    Attack("gone", "404", ("failed", "http_404"), only_page(reply("", "404 None"))),
    Attack(
        "auth",
        "401 with a challenge",
        ("failed", "http_401"),
        only_page(reply("", "401 Who", www_authenticate='Basic realm="x"')),
    ),
    Attack(
        "busy",
        "429 for ever, Retry-After of a million years",
        ("failed", "http_429"),
        only_page(reply("", "429 Slower", retry_after="9" * 30)),
    ),
    Attack(
        "busy-date",
        "503 for ever, Retry-After of a date that is none",
        ("failed", "http_503"),
        only_page(reply("", "503 Busy", retry_after="Mon, 99 Foo 99999 99:99:99 GMT")),
    ),
    Attack(
        "busy-minus",
        "503 for ever, Retry-After: -1",
        ("failed", "http_503"),
        only_page(reply("", "503 Busy", retry_after="-1")),
    ),
    Attack(
        "busy-heals",
        "429 with Retry-After: 0, and then the page",
        FETCHED,
        only_page(turns(reply("", "429 Slower", retry_after="0"), reply(TEXT))),
    ),
]

REDIRECTS = [
    Attack("loop", "a redirect to itself", ("failed", "too_many_redirects"), only_page(to("/x"))),
    Attack(
        "loop-two",
        "two pages that lead to each other",
        ("failed", "too_many_redirects"),
        {"/x": to("/y"), "/y": to("/x")},
        at_most=60,
    ),
    Attack(
        "loop-sessions",
        "a redirect to a new URL each time",
        ("failed", "too_many_redirects"),
        {"*": to("/x?n={n}"), "/robots.txt": reply("", "404 None")},
        at_most=60,
    ),
    Attack("chain", "redirects without an end", ("failed", "too_many_redirects"), {"*": hops}, at_most=60),
    Attack(
        "twins",
        "its twin with www. and back",
        ("failed", "too_many_redirects"),
        only_page(to("http://www.twins.hostile.test:{port}/x")),
    ),
    Attack(
        "away",
        "a redirect to another host",
        ("refused", "redirect_offsite"),
        only_page(to("http://calendar.hostile.test:{port}/x")),
    ),
    Attack("inside", "a redirect to the intranet", ("refused", "redirect_offsite"), only_page(to(FAR))),
    Attack(
        "inside-v6",
        "a redirect to the intranet, mapped",
        ("refused", "redirect_offsite"),
        only_page(to(f"http://[::ffff:{INTRANET}]:{{port}}/secret")),
    ),
    Attack(
        "metadata",
        "a redirect to a cloud's metadata",
        ("refused", "redirect_offsite"),
        only_page(to("http://169.254.169.254/latest/meta-data/")),
    ),
    Attack(
        "twin-inside",
        "a redirect to its twin, which is on the intranet",
        ("failed", "robots_unavailable"),
        only_page(to("http://www.twin-inside.hostile.test:{port}/x")),
    ),
    Attack(
        "twin-waits",
        "its twin, whose robots.txt answers 503 once, and then allows",
        FETCHED,
        only_page(to("http://www.twin-waits.hostile.test:{port}/x")),
        twin={"/robots.txt": turns(reply("", "503 Busy"), reply("", "404 None")), "*": reply(TEXT)},
        asks=paths("/x", "www/x"),
    ),
    Attack(
        "twin-closed",
        "its twin, whose robots.txt answers 503 for ever",
        ("failed", "robots_unavailable"),
        only_page(to("http://www.twin-closed.hostile.test:{port}/x")),
        twin={"*": reply(TEXT), "/robots.txt": reply("", "503 Busy")},
        asks=paths("/x"),
    ),
    Attack(
        "twin-forbids",
        "its twin, whose robots.txt forbids all",
        ("refused", "robots"),
        only_page(to("http://www.twin-forbids.hostile.test:{port}/x")),
        twin={"*": reply(TEXT), "/robots.txt": reply(DISALLOW, content_type="text/plain")},
        asks=paths("/x"),
    ),
    Attack(
        "to-port",
        "a redirect to another port of its own",
        ("refused", "redirect_port"),
        only_page(to("http://to-port.hostile.test:{other}/x")),
        asks=paths("/x"),
    ),
    Attack(
        "to-port-25",
        "a redirect to the port of mail",
        BAD_REDIRECT,
        only_page(to("http://to-port-25.hostile.test:25/x")),
    ),
    Attack(
        "to-one",
        "four URLs that lead to one page",
        FETCHED,
        dict.fromkeys(("/x", "/1", "/2", "/3"), to("/end")) | {"/end": reply(TEXT)},
        asks=paths("/x", "/1", "/2", "/3", "/end"),
        more=("/1", "/2", "/3"),
    ),
    Attack(
        "nowhere",
        "a redirect without a Location",
        ("failed", "http_302"),
        only_page(raw(head("302 Found", content_length="0"))),
    ),
    Attack("to-script", "a redirect to javascript:", BAD_REDIRECT, only_page(to("javascript:alert(1)"))),
    Attack("to-file", "a redirect to a file", BAD_REDIRECT, only_page(to("file:///etc/passwd"))),
    Attack("to-long", "a redirect to a URL of 6,000 characters", BAD_REDIRECT, only_page(to("/" + "y" * 6000))),
    Attack(
        "to-control",
        "a redirect with control characters",
        ("failed", "http_404"),
        only_page(to("/y\x1b[2J\x07z")),
    ),
]

TLS = [
    Attack("tls-good", "nothing: a certificate as it should be", FETCHED, only_page(reply(TEXT)), tls="good"),
    Attack(
        "tls-expired",
        "a certificate that has expired",
        ("refused", "tls_expired"),
        only_page(reply(TEXT)),
        tls="expired",
    ),
    Attack(
        "tls-self",
        "a certificate that it signed itself",
        ("refused", "tls_untrusted"),
        only_page(reply(TEXT)),
        tls="self-signed",
    ),
    Attack(
        "tls-other", "a certificate for another name", ("refused", "tls_name"), only_page(reply(TEXT)), tls="other name"
    ),
    Attack(
        "tls-silent", "a handshake that is not answered", ("refused", "timeout"), only_page(reply(TEXT)), tls="none"
    ),
    Attack(
        "tls-asked-plain",
        "plain HTTP to a port of TLS",
        ("refused", "connection"),
        hit="http://{host}:{tls}/x",
        tls="good",
    ),
]
