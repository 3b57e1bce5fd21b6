"""Fits small networks of whole numbers: inputs and hidden values are whole and small, weights are rounded at the end.

Two hidden layers of rectified units that are cut at a highest value, one logistic output; Adam on the mean of the
weighted cross entropy. Rows of a page resemble each other, so an epoch takes a sample of a long page.

D. Kingma and J. Ba, "Adam: a method for stochastic optimization", ICLR 2015.
"""

from __future__ import annotations

from itertools import pairwise
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float32]
Bytes = NDArray[np.uint8]

HIDDEN = (64, 32)
EPOCHS, BATCH, RATE, DECAY = 4, 1024, 2e-3, 1e-3
_WARM_STEPS = 100
_MOMENTS = 0.9, 0.999
_MOST_WEIGHT = 1.5
_MOST_LOGIT = 30.0


class Units(NamedTuple):
    """The whole numbers that stand for 1, and the highest one of an input or a hidden value."""

    input: int
    hidden: int
    weight: int
    most: int


class WholeLayer(NamedTuple):
    """A layer of a network: int16 [inputs, outputs] and int32 [outputs]."""

    weights: NDArray[np.int16]
    bias: NDArray[np.int32]


def fit(
    inputs: Bytes, labels: Floats, weights: Floats, taken: Floats, units: Units, seed: int
) -> tuple[WholeLayer, ...]:
    """Fit a network to rows of inputs with labels 0..1 and weights; each epoch takes a row with probability `taken`."""
    rng = np.random.default_rng(seed)
    sizes = (inputs.shape[1], *HIDDEN, 1)
    parameters: list[Floats] = []
    for before, after in pairwise(sizes):
        parameters += [
            (rng.standard_normal((before, after)) / np.sqrt(before)).astype(np.float32),
            np.zeros(after, np.float32),
        ]
    epochs = [np.flatnonzero(rng.random(len(inputs)) < taken) for _ in range(EPOCHS)]
    adam = _Adam(parameters, sum(-(-len(rows) // BATCH) for rows in epochs))
    for rows in epochs:
        order = rng.permutation(rows)
        for start in range(0, len(order), BATCH):
            batch = order[start : start + BATCH]
            values = inputs[batch].astype(np.float32) / units.input
            adam.step(_slopes(parameters, values, labels[batch], weights[batch], units.most / units.hidden))
    return tuple(
        _whole(weight, bias, units.input if place == 0 else units.hidden, units.weight)
        for place, (weight, bias) in enumerate(zip(parameters[::2], parameters[1::2], strict=True))
    )


def _slopes(parameters: list[Floats], inputs: Floats, labels: Floats, weights: Floats, top: float) -> list[Floats]:
    """The gradient of the loss of a batch."""
    sums, values = [], [inputs]
    for weight, bias in zip(parameters[::2], parameters[1::2], strict=True):
        sums.append(values[-1] @ weight + bias)
        values.append(np.clip(sums[-1], 0, top))
    logits = np.clip(sums[-1][:, 0], -_MOST_LOGIT, _MOST_LOGIT)
    errors = (1 / (1 + np.exp(-logits)) - labels) * weights / len(labels)
    slope = errors[:, None].astype(np.float32)
    found: list[Floats] = []
    for place in range(len(sums) - 1, -1, -1):
        found[:0] = [values[place].T @ slope, slope.sum(axis=0)]
        if place:
            slope = (slope @ parameters[2 * place].T) * ((sums[place - 1] > 0) & (sums[place - 1] < top))
    return found


class _Adam:
    """Changes parameters in place: the rate rises first, then falls to 0 along a cosine."""

    def __init__(self, parameters: list[Floats], steps: int) -> None:
        self._parameters = parameters
        self._steps, self._step = steps, 0
        self._means, self._squares = ([np.zeros_like(part) for part in parameters] for _ in range(2))

    def step(self, slopes: list[Floats]) -> None:
        rate = RATE * min(1, (self._step + 1) / _WARM_STEPS) * (1 + np.cos(np.pi * self._step / self._steps)) / 2
        self._step += 1
        for part, slope, mean, square in zip(self._parameters, slopes, self._means, self._squares, strict=True):
            mean += (1 - _MOMENTS[0]) * (slope - mean)
            square += (1 - _MOMENTS[1]) * (slope * slope - square)
            change = mean / (1 - _MOMENTS[0] ** self._step)
            change /= np.sqrt(square / (1 - _MOMENTS[1] ** self._step)) + 1e-8
            if part.ndim > 1:
                change += DECAY * part
            part -= (rate * change).astype(np.float32)
            if part.ndim > 1:
                np.clip(part, -_MOST_WEIGHT, _MOST_WEIGHT, out=part)


def _whole(weights: Floats, bias: Floats, unit_in: int, unit: int) -> WholeLayer:
    return WholeLayer(np.rint(weights * unit).astype(np.int16), np.rint(bias * unit_in * unit).astype(np.int32))
