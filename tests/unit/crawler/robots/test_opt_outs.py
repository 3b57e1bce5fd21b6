"""Opt-outs: which signals of a page apply to us, and which of them forbid mining."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from crawler.fetch.response_headers import kept_headers
from crawler.robots.opt_outs import forbids_mining, opt_outs


@pytest.mark.parametrize(
    ("value", "words"),
    [
        ("noai", "noai"),
        ("NoAI, NoImageAI", "noai noimageai"),
        ("noindex nofollow", "noindex nofollow"),
        ("none", "none"),
        ("all", ""),
        ("index, follow", ""),
        ("farmwatch: noai", "noai"),
        ("FarmWatch/1.0: noai", "noai"),
        ("*: noai", "noai"),
        ("otherbot: noai", ""),
        ("otherbot: noindex, noai", ""),
        ("noai, otherbot: noindex", "noai"),
        ("otherbot: noindex, farmwatch: noai", "noai"),
        ("otherbot: noindex; noai", "noai"),
        ("max-snippet:-1, noai", "noai"),
        ("otherbot: max-snippet:-1, noai", ""),
        ("unavailable_after: 25 Jun 2010 15:00:00 PST, noai", "noai"),
        ("unavailable_after: Fri, 25 Jun 2010 15:00:00 GMT, noindex", "noindex"),
        ("unavailable_after: Friday, 25-Jun-10 15:00:00 GMT", ""),
        ("noaix, xnoai, no ai", ""),
        (":::, ,;;, :noai", ""),
        ("", ""),
    ],
)
def test_words_of_x_robots_tag(value: str, words: str) -> None:
    """X-Robots-Tag words for all robots or for us count in any case and position; words for other robots do not."""
    expected = words.split()
    assert opt_outs({"x-robots-tag": value}, b"", "farmwatch") == [f"header:{word}" for word in expected]


@pytest.mark.parametrize(
    ("head", "signals"),
    [
        (b'<meta name="robots" content="noai, noimageai">', "noai noimageai"),
        (b"<META CONTENT='NOINDEX' NAME=ROBOTS>", "noindex"),
        (b"<meta name=farmwatch content=noai>", "noai"),
        (b'<meta name="FarmWatch" content="none"/>', "none"),
        (b"<meta name=otherbot content=noai>", ""),
        (b"<meta name=description content=noai>", ""),
        (b"<meta data-name=robots data-content=noai>", ""),
        (b"<meta name=robots content=all content=noai>", ""),
        (b"<meta/name=robots content=noai>", "noai"),
        (b"<meta\n\tname = 'robots'\n content = 'noai'>", "noai"),
        (b'<meta name="tdm-reservation" content="1">', "tdm-reservation"),
        (b'<meta name="tdm-reservation" content="0">', ""),
        (b'<meta name="tdm-policy" content="https://a.example/p.json">', ""),
        (b"<!-- <meta name=robots content=noai> -->", ""),
        (b"<!-- > <meta name=robots content=noindex> --><meta name=robots content=noai>", "noai"),
        (b"<script>'<meta name=robots content=noai>'</script>", ""),
        (b"<title>x</title></HEAD><body><meta name=robots content=noai>", ""),
        (b"<title>x</title></HEAD><meta name=robots content=noai>", "noai"),
        (b" " * 70_000 + b"<meta name=robots content=noai>", "noai"),
        (b"<style>" + b"a{} " * 40_000 + b"</style><meta name=robots content=noai>", "noai"),
        (b"<style>'<meta name=robots content=noai>'</style>", ""),
        (b"<script>'</head><body>'</script><meta name=robots content=noai>", "noai"),
        ("\ufeff<meta name=robots content=noai>".encode("utf-16-le"), "noai"),
        ("\ufeff<meta name=robots content=noai>".encode("utf-16-be"), "noai"),
        ("\ufeff<meta name=robots content=noai>".encode(), "noai"),
    ],
)
def test_metas_of_a_head(head: bytes, signals: str) -> None:
    """Meta tags for all robots or for us count where a browser sees them: not in comments, scripts or the body."""
    assert opt_outs({}, head, "farmwatch") == [f"meta:{signal}" for signal in signals.split()]


def test_all_places_are_told_apart() -> None:
    """Signals of headers and meta tags name their place, each once, in the order of the page."""
    body = b"""<META content="noindex, NoAI" name="robots"><meta name=farmwatch content="noimageai, noai">
    <meta name="otherbot" content="none"><meta name="tdm-reservation" content="1">
    <meta name="description" content="noai">"""
    headers = {"x-robots-tag": "otherbot: noindex, farmwatch: noai", "tdm-reservation": "1"}
    assert opt_outs(headers, body, "farmwatch") == [
        "header:noai",
        "header:tdm-reservation",
        "meta:noindex",
        "meta:noai",
        "meta:noimageai",
        "meta:tdm-reservation",
    ]


@pytest.mark.parametrize(
    ("value", "reserved"), [("1", True), (" 1 ", True), ("0, 1", True), ("0", False), ("11", False)]
)
def test_the_header_of_tdmrep(value: str, reserved: bool) -> None:
    """A tdm-reservation header of 1 reserves, also beside another value; anything else does not."""
    assert bool(opt_outs({"tdm-reservation": value}, b"", "farmwatch")) is reserved


def test_which_signals_forbid_mining() -> None:
    """All signals but nofollow forbid mining; nofollow concerns the page's links and is always obeyed."""
    assert not forbids_mining([]) and not forbids_mining(["meta:nofollow", "header:nofollow"])
    for signal in ("meta:noindex", "header:none", "meta:noai", "meta:noimageai", "well-known:tdm-reservation"):
        assert forbids_mining(["meta:nofollow", signal])


@settings(max_examples=25)
@given(st.binary(max_size=200), st.text(max_size=40))
def test_no_page_raises(body: bytes, header: str) -> None:
    """Any bytes and any header give signals of the known kinds."""
    for text in (body, b"<meta " + body + b">", b"<meta name=robots content=" + body + b">"):
        for signal in opt_outs({"x-robots-tag": header, "tdm-reservation": header}, text, "farmwatch"):
            assert signal.partition(":")[0] in ("header", "meta")


@pytest.mark.parametrize(
    "piece", [b"<!--", b"<script", b"<meta ", b"<meta name=", b'<meta content="', b"<meta/" + b"a" * 999]
)
def test_hostile_heads_cost_no_more_than_their_length(piece: bytes) -> None:
    """A head full of unclosed tags is read in linear time."""
    assert opt_outs({}, piece * (2_000_000 // len(piece)), "farmwatch") == []


def test_wide_characters_without_a_mark() -> None:
    """UTF-16 that only the header declares is read as well."""
    body = "<meta name=robots content=noai>".encode("utf-16-le")
    assert opt_outs({}, body, "farmwatch", (), "utf-16-le") == ["meta:noai"]


def test_a_name_binds_within_its_own_field() -> None:
    """A robot's name applies to its own X-Robots-Tag field only, although several fields are stored as one text."""
    fields = [("X-Robots-Tag", "otherbot: noindex, nofollow"), ("x-robots-tag", "noai"), ("X-Robots-Tag", "noimageai")]
    assert opt_outs(kept_headers(fields), b"", "farmwatch") == ["header:noai", "header:noimageai"]
