"""The charset that a page declares, and the agreement with html5lib's table of the HTML Standard's rules."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from crawler.web.declared_charset import charset_of_header, charset_of_markup
from stream.text.charsets import charset_of_mark

# Markup, and its charset under the name that Python has; "cp1252" where the page declares none: facts of tests1.dat and
# tests2.dat of html5lib-tests, MIT, without their doctypes and long comments.
HTML5LIB = [
    (b'<!-- -->', 'cp1252'),
    (b'<meta charset="ISO-8859-1">', 'cp1252'),
    (b'<meta charset="iso8859-2">', 'iso8859-2'),
    (b"<meta charset='iso8859-2'>", 'iso8859-2'),
    (b'<meta charset=iso8859-2>', 'iso8859-2'),
    (b'<meta\ncharset=iso8859-2>', 'iso8859-2'),
    (b'<metacharset=iso8859-2>', 'cp1252'),
    (b'<meta http-equiv="Content-Type" content="text/html; charset=iso8859-2">', 'iso8859-2'),
    (b'<meta content="text/html; charset=iso8859-2" http-equiv="Content-Type">', 'iso8859-2'),
    (b'<meta http-equiv="Content-Type" content=text/html; charset=iso8859-2>', 'iso8859-2'),
    (b'<meta http-equiv="Content-Type content="text/html; charset=iso8859-2">', 'cp1252'),
    (b'<meta http-equiv="Content-Type " content="text/html; charset=iso8859-2">', 'cp1252'),
    (b'<meta content="text/html; charset=iso8859-2" http-equiv="Content-Type ">', 'cp1252'),
    (b'<meta http-equiv="Content-Type>" content="text/html; charset=iso8859-2">', 'cp1252'),
    (b'<meta content="text/html; charset=iso8859-2" http-equiv="Content-Type>">', 'cp1252'),
    (b'<meta http-equiv="Content-Style-Type" content="text/html; charset=iso8859-2">', 'cp1252'),
    (b'<meta content="text/html; charset=iso8859-2" http-equiv="Content-Style-Type">', 'cp1252'),
    (b'<meta name="Content-Style-Type" content="text/html; charset=iso8859-2">', 'cp1252'),
    (b'<meta content="text/html; charset=iso8859-2" name="Content-Style-Type">', 'cp1252'),
    (b'<meta content="text/html; charset=iso8859-2">', 'cp1252'),
    (b'<meta content=" text/html; charset = iso8859-2 ">', 'cp1252'),
    (b'<meta content="\ntext/html; charset=iso8859-2\n" http-equiv="Content-Type">', 'iso8859-2'),
    (b'<meta charset="\niso8859-2\n">', 'iso8859-2'),
    (b'<meta charset=\niso8859-2\n>', 'iso8859-2'),
    (b'<meta charset="iso8859-2>\n<p>"</p>', 'cp1252'),
    (b'<meta charset=iso8859-2">\n<p>"</p>', 'cp1252'),
    (b'<meta " charset=iso8859-2>\n<p>"</p>', 'iso8859-2'),
    (b'<meta test" charset=iso8859-2>\n<p>"</p>', 'iso8859-2'),
    (b'<meta test=" charset=iso8859-2>\n<p>"</p>', 'cp1252'),
    (b'<meta test="\' charset=iso8859-2>\n<p>"\'</p>', 'cp1252'),
    (b'<meta test=\'" charset=iso8859-2>\n<p>\'"</p>', 'cp1252'),
    (b'<meta test="" charset=iso8859-2>', 'iso8859-2'),
    (b'<meta test=x" charset=iso8859-2>\n<p>"</p>', 'iso8859-2'),
    (b'<head></head><p title="x>\n<meta test=x" charset=iso8859-2>\n<p>"</p>', 'cp1252'),
    (b'<head></head><p title="x>\n<meta test=x charset=iso8859-2>\n<p>"</p>', 'cp1252'),
    (b'<head></head><p title="x>\n<meta charset=iso8859-2>\n<p>"</p>', 'cp1252'),
    (b'<head></head><p title="x>">\n<meta charset=iso8859-2>\n<p>"</p>', 'iso8859-2'),
    (b'<meta charset="ISO-8859-1">\n<meta charset="iso8859-2">', 'cp1252'),
    (b'<meta charset="iso8859-2">\n<meta charset="ISO-8859-1">', 'iso8859-2'),
    (b'<!--<meta charset="ISO-8859-1">-->\n<meta charset="iso8859-2">', 'iso8859-2'),
    (b'<!--<meta charset="iso8859-2">-->\n<meta charset="ISO-8859-1">', 'cp1252'),
    (b'\xef\xbb\xbf<p>', 'utf-8'),
    (b'\xef\xbb\xbf<meta charset="ISO-8859-1">\n<p>', 'utf-8'),
    (b'<script>document.write(\'<meta charset="ISO-8859-\' + \'2">\')</script>', 'iso8859-2'),
    (b'<script>document.write(\'<meta charset="iso8859-2">\')</script>', 'iso8859-2'),
    (b'<script type="text/plain"><meta charset="iso8859-2"></script>', 'iso8859-2'),
    (b'<style type="text/plain"><meta charset="iso8859-2"></style>', 'iso8859-2'),
    (b'<p><meta charset="iso8859-2"></p>', 'iso8859-2'),
    (b'<meta charset="bogus">\n<meta charset="iso8859-2">', 'iso8859-2'),
    (b'<meta', 'cp1252'),
    (b'<', 'cp1252'),
    (b'<!', 'cp1252'),
    (b'<meta charset = "', 'cp1252'),
    (b'<meta charset=euc-jp', 'cp1252'),
    (b"<meta <meta charset='euc-jp'>", 'euc_jp'),
    (b"<meta       charset    =     'euc-jp'>", 'euc_jp'),
    (b'<!-- -->\n<meta http-equiv="Content-Type" content="text/html; charset=utf-8">', 'utf-8'),
    (b'<!-- -->\n<meta http-equiv="Content-Type" content="text/html; charset=utf', 'cp1252'),
    (b'<meta http-equiv="Content-Type<meta charset="utf-8">', 'cp1252'),
    (b'<meta http-equiv="Content-Type" content="text/html; charset=\'utf-8\'">', 'utf-8'),
    (b'<meta http-equiv="Content-Type" content="text/html; charset=\'utf-8">', 'cp1252'),
    (b'<meta                              ', 'cp1252'),
    (b'<meta charset                    =                              ', 'cp1252'),
    (b'<meta charset=                              utf-8\n>', 'utf-8'),
    (b'<meta content = "text/html;', 'cp1252'),
    (b'<meta charset="UTF-16">', 'utf-8'),
    (b'<meta charset="UTF-16LE">', 'utf-8'),
    (b'<meta charset="UTF-16BE">', 'utf-8'),
    (b'<html a=\xc3\xb1>\n<meta charset="utf-8">', 'utf-8'),
    (b'<html \xc3\xb1>\n<meta charset="utf-8">', 'utf-8'),
    (b'<html>\xc3\xb1\n<meta charset="utf-8">', 'utf-8'),
    *((b"<!-- " + b"x" * length + b' -->\n<meta charset="iso8859-2">', "iso8859-2") for length in (
        511, 512, 1024, 1025, 2048, 2049, 4096, 4097, 8192, 8193)),
    (b'<script>alert("\xe9")</script><!--' + b"+" * 4000 + b'--><meta charset="iso8859-2"><script>alert()</script>',
     "iso8859-2"),
    (b'<html>\n<head>\n<meta http-equiv="Content-Type" content="text/html; charset=euc-jp">\n<!--\xe4\xba\xac-->',
     "euc_jp"),
]  # fmt: skip
WRITTEN_BY_A_SCRIPT = b"""document.write('<meta charset="ISO-8859-' + '2">')"""  # no script of a page is run


def test_agreement_with_html5lib() -> None:
    """Each page of the table has the charset that the HTML Standard gives it, but for one that needs its script run."""
    differing = [
        (page, expected)
        for page, expected in HTML5LIB
        if (charset_of_mark(page) or charset_of_markup(page) or "cp1252") != expected
    ]
    print(f"html5lib, encodings: {len(HTML5LIB) - len(differing)} of {len(HTML5LIB)} the same")
    assert len(HTML5LIB) == 83
    assert [WRITTEN_BY_A_SCRIPT in page for page, _ in differing] == [True]


@pytest.mark.parametrize(
    ("page", "charset"),
    [
        (b"<style>" + b".a{margin:0}" * 400 + b"</style><meta charset=windows-1251>", "cp1251"),
        (b"<script>if (a<b && c='x) {}" + b" " * 5000 + b"</script><meta charset=koi8-r>", "koi8-r"),
        (b"<title>" + b"<meta charset=koi8-r>" * 100 + b"</title><meta charset=cp1251>", "koi8-r"),  # the prescan
        (b"<p>" + b" " * 1024 + b"<textarea><meta charset=koi8-r></textarea>", ""),
        (b"<p>" + b" " * 1010 + b"<meta charset=koi8-r>", "koi8-r"),  # across the end of the prescan
        (b"<meta charset=nonsense><meta charset=''><meta charset=koi8-r>", "koi8-r"),
        (b"<meta charset=nonsense http-equiv=content-type content='text/html; charset=koi8-r'>", ""),
        (b"<meta charset=utf-16><meta charset=koi8-r>", "utf-8"),
        (b"<meta charset=x-user-defined>", "cp1252"),
        (b"<meta charset=hz-gb-2312>", "replacement"),
        (b'<?xml version="1.0" encoding="KOI8-R"?><html>', "koi8-r"),
        (b"<?xml version='1.0' encoding = 'utf-16'?><html>", "utf-8"),
        (b'<?xml version="1.0" encoding="koi8-r"?><meta charset=cp1251>', "cp1251"),
        (b'<html><?xml version="1.0" encoding="koi8-r"?>', ""),
        (b"<META\fCHARSET\n=\t KOI8-R />", "koi8-r"),
        (b"<!--><meta charset=koi8-r>", "koi8-r"),
        (b"<metadata charset=koi8-r></meta charset=koi8-r>", ""),
        (b"charset=koi8-r", ""),
    ],
)
def test_where_a_declaration_counts(page: bytes, charset: str) -> None:
    """A meta counts wherever it stands as an element, the first with a known label; else the XML declaration."""
    assert charset_of_markup(page) == charset


@pytest.mark.parametrize(
    ("header", "charset"),
    [
        ("text/html; charset=koi8-r", "koi8-r"),
        ("text/html;CHARSET=KOI8-R;x=y", "koi8-r"),
        ('text/html; charset="koi8-r"', "koi8-r"),
        ('text/html; title="a; charset=utf-8"; charset=koi8-r', "koi8-r"),
        ("text/html; charset=koi8-r, text/html; charset=utf-8", "koi8-r"),
        ("charset=koi8-r", "koi8-r"),
        ("text/html; charset=utf-16", "utf-16-le"),
        ("text/html; charset=x-user-defined", "x-user-defined"),
        ("text/html; xcharset=koi8-r", ""),
        ("text/html; charset=nonsense", ""),
        ("text/html; charset", ""),
        ("", ""),
    ],
)
def test_the_charset_of_a_header(header: str, charset: str) -> None:
    """The first parameter `charset` counts, quoted or not; text within other quotes does not."""
    assert charset_of_header(header) == charset


@pytest.mark.parametrize(
    "piece",
    [b"<a ", b'<a b="', b"<a b='x", b"<!--", b"<script>", b"<meta ", b"<meta charset=", b"</", b"<", b"=", b" ",
     b"/ ", b"<title></title", b"charset =", b"charset='", b"<?xml encoding", b"a=\"'"],
)  # fmt: skip
def test_hostile_markup_costs_no_more_than_its_length(piece: bytes) -> None:
    """Two megabytes of unclosed markup are read in linear time (a quadratic pattern would take hours)."""
    body = piece * (2_000_000 // len(piece))
    for start in (b"", b"<meta ", b"<meta http-equiv=content-type content="):
        page = start + body + b"charset>"
        assert charset_of_markup(page) in ("", "utf-8")


@given(st.binary(max_size=300), st.text(max_size=60))
def test_no_declaration_raises(body: bytes, header: str) -> None:
    """Any bytes and any header have a charset or none."""
    charset_of_markup(b"<meta charset=" + body)
    charset_of_markup(b"<meta content='charset=" + body)
    charset_of_header(f"text/html; charset={header}")
