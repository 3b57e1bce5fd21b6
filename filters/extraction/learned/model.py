"""The model of the extractor `blocks`: word scores and two small networks, as whole numbers.

Inputs, weights and hidden values are whole numbers, and no sum reaches 2^24, so float32 arithmetic is exact: a page has
the same probabilities on every processor, in whichever order a library adds. The second network has the probabilities
by the first one of the blocks around as inputs, too.
"""

from __future__ import annotations

import math
from functools import cache, cached_property
from typing import Any

import msgspec
import numpy as np
import xxhash
from lxml import etree
from numpy.typing import NDArray

from filters.errors import BadModel
from filters.extraction.learned.context_inputs import context_inputs
from filters.extraction.learned.inputs import MOST, Columns, Inputs, block_inputs
from filters.extraction.learned.model_name import MOST_BYTES, SHIPPED, model_bytes, model_digest
from filters.extraction.learned.page_blocks import Ints, PageBlocks, page_blocks
from filters.extraction.learned.word_inputs import WordScores, word_inputs
from filters.model_file import decoded, digest_of

VERSION = 3  # of the file
PER_MILLE = 1000
WEIGHT_UNITS = 256
"""A weight of 1."""
INPUT_UNITS = 16
"""An input of 1."""
HIDDEN_UNITS = 32
"""A hidden value of 1; none is above MOST."""
_LOGIT_UNITS = HIDDEN_UNITS * WEIGHT_UNITS
_EXACT = 1 << 24  # whole numbers up to this are exact in float32
_ROWS = 4096  # blocks at once
_SAMPLE = """
<html><head><title>The river</title></head><body><nav class="menu"><ul><li><a href="/">Home</a><li>Share</ul></nav>
<div class="post"><h1>A river: 2 boats</h1><p>The river rose, and so did <code>x</code>.<p hidden>Share!</div>
"""


class Layer(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """`weights`: int16, little-endian, [inputs, outputs]; `bias`: int32. In JSON both are in base64."""

    outputs: int
    weights: bytes
    bias: bytes


class Network(msgspec.Struct, frozen=True, forbid_unknown_fields=True, dict=True):
    """Layers from the inputs to one logit; hidden values are cut at 0 and MOST."""

    layers: tuple[Layer, ...]

    @cached_property
    def arrays(self) -> list[tuple[Any, Any]]:
        """Weights and bias of each layer. Raises ValueError if they do not fit together."""
        arrays = []
        for layer in self.layers:
            weights = np.frombuffer(layer.weights, "<i2").reshape(-1, layer.outputs)
            bias = np.frombuffer(layer.bias, "<i4").reshape(layer.outputs)
            arrays.append((weights.astype(np.float32), bias.astype(np.float32)))
        return arrays

    def check(self, inputs: int) -> None:
        """Raises ValueError for a network that does not take `inputs` numbers, or whose sums may be inexact."""
        for weights, bias in self.arrays:
            if len(weights) != inputs:
                raise ValueError(f"a layer takes {len(weights)} numbers instead of {inputs}")
            if (np.abs(weights).sum(axis=0, dtype=np.float64) * MOST + np.abs(bias)).max(initial=0) >= _EXACT:
                raise ValueError("its sums may reach 2^24")
            inputs = weights.shape[1]
        if inputs != 1:
            raise ValueError("it does not end in one logit")

    def probabilities(self, inputs: Inputs) -> Ints:
        """Probabilities in thousandths of blocks with these inputs [inputs, blocks]."""
        logits = np.empty(inputs.shape[1], np.float32)
        for start in range(0, len(logits), _ROWS):
            values = inputs[:, start : start + _ROWS].T.astype(np.float32)
            units = INPUT_UNITS * WEIGHT_UNITS // HIDDEN_UNITS
            for weights, bias in self.arrays[:-1]:
                values = np.clip(np.floor((values @ weights + bias) / units), 0, MOST)
                units = WEIGHT_UNITS
            weights, bias = self.arrays[-1]
            logits[start : start + _ROWS] = (values @ weights + bias)[:, 0]
        return np.searchsorted(_edges(), logits, side="right")


@cache
def _edges() -> Any:
    """The lowest logits of 1, 2, … thousandths."""
    halves = [(number - 0.5) / PER_MILLE for number in range(1, PER_MILLE + 1)]
    return np.array([math.ceil(math.log(half / (1 - half)) * _LOGIT_UNITS) for half in halves], np.float32)


class BlockModel(WordScores, frozen=True, forbid_unknown_fields=True):
    """The numbers of a model. `card` says what it was trained on, `inputs` is `inputs_digest`."""

    version: int
    card: str
    inputs: str
    networks: tuple[Network, Network]

    def probabilities(self, page: PageBlocks) -> Ints:
        """The probability of each block to be main text, in thousandths."""
        inputs = np.concatenate([block_inputs(page).matrix(), word_inputs(page, self).matrix()])
        first = self.networks[0].probabilities(inputs)
        return self.networks[1].probabilities(np.concatenate([inputs, context_inputs(page, first).matrix()]))


def best_blocks(probability: Ints, words: Ints) -> tuple[NDArray[np.bool_], float]:
    """The blocks with the highest expected F1, and that F1.

    The expected F1 is about 2 E(kept words that are main text) / (kept words + E(words of main text)). It is highest
    for all blocks above some probability.
    """
    order = np.argsort(-probability, kind="stable")
    expected, kept = np.cumsum((probability * words)[order]), np.cumsum(words[order]) * PER_MILLE
    total = int(expected[-1])
    if not total:
        return np.zeros(len(words), bool), 0.0
    f1 = 2 * expected / (kept + total)
    best = int(np.argmax(f1))
    return probability >= probability[order[best]], float(f1[best])


def sample_inputs(marked: tuple[str, ...]) -> list[Columns]:
    """The inputs of a small page: two kinds of the first network, and those that the second one has more."""
    page = page_blocks(etree.HTML(_SAMPLE))
    assert page is not None
    scores = WordScores({"post": 9, "menu": -9}, {"river": 9, "share": -9}, marked)
    known = np.arange(len(page.lines)) * 99 % PER_MILLE
    return [block_inputs(page), word_inputs(page, scores), context_inputs(page, known)]


def inputs_digest(sample: list[Columns]) -> str:
    """A digest of the names of all inputs, and of their values on a small page, of `sample_inputs`."""
    content = [(columns.names, columns.matrix().tolist()) for columns in sample]
    return xxhash.xxh3_64_hexdigest(msgspec.json.encode(content))


_MODELS: dict[str, BlockModel] = {}  # digest -> model, of this process


def load_model(path: str) -> BlockModel:
    """The model with the digest in the name of a file; "" = the shipped one. Raises BadModel."""
    digest = model_digest(path)
    return _MODELS.get(digest) or read_model(model_bytes(path), path or SHIPPED)


def read_model(data: bytes, where: str) -> BlockModel:
    """Read and check a model, which `load_model` then knows; `where` names it in errors. Raises BadModel."""
    model = decoded(data, where, BlockModel, version=VERSION, most=MOST_BYTES, kind="extractor model")
    sample = sample_inputs(model.marked)
    if model.inputs != inputs_digest(sample):
        raise BadModel(f"{where}: trained on other inputs than this farmwatch computes", case="outdated")
    of_blocks, of_words, of_context = (len(columns.names) for columns in sample)
    try:
        model.networks[0].check(of_blocks + of_words)
        model.networks[1].check(of_blocks + of_words + of_context)
    except ValueError as error:
        raise BadModel(f"{where}: the numbers of a network do not fit together: {error}") from None
    _MODELS[digest_of(data)] = model
    return model
