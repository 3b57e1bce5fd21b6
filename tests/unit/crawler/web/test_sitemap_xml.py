"""Sitemaps, indexes and feeds as XML: every way to write an entry, damage, and hostile files."""

from __future__ import annotations

import pytest

from crawler.web.sitemap_xml import sitemap_entries
from crawler.web.sitemaps import SitemapFile, read_sitemap

_URL = "https://a.example/sitemap.xml"
ONE = "https://a.example/1"
TWO = "https://a.example/2"
_NAMESPACE = 'xmlns="http://www.sitemaps.org/schemas/sitemap/0.9"'


def read(text: str | bytes) -> SitemapFile:
    """The file at `_URL`."""
    return read_sitemap(text if isinstance(text, bytes) else text.encode(), _URL, 10**6)


@pytest.mark.parametrize(
    "text",
    [
        f"<urlset {_NAMESPACE}><url><loc {_NAMESPACE}>{ONE}</loc></url></urlset>",
        f"<urlset {_NAMESPACE}><url id='1'><loc lang = 'de' >\n{ONE}\n</loc></url></urlset>",
        f"<s:urlset xmlns:s='http://other.example/'><s:url><s:loc>{ONE}</s:loc></s:url></s:urlset>",
        f"<s:urlset><s:url><s:loc>{ONE}</s:loc></s:url></s:urlset>",  # a prefix that is not declared
        f"<URLSET><Url><LOC>{ONE}</LOC></Url></URLSET>",
        f"<urlset><url><loc><![CDATA[{ONE}]]></loc></url></urlset>",
        "<urlset><url><loc>https://a.<!-- a comment -->example<?x y?><![CDATA[/1]]></loc></url></urlset>",
        f"<urlset><!-- <url><loc>{TWO}</loc></url> --><url><loc>{ONE}</loc></url></urlset>",
        f"<urlset><![CDATA[<url><loc>{TWO}</loc></url>]]><url><loc>{ONE}</loc></url></urlset>",
        f"<urlset><url>{ONE}</url></urlset>",
        f"<urlset><url>{TWO}<loc>{ONE}</loc>{TWO}</url></urlset>",
        f"<urlset><url><image:image><image:loc>{TWO}</image:loc></image:image><loc>{ONE}</loc></url></urlset>",
        f"<urlset xmlns:v='http://v.example/'><url><v:video><v:loc>{TWO}</v:loc></v:video><loc>{ONE}</loc></url></urlset>",
        f"<urlset><url><loc>{ONE}</loc><xhtml:link rel='alternate' href='{TWO}'/></url></urlset>",
        f"<!DOCTYPE urlset SYSTEM 'file:///x' [<!ENTITY x '{TWO}'>]><urlset><url><loc>{ONE}</loc></url></urlset>",
        f"<br />\n<b>Notice</b>: x<?xml version='1.0'?><urlset><url><loc>{ONE}</loc></url></urlset>",
        f"<rss version='2.0'><channel><link>{TWO}</link><item><link>{ONE}</link></item></channel></rss>",
        f"<rss><channel><item><link>\n<![CDATA[{ONE}]]>\n</link><comments>{TWO}</comments></item></channel></rss>",
        f"<rdf:RDF xmlns='http://x.example/'><channel><link>{TWO}</link></channel><item><link>{ONE}</link></item>",
        f"<feed xmlns='http://www.w3.org/2005/Atom'><link href='{TWO}'/><entry><link href='{ONE}'/></entry></feed>",
        f"<feed><entry><link rel='edit' href='{TWO}'/><link rel='alternate' href='{ONE}'/></entry></feed>",
        f"<a:feed xmlns:a='http://www.w3.org/2005/Atom'><a:entry><a:link href='{ONE}'></a:link></a:entry></a:feed>",
    ],
)  # fmt: skip
def test_every_way_to_write_a_page(text: str) -> None:
    """Attributes, prefixes, comments, CDATA and feeds give the page of an entry, and nothing else."""
    assert read(text) == SitemapFile(pages=(ONE,))
    assert read(f'<?xml version="1.0" encoding="UTF-16"?>{text}') == SitemapFile(pages=(ONE,))
    assert read(f'<?xml version="1.0"?><!--{"x" * 9000}-->{text}') == SitemapFile(pages=(ONE,))


@pytest.mark.parametrize(
    "text",
    [
        f"<sitemapindex><sitemap><loc>{ONE}</loc></sitemap></sitemapindex>",
        f"<sitemapindex><sitemap>{ONE}</sitemap></sitemapindex>",
        f"<sitemapindex><sitemap>{ONE}<lastmod>2024</lastmod></sitemap></sitemapindex>",
        f"<sitemapindex><loc>{ONE}</loc></sitemapindex>",
        f"<!--{'<urlset>' * 1000}--><x:sitemapindex><x:sitemap><x:loc>{ONE}</x:loc></x:sitemap></x:sitemapindex>",
    ],
)
def test_every_way_to_write_a_file(text: str) -> None:
    """An entry of an index is a file, also without a loc, and behind a long comment."""
    assert read(text) == SitemapFile(files=(ONE,))


@pytest.mark.parametrize(
    "tail",
    [
        "<url><loc>https://a.example/trunca", "<url><loc><![CDATA[https://a.example/x", "<url", "<!-- ",
        "</urlset></urlset>", "\0\0\x08\x1f", "<a b=c d>", "&nosuch;&#xFFFFFFFF;&#0;", "]]>", "<" * 50,
        "<x>" * 5000, "<!DOCTYPE x [", "<!ENTITY x 'y'>", "<?php echo 1 ?", "\ufffe\uffff",
        "<a" + " b='1'" * 3000 + "/>",
    ],
)  # fmt: skip
def test_a_damaged_tail_loses_no_entry_before_it(tail: str) -> None:
    """Whatever follows, the entries before it count; an entry that is cut does not."""
    text = f"<urlset><url><loc>{ONE}</loc></url><url><loc>{TWO}</loc></url>{tail}"
    assert read(text).pages == (ONE, TWO)
    assert read(text.encode() + b"\xff\xfe\xc3").pages == (ONE, TWO)


@pytest.mark.parametrize(
    "piece",
    [
        "<1a>", "</1a>", "<>", "</>", "< a>", "<!x>", "<!- x -->", "<![cdata[x]]>", "<![x[", "<?1 x?>", "<?>", "<-a>",
        "<br>" * 40, "<br>" * 5000, "<a 1='2'/>", "<a b='<1>'/>", "<a<b>", "&#xD83D;&#xDE00;", "&#55357;&#0056832;",
        "<a b='&#xdfff;'/>", "<![CDATA[&#xD83D;]]>", "<!--&#xD83D;-->", "&#xD83D", "&#0;", "\ud83d",
    ],
)  # fmt: skip
def test_damage_loses_no_entry_after_it(piece: str) -> None:
    """Tags that are none, elements that are never closed, and references to no character cost no other entry."""
    text = f"<urlset>{piece}<url><loc>{ONE}</loc>{piece}</url>{piece}<url><loc>{TWO}</loc></url></urlset>"
    assert read(text.encode("utf-8", "surrogatepass")).pages == (ONE, TWO)


def test_an_element_that_is_never_closed_in_each_entry() -> None:
    """Each of a thousand entries counts, though each lies in the open element of the one before."""
    urls = [f"https://a.example/{number}" for number in range(1000)]
    assert read("<urlset>" + "".join(f"<url><loc>{url}</loc><br></url>" for url in urls)).pages == tuple(urls)


def test_what_the_parser_cannot_decode_ends_the_reading() -> None:
    """A reference that hides from the repair behind a quoted CDATA costs what follows, and raises nothing."""
    text = f"<urlset><url><loc>{ONE}</loc></url><a b='<![CDATA['/>&#xD83D;<url><loc>{TWO}</loc></url></urlset>"
    assert read(text).pages in {(ONE,), (ONE, TWO)}


@pytest.mark.parametrize(
    ("written", "url"),
    [
        ("?a=1&amp;b=2", "?a=1&b=2"),
        ("?a=1&b=2", "?a=1&b=2"),
        ("?a=1&copy=2&lt=3", "?a=1&copy=2&lt=3"),
        ("?a=1&amp;amp;b", "?a=1&amp;b"),
        ("?a=&#49;&#x31;", "?a=11"),
        ("?&#55295;&#xD7FF;&#57344;&#xE000;", "?%ED%9F%BF%ED%9F%BF%EE%80%80%EE%80%80"),
        ("<![CDATA[?a=1&b=2]]>", "?a=1&b=2"),
        ("<![CDATA[?a&amp;b]]>", "?a&amp;b"),
    ],
)
def test_ampersands(written: str, url: str) -> None:
    """References to characters are read once; a bare ampersand, an error of many sites, stands for itself."""
    assert read(f"<urlset><url><loc>{ONE}{written}</loc></url></urlset>").pages == (ONE + url,)


@pytest.mark.parametrize("encoding", ["iso-8859-1", "windows-1251", "shift_jis", "utf-16", "utf-8-sig"])
def test_the_declared_encoding_counts(encoding: str) -> None:
    """The XML declaration's encoding is that of the file, or its byte order mark."""
    path, escaped = {
        "windows-1251": ("да", "%D0%B4%D0%B0"), "shift_jis": ("日", "%E6%97%A5")
    }.get(encoding, ("ä", "%C3%A4"))  # fmt: skip
    text = f'<?xml version="1.0" encoding="{encoding}"?><urlset><url><loc>{ONE}{path}</loc></url></urlset>'
    assert read(text.encode(encoding)).pages == (ONE + escaped,)


def test_nothing_is_expanded_or_fetched() -> None:
    """Entities of a document type, nested or from elsewhere, stand for nothing; the other entries count."""
    laughs = "".join(f"<!ENTITY l{n} '{f'&l{n - 1};' * 10}'>" for n in range(1, 30))
    laughs += f"<!ENTITY f SYSTEM 'file:///etc/hosts'><!ENTITY % p '{TWO}'>%p;"
    kind = f"<!DOCTYPE urlset [<!ENTITY l0 '{TWO}'>{laughs}]>"
    entries = "".join(f"<url><loc>{text}</loc></url>" for text in ("&l0;", "&l29;", "&f;", ONE))
    assert read(f"{kind}<urlset>{entries}</urlset>").pages == (ONE,)


@pytest.mark.parametrize(
    "piece",
    ["<a>", "<a/>", "<a b='", "<!--", "<![CDATA[", "<?x", "<?xml ", "</a>", "<!DOCTYPE", "<!DOCTYPE a [",
     "<!DOCTYPE a []", "&", "&amp;", "<a:b xmlns:a='", "<loc ", "<url>", "<link href='"],
)  # fmt: skip
def test_hostile_files_cost_no_more_than_their_length(piece: str) -> None:
    """A megabyte of one piece of markup has no entry, and takes linear time (a quadratic reader would take hours)."""
    assert list(sitemap_entries(piece.encode() * (1_000_000 // len(piece)))) == []


def test_pages_and_files_in_one() -> None:
    """A file that has pages and further files gives both."""
    text = f"<urlset><sitemap><loc>{ONE}</loc></sitemap><url><loc>{TWO}</loc></url></urlset>"
    assert read(text) == SitemapFile(pages=(TWO,), files=(ONE,))


def test_months_of_changes_are_counted() -> None:
    """Of each URL the month of its `lastmod`, before or after its `loc`; not of further sitemaps, nor other texts."""
    dates = ("2024-05-04", "2024-05-31T10:00:00Z", "2023-01", "1970-01-01", "May 2024", "2024-13-01", "")
    urls = "".join(f"<url><loc>{ONE}{n}</loc><lastmod>{text}</lastmod></url>" for n, text in enumerate(dates))
    file = f"<sitemap><loc>{TWO}</loc><lastmod>2022-01-01</lastmod></sitemap>"
    first = f"<url><lastmod> 2024-06-01 </lastmod><loc>{ONE}</loc></url>"
    assert read(f"<urlset>{urls}{file}{first}</urlset>").months == {"2024-05": 2, "2023-01": 1, "2024-06": 1}


@pytest.mark.parametrize(
    "more",
    [
        "<url><loc>https://b.example/x</loc><lastmod>2024-05</lastmod></url>",
        f"<url><loc>{ONE}</loc><lastmod>2024-05</lastmod></url>",
        f"<url><loc>{ONE}</loc><lastmod>2024-05</lastmod><lastmod>2024-05</lastmod></url>",
        "<url><lastmod>2024-05</lastmod></url>",
        "<url><loc>mailto:x</loc><lastmod>2024-05</lastmod></url>",
        "<url><loc>//</loc></url>" * 49_998 + f"<url><loc>{TWO}</loc><lastmod>2024-05</lastmod></url>",
    ],
    ids=["foreign", "repeated", "twice", "no URL", "no web URL", "too many"],
)
def test_only_listed_pages_have_a_month(more: str) -> None:
    """An entry that is not counted among the pages does not count in a month either."""
    first = f"<url><loc>{ONE}</loc><lastmod>2024-05-01</lastmod></url>"
    found = read(f"<urlset>{first}<url><loc>https://b.example/</loc></url>{more}</urlset>")
    assert (found.pages, found.months) == ((ONE,), {"2024-05": 1})
