"""Answers that are no page are named, pages that look like them stay pages, and only a prefix is looked at."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from filters.no_page.inspector import REASONS, inspect, reason_of
from filters.no_page.view import MAX_BYTES
from tests.unit.filters.no_page.fixtures import challenges, held_back, pages, places, products
from tests.unit.filters.no_page.fixtures.layouts import Answer, bare, card

KNOWN = challenges.ANSWERS + places.ANSWERS + products.ANSWERS
NO_PAGES = KNOWN + held_back.ANSWERS
RECALL = 0.98

PIECES = st.sampled_from(
    [
        *(
            "<a ",
            "</a>",
            "<h1>",
            "</h1>",
            "<title>",
            "</title>",
            "<script>",
            "</script>",
            "<!--",
            "-->",
            "<nav>",
            "<svg",
        ),
        *(">", "<", "&amp;", "&#xd800;", "\x00", "\ufeff", '{"a":', "404", "page not found", "<input type=password>"),
        *("<body class='error404'>", "日本", "текст "),
    ]
)
BODIES = st.one_of(st.binary(max_size=400), st.text(max_size=400), st.lists(PIECES, max_size=60).map("".join))


def reason(answer: Answer, encoding: str = "utf-8") -> str:
    return inspect(answer.url, answer.status, answer.headers, answer.body, encoding).reason


def missed(answers: Sequence[Answer]) -> list[str]:
    return [answer.name for answer in answers if reason(answer) != answer.reason]


@pytest.mark.parametrize("answers", [KNOWN, held_back.ANSWERS], ids=["known", "held back"])
def test_answers_that_are_no_page_are_named(answers: Sequence[Answer]) -> None:
    """At least .98 of the answers written for the test have their reason."""
    assert len(missed(answers)) <= (1 - RECALL) * len(answers), missed(answers)


def test_the_answers_are_many_and_various() -> None:
    """At least 200 answers and 85 traps, all reasons, more than six languages and two scripts, 1 KB to 250 KB."""
    assert len(NO_PAGES) >= 200 and len(pages.ANSWERS) >= 85
    assert {answer.reason for answer in NO_PAGES} == set(REASONS)
    assert len(Counter(answer.language for answer in NO_PAGES)) >= 10
    sizes = [len(answer.body) for answer in NO_PAGES]
    assert min(sizes) < 1024 and max(sizes) > 250_000
    assert len({answer.body for answer in NO_PAGES}) == len(NO_PAGES)


def test_pages_that_look_like_no_page_stay_pages() -> None:
    """Articles about walls and errors, widgets, banners, login forms and short pages have no reason."""
    assert missed(pages.ANSWERS) == []


@pytest.mark.parametrize("encoding", ["utf-16", "gb18030", "no-such-charset", "a\0b", "punycode", "rot13"])
def test_the_charset_is_used_and_what_is_none_is_utf_8(encoding: str) -> None:
    """A "not found" page is one in any charset; what is no charset is read as UTF-8."""
    html = card("zh", "页面不存在", "页面不存在", ["您访问的页面不存在。"])
    body = html.encode(encoding) if encoding in ("utf-16", "gb18030") else html.encode()
    assert inspect("", 200, {}, body, encoding).reason == "soft_404"
    assert inspect("", 200, {}, html, encoding).reason == "soft_404"


def test_the_reason_alone_is_that_of_the_inspection() -> None:
    """Answers that are no page, and pages that look like them, have the same reason without an outline."""
    for answer in NO_PAGES + pages.ANSWERS:
        assert reason_of(answer.status, answer.headers, answer.body, "utf-8") == reason(answer), answer.name


def test_headers_decide_first() -> None:
    """A header that names a challenge decides, whatever the body."""
    article = pages.ABOUT[0].body
    assert inspect("", 200, {"cf-mitigated": "challenge"}, article, "").reason == "challenge"
    assert inspect("", 200, {"x-vercel-mitigated": "deny"}, article, "").reason == "blocked"
    assert inspect("", 200, {"cf-mitigated": "", "server": "cloudflare"}, article, "").reason == ""


@pytest.mark.parametrize("status", [404, 500, 502, 504])
def test_a_broken_url_is_no_maintenance(status: int) -> None:
    """The page of a failed request does not say that the site is down; the status says what happened."""
    for name in ("500 Internal Server Error", "502 Bad Gateway", "Service unavailable", "Site under maintenance"):
        assert inspect("", status, {"retry-after": "9"}, bare("en", name, name, ["nginx"]), "").reason == ""
        assert inspect("", 503, {"retry-after": "9"}, bare("en", name, name, ["nginx"]), "").reason == "maintenance"


def test_what_no_reader_sees_hides_no_sign() -> None:
    """A wall whose words have invisible characters inside is one."""
    html = card("en", "Just a moment...", "Checking your browser", ["Checking your browser before you continue."])
    assert inspect("", 200, {}, html, "").reason == "challenge"
    unseen = html.replace("moment", "mo\u200bme&shy;nt").replace("brow", "b\u2060row")
    assert inspect("", 200, {}, unseen, "").reason == "challenge"


@pytest.mark.parametrize("digit", "09")
def test_a_reference_of_endless_digits_is_read(digit: str) -> None:
    """A reference with more digits than a number may have raises nothing."""
    html = card("en", "Just a moment...", "Checking your browser", [f"Checking &#{digit * 5_000}; your browser."])
    assert inspect("", 200, {}, html, "").reason == "challenge"


@settings(deadline=None)
@given(url=st.text(max_size=60), status=st.integers(0, 999), body=BODIES, encoding=st.text(max_size=8))
def test_any_answer_has_a_known_reason_and_a_short_outline(
    url: str, status: int, body: bytes | str, encoding: str
) -> None:
    """Whatever the answer, there is no error, the reason is a known one and the outline takes at most 200 bytes."""
    found = inspect(url, status, {"retry-after": url}, body, encoding)
    assert found.reason in ("", *REASONS)
    assert len(found.outline) <= 200


@pytest.mark.parametrize(
    "piece", ["<a ", "<h1>", "<svg", "<!--", "<!-- -->", "<title>", "<body ", "<", "&amp;", "{", "w ", "<h1><b>"]
)
def test_only_a_prefix_of_a_document_is_looked_at(piece: str) -> None:
    """A hostile document that is four times as long gives the same result as its prefix."""
    document = piece * (4 * MAX_BYTES // len(piece))
    assert inspect("", 200, {}, document, "") == inspect("", 200, {}, document[:MAX_BYTES], "")
