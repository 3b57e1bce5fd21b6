"""Runs a batch of token ids through both models, and returns a few numbers per token.

Only the last hidden states are kept, and of these only the positions that hold a token; the vocabulary pass makes
logits tile by tile. Padding is on the right: attention looks back only, so no token sees it and no mask is needed,
which leaves the fastest attention kernels possible.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

import numpy as np
import structlog
import torch

from scoring.engine.device import DeviceBatch, ModelDevice, current, padded
from scoring.engine.loading import device_errors, error_line
from scoring.interface import TextScore
from scoring.pair.models import LanguageModel, PairModels
from scoring.pair.scores import PairReading, PerToken, readings
from scoring.pair.vocabulary_pass import Head, Kernel, vocab_pass

if TYPE_CHECKING:
    from numpy.typing import NDArray

_log = structlog.get_logger()


class PairDevice(ModelDevice):
    """Runs batches on the device of the models."""

    def __init__(self, models: PairModels) -> None:
        super().__init__(models.device)
        self._models = models
        self._kernel = choose_kernel(models.device)

    def launch(self, texts: Sequence[Sequence[int]]) -> DeviceBatch:
        """Queue texts of at least 2 ids each, all below the heads' width. Raises DeviceLost or OutOfDeviceMemory."""
        models = self._models
        with device_errors(on_card=self._on_card), torch.inference_mode(), current(models.device):
            ids, cells, targets = map(self._send, _with_targets(texts))
            sums = vocab_pass(
                _hidden(models.observer, ids, cells),
                _hidden(models.performer, ids, cells),
                models.observer.head,
                models.performer.head,
                targets,
                kernel=self._kernel,
            )
            numbers = torch.stack([sums.lse_q, sums.z_q_target, sums.mean_q, sums.var_q])

            def read(of_batch: NDArray[np.float32]) -> list[PairReading | TextScore]:
                is_pad = np.concatenate([np.asarray(ids) for ids in texts]) == models.pad_id
                return readings(PerToken(*of_batch), [len(ids) for ids in texts], is_pad)

            return self._collect(numbers, read)


def try_triton(device: torch.device) -> None:
    """Run Triton's kernel once; it has different errors without Triton, a C compiler or write permission."""
    with torch.inference_mode(), current(device):
        hidden = torch.zeros(2, 8, device=device)
        head = Head(torch.zeros(16, 8, device=device))
        targets = torch.zeros(2, dtype=torch.int64, device=device)
        vocab_pass(hidden, hidden, head, head, targets, kernel="triton").lse_p.cpu()


def choose_kernel(device: torch.device, run_once: Callable[[torch.device], None] = try_triton) -> Kernel:
    """Triton's kernel on a GPU if it compiles, which needs a C compiler at first use; otherwise torch's."""
    if device.type != "cuda":
        return "torch"
    try:
        run_once(device)
    except Exception as error:  # noqa: BLE001 - many types without Triton, a C compiler or write permission
        remedy = "install a C compiler and Python's headers"
        _log.warning("slow_kernel", kernel="torch", device=str(device), why=error_line(error), remedy=remedy)
        return "torch"
    return "triton"


def _with_targets(texts: Sequence[Sequence[int]]) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]]:
    """Ids [B, T] padded with 0; indices [N] of the tokens into B x T, text after text; the token that follows each [N].

    A target of -1 is behind a text's last token.
    """
    ids, mask = padded(texts)
    targets = np.append(ids[mask][1:], -1)
    targets[np.cumsum([len(text) for text in texts]) - 1] = -1
    return ids, np.flatnonzero(mask), targets


def _hidden(model: LanguageModel, ids: torch.Tensor, cells: torch.Tensor) -> torch.Tensor:
    states: torch.Tensor = model.body(input_ids=ids, use_cache=False).last_hidden_state
    return states.flatten(0, 1).index_select(0, cells)
