"""A site method as text: accepted methods read back unchanged; unreadable texts are refused."""

from __future__ import annotations

import math
from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from scoring.errors import BadParameters, BadSiteNumbers
from scoring.sites.registry import method_of_text, same_method, text_of_method
from scoring.sites.sprt import SiteTest, SprtParams

_ANY = st.floats() | st.sampled_from([math.inf, 1e-300, 3.0])
_SHARES = st.floats(0, 1) | _ANY
_PAGES = st.integers(-1, 2**70)


def given_numbers() -> st.SearchStrategy[SprtParams | None]:
    """Parameters, if they are accepted, otherwise None."""

    def made(given: dict[str, Any]) -> SprtParams | None:
        try:
            return SprtParams(**given)
        except BadParameters:
            return None

    shares = dict.fromkeys(("p0", "p1", "alpha", "beta"), _SHARES)
    counts = dict.fromkeys(("min_pages", "min_articles"), _PAGES)
    return st.fixed_dictionaries({}, optional={**shares, **counts, "clip": _ANY}).map(made)


@settings(max_examples=200)
@given(given_numbers(), st.integers(0, 2**53))
def test_what_is_accepted_comes_back(numbers: SprtParams | None, close_after_ms: int) -> None:
    """The text of any accepted method gives the same method and digest again."""
    if numbers is None:
        return
    method = SiteTest(numbers, close_after_ms)
    read = method_of_text(text_of_method(method))
    assert read == method and read.digest == method.digest


def test_what_would_not_be_read_back_is_not_written() -> None:
    """Invalid numbers get no text, because a run with that text could not be resumed."""
    params = SprtParams()
    msgspec.structs.force_setattr(params, "clip", math.inf)
    with pytest.raises(BadSiteNumbers, match=r"cannot read: .*clip"):
        text_of_method(SiteTest(params, 0))


_TEXT = text_of_method(SiteTest(SprtParams(), 1))


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (_TEXT.replace('"p0":0.2', '"p0":0.9'), r"sprt needs 0 < p0 < p1 < 1, not p0=0\.9 .*numbers"),
        (_TEXT.replace('"clip":3.0', '"clip":null'), r"cannot read: .*clip"),
        (_TEXT.replace('"clip"', '"later"'), "unknown field"),
        (_TEXT.replace('"sprt"', '"gaussian"'), "gaussian"),
        ("{", "truncated"),
    ],
)
def test_a_text_that_this_farmwatch_cannot_read_is_told(text: str, said: str) -> None:
    """An error in JSON, in a field or in the parameters is one error that names the place."""
    with pytest.raises(BadSiteNumbers, match=said):
        method_of_text(text)


def test_methods_are_the_same_by_what_they_judge_by() -> None:
    """A missing field has its default; another number is another method; an unreadable text equals only itself."""
    shorter = _TEXT.replace('"min_pages":1,', "")
    assert shorter != _TEXT
    assert same_method(shorter, _TEXT)
    assert not same_method(shorter, _TEXT.replace('"p0":0.2', '"p0":0.3'))
    assert not same_method(_TEXT, _TEXT.replace('"close_after_ms":1', '"close_after_ms":2'))
    assert same_method("{}", "{}")
    assert not same_method("{}", _TEXT)
