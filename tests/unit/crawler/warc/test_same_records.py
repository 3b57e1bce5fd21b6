"""The same answer gives the same record, from the live crawl and from the archive that it writes."""

from __future__ import annotations

import gzip
import io
from typing import Any

import brotli
import pytest

from crawler.fetch.jobs import Capture
from crawler.warc.exchange import exchange
from crawler.warc.pages import ArchivedPage, Skipped, pages_of
from stream.schema.vocabulary import FetchOutcome
from tests.support.web.crawl_driver import settings_for
from tests.support.web.fetching import HTML, fetch
from tests.support.web.inspecting import FakeInspector
from tests.support.web.loopback import Reply, Web, raw

BODY = b"<!doctype html><title>t</title><p>W\xf6rter"
WALL = b"<p>no page: login_wall"


def plain(*lines: bytes, body: bytes = BODY) -> Any:
    """A response with exactly these lines."""
    return raw(b"\r\n".join([*lines, b"Content-Length: %d" % len(body), b"Connection: close", b"", body]))


ANSWERS = {
    "a page": Reply(BODY, headers=HTML),
    "gzip": Reply(gzip.compress(BODY), headers=HTML | {"Content-Encoding": "gzip"}),
    "brotli twice": Reply(brotli.compress(brotli.compress(BODY)), headers=HTML | {"Content-Encoding": "br, br"}),
    "no longer gzip": Reply(b"<p>plain", headers=HTML | {"Content-Encoding": "gzip"}),
    "no coding": Reply(b"<p>plain", headers=HTML | {"Content-Encoding": "utf-8"}),
    "a broken coding": Reply(b"\0\1", headers=HTML | {"Content-Encoding": "gzip"}),
    "types": plain(b"HTTP/1.1 200 OK", b"Content-Type: text/html; charset=koi8-r", b"Content-Type: text/html"),
    "no type": plain(b"HTTP/1.1 200 OK", b"Content-Type: text/html charset=utf-8"),
    "another type": plain(b"HTTP/1.1 200 OK", b"Content-Type: text/html, text/plain"),
    "an odd head": plain(b"ICY 200 OK", b"Content-Type: text/html", b"X-Powered By: shop"),
    "a part": Reply(BODY, 206, HTML),
    "a challenge": Reply(b"<p>wait", 403, HTML | {"CF-Mitigated": "challenge"}),
    "a login wall": Reply(WALL, 200, HTML),
    "a login wall that opts out": Reply(WALL, 200, HTML | {"X-Robots-Tag": "noai"}),
    "an error that says more": Reply(WALL + b" " * 100_000, 401, HTML),
    "an error": Reply(b"<p>oops", 403, HTML),
    "a failure": Reply(WALL, 500, HTML),
    "no page at all": Reply(WALL, 404, HTML),
    "no HTML": Reply(b"%PDF-1.4", headers=HTML),
    "nothing": Reply(b"", headers=HTML),
    "an opt-out": Reply(BODY, headers=HTML | {"X-Robots-Tag": "noai"}),
    "an opt-out far behind": Reply(BODY, headers=HTML | {"X-Robots-Tag": "noarchive, " * 200 + "noai"}),
    "a long body": Reply(b"<p>" + b"words " * 1000, headers=HTML),
}


class PartsInspector(FakeInspector):
    """Also finds parts of pages."""

    def inspect(self, url: str, status: int, *given: Any) -> Any:
        found = super().inspect(url, status, *given)
        return found._replace(reason="partial") if status == 206 else found


@pytest.mark.parametrize("obey", [False, True])
@pytest.mark.parametrize("answer", ANSWERS.values(), ids=ANSWERS)
def test_live_and_archived_answers_give_the_same_record(loopback: Web, answer: Any, obey: bool) -> None:
    """Outcome, reason, type, charset, body and opt-outs are equal; what fails or is refused has the same reason."""
    loopback.routes["a.test/x"] = answer
    captures: list[Capture] = []
    inspector = PartsInspector()
    changes: dict[str, Any] = {"obey_opt_out": obey, "body_bytes": 5000}
    live = fetch(loopback.target, "http://a.test/x", tap=captures.append, inspector=inspector, **changes)
    archive = b"".join(member.data for member in exchange(captures[-1], ""))
    settings = settings_for(loopback.target, **changes)
    (found,) = pages_of(io.BytesIO(archive), settings, now_ms=10**13, inspector=inspector)
    if live.outcome in (FetchOutcome.FETCHED, FetchOutcome.NO_PAGE):
        assert isinstance(found, ArchivedPage), found
        page = found.page
        assert (page.outcome, page.reason) == (live.outcome.value, live.reason)
        assert (page.body, page.body_bytes, page.truncated) == (live.packed, len(live.body), live.truncated)
        assert (page.status, page.headers, page.opt_out) == (live.status, live.headers, live.opt_out)
        assert (page.content_type, page.encoding) == (live.content_type, live.encoding)
    else:
        assert isinstance(found, Skipped) and (found.reason, found.is_fault) == (live.reason, False)
