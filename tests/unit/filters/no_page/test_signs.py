"""The tables of signs have nothing that no known answer shows."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import re2

from filters.no_page.inspector import _NOISE, _segments, signs
from filters.no_page.view import View, lowered, view
from tests.unit.filters.no_page.test_inspector import NO_PAGES

VIEWS = [(answer.reason, view(lowered(answer.body, ""))) for answer in NO_PAGES]


def in_titles(sign: str) -> Callable[[View], bool]:
    pattern = re2.compile(f"{_NOISE}(?:{sign}){_NOISE}")
    return lambda seen: any(
        pattern.fullmatch(part) for line in (seen.title, *seen.headings) for part in _segments(line)
    )


def in_texts(sign: str) -> Callable[[View], bool]:
    pattern = re2.compile(sign)
    return lambda seen: bool(pattern.search("\n".join(seen.lines())))


def in_markup(sign: str) -> Callable[[View], bool]:
    return lambda seen: sign.encode() in seen.document


@pytest.mark.parametrize(("table", "shown"), [("titles", in_titles), ("texts", in_texts), ("marks", in_markup)])
def test_each_sign_is_shown_by_an_answer(table: str, shown: Callable[[str], Callable[[View], bool]]) -> None:
    """For each entry of a reason there is an answer with that reason that has it."""
    unseen = [
        sign
        for reason, of_reason in signs()[table].items()
        for sign in of_reason
        if not any(map(shown(sign), [seen for other, seen in VIEWS if other == reason]))
    ]
    assert unseen == []
