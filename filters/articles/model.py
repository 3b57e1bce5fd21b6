"""An additive model of page kinds: for each input a step function that adds to the logit of each kind.

Logits are sums of whole ten-thousandths, and probabilities are rounded: so they are the same on every processor. An
unknown input is -1, below every measure; the lowest step holds it.

T. Hastie and R. Tibshirani, "Generalized Additive Models", 1990; the steps come from boosted stumps, see
`lab.articles.additive`.
"""

from __future__ import annotations

import math
from bisect import bisect_left
from collections.abc import Mapping, Sequence
from functools import cache, cached_property
from importlib import resources
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import msgspec
import xxhash

from filters.articles.inputs import INPUTS, UNKNOWN, has_inputs, inputs_of
from filters.errors import BadModel
from filters.model_file import decoded, read_bytes
from stream.schema.records import Features
from stream.schema.vocabulary import PageClass

if TYPE_CHECKING:
    from filters.articles.inputs import Floats

SHIPPED = "articles"
"""Name of the model in the package."""

VERSION = 1  # of the file
_MOST_BYTES = 256 * 1024  # a run stores it
_MOST_LOGIT = 1e6
_DIGITS = 4  # of a probability
_UNITS = 10_000  # of a logit
_HERE = Path()


class StepFunction(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The step function of an input: `values[i]`, a logit for each kind, holds from above at[i - 1] to at[i]."""

    at: tuple[float, ...]
    values: tuple[tuple[float, ...], ...]


Logits = tuple[float, ...]


class Contribution(NamedTuple):
    """The part of an input in the logit of a kind."""

    name: str
    value: float | None
    logit: float


class ArticleModel(msgspec.Struct, frozen=True, forbid_unknown_fields=True, dict=True):
    """The numbers of a model. `card` says what it was trained on."""

    version: int
    card: str
    kinds: tuple[str, ...]
    bias: tuple[float, ...]
    inputs: Mapping[str, StepFunction]

    @cached_property
    def digest(self) -> str:
        """16 hex digits over all numbers."""
        numbers = [self.kinds, self.bias, [(name, steps.at, steps.values) for name, steps in self.inputs.items()]]
        return xxhash.xxh3_64_hexdigest(msgspec.json.encode(numbers))

    def logits(self, features: Features) -> Logits | None:
        """The logit of each kind; None for a page without text or parsed structure. Raises ValueError for damage."""
        return self.logits_of([features])[0]

    def logits_of(self, pages: Sequence[Features]) -> list[Logits | None]:
        """`logits` of each page; many pages together take a fifth of the time. Raises ValueError for damage."""
        results: list[Logits | None] = [None] * len(pages)
        places = [place for place, page in enumerate(pages) if has_inputs(page)]
        if places:
            sums = self._sums(inputs_of([pages[place] for place in places]))
            for place, logits in zip(places, sums.tolist(), strict=True):
                results[place] = tuple(logits)
        return results

    def _sums(self, inputs: Floats) -> Floats:
        """The logits [pages, kinds] of inputs [pages, INPUTS]."""
        import numpy as np  # slow to import: JUDGE needs it, most commands do not

        # One search finds the steps of all inputs: complex numbers are ordered by place of the input, then by value
        read, edges, table, bias = self._arrays
        places = np.arange(len(read))[:, None]
        values = np.empty((len(read), len(inputs)), complex)
        values.real, values.imag = places, inputs.T[read]
        rows = edges.searchsorted(values) + places  # an input has a row more than edges
        sums: Floats = (bias + table.take(rows, axis=0).sum(axis=0)) / _UNITS
        return sums

    @cached_property
    def _arrays(self) -> tuple[Any, ...]:
        """Places of the inputs, their edges in a row, the rows of their steps, and the bias, both in whole units."""
        import numpy as np

        every = list(self.inputs.values())
        edges = np.empty(sum(len(steps.at) for steps in every), complex)
        edges.real = [place for place, steps in enumerate(every) for _ in steps.at]
        edges.imag = [edge for steps in every for edge in steps.at]
        table = np.array([row for steps in every for row in steps.values]).reshape(-1, len(self.kinds))
        table, bias = (np.rint(numbers * _UNITS).astype(np.int64) for numbers in (table, np.array(self.bias)))
        return np.array([INPUTS.index(name) for name in self.inputs], np.intp), edges, table, bias

    def probability(self, logits: Logits) -> float:
        """The probability that the page is an article."""
        return round(1 / (1 + math.exp(-max(min(logits[self.kinds.index(PageClass.ARTICLE)], 500.0), -500.0))), _DIGITS)

    def kind(self, logits: Logits) -> str:
        """Article if that is at least as probable as not, else the other kind with the highest logit."""
        if self.probability(logits) >= 0.5 or len(logits) == 1:
            return PageClass.ARTICLE
        others = (pair for pair in zip(logits, self.kinds, strict=True) if pair[1] != PageClass.ARTICLE)
        return max(others)[1]

    def contributions(self, features: Features, kind: str = PageClass.ARTICLE) -> list[Contribution]:
        """The part of each input in the logit of `kind`, the largest first; none for a page without logits."""
        if not has_inputs(features):
            return []
        place = self.kinds.index(kind)
        (values,) = inputs_of([features]).tolist()
        value_of = dict(zip(INPUTS, values, strict=True))
        parts = []
        for name, steps in self.inputs.items():
            value = value_of[name]
            logit = steps.values[bisect_left(steps.at, value)][place]
            parts.append(Contribution(name, None if value == UNKNOWN else value, logit))
        return sorted(parts, key=lambda part: -abs(part.logit))


@cache
def shipped_model() -> ArticleModel:
    """The model of the package."""
    return read_model(resources.files("filters.articles").joinpath("articles.json").read_bytes(), SHIPPED)


def load_model(name_or_path: str, folder: Path = _HERE) -> ArticleModel:
    """The shipped model, or that of a file whose path ends in .json, from `folder` on. Raises BadModel."""
    if name_or_path == SHIPPED:
        return shipped_model()
    if not name_or_path.endswith(".json"):
        raise BadModel(f"model {name_or_path!r} is not shipped; known: {SHIPPED}; a path ends in .json")
    path = folder / name_or_path
    return read_model(read_bytes(path, _MOST_BYTES), str(path))


def read_model(data: bytes, where: str) -> ArticleModel:
    """Read and check a model; `where` names it in errors. Raises BadModel."""
    model = decoded(data, where, ArticleModel, version=VERSION, most=_MOST_BYTES, kind="article model")
    width = len(model.kinds)
    if PageClass.ARTICLE not in model.kinds or len(set(model.kinds)) < width or len(model.bias) != width:
        raise BadModel(f"{where}: the kinds are not distinct names with a bias each, {PageClass.ARTICLE} among them")
    for name, steps in model.inputs.items():
        if name not in INPUTS:
            raise BadModel(f"{where}: {name!r} is no measure of this farmwatch")
        is_rising = all(low < high for low, high in zip(steps.at, steps.at[1:], strict=False))
        if not is_rising or len(steps.values) != len(steps.at) + 1 or any(len(row) != width for row in steps.values):
            raise BadModel(f"{where}: the steps of {name!r} do not fit together")
    rows = [model.bias, *(row for steps in model.inputs.values() for row in steps.values)]
    if any(abs(logit) > _MOST_LOGIT for row in rows for logit in row):  # so that no sum is infinite
        raise BadModel(f"{where}: a number beyond {_MOST_LOGIT:g} is no logit")
    return model
