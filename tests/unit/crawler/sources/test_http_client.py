"""The HTTP client of the sources: responses are bounded, and secrets go to no other host."""

from __future__ import annotations

import asyncio
import gzip
import logging
import time

import pytest

from crawler.sources.http_client import SourceClient
from crawler.sources.source import BadAnswer, SourceAnswer, SourceBusy, SourceError, SourceRefused, SourceRequest
from tests.support.web.search_engines import Asked, Engine, Reply, says

KEY = "s3cr3t-0f-the-test"


def _ask(request: SourceRequest, timeout_s: float = 5.0, cap: int = 1_000_000) -> SourceAnswer:
    async def go() -> SourceAnswer:
        async with SourceClient("farmwatch-test/1 (+https://contact.example/)") as asker:
            return await asker.ask(request, timeout_s, cap)

    return asyncio.run(go())


def _secret(url: str) -> SourceRequest:
    return SourceRequest(url, {"Accept": "application/json"}, {"X-Key": KEY}, {"api_key": KEY})


def test_a_request_carries_its_secrets_and_who_asks() -> None:
    """A request has the URL's headers and parameters plus the secret ones; response headers are in lower case."""
    with Engine(lambda _: says({"a": 1}, 429, Retry_After="7")) as engine:
        answer = _ask(_secret(f"{engine.url}/search?q=a%26b+c"))
    (asked,) = engine.seen
    assert asked.query == {"q": "a&b c", "api_key": KEY}
    assert asked.headers["X-Key"] == KEY
    assert asked.headers["User-Agent"] == "farmwatch-test/1 (+https://contact.example/)"
    assert "Cookie" not in asked.headers
    assert (answer.status, answer.body, answer.headers["retry-after"]) == (429, b'{"a": 1}', "7")


def _moved(to: str) -> Reply:
    return Reply(status=308, headers={"Location": to})


def test_redirects_are_followed_on_the_same_host() -> None:
    """A redirect on the same host is followed with the secrets.

    Another port is another server: it is refused by name.
    """
    with Engine(lambda asked: says("here") if asked.path == "/new" else _moved("/new")) as engine:
        assert _ask(_secret(f"{engine.url}/old")).body == b'"here"'
    assert [asked.headers["X-Key"] for asked in engine.seen] == [KEY, KEY]
    with Engine(lambda _: says("stolen")) as other:
        with (
            Engine(lambda _: _moved(f"{other.url}/x")) as engine,
            pytest.raises(SourceRefused, match="and nothing was sent there"),
        ):
            _ask(_secret(f"{engine.url}/search"))
        assert other.seen == []
    with Engine(lambda _: _moved("/again")) as engine, pytest.raises(SourceRefused, match="more than 3 times"):
        _ask(SourceRequest(f"{engine.url}/again"))
    assert len(engine.seen) == 4


def test_an_answer_beyond_the_cap_is_bad() -> None:
    """Plain bodies and gzip bombs beyond the cap are refused; gzip bodies within the cap are read."""
    bomb = gzip.compress(b"\0" * 50_000_000)
    for body, headers in (b"x" * 2_000_000, {}), (bomb, {"Content-Encoding": "gzip"}):
        big = Reply(body, headers=headers)
        with Engine(lambda _, r=big: r) as engine, pytest.raises(BadAnswer, match="more than 1000000 bytes"):  # type: ignore[misc]
            _ask(SourceRequest(engine.url))
    with Engine(lambda _: Reply(gzip.compress(b"[]"), headers={"Content-Encoding": "gzip"})) as engine:
        assert _ask(SourceRequest(engine.url)).body == b"[]"
    lie = Reply(b"no gzip\0", headers={"Content-Encoding": "gzip"})
    with Engine(lambda _: lie) as engine, pytest.raises(BadAnswer, match="not its encoding"):
        _ask(SourceRequest(engine.url))


def test_a_server_that_does_not_answer_is_busy() -> None:
    """A slow or absent server is an error that may be retried."""

    def slow(_: Asked) -> Reply:
        time.sleep(0.5)
        return Reply()

    with Engine(slow) as engine:
        url = engine.url
        with pytest.raises(SourceBusy, match="did not answer within"):
            _ask(SourceRequest(url), timeout_s=0.1)
    with pytest.raises(SourceBusy, match="cannot be reached"):
        _ask(SourceRequest(url))


def test_no_failure_repeats_a_secret(caplog: pytest.LogCaptureFixture, capfd: pytest.CaptureFixture[str]) -> None:
    """No failure shows the key: not in messages, causes, contexts, logs or output."""
    caplog.set_level(logging.DEBUG)
    replies = [
        Reply(status=302, headers={"Location": f"http://elsewhere.example/?api_key={KEY}"}),
        Reply(status=302, headers={"Location": f"http://[::1/{KEY}"}),
        Reply(b"no gzip\0", headers={"Content-Encoding": "gzip"}),
        Reply(b"x\0", headers={"Content-Encoding": "zstd"}),
    ]
    said = []
    for reply in replies:
        with Engine(lambda _, reply=reply: reply) as engine:  # type: ignore[misc]
            with pytest.raises(SourceError) as raised:
                _ask(_secret(f"{engine.url}/s"))
            said.append(repr(raised.value) + str(raised.value.__cause__))
    for url in ("http://127.0.0.1:1/s", "http://no-such-host.invalid/s"):
        with pytest.raises(SourceError) as raised:
            _ask(_secret(url), timeout_s=2.0)
        said.append(repr(raised.value) + str(raised.value.__cause__))
    out, err = capfd.readouterr()
    assert KEY not in "".join(said) + caplog.text + out + err
