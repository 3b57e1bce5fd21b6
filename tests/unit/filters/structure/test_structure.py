"""The structure measures: values by example, what is unknown, any HTML, and pages built to be slow."""

from __future__ import annotations

import random
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from lxml import etree

from filters.extraction.html_tree import ParseFailed, parse
from filters.extraction.interface import ExtractError, Extraction
from filters.measure.extractors import EXTRACTORS, ExtractorRow, extract
from filters.measure.page_measures import measure
from filters.settings import MeasureSettings
from filters.structure import measures as structure
from filters.structure.names import MEANINGS, MEASURES, TAG_RATIOS, Measures
from filters.structure.page_lines import visible_text

SETTINGS = MeasureSettings()
URL = "https://a.example/2024/05/the-old-ferry-7"
TEXT = "0123456789" * 10  # 100 bytes
FLAGS = {name for name, meaning in MEANINGS.items() if meaning.startswith("1 if") or meaning.startswith("1 for")}
SHARES = {name for name in MEASURES if name.endswith("_share")} | {"h1_in_title"}


def measured(html: str, url: str = "") -> Measures:
    tree = parse(html)
    elements = list(tree.iter())
    return structure.structure_measures(elements, structure.by_tag(elements), visible_text(tree), html, url)


def jsonld(data: str) -> str:
    return f'<head><script type="application/ld+json">{data}</script></head><p>{TEXT}'


@pytest.mark.parametrize(
    ("html", "expected"),
    [
        (f"<p>{TEXT}<p>{TEXT}<div>{TEXT}{TEXT}", {"page_bytes": 400, "paragraph_share": 0.5, "paragraph_bytes": 100}),
        ("<p>a b\n\tc d\r\n</p>", {"page_bytes": 4}),
        ("<p>äö</p>", {"page_bytes": 4}),
        (f"<a href=/>{TEXT}</a><a><b>{TEXT}</b> </a>{TEXT}{TEXT}", {"anchor_share": 0.5, "links": 2, "link_ratio": 5}),
        ("<a>\n a \n</a>bcd", {"anchor_share": 0.25}),
        (f"<pre><code>{TEXT}</code>{TEXT}</pre><p>{TEXT} <code>{TEXT}</code>", {"page_code_share": 0.75}),
        (f"<p>{TEXT}", {"page_code_share": 0.0}),
        (f"<title>{TEXT}</title><script>{TEXT}</script><style>{TEXT}</style><p>{TEXT}", {"page_bytes": 100}),
        (f"<p>{TEXT}<noscript><style>{TEXT}</style>{TEXT}</noscript>", {"page_bytes": 100, "needs_script": 0}),
        (f"<p>{TEXT}<div hidden>{TEXT}</div>", {"hidden_share": 0.5}),
        (f"<p>{TEXT}<div\n hidden\n>{TEXT}</div>", {"hidden_share": 0.5}),
        (f'<p>{TEXT}<section style="color:red;display : none">{TEXT}</section>', {"hidden_share": 0.5}),
        (f'<p>{TEXT}<ul><li style="visibility:hidden">{TEXT}</ul>', {"hidden_share": 0.5}),
        (f"<p>{TEXT}<div hidden>{TEXT}<div hidden style='display:none'>{TEXT}</div></div>", {"hidden_share": 2 / 3}),
        (f'<p>{TEXT}<div style="display:block">{TEXT}</div>', {"hidden_share": 0}),
        ("<div id=app></div><script>x()</script>", {"script_only": 1, "page_bytes": 0}),
        ("<p>little</p>", {"script_only": 0}),
        (f"<p>{TEXT}{TEXT}<script>x()</script>", {"script_only": 0}),
        ("<noscript>Please enable JavaScript.</noscript>", {"needs_script": 1}),
        ("<form><input type=Password><input></form><form></form>", {"forms": 2, "password_fields": 1}),
        (
            "<title>The old ferry</title><h1> <img></h1><h1>The ferry sank</h1>",
            {"title_words": 3, "h1_words": 3, "h1_in_title": 2 / 3},
        ),
        (
            f"<div class=r>{TEXT}</div>" * 3 + f"<div>{TEXT}</div>",
            {"record_count": 3, "record_share": 0.75, "record_bytes": 100},
        ),
        (f"<div class=r>{TEXT}</div>" * 2, {"record_count": 0, "record_share": 0, "record_bytes": None}),
        ("<div><div class=r>a</div></div>" * 5, {"record_count": 0}),
        (f"<time>1 May</time><p>{TEXT}", {"time_elements": 1}),
        ('<meta property="Article:Published_Time" content="2024-05-01">', {"meta_date": 1}),
        ('<meta name=date content=" ">', {"meta_date": 0}),
        ('<meta name=author content="A. Bee">', {"meta_author": 1, "byline": 0}),
        ("<meta name=author>", {"meta_author": 0}),
        ('<p class="post-author">A. Bee</p>', {"byline": 1}),
        ('<a rel="nofollow author">A. Bee</a>', {"byline": 1}),
        ("<a rel=author>A. Bee</a>", {"byline": 1}),
        ("<span class='byline'>A. Bee</span>", {"byline": 1}),
        ('<p class="post">The author is unknown.</p><a href="/author">A. Bee</a>', {"byline": 0}),
        ("<meta name=ROBOTS content='NoIndex, follow'>", {"noindex": 1}),
        ("<meta name=robots content='index'>", {"noindex": 0}),
        (
            jsonld('{"@type": "NewsArticle", "datePublished": "x", "author": {}}'),
            {"jsonld_article": 1, "jsonld_date": 1, "jsonld_author": 1, "jsonld_product": 0},
        ),
        (jsonld('{"@type" : [ "Thing", "https://schema.org/Product" ]}'), {"jsonld_product": 1, "jsonld_article": 0}),
        (jsonld('{"@graph": [{"@type":"WebPage"}, {"@type":"QAPage"}]}'), {"jsonld_forum": 1, "jsonld_listing": 0}),
        (jsonld('{"@type": "ItemList"'), {"jsonld_collection": 1, "jsonld_service": 0}),
        ('<meta property="og:type" content="Article">', {"og_article": 1, "og_website": 0, "og_article_dated": 0}),
        (
            '<meta property="og:type" content="article"><meta property="article:published_time" content="x">',
            {"og_article_dated": 1},
        ),
        ('<meta property="og:type" content="website">', {"og_article": 0, "og_website": 1, "og_product": 0}),
        ('<meta property="og:type" content="og:product">', {"og_product": 1}),
    ],
)
def test_a_measure_by_example(html: str, expected: dict[str, float | None]) -> None:
    """Bytes are those of the visible text without white space; each part of a page is measured as its meaning says."""
    found = measured(html)
    assert {name: found.get(name) for name in expected} == pytest.approx(expected)


@pytest.mark.parametrize(("name", "tags"), TAG_RATIOS.items())
def test_each_tag_ratio_counts_its_elements(name: str, tags: tuple[str, ...]) -> None:
    """A ratio is the elements of its tags per 1,000 bytes of visible text."""
    page = "".join("<table><tr><td></table>" if tag == "td" else f"<{tag}></{tag}>" for tag in tags)
    assert measured(f"<body>{page}<center>{TEXT}")[f"{name}_ratio"] == 10 * len(tags)


@pytest.mark.parametrize(
    ("url", "expected"),
    [
        (URL, {"url_date": 1, "path_depth": 3, "slug_chars": 15, "slug_words": 3, "slug_digits": 1}),
        ("https://a.example", {"url_date": 0, "path_depth": 0, "slug_chars": 0}),
        ("https://a.example/2024/13/x?d=/2024/05/", {"url_date": 0, "path_depth": 3}),
        ("https://a.example/news-2024-5-1.html", {"url_date": 0, "slug_digits": 6}),
        ("", {"url_date": None, "path_depth": None, "slug_words": None}),
        ("no url", {"path_depth": None}),
    ],
)
def test_the_path_of_the_url_is_measured(url: str, expected: dict[str, float | None]) -> None:
    """Date, depth and last segment are those of the path, without query; all are unknown without a URL."""
    found = measured("<p>text", url)
    assert {name: found.get(name) for name in expected} == expected


def test_what_a_page_lacks_is_unknown() -> None:
    """Types without metadata, means without elements, and shares and ratios without text are unknown, not 0."""
    found = measured("<div>text")
    lacks = {"paragraph_bytes", "record_bytes", "h1_words", "h1_in_title", "main_share"}
    lacks |= {name for name in MEASURES if name.startswith(("jsonld_", "og_", "url_", "path_", "slug_"))}
    assert {name for name in MEASURES if found.get(name) is None} == lacks - {"jsonld_date", "jsonld_author"}
    empty = measured("<img>")
    assert all(empty.get(name) is None for name in MEASURES if name.endswith(("_share", "_ratio")))


def test_names_are_complete_and_known() -> None:
    """A page with every part has every measure but `main_share`, and none without a name and meaning."""
    parts = jsonld('{"@type": "Article"}') + "<h1>A</h1><meta property=og:type content=a>" + "<li class=r>b" * 3
    assert set(measured(parts, URL)) == set(MEASURES) - {"main_share"}


def test_a_page_that_is_not_parsed_has_no_structure(monkeypatch: pytest.MonkeyPatch, article: str) -> None:
    """A page that is no HTML has no structure; one without a main text, or whose extractor fails, has."""
    for page in ("", "plain text", b"\x89PNG"):
        assert measure(URL, page, "", SETTINGS).structure == []
    found = measure(URL, "<form><input type=password></form>", "", SETTINGS)
    assert (found.error, len(found.structure)) == (ExtractError.NO_TEXT, len(MEASURES))
    values = dict(zip(MEASURES, found.structure, strict=True))
    assert (values["password_fields"], values["main_share"], values["path_depth"]) == (1, None, 3)
    assert measure(URL, "<a>home</a>", "", SETTINGS).structure[MEASURES.index("main_share")] in (0, 1)

    def fails(*_: Any) -> Extraction:
        raise ValueError

    monkeypatch.setitem(EXTRACTORS, "trafilatura", ExtractorRow(lambda _: fails, ()))
    found = measure(URL, article, "", SETTINGS)
    values = dict(zip(MEASURES, found.structure, strict=True))
    assert (found.error, values["h1_words"], values["main_share"]) == (ExtractError.FAILED, 2, None)


def test_the_main_share_is_of_the_visible_text(article: str) -> None:
    """An article that is the whole page has a main share of nearly 1; with navigation around it, less."""
    place = MEASURES.index("main_share")
    alone = measure(URL, article, "", SETTINGS).structure[place]
    framed = measure(URL, article.replace("<body>", "<body>" + "<nav><a>Elsewhere</a></nav>" * 300), "", SETTINGS)
    assert alone is not None and alone > 0.99
    assert framed.structure[place] == pytest.approx(0.34, abs=0.3)


def _bounded(found: Measures) -> None:
    assert set(found) <= set(MEASURES)
    for name, value in found.items():
        if value is not None:
            assert 0 <= value < 2**53, name
            assert value <= 1 or name not in SHARES | FLAGS, name
            assert value in (0, 1) or name not in FLAGS, name


PIECES = st.sampled_from(
    [
        *("<a>", "</a>", "<p>", "</p>", "<div class=r>", "<div hidden>", "</div>", "<li style='display:none'>"),
        *("</li>", "<noscript>", "</noscript>", "<template>", "</template>", "<script>", "</script>", "<title>"),
        *("<h1>", "</h1>", "<meta name=author content=x>", "<meta property=og:type content=article>", "<body>"),
        *("</html>", "</title>"),
        *('<script type="application/ld+json">', '{"@type": [', '"@type": "Article"', "class='author", "byline"),
        "<!--",
        *("javascript", " ", "ä", "\n", "word ", "\x01", "\u2028", "<svg>", "<table>", "<td>", "<input type=password>"),
    ]
)


@given(st.lists(PIECES | st.text(max_size=5), max_size=60).map("".join), st.text(max_size=30) | st.just(URL))
def test_any_page_has_measures_in_their_ranges(html: str, url: str) -> None:
    """Any HTML that parses has no other names, shares and flags within 0 and 1, and an unchanged tree."""
    try:
        tree = parse(html)
    except ParseFailed:
        return
    before = etree.tostring(tree)
    elements = list(tree.iter())
    _bounded(structure.structure_measures(elements, structure.by_tag(elements), visible_text(tree), html, url))
    assert etree.tostring(tree) == before


@pytest.mark.parametrize("seed", range(3))
def test_random_bytes_as_html(seed: int) -> None:
    """Random bytes with markup between them have measures in their ranges, or an error of the page."""
    chance = random.Random(seed)
    page = b"<body>" + b"".join(
        chance.randbytes(20) + chance.choice((b"<a ", b"<p>", b"<div class=")) for _ in range(500)
    )
    found = extract(page, "latin-1", SETTINGS, URL)
    _bounded(found.structure)


NESTED = {
    "links": ("<a><b>", "anchor_share"),
    "code": ("<pre><b>", "page_code_share"),
    "paragraphs": ("<p><object>", "paragraph_share"),
    "hidden": ("<div hidden style=display:none>", "hidden_share"),
    "noscript": ("<noscript><div>", ""),
    "templates": ("<template><div>", ""),
    "headings": ("<h1><div>", ""),
    "records": ("<div class=r>", ""),
}


@pytest.mark.parametrize("filling", ["x" * 100_000, " " * 100_000, "<br>" * 10_000], ids=["text", "blanks", "elements"])
@pytest.mark.parametrize("shape", NESTED)
def test_nested_elements_are_read_a_bounded_number_of_times(
    monkeypatch: pytest.MonkeyPatch, shape: str, filling: str
) -> None:
    """Text inside 240 nested elements of any kind is read fewer than 20 times, and shares stay within 1."""
    read = 0

    def counting(kept: Any) -> Any:
        def call(element: Any) -> Any:
            nonlocal read
            data = kept(element)
            read += len(data)
            return data

        return call

    monkeypatch.setattr(structure, "_data", counting(structure._data))
    monkeypatch.setattr(structure, "_text", counting(structure._text))
    opened, share = NESTED[shape]
    depth = 240 // opened.count("<")
    found = measured(opened * depth + filling)
    _bounded(found)
    assert read < 20 * max(len(filling), 1_000)
    if share and filling[0] == "x":
        assert found[share] == 1


@pytest.mark.parametrize(
    ("html", "name", "value"),
    [
        ("<div class=r>a</div>" * 100_000, "record_count", 100_000),
        ("<a href=/>b</a>" * 100_000, "links", 100_000),
        (f"<script>{'author byline ' * 400_000}</script><p>x", "script_only", 1),
        ("<p>" + "author" * 500_000, "byline", 0),
        ("<p>" + "class=x author " * 300_000, "byline", 0),
        ("<p>" + "display" * 500_000 + f"<div style='{'display ' * 100_000}'>", "hidden_share", 0),
        (jsonld('"@type":' + " " * 500_000), "jsonld_article", None),
        (jsonld('"@type":[' * 200_000), "jsonld_article", None),
        (jsonld('"@type": "' * 200_000), "jsonld_date", 0),
        ("<meta name=date content=1>" * 50_000, "meta_date", 1),
        (f"<title>{'word ' * 500_000}</title><h1>word</h1>", "h1_in_title", 1),
    ],
    ids=["records", "links", "script", "author", "class", "style", "type", "list", "quotes", "metas", "title"],
)
def test_pages_built_to_be_slow_have_their_measures(html: str, name: str, value: float | None) -> None:
    """Pages of megabytes that repeat what a measure searches for are measured; a quadratic search would not end."""
    assert measured(html, URL).get(name) == value


def test_a_long_url_is_measured() -> None:
    """A URL of a megabyte has its depth and digits."""
    found = measured("<p>x", "https://a.example" + "/2024" * 200_000)
    assert (found["path_depth"], found["slug_digits"]) == (200_000, 4)
