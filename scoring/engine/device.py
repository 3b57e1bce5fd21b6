"""A batch on the device of a model: sending, waiting, memory.

On CUDA nothing here waits for the card: `ModelDevice` queues the copy of the results into pinned memory,
`DeviceBatch.land` waits.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext
from typing import TYPE_CHECKING, Any

import numpy as np
import torch

from scoring.engine.loading import device_errors
from scoring.errors import DeviceLost, OutOfDeviceMemory

if TYPE_CHECKING:
    from numpy.typing import NDArray


class DeviceBatch:
    """A batch in flight, whose numbers are read after an event of the card."""

    def __init__(self, numbers: torch.Tensor, event: Any, read: Callable[[NDArray[np.float32]], Sequence[Any]]) -> None:
        """`read` makes the texts' readings of the numbers; `event` is None on a CPU."""
        self._numbers, self._event, self._read = numbers, event, read

    def land(self) -> Sequence[Any]:
        """Readings of the batch's texts, in order. Raises DeviceLost."""
        if self._event is not None:
            try:
                with device_errors(on_card=True):
                    self._event.synchronize()
            except OutOfDeviceMemory as error:  # no more requests to the GPU: its state is unknown
                raise DeviceLost(f"the device failed while it worked: {error}") from error
        return self._read(self._numbers.numpy())


class ModelDevice:
    """The device that a model is on."""

    def __init__(self, device: torch.device) -> None:
        self._device = device
        self._on_card = device.type == "cuda"

    def free(self) -> None:
        """Return cached memory to the GPU. Raises DeviceLost."""
        if self._on_card:
            with device_errors(on_card=True):
                torch.cuda.empty_cache()

    def memory_bytes(self) -> tuple[int, int, int]:
        """Memory of a GPU: held by tensors of this process, the most ever held, total; zeros for a CPU."""
        if not self._on_card:
            return 0, 0, 0
        total: int = torch.cuda.get_device_properties(self._device).total_memory
        return torch.cuda.memory_allocated(self._device), torch.cuda.max_memory_allocated(self._device), total

    def _send(self, values: NDArray[np.int64]) -> torch.Tensor:
        tensor = torch.from_numpy(values)
        return tensor.pin_memory().to(self._device, non_blocking=True) if self._on_card else tensor

    def _collect(self, numbers: torch.Tensor, read: Callable[[NDArray[np.float32]], Sequence[Any]]) -> DeviceBatch:
        if not self._on_card:
            return DeviceBatch(numbers.cpu(), None, read)
        pinned = torch.empty(numbers.shape, dtype=numbers.dtype, pin_memory=True)
        pinned.copy_(numbers, non_blocking=True)
        make_event: Any = torch.cuda.Event
        event = make_event(blocking=True)  # a waiting thread sleeps, and leaves the core to tokenising
        event.record(torch.cuda.current_stream(self._device))
        return DeviceBatch(pinned, event, read)


def current(device: torch.device) -> AbstractContextManager[object]:
    """Make the models' GPU current: kernels that torch does not launch use the thread's current GPU."""
    return torch.cuda.device(device) if device.type == "cuda" else nullcontext()


def padded(texts: Sequence[Sequence[int]], pad_id: int = 0) -> tuple[NDArray[np.int64], NDArray[np.bool_]]:
    """Ids [B, T], filled on the right with `pad_id`, and where a token is."""
    lengths = np.array([len(ids) for ids in texts], np.int64)
    mask = np.arange(lengths.max()) < lengths[:, None]
    ids = np.full(mask.shape, pad_id, np.int64)
    ids[mask] = np.concatenate([np.asarray(ids, np.int64) for ids in texts])
    return ids, mask
