"""Pages whose measures show whether a version of a library changes the meaning of features.

The pages are written for this purpose: an article in a frame of navigation, a tutorial with code, list and table, a
thread of comments, unclosed tags, other languages and charsets, a page of links, one of teasers, a thread, a page with
little text.
"""

from __future__ import annotations

import tomllib
from collections.abc import Mapping, Sequence
from functools import cache
from importlib import resources
from typing import Any

import msgspec
import xxhash

from filters.settings import MeasureSettings

VERIFIED: Mapping[str, str] = {
    "py3langid": "0.4.0",
    "rensa": "0.5.0",
    "trafilatura": "2.3.1",
    "justext": "3.0.2",
    "lxml": "6.1.3",
    "resiliparse": "2.0.1",
}
"""Versions with the outputs of `OUTPUTS`. They stand in the feature epoch for all versions with the same outputs."""

OUTPUTS: Mapping[str, str] = {
    "trafilatura": "bf7654209c0a45bd",
    "blocks": "9ddd91902bd0f4e2",
    "auto": "cbdc082d077f643f",
    "resiliparse": "30189371fa22fd33",
}
"""Extractor -> digest of the measures of all golden pages."""

_DIGITS = 6  # of a float: further digits depend on the processor

_DATE = "<meta itemprop='datePublished' content='2024-05-04T10:00:00+02:00'>"
_HEAD = "<header><nav><ul><li><a href='/'>Home</a></li><li><a href='/about'>About us</a></li></ul></nav></header>"
_FOOT = "<footer><p>© 2024 Harbour News. <a href='/privacy'>Privacy</a> <a href='/terms'>Terms</a></p></footer>"


def golden_pages() -> list[tuple[str, bytes, str]]:
    """(URL, body, charset) of each page."""
    texts = tomllib.loads(resources.files("filters.measure").joinpath("golden.toml").read_text("utf-8"))
    english, german, french = texts["en"], texts["de"], texts["fr"]
    aside = "<aside class='related'><h3>Related</h3>" + "".join(f"<a href='/{n}'>Story {n}</a>" for n in range(9))
    steps = "<ol><li>Close the main valve.</li><li>Open the drain.</li><li>Wait for ten minutes.</li></ol>"
    table = "<table><tr><th>Gauge</th><th>Bar</th></tr><tr><td>Inlet</td><td>2.4</td></tr></table>"
    code = "<pre><code>for gauge in gauges:\n    print(gauge.name, gauge.bar)\n</code></pre>"
    quote = f"<blockquote><p>{english[1]}</p></blockquote><figure><img src='a.jpg' alt='quay'><figcaption>The quay"
    posts = "".join(f"<div class='comment'><b>user{n}</b><p>{text}</p></div>" for n, text in enumerate(english[1:4]))
    links = "".join(f"<li><a href='/topic/{n}'>Everything about topic {n}</a></li>" for n in range(40))
    loose = "<br>".join(english[2:5])
    cards = "".join(
        f"<li class=card><h3><a href='/story/{n}'>The story {n}</a></h3><p>{text}</p>"
        for n, text in enumerate(english[:4])
    )
    replies = "".join(f"<div class=message><b class=user>user{n}</b><p>{english[n]}</p></div>" for n in (4, 1, 2))
    return [
        _page(
            "article",
            f"{_HEAD}<main><article><h1>The ferry</h1>{_paragraphs(english[:3])}</article></main>{aside}{_FOOT}",
        ),
        _page(
            "guide",
            f"{_HEAD}<div id=content><h2>Valves</h2>{_paragraphs(english[2:4])}{steps}{table}{code}</div>{_FOOT}",
        ),
        _page(
            "quotes", f"<article><h1>Quay</h1>{_paragraphs(english[3:5])}{quote}</figcaption></figure></article>{_FOOT}"
        ),
        _page("thread", f"{_HEAD}<h1>Which filter?</h1><p>{english[4]}</p><section id='comments'>{posts}</section>"),
        _page("loose", f"<table width=100%><tr><td>{_HEAD}<td><font size=2>{loose}<p>{english[0]}<hr>{_FOOT}"),
        _page("twice", f"<main>{_paragraphs((english[0], english[3], english[0]))}<p>{english[3]}</p></main>"),
        _page("muehle", f"<article>{_DATE}<h1>Die Mühle</h1>{_paragraphs(german)}</article>", "iso-8859-1"),
        _page("marche", f"<div class='post-content'>{_paragraphs(french + french)}</div>{_FOOT}", "windows-1252"),
        _page("links", f"{_HEAD}<ul>{links}</ul>{_FOOT}"),
        _page("listing", f"{_HEAD}<main><ul>{cards}</ul></main>{_FOOT}"),
        _page("replies", f"{_HEAD}<div class=thread>{replies}</div>{_FOOT}"),
        _page("empty", f"{_HEAD}<main><p>Please log in.</p></main>{_FOOT}"),
    ]


@cache
def golden_outputs(extractor: str) -> str:
    """Digest of the measures of all golden pages by the installed libraries. Raises MissingExtra."""
    from filters.measure.page_measures import measure  # it loads the libraries

    settings = msgspec.structs.replace(MeasureSettings(), extractor=extractor)
    measured = [measure(url, body, charset, settings) for url, body, charset in golden_pages()]
    rounded = [_rounded(msgspec.to_builtins(page)) for page in measured]
    return xxhash.xxh3_64_hexdigest(msgspec.json.encode(rounded, order="deterministic"))


def _page(name: str, body: str, charset: str = "utf-8") -> tuple[str, bytes, str]:
    html = f"<!doctype html><html><head><title>{name}</title></head><body>{body}</body></html>"
    return f"https://golden.example/{name}", html.encode(charset), charset


def _paragraphs(texts: Sequence[str]) -> str:
    return "".join(f"<p>{text}</p>" for text in texts)


def _rounded(value: Any) -> Any:
    if isinstance(value, float):
        return float(f"{value:.{_DIGITS}g}")
    if isinstance(value, dict):
        return {name: _rounded(part) for name, part in value.items()}
    return [_rounded(part) for part in value] if isinstance(value, list | tuple) else value
