"""A batch of token ids through both models, and back as a few numbers per token.

Only the last hidden states of the bodies are kept, and of these only the positions that hold a token; the vocabulary
pass makes logits tile by tile. Padding stands on the right: attention looks back only, so no token sees it and no mask
is needed, which leaves the fastest attention kernels possible. On CUDA nothing here waits for the card: `launch` queues
the work and the copy back into pinned memory, `DeviceBatch.land` waits.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import AbstractContextManager, nullcontext
from typing import TYPE_CHECKING, Any, Literal

import msgspec
import numpy as np
import torch

from scoring.errors import BadParameters, DeviceLost, OutOfDeviceMemory
from scoring.pair.models import LanguageModel, PairModels, device_errors
from scoring.pair.scores import PairReading, PerToken, readings
from scoring.pair.tokens import Abstained
from scoring.pair.vocabulary_pass import Head, Kernel, vocab_pass

if TYPE_CHECKING:
    from numpy.typing import NDArray

Padding = Literal["right", "left"]


class DeviceMemory(msgspec.Struct, frozen=True):
    """Bytes of a card's memory; zeros for a CPU."""

    used_bytes: int = 0  # held by tensors of this process
    peak_bytes: int = 0
    total_bytes: int = 0


class DeviceBatch:
    """A batch that is under way."""

    def __init__(self, texts: Sequence[Sequence[int]], numbers: torch.Tensor, event: Any, pad_id: int) -> None:
        """Wait for `event` before `numbers` [4, N] are read."""
        self._texts, self._numbers, self._event, self._pad_id = texts, numbers, event, pad_id

    def land(self) -> list[PairReading | Abstained]:
        """Scores of the batch's texts, in order. Raises DeviceLost."""
        if self._event is not None:
            try:
                with device_errors(on_card=True):
                    self._event.synchronize()
            except OutOfDeviceMemory as error:  # nothing is asked for here: the card's state is unknown
                raise DeviceLost(f"the device failed while it worked: {error}") from error
        passed = PerToken(*self._numbers.numpy())
        is_pad = np.concatenate([np.asarray(ids) for ids in self._texts]) == self._pad_id
        return readings(passed, [len(ids) for ids in self._texts], is_pad)


class PairDevice:
    """Runs batches on the device that the models lie on."""

    def __init__(
        self, models: PairModels, *, kernel: Kernel = "auto", padding: Padding = "right", tile: int | None = None
    ) -> None:
        """`tile` words of the vocabulary are held at a time; the pass chooses it if unset.

        Raises BadParameters where `kernel` is "triton" and Triton cannot compile for the device.
        """
        self._models, self._padding, self._tile = models, padding, tile
        self._kernel, self.kernel = chosen_kernel(kernel, models.device)
        self._on_card = models.device.type == "cuda"

    def launch(self, texts: Sequence[Sequence[int]]) -> DeviceBatch:
        """Queue texts of at least 2 ids each, all below the heads' width. Raises DeviceLost or OutOfDeviceMemory."""
        models = self._models
        with device_errors(on_card=self._on_card), torch.inference_mode(), _current(models.device):
            batch = _padded(texts, self._padding)
            inputs: dict[str, Any] = {"input_ids": self._send(batch.ids)}
            if self._padding == "left":
                inputs["attention_mask"] = self._send(batch.mask)
                inputs["position_ids"] = self._send(batch.positions)
            cells, targets = self._send(batch.cells), self._send(batch.targets)
            sums = vocab_pass(
                _hidden(models.observer, inputs, cells),
                _hidden(models.performer, inputs, cells),
                models.observer.head,
                models.performer.head,
                targets,
                tile=self._tile,
                kernel=self._kernel,
            )
            numbers = torch.stack([sums.lse_q, sums.z_q_target, sums.mean_q, sums.var_q])
            if not self._on_card:
                return DeviceBatch(texts, numbers.cpu(), None, models.pad_id)
            pinned = torch.empty(numbers.shape, dtype=numbers.dtype, pin_memory=True)
            pinned.copy_(numbers, non_blocking=True)
            make_event: Any = torch.cuda.Event
            event = make_event(blocking=True)  # whoever waits sleeps, and leaves the core to tokenising
            event.record(torch.cuda.current_stream(models.device))
            return DeviceBatch(texts, pinned, event, models.pad_id)

    def free(self) -> None:
        """Give cached memory back to the card. Raises DeviceLost."""
        if self._on_card:
            with device_errors(on_card=True):
                torch.cuda.empty_cache()

    def memory(self) -> DeviceMemory:
        """What the card holds now."""
        device = self._models.device
        if device.type != "cuda":
            return DeviceMemory()
        return DeviceMemory(
            torch.cuda.memory_allocated(device),
            torch.cuda.max_memory_allocated(device),
            torch.cuda.get_device_properties(device).total_memory,
        )

    def _send(self, values: NDArray[np.int64]) -> torch.Tensor:
        tensor = torch.from_numpy(values)
        if not self._on_card:
            return tensor
        return tensor.pin_memory().to(self._models.device, non_blocking=True)


def chosen_kernel(wished: Kernel, device: torch.device) -> tuple[Kernel, str]:
    """The kernel that runs on `device`, and what is to be said of it: its name, and why it is not Triton's on a card.

    Triton compiles at first use, which needs a C compiler: it is tried on a few numbers. Raises BadParameters where
    "triton" is asked for and fails; "auto" takes "torch" then.
    """
    if wished == "torch" or (wished == "auto" and device.type != "cuda"):
        return "torch", "torch"
    try:
        _try_triton(device)
    except Exception as error:  # no triton, no compiler, no permission to write: Triton has many types
        why = f"{type(error).__name__}: {' '.join(str(error).split())}"[:200]
        if wished == "triton":
            raise BadParameters(
                f"score.pair.kernel is triton, which does not run on {device} ({why}): install a C compiler and"
                " Python's headers, or set kernel to auto"
            ) from error
        return "torch", f"torch, slower, for Triton does not run here ({why}): install a C compiler, Python's headers"
    return "triton", "triton"


def _try_triton(device: torch.device) -> None:
    hidden = torch.zeros(2, 8, device=device)
    head = Head(torch.zeros(16, 8, device=device))
    with torch.inference_mode(), _current(device):
        targets = torch.zeros(2, dtype=torch.int64, device=device)
        vocab_pass(hidden, hidden, head, head, targets, kernel="triton").lse_p.cpu()


def _current(device: torch.device) -> AbstractContextManager[object]:
    """Kernels that torch does not launch itself go to the thread's current card, so that must be the models'."""
    return torch.cuda.device(device) if device.type == "cuda" else nullcontext()


class _Batch(msgspec.Struct, frozen=True):
    ids: NDArray[np.int64]  # [B, T], padded with 0
    mask: NDArray[np.int64]  # [B, T], 1 where a token is
    positions: NDArray[np.int64]  # [B, T], of a token in its text
    cells: NDArray[np.int64]  # [N] indices of the tokens into B x T, text after text
    targets: NDArray[np.int64]  # [N] the token that follows, -1 behind a text's last


def _padded(texts: Sequence[Sequence[int]], padding: Padding) -> _Batch:
    lengths = np.array([len(ids) for ids in texts], np.int64)
    width = int(lengths.max())
    column = np.arange(width)
    first = np.zeros_like(lengths) if padding == "right" else width - lengths
    mask = (column >= first[:, None]) & (column < (first + lengths)[:, None])
    flat = np.concatenate([np.asarray(ids, np.int64) for ids in texts])
    ids = np.zeros(mask.shape, np.int64)
    ids[mask] = flat
    targets = np.append(flat[1:], -1)
    targets[np.cumsum(lengths) - 1] = -1
    positions = np.maximum(np.cumsum(mask, axis=1) - 1, 0)
    return _Batch(ids, mask.astype(np.int64), positions, np.flatnonzero(mask), targets)


def _hidden(model: LanguageModel, inputs: dict[str, Any], cells: torch.Tensor) -> torch.Tensor:
    states: torch.Tensor = model.body(**inputs, use_cache=False).last_hidden_state
    return states.flatten(0, 1).index_select(0, cells)
