"""Fits a small network of whole numbers: inputs and hidden values are whole and small, weights are rounded at the end.

Two hidden layers of rectified units that are cut at a highest value, one logistic output; AdamW on the mean of the
weighted cross entropy, with a rate that rises first and then falls along a cosine. One thread and a fixed seed: the
same rows give the same numbers on one machine.

I. Loshchilov and F. Hutter, "Decoupled weight decay regularization", ICLR 2019.
"""

from __future__ import annotations

from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from filters.extraction.learned.inputs import MOST
from filters.extraction.learned.model import HIDDEN_UNITS, INPUT_UNITS, WEIGHT_UNITS
from stream.text.user_errors import MissingExtra

Floats = NDArray[np.float32]

HIDDEN = (64, 32)
EPOCHS, BATCH, RATE, DECAY = 4, 1024, 2e-3, 1e-3
_RISE = 0.03  # part of the steps
_MOST_WEIGHT = 1.5


def fit_network(
    inputs: NDArray[np.uint8], labels: Floats, weights: Floats, taken: Floats, seed: int
) -> list[tuple[NDArray[np.int16], NDArray[np.int32]]]:
    """Fit a network to rows of inputs with labels 0..1 and weights; an epoch takes a row with probability `taken`.

    Returns the weights [inputs, outputs] and the bias of each layer. Raises MissingExtra.
    """
    try:
        import torch
    except ImportError as error:
        raise MissingExtra("training a network needs torch", extra="train") from error
    torch.set_num_threads(1)
    torch.manual_seed(seed)
    rng = np.random.default_rng(seed)
    layers = [torch.nn.Linear(before, after) for before, after in pairwise((inputs.shape[1], *HIDDEN, 1))]
    cut = torch.nn.Hardtanh(0, MOST / HIDDEN_UNITS)
    network = torch.nn.Sequential(layers[0], cut, layers[1], cut, layers[2])
    epochs = [rng.permutation(np.flatnonzero(rng.random(len(inputs)) < taken)) for _ in range(EPOCHS)]
    batches = [rows[start : start + BATCH] for rows in epochs for start in range(0, len(rows), BATCH)]
    optimizer = torch.optim.AdamW(network.parameters(), RATE, weight_decay=DECAY)
    rate = torch.optim.lr_scheduler.OneCycleLR(
        optimizer, RATE, max(2, len(batches)), pct_start=_RISE, cycle_momentum=False
    )
    for batch in batches:
        logits = network(torch.from_numpy(inputs[batch]).float() / INPUT_UNITS)[:, 0]
        of_batch = torch.from_numpy(labels[batch]), torch.from_numpy(weights[batch])
        optimizer.zero_grad()
        torch.nn.functional.binary_cross_entropy_with_logits(logits, *of_batch).backward()  # type: ignore[no-untyped-call]
        optimizer.step()
        rate.step()
        with torch.no_grad():
            for layer in layers:
                layer.weight.clamp_(-_MOST_WEIGHT, _MOST_WEIGHT)
    rounded = []
    for layer, unit in zip(layers, (INPUT_UNITS, HIDDEN_UNITS, HIDDEN_UNITS), strict=True):
        weight, bias = layer.weight.detach().numpy().T, layer.bias.detach().numpy()
        whole = np.rint(weight * WEIGHT_UNITS).astype(np.int16)
        rounded.append((whole, np.rint(bias * unit * WEIGHT_UNITS).astype(np.int32)))
    return rounded
