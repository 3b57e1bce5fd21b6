"""One extraction per page: the path that was taken, the guards, and bodies that are no pages."""

from __future__ import annotations

import dataclasses
import sys
from contextlib import closing
from typing import Any

import msgspec
import pytest
import trafilatura.core
import zstandard
from lxml import etree

from filters.charsets import decode
from filters.extraction.blocks import BlockKind, Definition, PageBlocks, unpack
from filters.extraction.interface import ExtractError, Extraction
from filters.extraction.page_guards import _MANY_ATTRIBUTES, MAX_ATTRIBUTES
from filters.extraction.trafilatura_text import by_trafilatura
from filters.measure.extractors import EXTRACTORS, ExtractorRow, extract, extractor
from filters.measure.page_measures import RawPage
from filters.measure.workers import ExtractionPool
from filters.settings import MeasureSettings
from stream.text.user_errors import MissingExtra

SETTINGS = MeasureSettings()
PLAIN = MeasureSettings(extractor="resiliparse")
BOTH = pytest.mark.parametrize(
    "settings",
    [SETTINGS, *(MeasureSettings(extractor=name) for name in ("blocks", "auto"))],
    ids=["trafilatura", "blocks", "auto"],
)
SENTENCE = "The river rose slowly during the night and the people of the village moved their boats to higher ground. "


def page(body: str) -> str:
    return f"<html><head><title>t</title></head><body>{body}</body></html>"


def test_article_is_extracted_for_recall(article: str) -> None:
    """An ordinary article yields its text, one line per block, with its share of links."""
    found = extract(article, "", SETTINGS)
    assert (found.error, found.path, found.tried, found.link_code_share) == ("", "recall", ("recall",), 0)
    assert found.text.startswith("The river\n0. The river rose")
    assert [block.kind for block in unpack(found.blocks)] == [BlockKind.HEADING] + [BlockKind.PARAGRAPH] * 4


def test_links_and_lists_are_measured() -> None:
    """Links count as links and items as items."""
    body = (
        f"<article><p>{SENTENCE * 6}<a href='/a'>{'linked words ' * 6}</a></p><ul><li>one thing</li><li>two</li></ul>"
    )
    found = extract(page(body + f"<p>{SENTENCE * 3}</p></article>"), "", SETTINGS)
    assert found.path == "recall"
    assert found.link_code_share is not None and 0.05 < found.link_code_share < 0.2
    assert [block.kind for block in unpack(found.blocks)].count(BlockKind.ITEM) == 2


def test_pages_of_links_are_extracted_again_for_precision(monkeypatch: pytest.MonkeyPatch) -> None:
    """Above the configured link share, a shorter precise result is used; at a share of 1 it is never tried."""
    links = "".join(f"<a href='/{number}'>Read the story number {number} of the river</a> " for number in range(12))
    html = page(f"<article><h1>Boats</h1><p>{SENTENCE * 4}</p><p>{links}</p><p>{SENTENCE * 2}</p></article>")
    found = extract(html, "", SETTINGS)
    assert found.tried == ("recall", "precision")
    assert (found.path, found.link_code_share) == ("precision", 0)
    monkeypatch.setattr("filters.extraction.trafilatura_text.RETRY_LINK_CODE_SHARE", 1)
    recall = extract(html, "", SETTINGS)
    assert recall.path == "recall"
    assert recall.link_code_share is not None and recall.link_code_share > 0.2


@BOTH
@pytest.mark.parametrize("start", ["<pre>", "<pre class=language-python>", "<pre><code>", "<div class=highlight><pre>"])
def test_a_page_of_code_is_code(start: str, settings: MeasureSettings) -> None:
    """Preformatted text is code, whatever its markup and its words, also where the precise text is no shorter."""
    code = "".join(f"x{number} = load(path, {number})\n" for number in range(200))
    for before in ("<h1>Loading</h1><p>All of it:</p>", "<div class=post-content><h1>Loading</h1>"):
        found = extract(page(f"{before}{start}{code}"), "", settings)
        assert found.link_code_share is not None and found.link_code_share > 0.9


def test_precise_result_without_text_is_not_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    """If the precise extraction finds no text, the recall text stays, so that the page's links are judged."""
    real: Any = trafilatura.core.bare_extraction

    def only_recall(html: str, options: Any) -> Any:
        return None if options.focus == "precision" else real(html, options=options)

    monkeypatch.setattr(trafilatura.core, "bare_extraction", only_recall)
    links = f"<p>{SENTENCE}<a href='/x'>{SENTENCE}</a></p>" * 5
    found = extract(page(f"<article>{links}</article>"), "", SETTINGS)
    assert (found.path, found.tried) == ("recall", ("recall", "precision"))
    assert found.link_code_share is not None and found.link_code_share > 0.4


def test_flat_fallback_leaves_shares_unknown() -> None:
    """Text from embedded data has no links or lists, nor has its precise extraction: path `fallback`, shares None."""
    data = f'{{"@type": "Article", "articleBody": "{SENTENCE * 8}"}}'
    found = extract(page(f'<script type="application/ld+json">{data}</script><div id="app"></div>'), "", SETTINGS)
    assert (found.error, found.path, found.link_code_share) == ("", "fallback", None)
    assert found.tried == ("recall", "precision")
    assert SENTENCE.strip() in found.text


@pytest.mark.parametrize(("sentences", "path"), [(6, "precision"), (2, "precision"), (1, "fallback")])
def test_flat_text_is_extracted_again_for_precision(monkeypatch: pytest.MonkeyPatch, sentences: int, path: str) -> None:
    """A structured text of the precise extraction is kept instead of a flat one, unless it is a stub of it."""
    core: Any = trafilatura.core
    real = core.bare_extraction

    def flat_recall(html: str, options: Any) -> Any:
        document = real(html, options=options)
        if options.focus == "recall":
            document.body = core.baseline(core.load_html(html))[0]
            document.body[:] = [etree.fromstring(f"<p>{SENTENCE * 7}</p>")]
        return document

    monkeypatch.setattr(core, "bare_extraction", flat_recall)
    html = page(f"<article><h1>Boats</h1><p>{SENTENCE * sentences}</p></article>")
    found = extract(html, "", SETTINGS)
    assert (found.path, found.tried) == (path, ("recall", "precision"))
    assert found.link_code_share == (0.0 if path == "precision" else None)
    monkeypatch.setattr("filters.extraction.trafilatura_text.RETRY_LINK_CODE_SHARE", 1)
    flat = extract(html, "", SETTINGS)
    assert (flat.path, flat.tried, flat.link_code_share) == ("fallback", ("recall",), None)


ITEMS = {
    "break": "{0}<br>{0}",
    "paragraphs": "<p>{0}</p><p>{0}</p>",
    "divs": "<div>{0}</div><div>{0}</div>",
    "code": "{0} <code>f(x)</code> {0}",
    "quotation": "{0} <q>so it was</q> {0}",
    "link and emphasis": "{0} <a href='/a'>there</a> <b>and</b> {0}",
    "nested list": "{0} <ul><li>one</li><li>two</li></ul> {0}",
}


@BOTH
@pytest.mark.parametrize("item", ITEMS)
def test_an_item_is_measured_whole(item: str, settings: MeasureSettings) -> None:
    """An item of 160 characters counts as long, whatever elements it has. Items of a nested list count separately."""
    half = SENTENCE.strip()[:78]
    items = f"<li>{ITEMS[item].format(half)}</li>" * 6
    body = f"<article><h1>Title</h1><p>{SENTENCE * 6}</p><ul>{items}</ul><p>{SENTENCE * 3}</p></article>"
    found = PageBlocks([extract(page(body), "", settings).blocks], Definition.RUN).listed.chars.tolist()
    assert sum(chars > 150 for chars in found) == 6
    assert [chars for chars in found if chars <= 150] == ([3] * 12 if item == "nested list" else [])


def test_trafilatura_is_as_before_afterwards(article: str) -> None:
    """Extraction leaves no change in the Trafilatura library."""
    core: Any = trafilatura.core
    before = core.load_html, core.baseline, trafilatura.external.justext_rescue
    extract(article, "", SETTINGS)
    assert (core.load_html, core.baseline, trafilatura.external.justext_rescue) == before


@BOTH
@pytest.mark.parametrize(
    ("html", "error"),
    [
        (b"", ExtractError.EMPTY),
        (b" \n\t ", ExtractError.EMPTY),
        (b"\x89PNG\r\n\x1a\n" + bytes(range(256)) * 20, ExtractError.NOT_HTML),
        (b"%PDF-1.7 plain so far", ExtractError.NOT_HTML),
        (bytes(range(256)) * 20, ExtractError.NOT_HTML),
        (b"\x00" * 5000, ExtractError.NOT_HTML),
        (b"plain text, no page", ExtractError.NOT_HTML),
        (b"<!-- only -->\n<!-- comments <b> -->", ExtractError.NO_TEXT),
        (b"<html><body></body></html>", ExtractError.NO_TEXT),
        (b"<div>" * 5000 + SENTENCE.encode() * 10 + b"</div>" * 5000, ExtractError.TOO_DEEP),
        (b"<p>x</p>" * 50_001, ExtractError.TOO_MANY_ELEMENTS),
        (b"<p>" + b"x</html>" * 2_000, ExtractError.TOO_MANY_ELEMENTS),
        (b"<" * 50_001, ExtractError.NOT_HTML),
    ],
)
def test_page_without_a_text_has_a_named_error(html: bytes, error: str, settings: MeasureSettings) -> None:
    """A page without a text gives an error by name; nothing is raised."""
    found = extract(html, "utf-8", settings)
    assert (found.error, found.path, found.text, found.blocks) == (error, "none", "", b"")


@BOTH
def test_guards_are_at_their_limits(settings: MeasureSettings) -> None:
    """A page at a cap of the settings is accepted; one more is refused."""
    html = page(f"<p>{SENTENCE * 4}</p>" * 3)
    exact = msgspec.structs.replace(settings, max_html_bytes=len(html), max_elements=html.count("<") - html.count("</"))
    found = extract(html, "", exact)
    assert (found.error, found.is_cut) == ("", False)
    assert extract(html + " ", "", exact) == dataclasses.replace(found, is_cut=True)
    fewer = msgspec.structs.replace(settings, max_elements=exact.max_elements - 1)
    assert extract(html, "", fewer).error == ExtractError.TOO_MANY_ELEMENTS


@BOTH
@pytest.mark.parametrize("attribute", [" a{}", " a{}=b", " a{}='>'", ' a{}= "</p>"', "/a{}", " a{}<p", ' a{}=">"a'])
def test_too_many_attributes_of_an_element_are_refused(article: str, attribute: str, settings: MeasureSettings) -> None:
    """One attribute above the cap, in any notation, is refused before a parser sees it; the cap is accepted."""
    padding = f"<p>{SENTENCE * 1_500}</p>"
    each = 2 if attribute.endswith("a") else 1  # attributes

    def with_attributes(count: int) -> str:
        element = "<div" + "".join(attribute.format(number) for number in range(count // each)) + ">"
        return f"{padding}<!-- <a --><script>if (a<b) c('<p')</script>{element}</div>{article}"

    assert extract(with_attributes(MAX_ATTRIBUTES + 2), "", settings).error == ExtractError.TOO_MANY_ATTRIBUTES
    assert extract(with_attributes(MAX_ATTRIBUTES), "", settings).error == ""


@pytest.mark.parametrize(
    "before",
    [
        *("<!-->", "<!--->", "<!-- a --!>", "<script />", "<style><script ></style>", "<style><!--</style>"),
        *("<title><!-- </title>", "<textarea><script ></textarea>", "<?a <!-- ?>", "<!DOCTYPE html SYSTEM '<!--'>"),
        "</p <!-- >",
    ],
)
def test_attributes_are_not_hidden_by_what_stands_before_them(before: str) -> None:
    """Elements after comments, scripts and other markup are counted, because those end as in the parser."""
    element = "<p " + " ".join(f"a{number}=1" for number in range(20_000)) + ">"
    assert extract(f"{before}{element}{SENTENCE}", "", SETTINGS).error == ExtractError.TOO_MANY_ATTRIBUTES


@pytest.mark.parametrize(
    "part",
    [
        "<!--",
        "<script ",
        "<script>--></scrip",
        "<a ",
        "<a b='x\" ",
        '<a b="',
        "<a b=",
        "<a  \n",
        "</",
        "-",
        "<a<",
        "'\"<",
    ],
)
def test_search_for_attributes_takes_time_for_each_character_once(part: str) -> None:
    """2 MB of unclosed markup is searched in linear time; in quadratic time this test would take minutes."""
    html = "<p>" + part * (2_000_000 // len(part))
    sum(len(tag[0]) for tag in _MANY_ATTRIBUTES.finditer(html))


@pytest.mark.parametrize("extractor", ["trafilatura", "blocks", "auto", "resiliparse"])
@pytest.mark.parametrize("encoding", ["utf-8", "utf-16", "shift_jis"])
@pytest.mark.parametrize("missing_bytes", range(1, 900, 113))
def test_the_first_part_of_a_large_page_is_extracted(extractor: str, encoding: str, missing_bytes: int) -> None:
    """Wherever a page is cut, its text is that of its first paragraphs, without a piece of a tag or character."""
    paragraphs = "".join(
        f"<p class='text &lt; {number}'>{number}. {SENTENCE * 2}川の水。</p>\n" for number in range(30)
    )
    data = page(f"<article>{paragraphs}</article>").encode(encoding)
    settings = msgspec.structs.replace(SETTINGS, extractor=extractor, max_html_bytes=len(data) - missing_bytes)
    found, whole = extract(data, encoding, settings), extract(data, encoding, SETTINGS)
    lines = found.text.split("\n")
    assert found.is_cut and not whole.is_cut
    assert 25 <= len(lines) <= 30
    assert all(line.endswith("水。") or line.endswith("ground.") for line in lines), lines[-1]


@BOTH
def test_too_much_text_is_given_up(article: str, settings: MeasureSettings, monkeypatch: pytest.MonkeyPatch) -> None:
    """Main text above its cap is an error, so that no record outgrows the log's."""
    monkeypatch.setattr("filters.measure.extractors.MAX_TEXT_BYTES", 1000)
    assert extract(article, "", settings).error == ExtractError.TOO_LARGE


@BOTH
@pytest.mark.parametrize("depth", [200, 254, 300, 500])
def test_nested_page_is_extracted_whole(depth: int, settings: MeasureSettings) -> None:
    """Nested divs are extracted beyond the parser's usual limit, and so is the text after them."""
    end = f"<p>{SENTENCE * 3}The end.</p>"
    found = extract(page("<div>" * depth + f"<p>{SENTENCE * 5}</p>" + "</div>" * depth + end), "", settings)
    assert found.error == "" and found.text.endswith("The end.") and found.text.count(SENTENCE.strip()) == 8


@BOTH
def test_nul_bytes_are_dropped(article: str, settings: MeasureSettings) -> None:
    """NUL bytes between and within words do not end the page or its text."""
    with_nuls = article.replace("river", "ri\0ver").replace("<p>", "\0<p>").encode()
    assert extract(with_nuls, "utf-8", settings).text == extract(article, "", settings).text


@pytest.mark.parametrize("extractor", ["trafilatura", "blocks", "auto", "resiliparse"])
@pytest.mark.parametrize(
    "unseen",
    [
        *("\u200b", "\ufeff", "\u00ad", "\u2060", "\ufe0f", "\u3164", "\U000e0061"),
        *("&shy;", "&shy", "&#8203;", "&#x200B;", "&zwnj;", "&ZeroWidthSpace;", "&#65279", "\u200b&#173;"),
        *("&#0000008203;", "&#x0000000200B;", "&#X00AD;", f"&#{'0' * 90}8203;"),
    ],
)
def test_what_no_reader_sees_is_no_text(extractor: str, unseen: str) -> None:
    """Empty paragraphs of invisible characters are no lines, and words with one inside are the words without it."""
    settings = msgspec.structs.replace(SETTINGS, extractor=extractor)

    def with_unseen(text: str) -> Extraction:
        parts = "".join(f"<p>{number}. {SENTENCE * 3}</p><p>{text}</p>" for number in range(9))
        return extract(page(f"<article><h1>Boats</h1>{parts}</article>".replace("moved", f"mo{text}ved")), "", settings)

    found, plain = with_unseen(unseen), with_unseen("")
    assert (found.text, found.blocks, found.lines) == (plain.text, plain.blocks, plain.lines)


def test_embedded_data_have_no_invisible_text() -> None:
    """A text in the strings of embedded data has no invisible characters, and none is counted."""

    def embedded(sentence: str) -> Extraction:
        data = f'{{"@type": "Article", "articleBody": "{sentence * 8}"}}'
        return extract(page(f'<script type="application/ld+json">{data}</script><div id="app"></div>'), "", SETTINGS)

    found, plain = embedded(SENTENCE.replace("river", "ri\\u200bver\\u00ad")), embedded(SENTENCE)
    assert (found.text, found.blocks) == (plain.text, plain.blocks)


@pytest.mark.parametrize("extractor", ["trafilatura", "blocks", "auto", "resiliparse"])
@pytest.mark.parametrize("word", ["1,204.50", "— • —", "😀🎉", "\u3164\u3164", "⠀⠀"])
def test_a_page_without_letters_has_no_text(extractor: str, word: str) -> None:
    """Numbers, marks, emoji and fillers alone are no main text; a letter makes one."""
    settings = msgspec.structs.replace(SETTINGS, extractor=extractor)
    html = page("<article>" + f"<p>{f'{word} ' * 60}</p>" * 6 + "</article>")
    assert extract(html, "", settings).error == ExtractError.NO_TEXT
    assert extract(html.replace("</p>", f" words {word * 9}</p>"), "", settings).error == ""


@BOTH
@pytest.mark.parametrize(
    "encoding", ["utf-8", "ascii", "shift_jis", "utf-16", "no-such-charset", "zlib", "idna", "hex", ""]
)
def test_lying_charset_is_survived(encoding: str, settings: MeasureSettings) -> None:
    """With any charset label, undecodable bytes yield text or a named error."""
    html = page(f"<article><p>{SENTENCE * 5} Grüße aus Köln.</p></article>").encode("latin-1")
    found = extract(html, encoding, settings)
    assert found.error in ("", ExtractError.NO_TEXT, ExtractError.NOT_HTML)
    if encoding not in ("utf-16", "shift_jis"):
        assert SENTENCE.strip() in found.text


def test_charset_is_used() -> None:
    """Bytes are decoded with the charset that the crawler chose, without byte order marks."""
    assert decode("Grüße".encode("cp1252"), "windows-1252") == "Grüße"
    assert decode("Grüße".encode("utf-16"), "UTF-16") == "Grüße"
    assert decode("Grüße".encode("utf-8-sig"), "utf-8") == "Grüße"
    assert decode(b"Gr\xfc\xdfe", "utf-8") == "Gr��e"
    assert decode(b"a +ADw-b", "unicode-1-1-utf-7") == "a +ADw-b", "a charset by any of its names"


@pytest.mark.parametrize(
    ("raised", "error"), [(ValueError("x"), ExtractError.FAILED), (MemoryError(), ExtractError.OUT_OF_MEMORY)]
)
def test_failure_of_the_extractor_is_the_pages(
    monkeypatch: pytest.MonkeyPatch, article: str, raised: BaseException, error: ExtractError
) -> None:
    """An exception or lack of memory in the extractor becomes a named error of the page."""

    def fails(_html: str, _tree: Any) -> Extraction:
        raise raised

    monkeypatch.setitem(EXTRACTORS, "trafilatura", ExtractorRow(lambda _: fails, ()))
    assert extract(article, "", SETTINGS).error == error


def test_extractor_without_its_package_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    """An extractor without its package is a configuration error, before a page is read or a worker runs."""
    monkeypatch.setitem(sys.modules, "resiliparse", None)
    assert extractor(SETTINGS) is by_trafilatura
    for look_up in (extractor, ExtractionPool):
        with pytest.raises(MissingExtra) as refused:
            look_up(MeasureSettings(extractor="resiliparse"))
        assert refused.value.facts == {"extra": "resiliparse"}


def test_resiliparse_makes_flat_text(article: str) -> None:
    """The extractor `resiliparse` gives one line per paragraph, path `plain`, and an unknown share of links."""
    found = extract(article, "", PLAIN)
    assert (found.error, found.path, found.tried, found.link_code_share) == ("", "plain", ("plain",), None)
    lines = found.text.split("\n")
    assert lines[0] == "The river" and len(lines) == 5
    assert [(row.kind, row.chars) for row in unpack(found.blocks)] == [
        (BlockKind.PARAGRAPH, len(line)) for line in lines
    ]


@pytest.mark.parametrize(
    ("html", "error"),
    [
        ("<html><body></body></html>", ExtractError.NO_TEXT),
        ("<p>x</p>" * 50_001, ExtractError.TOO_MANY_ELEMENTS),
        (f"<p>{SENTENCE}\0\ud800</p>", ""),
        ("<blockquote>" * 20_000 + SENTENCE * 9, ExtractError.TOO_DEEP),
    ],
    ids=["nothing", "elements", "characters", "deep"],
)
def test_resiliparse_has_the_same_guards(html: str, error: str) -> None:
    """Hostile pages end in a text or a named error, as with any extractor."""
    assert extract(html, "", PLAIN).error == error


def test_resiliparse_runs_in_the_workers(article: str) -> None:
    """The worker processes load and use the configured extractor."""
    body = zstandard.ZstdCompressor().compress(article.encode())
    with closing(ExtractionPool(msgspec.structs.replace(PLAIN, workers=1))) as pool:
        assert pool.map([RawPage("https://a.example/x", "utf-8", body)])[0].path == "plain"
