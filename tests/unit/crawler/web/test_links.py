"""Links of a page."""

from __future__ import annotations

import pytest

from crawler.web.links import internal_links


def test_internal_links_in_page_order() -> None:
    """Links of the same host, normalised, once each; none of comments, scripts, nofollow, or URLs to skip."""
    body = b"""<base href="https://a.example/dir/"><a href=one>1</a> <a class=x href='/two?a=1&amp;b=2'>2</a>
    <a href="https://b.example/">off</a> <a href="#top">t</a> <a href="one#x">again</a><!-- <a href="/hidden">h</a> -->
    <script>"<a href='/script'>"</script><a rel="noopener nofollow" href="/nofollow">n</a><a href="/tag/x">t</a>
    <a href="mailto:a@a.example">m</a><a href="https://a.example:8080/port">p</a><a href="http://a.example/three">3</a>
    <a data-href="/data">d</a><a rel=NOFOLLOW href=/no1>x</a>
    <a href=/four rel=nofollower data-x="rel='nofollow'">4</a><a href="http://[bad">b</a>"""
    assert list(internal_links(body, "utf-8", "https://a.example/page")) == [
        "https://a.example/dir/one",
        "https://a.example/two?a=1&b=2",
        "http://a.example/three",
        "https://a.example/four",
    ]


@pytest.mark.parametrize(
    "piece", [b"<a ", b"<a href=", b'<a href="', b"<!--", b"<script", b"<a rel=nofollow rel=", b"<a href='/x"]
)
def test_hostile_markup_costs_no_more_than_its_length(piece: bytes) -> None:
    """Two megabytes of openings that never close give no links, at once (a quadratic pattern would take hours)."""
    body = piece * (2_000_000 // len(piece))
    assert len(list(internal_links(body, "utf-8", "https://a.example/"))) <= 1
