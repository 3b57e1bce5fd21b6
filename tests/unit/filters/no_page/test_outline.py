"""Two answers are the same "not found" page despite echoes, recommendations and tokens; two pages of a site are not."""

from __future__ import annotations

import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from filters.no_page.inspector import inspect
from filters.no_page.outline import SIZE, same
from tests.unit.filters.no_page.fixtures.layouts import LAYOUTS, site
from tests.unit.filters.no_page.fixtures.pages import PROSE

MESSAGES = {
    "en": (
        "Nothing to show",
        "Hm",
        "We looked everywhere but there is no such story in our archive. Please use the menu above.",
    ),
    "de": (
        "Tja",
        "Hier ist nichts",
        "Wir haben überall gesucht, aber diese Geschichte gibt es in unserem Archiv nicht. Bitte nutzen Sie das Menü.",
    ),
    "ru": (
        "Пусто",
        "Здесь ничего нет",
        "Мы искали везде, но такой истории в нашем архиве нет. Воспользуйтесь меню или поиском.",
    ),
    "ja": (
        "なし",
        "何もありません",
        "どこを探しても、この記事は当館の資料にはありませんでした。上のメニューをご利用ください。",
    ),
}


def outline(html: str, url: str = "https://site.example/a") -> bytes:
    return inspect(url, 200, {}, html, "").outline


def recommendations(seed: int, excerpts: bool) -> str:
    chosen = random.Random(seed)
    words = PROSE["en"].split()
    rows = [" ".join(chosen.sample(words, 14)) for _ in range(12)]
    after = [f"<p>{' '.join(chosen.sample(words, 10))}</p>" if excerpts else "" for _ in rows]
    return "".join(
        f'<div><a href="/{n}">{row}</a>{more}</div>' for n, (row, more) in enumerate(zip(rows, after, strict=True))
    )


@pytest.mark.parametrize("language", MESSAGES)
@pytest.mark.parametrize("layout", LAYOUTS, ids=lambda layout: layout.__name__)
def test_a_not_found_page_with_the_path_in_it_is_the_same(layout: object, language: str) -> None:
    """The requested path, a date and a token in text and title do not make another page."""
    assert callable(layout)
    title, heading, line = MESSAGES[language]
    outlines = [
        outline(
            layout(language, f"{title}: {path}", heading, [line, f"/{path}", f"2024-05-0{n} ray {n}f3a9c{n}"]),
            f"https://site.example/{path}",
        )
        for n, path in enumerate(("q7x2kd9w", "how-to-moor-a-boat"))
    ]
    assert same(*outlines)


@pytest.mark.parametrize("excerpts", [False, True])
@pytest.mark.parametrize("language", MESSAGES)
def test_a_not_found_page_with_changing_recommendations_is_the_same(language: str, excerpts: bool) -> None:
    """Other recommended stories, with or without excerpts, do not make another page."""
    title, heading, line = MESSAGES[language]
    first, second = (
        outline(site(language, title, heading, [line], recommendations(seed, excerpts))) for seed in (1, 2)
    )
    assert same(first, second)


def test_a_class_that_names_an_error_replaces_the_title() -> None:
    """Two answers with other titles are the same if the body's classes name an error."""
    first, second = (
        outline(
            f"<html><head><title>{title}</title></head><body class='error404'><p>{MESSAGES['en'][2]}</p></body></html>"
        )
        for title in ("One boat", "Two boats")
    )
    assert same(first, second)


def test_pages_of_one_template_are_not_the_same() -> None:
    """Two stories in one large template differ, with their own titles or with the site's title on all pages."""
    parts = PROSE["en"].split(", ")
    for titles in (("Rain", "Boats"), ("Bote", "Bote")):
        first, second = (
            outline(site("en", title, title, [part] * 3)) for title, part in zip(titles, parts, strict=False)
        )
        assert not same(first, second)


def test_an_answer_without_text_is_the_same_as_none() -> None:
    """No text, no outline, nothing the same: neither an empty answer nor the shell of an application."""
    shell = "<html><head><title>My Shop</title></head><body><div id=root>{}</div></body></html>"
    assert outline("") == outline(shell.format("")) == outline(shell.format("<p>Loading…</p>")) == b""
    assert not same(b"", b"")
    assert not same(b"", outline(f"<p>{MESSAGES['en'][2]}</p>"))


@given(st.one_of(st.binary(max_size=SIZE), st.binary(min_size=SIZE, max_size=SIZE)), st.text(max_size=200))
def test_sameness_is_symmetric_and_reflexive(junk: bytes, text: str) -> None:
    """Whatever the outlines, the order does not matter, and a text with an outline is the same as itself."""
    known = outline(f"<title>t</title><p>there is no such story {text}</p>")
    junk_like = known[:2] + junk[2:] if len(junk) == SIZE else junk
    assert same(known, known)
    assert same(known, junk_like) == same(junk_like, known)
