"""The model of the extractor `blocks`: word scores and two small networks, as whole numbers.

Inputs, weights and hidden values are whole numbers, and no sum reaches 2^24, so float32 arithmetic is exact: a page has
the same probabilities on every processor, in whichever order a library adds. The second network also sees the
probabilities that the first one gives to the blocks around.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from functools import cache, cached_property
from importlib import resources
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec
import numpy as np
import xxhash
from lxml import etree

from filters.errors import BadModel
from filters.extraction.learned.context_inputs import context_inputs
from filters.extraction.learned.inputs import MOST, block_inputs
from filters.extraction.learned.page_blocks import PageBlocks, page_blocks
from filters.extraction.learned.word_inputs import MOST_SCORE, WordScores, word_inputs

if TYPE_CHECKING:
    from numpy import int64, uint8
    from numpy.typing import NDArray

    Ints = NDArray[int64]
    Inputs = NDArray[uint8]

SHIPPED = "blocks.json"
VERSION = 1  # of the file, and of what the inputs mean: a name in `inputs` does not tell that a word is cut otherwise
WEIGHT_UNITS = 256
"""A weight of 1."""
INPUT_UNITS = 16
"""An input of 1."""
HIDDEN_UNITS = 32
"""A hidden value of 1; none is above MOST."""
PER_MILLE = 1000
_LOGIT_UNITS = HIDDEN_UNITS * WEIGHT_UNITS
_EXACT = 1 << 24  # whole numbers up to this are exact in float32
_MOST_BYTES = 1024 * 1024
_PIN = "#"  # between a path and the digest that the file must have
_ROWS = 4096  # blocks at once


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
        found = []
        for layer in self.layers:
            weights = np.frombuffer(layer.weights, "<i2").reshape(-1, layer.outputs)
            bias = np.frombuffer(layer.bias, "<i4").reshape(layer.outputs)
            found.append((weights.astype(np.float32), bias.astype(np.float32)))
        return found

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


class BlockModel(msgspec.Struct, frozen=True, forbid_unknown_fields=True, dict=True):
    """The numbers of a model. `card` says what it was trained on, `inputs` is the digest of the names of its inputs."""

    version: int
    card: str
    inputs: str
    names: Mapping[str, int]
    texts: Mapping[str, int]
    marked: tuple[str, ...]
    networks: tuple[Network, Network]

    @cached_property
    def digest(self) -> str:
        """16 hex digits over all numbers."""
        numbers = [self.version, self.inputs, self.names, self.texts, self.marked, self.networks]
        return xxhash.xxh3_64_hexdigest(msgspec.json.encode(numbers, order="deterministic"))

    @cached_property
    def scores(self) -> WordScores:
        return WordScores(self.names, self.texts, self.marked)

    def probabilities(self, page: PageBlocks) -> Ints:
        """The probability of each block to be main text, in thousandths."""
        inputs = np.concatenate([block_inputs(page).matrix(), word_inputs(page, self.scores).matrix()])
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


@cache
def input_names(marked: tuple[str, ...]) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Names of the inputs of the first network, and of those that the second one has more."""
    page = page_blocks(etree.HTML("<p>word"))
    assert page is not None
    first = [*block_inputs(page).names, *word_inputs(page, WordScores({}, {}, marked)).names]
    return tuple(first), tuple(context_inputs(page, np.array([PER_MILLE])).names)


def inputs_digest(marked: tuple[str, ...]) -> str:
    """A digest of the names of all inputs."""
    return xxhash.xxh3_64_hexdigest(msgspec.json.encode(input_names(marked)))


@cache
def load_model(path: str) -> BlockModel:
    """The model of a file; "" = the shipped one. A file is read once in a process. Raises BadModel."""
    if not path:
        return read_model(resources.files("filters.extraction.learned").joinpath(SHIPPED).read_bytes(), SHIPPED)
    path, _, digest = path.partition(_PIN)
    try:
        with Path(path).open("rb") as file:
            model = read_model(file.read(_MOST_BYTES + 1), path)
    except OSError as error:
        raise BadModel(f"{path}: the model cannot be read: {error.strerror or error}") from error
    if digest not in ("", model.digest):
        raise BadModel(f"{path}: the model is {model.digest}, and {digest} when the run began: put that file back")
    return model


def pinned(path: str) -> str:
    """A path that only the present content of the file fits. Raises BadModel."""
    return f"{path}{_PIN}{load_model(path).digest}" if path and _PIN not in path else path


def read_model(data: bytes, where: str) -> BlockModel:
    """Read and check a model; `where` names it in errors. Raises BadModel."""
    if len(data) > _MOST_BYTES:
        raise BadModel(f"{where}: larger than {_MOST_BYTES // 1024} KiB, no model of `train-extractor`")
    try:
        version = msgspec.json.decode(data, type=_Version).version
        if version != VERSION:
            raise BadModel(f"{where}: version {version} of a model, this farmwatch reads {VERSION}: train it again")
        model = msgspec.json.decode(data, type=BlockModel)
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise BadModel(f"{where}: no model of `train-extractor`, or a damaged one: {error}") from None
    if model.inputs != inputs_digest(model.marked):
        raise BadModel(f"{where}: trained on other inputs than this farmwatch computes: train it again")
    if any(abs(score) > MOST_SCORE for scores in (model.names, model.texts) for score in scores.values()):
        raise BadModel(f"{where}: a score of a word is beyond {MOST_SCORE}")
    first, more = map(len, input_names(model.marked))
    try:
        model.networks[0].check(first)
        model.networks[1].check(first + more)
    except ValueError as error:
        raise BadModel(f"{where}: the numbers of a network do not fit together: {error}") from None
    return model


class _Version(msgspec.Struct):
    version: int
