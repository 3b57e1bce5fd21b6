"""Labels of the Encoding Standard, and the decoding of pages in its charsets."""

from __future__ import annotations

import pytest

from stream.text import charsets
from stream.text.charsets import charset_named, text_in

# A label, and a text as the standard decodes its bytes
READ = [
    ("iso-8859-8-i", b"\xf9\xec\xe5\xed", "שלום"),
    ("csISO88598I", b"\xf9\xec\xe5\xed", "שלום"),
    ("logical", b"\xf9\xec\xe5\xed", "שלום"),
    ("visual", b"\xf9\xec\xe5\xed", "שלום"),
    ("x-mac-cyrillic", b"\x8e\xf1\xe5\xed\xfc", "Осень"),
    ("x-mac-ukrainian", b"\xb4\xb6\xff", "іґ€"),
    ("x-cp1251", b"\xce\xf1\xe5\xed\xfc", "Осень"),
    ("koi8-ru", b"\xa4\xa7", "єї"),
    ("x-gbk", b"\xc4\xe3\xba\xc3", "你好"),
    ("gb2312", b"\xc4\xe3\xba\xc3", "你好"),
    ("cn-big5", b"\xa7A\xa6n", "你好"),
    ("x-euc-jp", b"\xc6\xfc\xcb\xdc", "日本"),
    ("ms932", b"\x93\xfa\x96{", "日本"),
    ("csISO2022JP", b"\x1b$BF|K\\\x1b(B", "日本"),
    ("windows-949", b"\xc7\xd1", "한"),
    ("iso88592", b"\xb1\xe6", "ąć"),
    ("latin5", b"\xfe\xf0", "şğ"),
    ("dos-874", b"\xa1", "ก"),
    ("us-ascii", b"caf\xe9 \x80", "café €"),
    ("x-mac-roman", b"caf\x8e", "café"),
    ("unicodeFEFF", b"\xe9\x00", "é"),
    ("unicodeFFFE", b"\x00\xe9", "é"),
    ("UTF8", b"\xc3\xa9", "é"),
    ("x-user-defined", b"a\x80\xff", "a\uf780\uf7ff"),
    ("replacement", b"any text", "\ufffd"),
    ("hz-gb-2312", b"~{VPND~}", "\ufffd"),
    ("iso-2022-cn-ext", b"", ""),
]


@pytest.mark.parametrize(("label", "page", "text"), READ)
def test_pages_are_read_by_the_label_of_their_charset(label: str, page: bytes, text: str) -> None:
    """A label in any case, within white space, names the charset that decodes the page as the standard says."""
    assert text_in(charset_named(f"\n {label.upper()}\t"), page) == text


def test_each_label_of_the_standard_is_known() -> None:
    """All 228 labels of the 40 encodings are known, and each charset decodes ASCII or is meant not to."""
    assert len(charsets._BY_LABEL) == 228
    for label, charset in charsets._BY_LABEL.items():
        wide = charset.removeprefix("utf-16-") if charset.startswith("utf-16") else ""
        page = f"utf-16-{wide}" if wide else "ascii"
        assert text_in(charset, "plain".encode(page)) == ("\ufffd" if charset == "replacement" else "plain"), label


@pytest.mark.parametrize(
    "label", ["", "utf-7", "utf7", "hz", "idna", "cp037", "utf-32", "latin-1", "\xa0utf-8", "utf-8\0"]
)
def test_other_names_are_no_labels(label: str) -> None:
    """Names of Python's codecs that the standard does not have are not known."""
    assert charset_named(label) == ""
