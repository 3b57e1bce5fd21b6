"""Content: HTML or not, which charset, which opt-outs."""

from __future__ import annotations

import codecs
import itertools
import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from crawler.web.content_type import charset_of, counting_type, is_html, may_be_html, media_type
from crawler.web.links import internal_links
from stream.text.charsets import text_in
from tests.support.paths import ROOT

HTML = "text/html; charset=utf-8"


@pytest.mark.parametrize(
    ("header", "body", "html"),
    [
        (HTML, b"<p>x", True),
        ("Application/XHTML+XML", b"<html>", True),
        (HTML, b"", True),
        (HTML, b"%PDF-1.7 ...", False),
        (HTML, b"\x89PNG\r\n\x1a\n", False),
        (HTML, bytes(range(32)) * 40, False),
        (HTML, b"<html>\0<body>" + b"text " * 300, True),
        ("text/html; charset=utf-16", "<html>plain".encode("utf-16-le"), True),
        (HTML, codecs.BOM_UTF16_LE + "<html>plain".encode("utf-16-le"), True),
        ("", b"\xef\xbb\xbf  <!-- c --> <!DOCTYPE html><p>", True),
        ("application/octet-stream", b"<html>", True),
        ("", b"just text", False),
        ("text/plain", b"<html>", False),
        ("image/png", b"<html>", False),
        ("application/pdf", b"", False),
    ],
)
def test_html_by_header_and_start(header: str, body: bytes, html: bool) -> None:
    """The header counts unless the bytes clearly contradict it; without a header, the start of the body counts."""
    assert (may_be_html(header) and is_html(header, body)) is html


@pytest.mark.parametrize(
    ("header", "kind", "charset"),
    [
        ("text/html, text/html; charset=utf-8", "text/html", "utf-8"),
        ("text/html; charset=gbk, text/html", "text/html", "gbk"),
        ("text/html; charset=gbk, text/plain, text/html", "text/html", ""),
        ("text/html;charset=gbk, text/html;x=1;charset=big5", "text/html", "big5"),
        ("text/plain, text/html", "text/html", ""),
        ("text/html, text/plain", "text/plain", ""),
        ("text/html, */*", "text/html", ""),
        ("text/html,", "text/html", ""),
        ("text/html; charset=utf-8, nonsense", "text/html", "utf-8"),
        ('text/html; x="a, text/plain"', "text/html", ""),
        ('text/html; x="a, text/plain', "text/html", ""),
        (" TEXT/HTML ;charset=utf-8", "text/html", "utf-8"),
        ("text/html charset=utf-8", "", ""),
        ("html", "", ""),
        ("", "", ""),
    ],
)
def test_several_or_malformed_content_types(header: str, kind: str, charset: str) -> None:
    """The last valid type counts, with the charset before it if its own type had one; without one, all is unknown.

    After "extract a MIME type" of the Fetch Standard and its tests in web-platform-tests.
    """
    assert media_type(header) == kind
    assert counting_type(header).lower().partition("charset=")[2] == charset
    assert (may_be_html(header) and is_html(header, b"<html>")) is (kind != "text/plain")


@pytest.mark.parametrize(
    ("header", "body", "charset"),
    [
        ("", codecs.BOM_UTF8 + b"x", "utf-8"),
        ("text/html; charset=iso-8859-2", codecs.BOM_UTF16_BE + "x".encode("utf-16-be"), "utf-16-be"),
        ("text/html; charset=windows-1251", "привет".encode("cp1251"), "cp1251"),
        ("text/html", b'<meta charset="shift_jis">' + "日本語".encode("cp932"), "cp932"),
        ("text/html", "für".encode(), "utf-8"),
        ("text/html", "für".encode("latin-1"), "cp1252"),
        # lies
        ("text/html; charset=utf-8", "für Bären".encode("latin-1"), "cp1252"),
        ("text/html; charset=iso-8859-1", "für Bären".encode(), "utf-8"),
        ("text/html; charset=utf-8", b'<meta charset="cp1251">' + "привет, мир".encode("cp1251"), "cp1251"),
        ("text/html; charset=nonsense", "für".encode(), "utf-8"),
        ("text/html; charset=utf-7", b"+ADw-script+AD4-", "utf-8"),
        # not quite lies
        ("text/html; charset=utf-8", "für Bären".encode() + b"\xff", "utf-8"),
        ("", "für Bären".encode() + b"\xff", "utf-8"),
        ("text/html; charset=iso-8859-1", "für Bären".encode() + b"\xff", "utf-8"),
        ("", "single \ufffd of another program".encode(), "utf-8"),
        ("text/html; charset=nonsense", b"<meta charset=cp1251>" + "привет".encode("cp1251"), "cp1251"),
        ("text/html; charset=utf-16", b"<meta charset=utf-16>plain", "utf-16-le"),
        ("text/html", "<meta charset=utf-16>für".encode(), "utf-8"),
        ("", "สวัสดีชาวโลก".encode("cp874"), "cp874"),
        ("text/html; charset=iso-8859-8-i", "שלום".encode("iso8859-8"), "iso8859-8"),
        ("text/html; charset=x-user-defined", b"\x80\xff", "x-user-defined"),
        ("text/html", b"<meta charset=x-user-defined>\x80", "cp1252"),
        ("text/html", b"<meta charset=iso-2022-kr>\x1b$)C", "replacement"),
        ("text/html; charset=iso-8859-1", b"plain", "cp1252"),
    ],
)
def test_charset_decision(header: str, body: bytes, charset: str) -> None:
    """BOM, header, meta, UTF-8, a guess; a declaration that the bytes contradict is ignored."""
    assert charset_of(header, body) == charset


NO_CHARSETS = (
    "utf-7", "utf7", "unicode_escape", "raw_unicode_escape", "undefined", "idna", "punycode", "rot13", "base64", "hex",
    "quopri", "uu", "zlib", "bz2", "cp037", "utf-32", "hz", "iso2022_kr", "mbcs", "palmos", "\xe9", "aliases",
)  # fmt: skip


@pytest.mark.parametrize("name", NO_CHARSETS)
@pytest.mark.parametrize("where", ["header", "meta"])
def test_codecs_that_are_no_charsets_of_the_web(name: str, where: str) -> None:
    """A Python codec outside the Encoding Standard is ignored: it is costly, raises, or hides markup."""
    header = f"text/html; charset={name}" if where == "header" else "text/html"
    for body in (b"<p>plain", b"<p>-" + b"9999a" * 2000, b"<p>" + b"xn--a." * 1000, b"<p>\\N{DEGREE SIGN}"):
        sent = body if where == "header" else f"<meta charset={name}>".encode("latin-1") + body
        assert charset_of(header, sent) == ("utf-8" if sent.isascii() else "cp1252")


def test_sniffing_costs_no_more_than_its_length() -> None:
    """Many small comments without a tag are not HTML, found in linear time (an ambiguous pattern would never end)."""
    assert not is_html("", b"<!---->" * 140 + b"x")
    assert is_html("", b"<!---->  <!-- a -- b -> -->" * 20 + b"<html>")


@pytest.mark.parametrize(
    ("charset", "text"),
    [
        ("cp932", "日本語の文章をここに書きます。カタカナとひらがなと漢字。"),
        ("euc_jp", "日本語の文章をここに書きます。"),
        ("gb18030", "这是一个很长的中文句子，用来测试字符集检测的结果。"),
        ("big5", "這是一個很長的中文句子，用來測試字元集偵測的結果。"),
        ("cp949", "이것은 문자 집합 감지를 시험하기 위한 긴 한국어 문장입니다."),
    ],
)
@pytest.mark.parametrize("shift", range(4))
def test_a_guess_may_rest_on_a_part_that_ends_within_a_character(charset: str, text: str, shift: int) -> None:
    """An undeclared page is guessed alike wherever its bytes are cut, by its length or by the cap on bodies."""
    start = b"<p>" + text[0].encode(charset) + b"x" * shift
    long = start + text.encode(charset) * 6000
    assert text_in(charset_of("", long), long) == text_in(charset, long)
    cut = start + text.encode(charset) * 20
    for end in range(len(cut) - 4, len(cut)):
        assert text_in(charset_of("", cut[:end], truncated=True), cut) == text_in(charset, cut)


@given(st.binary(max_size=200), st.text(max_size=30))
def test_the_charset_always_decodes(body: bytes, header: str) -> None:
    """Any body under any header has a charset, and is text in it."""
    assert isinstance(text_in(charset_of(f"text/html; charset={header}", body), body), str)
    is_html(header, body)


LEGACY = """
    ru cp1251 koi8-r; uk cp1251 koi8-u; cs cp1250 iso8859-2; hu cp1250 iso8859-2; pl cp1250 iso8859-2; tr cp1254;
    el cp1253 iso8859-7; ar cp1256; ja cp932 euc_jp; ko cp949; zh gb18030; de cp1252; fr cp1252; es cp1252; it cp1252;
    pt cp1252; sv cp1252; fi cp1252
"""


def test_pages_that_declare_nothing_are_guessed() -> None:
    """Of undeclared pages in the older charsets of 18 languages, 95% are read without a wrong character."""
    passages = json.loads((ROOT / "tests/unit/filters/quality/language_passages.json").read_text(encoding="utf-8"))
    right, wrong = 0, []
    for language, *charsets in map(str.split, LEGACY.split(";")):
        for charset, length in itertools.product(charsets, (60, 150, 400, 1000)):
            body = b"<html><title>x</title><body><p>" + passages[language][:length].encode(charset, "ignore")
            found = charset_of("text/html", body)
            if text_in(found, body) == text_in(charset, body):
                right += 1
            else:
                wrong.append((language, charset, length, found))
    print(f"undeclared charsets: {right} of {right + len(wrong)} right; wrong: {wrong}")
    assert right >= 0.95 * (right + len(wrong)) and right > 90


def test_internal_links_in_page_order() -> None:
    """Links of the same host, normalised, without duplicates; none from comments, scripts, nofollow or skipped URLs."""
    body = b"""<base href="https://a.example/dir/"><base href=/not/first/>
    <a href=one>1</a> <a class=x href='/two?a=1&amp;b=2'>2</a>
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
    """Two megabytes of unclosed tags give no links in linear time (a quadratic pattern would take hours)."""
    body = piece * (2_000_000 // len(piece))
    assert len(list(internal_links(body, "utf-8", "https://a.example/"))) <= 1


def test_a_truncated_body_may_end_within_a_character() -> None:
    """A cut character does not turn UTF-8 into windows-1252."""
    body = "für Bä".encode()[:-1]
    assert charset_of("", body, truncated=True) == "utf-8"
