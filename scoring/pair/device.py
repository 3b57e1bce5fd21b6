"""Runs a batch of token ids through both models, and returns a few numbers per token.

Only the last hidden states are kept, and of these only the positions that hold a token; the vocabulary pass makes
logits tile by tile. Padding is on the right: attention looks back only, so no token sees it and no mask is needed,
which leaves the fastest attention kernels possible. On CUDA nothing here waits for the card: `launch` queues the work
and the copy back into pinned memory, `DeviceBatch.land` waits.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext
from typing import TYPE_CHECKING, Any

import numpy as np
import structlog
import torch

from scoring.errors import DeviceLost, OutOfDeviceMemory
from scoring.interface import TextScore
from scoring.pair.models import LanguageModel, PairModels, device_errors
from scoring.pair.scores import PairReading, PerToken, readings
from scoring.pair.vocabulary_pass import Head, Kernel, vocab_pass

if TYPE_CHECKING:
    from numpy.typing import NDArray

_log = structlog.get_logger()


class DeviceBatch:
    """A batch in flight."""

    def __init__(self, texts: Sequence[Sequence[int]], numbers: torch.Tensor, event: Any, pad_id: int) -> None:
        """Wait for `event` before `numbers` [4, N] are read."""
        self._texts, self._numbers, self._event, self._pad_id = texts, numbers, event, pad_id

    def land(self) -> list[PairReading | TextScore]:
        """Scores of the batch's texts, in order. Raises DeviceLost."""
        if self._event is not None:
            try:
                with device_errors(on_card=True):
                    self._event.synchronize()
            except OutOfDeviceMemory as error:  # no more requests to the GPU: its state is unknown
                raise DeviceLost(f"the device failed while it worked: {error}") from error
        passed = PerToken(*self._numbers.numpy())
        is_pad = np.concatenate([np.asarray(ids) for ids in self._texts]) == self._pad_id
        return readings(passed, [len(ids) for ids in self._texts], is_pad)


class PairDevice:
    """Runs batches on the device of the models."""

    def __init__(self, models: PairModels) -> None:
        self._models = models
        self._kernel = choose_kernel(models.device)
        self._on_card = models.device.type == "cuda"

    def launch(self, texts: Sequence[Sequence[int]]) -> DeviceBatch:
        """Queue texts of at least 2 ids each, all below the heads' width. Raises DeviceLost or OutOfDeviceMemory."""
        models = self._models
        with device_errors(on_card=self._on_card), torch.inference_mode(), _current(models.device):
            ids, cells, targets = map(self._send, _padded(texts))
            sums = vocab_pass(
                _hidden(models.observer, ids, cells),
                _hidden(models.performer, ids, cells),
                models.observer.head,
                models.performer.head,
                targets,
                kernel=self._kernel,
            )
            numbers = torch.stack([sums.lse_q, sums.z_q_target, sums.mean_q, sums.var_q])
            if not self._on_card:
                return DeviceBatch(texts, numbers.cpu(), None, models.pad_id)
            pinned = torch.empty(numbers.shape, dtype=numbers.dtype, pin_memory=True)
            pinned.copy_(numbers, non_blocking=True)
            make_event: Any = torch.cuda.Event
            event = make_event(blocking=True)  # a waiting thread sleeps, and leaves the core to tokenising
            event.record(torch.cuda.current_stream(models.device))
            return DeviceBatch(texts, pinned, event, models.pad_id)

    def free(self) -> None:
        """Return cached memory to the GPU. Raises DeviceLost."""
        if self._on_card:
            with device_errors(on_card=True):
                torch.cuda.empty_cache()

    def memory_bytes(self) -> tuple[int, int, int]:
        """Memory of a GPU: held by tensors of this process, the most ever held, total; zeros for a CPU."""
        device = self._models.device
        if not self._on_card:
            return 0, 0, 0
        total: int = torch.cuda.get_device_properties(device).total_memory
        return torch.cuda.memory_allocated(device), torch.cuda.max_memory_allocated(device), total

    def _send(self, values: NDArray[np.int64]) -> torch.Tensor:
        tensor = torch.from_numpy(values)
        return tensor.pin_memory().to(self._models.device, non_blocking=True) if self._on_card else tensor


def try_triton(device: torch.device) -> None:
    """Run Triton's kernel once; it has different errors without Triton, a C compiler or write permission."""
    with torch.inference_mode(), _current(device):
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
        why = f"{type(error).__name__}: {' '.join(str(error).split())}"[:200]
        remedy = "install a C compiler and Python's headers"
        _log.warning("slow_kernel", kernel="torch", device=str(device), why=why, remedy=remedy)
        return "torch"
    return "triton"


def _current(device: torch.device) -> AbstractContextManager[object]:
    """Make the models' GPU current: kernels that torch does not launch use the thread's current GPU."""
    return torch.cuda.device(device) if device.type == "cuda" else nullcontext()


def _padded(texts: Sequence[Sequence[int]]) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]]:
    """Ids [B, T] padded with 0; indices [N] of the tokens into B x T, text after text; the token that follows each [N].

    A target of -1 is behind a text's last token.
    """
    lengths = np.array([len(ids) for ids in texts], np.int64)
    mask = np.arange(lengths.max()) < lengths[:, None]
    flat = np.concatenate([np.asarray(ids, np.int64) for ids in texts])
    ids = np.zeros(mask.shape, np.int64)
    ids[mask] = flat
    targets = np.append(flat[1:], -1)
    targets[np.cumsum(lengths) - 1] = -1
    return ids, np.flatnonzero(mask), targets


def _hidden(model: LanguageModel, ids: torch.Tensor, cells: torch.Tensor) -> torch.Tensor:
    states: torch.Tensor = model.body(input_ids=ids, use_cache=False).last_hidden_state
    return states.flatten(0, 1).index_select(0, cells)
