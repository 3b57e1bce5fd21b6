"""The numbers of the classifier: exact sums, the choice of blocks, and files that are refused."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from filters.errors import BadModel
from filters.extraction.html_tree import parse
from filters.extraction.learned.inputs import MOST, block_inputs
from filters.extraction.learned.model import (
    _LOGIT_UNITS,
    PER_MILLE,
    Layer,
    Network,
    best_blocks,
    load_model,
    read_model,
    sample_inputs,
)
from filters.extraction.learned.model_name import SHIPPED, model_bytes, model_digest
from filters.extraction.learned.page_blocks import page_blocks
from filters.extraction.learned.word_inputs import MOST_SCORE, WordScores, word_inputs
from filters.model_file import digest_of

MODEL = load_model("")
DATA = msgspec.json.encode(MODEL)
BODY: dict[str, Any] = json.loads(DATA)


def layer(weights: list[list[int]], bias: list[int]) -> Layer:
    return Layer(len(bias), np.array(weights, "<i2").tobytes(), np.array(bias, "<i4").tobytes())


def test_a_network_is_computed_in_whole_numbers() -> None:
    """Probabilities equal those of Python's integers: sums, cut hidden values, and a logit."""
    rng = np.random.default_rng(1)
    shapes = ((7, 4), (4, 3), (3, 1))
    numbers = [
        (rng.integers(-300, 300, shape).tolist(), rng.integers(-999, 999, shape[1]).tolist()) for shape in shapes
    ]
    network = Network(tuple(layer(*one) for one in numbers))
    inputs = rng.integers(0, MOST + 1, (7, 50)).astype(np.uint8)
    found = network.probabilities(inputs)
    for column, probability in zip(inputs.T.tolist(), found.tolist(), strict=True):
        values, units = column, 128
        for weights, bias in numbers:
            sums = [sum(v * w for v, w in zip(values, row, strict=True)) for row in zip(*weights, strict=True)]
            sums = [one + more for one, more in zip(sums, bias, strict=True)]
            values = [max(0, min(MOST, one // units)) for one in sums]
            units = 256
        assert abs(probability - PER_MILLE / (1 + math.exp(-sums[0] / _LOGIT_UNITS))) <= 0.5 + 1e-6


def test_no_probability_hangs_on_the_last_bits_of_a_logarithm() -> None:
    """The edges between thousandths are whole logits, and no exact edge is so near to one that rounding decides."""
    for number in range(1, PER_MILLE + 1):
        half = (number - 0.5) / PER_MILLE
        exact = math.log(half / (1 - half)) * _LOGIT_UNITS
        assert exact == 0 or abs(exact - round(exact)) > 1e-6


@given(st.lists(st.tuples(st.integers(0, 1000), st.integers(1, 300)), min_size=1, max_size=8))
def test_the_kept_blocks_have_the_highest_expected_f1(blocks: list[tuple[int, int]]) -> None:
    """No other set of the blocks has a higher one."""
    probability, words = (np.array(column) for column in zip(*blocks, strict=True))
    kept, f1 = best_blocks(probability, words)
    total = (probability * words).sum()
    every = []
    for chosen in range(1, 1 << len(blocks)):
        mask = np.array([bool(chosen >> place & 1) for place in range(len(blocks))])
        every.append(2 * (probability * words)[mask].sum() / (words[mask].sum() * PER_MILLE + total))
    assert f1 == pytest.approx(max(every)) or not total
    assert kept.any() == (total > 0)
    if total:
        assert f1 == pytest.approx(2 * (probability * words)[kept].sum() / (words[kept].sum() * PER_MILLE + total))


def test_inputs_have_different_names_and_fit_into_a_byte() -> None:
    """All extremes at once: long texts, deep trees, and the highest and the lowest scores of words and names."""
    names = [name for columns in sample_inputs(MODEL.marked) for name in columns.names]
    assert len(set(names)) == len(names)
    for score in (-MOST_SCORE, MOST_SCORE):
        scores = WordScores({"post": score}, {"word": score}, ("post",))
        for body in ("x", "<p class='post'>" * 300 + "word " * 70_000, "<li class=post><a href=x>word</a>" * 3_000):
            page = page_blocks(parse(f"<html><title>word</title><body>{body}"))
            assert page is not None
            for columns in (block_inputs(page), word_inputs(page, scores)):
                matrix = columns.matrix()
                assert matrix.shape == (len(columns.names), len(page.lines)) and matrix.dtype == np.uint8
                assert matrix.max() <= MOST


def test_an_unknown_word_and_a_page_without_names_have_the_middle_score() -> None:
    """Below it are words of the rest of pages, above it those of main texts."""
    scores = WordScores({"post": 20, "menu": -20}, {"river": 30, "share": -30}, ())

    def row(body: str) -> dict[str, int]:
        page = page_blocks(parse(f"<html><body>{body}"))
        assert page is not None
        found = word_inputs(page, scores)
        return dict(zip(found.names, found.matrix()[:, 0].tolist(), strict=True))

    middle = row("<p>other")
    assert {middle[name] for name in ("text_score", "text_score_worst", "path_score", "name_score")} == {40}
    main, rest = row("<p class=post>River, other"), row("<p class='a menu-b'>share")
    assert (main["text_score"], main["name_score"]) == (70, 60)
    assert (rest["text_score"], rest["name_score"]) == (10, 20)


def _with(**fields: Any) -> bytes:
    return json.dumps({**BODY, **fields}).encode()


def _networks(change: Any) -> bytes:
    networks = json.loads(json.dumps(BODY["networks"]))
    change(networks[0]["layers"])
    return _with(networks=networks)


LARGE = msgspec.to_builtins(layer([[30_000]] * 64, [0]))


@pytest.mark.parametrize(
    ("data", "said"),
    [
        (b"", "no extractor model, or a damaged one: Input data was truncated"),
        (DATA[:-9], "damaged one"),
        (b"[" * 100_000, "Expected `object`"),
        (b'{"x":' + b"[" * 100_000, "maximum recursion depth"),
        (b'{"version":3,"networks":' + b"[" * 100_000, "maximum recursion depth"),
        (b"{}", "missing required field `version`"),
        (DATA.replace(b'"card"', b'"c\xff"'), "damaged one"),
        (b" " * 2_000_000, "larger than 128 KiB"),
        (_with(version=1), "version 1 of a model, this farmwatch reads 3"),
        (_with(inputs="0" * 16), "trained on other inputs than this farmwatch computes"),
        (_with(marked=BODY["marked"][1:]), "other inputs"),
        (_with(more=1), "unknown field `more`"),
        (_networks(lambda layers: layers.pop()), "a network do not fit together"),
        (_networks(lambda layers: layers[0].update(outputs=63)), "a network do not fit together"),
        (_networks(lambda layers: layers[0].update(outputs=0)), "a network do not fit together"),
        (_networks(lambda layers: layers[0].update(weights="AA==")), "a network do not fit together"),
        (_networks(lambda layers: layers.clear()), "a network do not fit together"),
        (_networks(lambda layers: layers.insert(1, LARGE)), "its sums may reach 2^24"),
    ],
)
def test_a_wrong_file_is_refused_in_words(data: bytes, said: str) -> None:
    """Another version, other inputs, damage and numbers that do not fit are named, with the file."""
    with pytest.raises(BadModel) as raised:
        read_model(data, "mine.json")
    assert "mine.json: " in str(raised.value) and said in str(raised.value)


def test_a_file_is_named_by_its_content(tmp_path: Path) -> None:
    """A file that has changed or gone is refused, whatever this process read before; the shipped model needs none."""
    data = msgspec.json.encode(msgspec.structs.replace(MODEL, card="other"))
    file = tmp_path / f"{digest_of(data)}.json"
    file.write_bytes(data)
    assert model_digest(str(file)) == digest_of(data) and model_bytes(str(file)) == data
    assert load_model(str(file)).card == "other" and load_model(f"gone/{model_digest('')}.json") is MODEL
    file.write_bytes(data + b" ")
    with pytest.raises(BadModel, match="is not the model of that name: put the file back"):
        model_bytes(str(file))
    file.unlink()
    with pytest.raises(BadModel, match=f"{file.name}: the model cannot be read: No such file"):
        model_bytes(str(file))
    for wrong in ("blocks.json", "0123456789ABCDEF.json", "0123456789abcdef", "models/", SHIPPED):
        with pytest.raises(BadModel, match=r"its file has the name of its digest"):
            model_digest(wrong)
