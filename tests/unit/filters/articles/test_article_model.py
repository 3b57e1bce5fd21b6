"""The article model: probabilities, contributions, and files that are refused."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from filters.articles.inputs import URL_INPUTS
from filters.articles.model import SHIPPED, ArticleModel, StepFunction, load_model, read_model
from filters.errors import BadModel
from filters.structure.names import MEASURES
from stream.schema.records import Features

STEPS = {
    "tokens": StepFunction((-0.5, 200.0), ((0.25, 0.0), (-1.5, 0.5), (1.0, -0.25))),
    "forms": StepFunction((1.0,), ((0.5, 0.0), (-0.5, 0.75))),
}
MODEL = ArticleModel(1, "made for tests", ("article", "forum"), (0.5, -1.0), STEPS)
BODY: dict[str, Any] = msgspec.to_builtins(MODEL)


def page(tokens: float | None, forms: float | None = None) -> Features:
    structure = [forms if name == "forms" else None for name in MEASURES]
    measures: dict[str, float | str | None] = {} if tokens is None else {"tokens": tokens}
    return Features(id="f", site="a.example", page_id="p", url="", epoch="e", measures=measures, structure=structure)


@pytest.mark.parametrize(
    ("tokens", "forms", "logit"), [(None, None, 1.25), (0, 1, -0.5), (200, 1, -0.5), (201, 1, 2.0), (200.5, 2, 1.0)]
)
def test_a_logit_is_the_bias_and_a_step_of_each_input(tokens: float | None, forms: float | None, logit: float) -> None:
    """A step holds up to its edge and with it; an unknown value has the lowest step."""
    logits = MODEL.logits(page(tokens, forms))
    assert logits is not None and logits[0] == logit


def test_a_page_without_a_text_or_a_structure_has_no_logits() -> None:
    """Its probability and its kind are unknown, not low."""
    whole = page(300, 1)
    assert MODEL.logits(msgspec.structs.replace(whole, structure=[])) is None
    assert MODEL.logits(msgspec.structs.replace(whole, extract_error="no_text")) is None


def test_a_page_is_of_another_kind_only_if_it_is_probably_no_article() -> None:
    """From a probability of one half on a page is an article, whatever the other logits; below, the highest decides."""
    assert MODEL.kind((0.0, 3.0)) == "article"
    assert MODEL.kind((-0.1, -3.0)) == "forum"
    three = msgspec.structs.replace(MODEL, kinds=("article", "forum", "product"))
    assert (three.kind((-1.0, -2.0, -3.0)), three.kind((-1.0, -3.0, -2.0))) == ("forum", "product")


logits = st.floats(-1e6, 1e6)


@given(logits, logits)
def test_the_probability_rises_with_the_logit(one: float, other: float) -> None:
    """A higher logit never has a lower probability; each is in [0, 1] with four digits."""
    low, high = (MODEL.probability((logit, 0.0)) for logit in sorted((one, other)))
    assert 0 <= low <= high <= 1 and round(low, 4) == low


@given(st.lists(st.integers(-3000, 3000), min_size=1, max_size=100))
def test_the_order_of_a_sum_changes_no_probability(thousandths: list[int]) -> None:
    """Logits with three digits in any order give one probability."""
    parts = [number / 1000 for number in thousandths]
    found = {MODEL.probability((sum(order), 0.0)) for order in (parts, parts[::-1], sorted(parts))}
    assert max(found) - min(found) < 1.5e-4  # equal, or neighbours where the sum lies on a rounding boundary


@given(st.none() | st.floats(0, 1e6), st.none() | st.integers(0, 9), st.sampled_from(MODEL.kinds))
def test_contributions_and_the_bias_are_the_logit(tokens: float | None, forms: int | None, kind: str) -> None:
    """The parts of the inputs, the largest first, sum to the logit of each kind."""
    features = page(tokens, forms)
    parts, found, place = MODEL.contributions(features, kind), MODEL.logits(features), MODEL.kinds.index(kind)
    assert found is not None
    assert sum(part.logit for part in parts) + MODEL.bias[place] == pytest.approx(found[place], abs=1e-9)
    assert {part.name: part.value for part in parts} == {"tokens": tokens, "forms": forms}
    sizes = [abs(part.logit) for part in parts]
    assert sizes == sorted(sizes, reverse=True)


def test_a_file_is_read_as_it_was_written(tmp_path: Path) -> None:
    """The model and its digest survive; the digest depends on numbers, not on the card. A new file is read again."""
    file = tmp_path / "mine.json"
    file.write_bytes(msgspec.json.encode(MODEL))
    assert load_model(str(file)) == MODEL
    assert msgspec.structs.replace(MODEL, card="other").digest == load_model(str(file)).digest
    file.write_bytes(_with(bias=[0.5, -1.001]))
    assert load_model(str(file)).digest != MODEL.digest


def test_the_shipped_model_reads_no_url() -> None:
    """A page has one probability under any URL and without one; a model of before that reads its URL is still read."""
    assert not URL_INPUTS.intersection(load_model(SHIPPED).inputs)
    assert list(read_model(_steps([0.5], [[0, 0], [1, 1]], "path_depth"), "").inputs) == ["path_depth"]


def _with(**fields: Any) -> bytes:
    return json.dumps({**BODY, **fields}).encode()


def _steps(at: list[float], values: list[list[float]], name: str = "tokens") -> bytes:
    return _with(inputs={name: {"at": at, "values": values}})


@pytest.mark.parametrize(
    ("data", "said"),
    [
        (b"", "no article model, or a damaged one: Input data was truncated"),
        (_with()[:-9], "no article model, or a damaged one: Input data was truncated"),
        (b"[" * 100_000, "damaged one: Expected `object`"),
        (b'{"x":' + b"[" * 100_000, "damaged one: maximum recursion depth"),
        (_with(more="[" * 100), "unknown field `more`"),
        (_with().replace(b"forum", b"\xff"), "damaged one: 'utf-8' codec"),
        (_with(bias=[0.5, "x"]), "Expected `float`, got `str`"),
        (_with(bias=[0.5, None]), "Expected `float`, got `null`"),
        (_with(bias=[0.5, float("nan")]), "JSON is malformed"),
        (_with(bias=[0.5, 2e6]), "beyond 1e+06 is no logit"),
        (_with(version=2), "version 2 of a model, this farmwatch reads 1"),
        (_with(bias=[0.5]), "distinct names with a bias each"),
        (_with(kinds=["forum", "shop"]), "article among them"),
        (_with(kinds=["article", "article"]), "distinct names"),
        (_steps([0.5], [[0, 0], [1, 1]], "tokenz"), "'tokenz' is no measure of this farmwatch"),
        (_steps([0.5], [[0, 0]]), "the steps of 'tokens' do not fit together"),
        (_steps([0.5], [[0, 0], [1]]), "the steps of 'tokens' do not fit together"),
        (_steps([0.5, 0.5], [[0, 0]] * 3), "the steps of 'tokens' do not fit together"),
        (_steps([0.5], [[0, 0], [1, -1e7]]), "beyond 1e+06 is no logit"),
        (_with(card="x" * 2**20), "larger than 256 KiB"),
    ],
)
def test_a_file_that_is_no_model_is_refused(data: bytes, said: str) -> None:
    """The message names the file and the mistake."""
    with pytest.raises(BadModel) as raised:
        read_model(data, "mine.json")
    assert str(raised.value).startswith("mine.json: ") and said in str(raised.value)


def test_a_name_that_is_not_shipped_and_a_file_that_is_not_there_are_refused(tmp_path: Path) -> None:
    """The message says what a model's name may be, or why the file cannot be read."""
    with pytest.raises(BadModel, match=r"not shipped; known: articles; a path ends in \.json"):
        load_model("mine")
    with pytest.raises(BadModel, match="No such file"):
        load_model(str(tmp_path / "mine.json"))


def test_pages_together_have_the_logits_of_each_alone() -> None:
    """A batch gives each page what it has alone; a damaged block table is an error."""
    pages = [page(300.0, 3.0), page(None), msgspec.structs.replace(page(1.0), structure=[]), page(10.0, 0.0)]
    together = MODEL.logits_of(pages)
    assert together == [MODEL.logits(one) for one in pages]
    assert together[2] is None
    with pytest.raises(ValueError, match="block table"):
        MODEL.logits(msgspec.structs.replace(page(300.0), blocks=b"\1"))
