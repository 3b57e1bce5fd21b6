"""The engine of the encoder: reads the windows of texts with a sequence classifier."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from pathlib import Path

import msgspec
import numpy as np
import torch

from scoring.encoder.model import EncoderModel
from scoring.encoder.settings import EncoderSettings
from scoring.engine.device import DeviceBatch, ModelDevice, current, padded
from scoring.engine.engine import Device, ModelEngine
from scoring.engine.loading import device_errors
from scoring.interface import TextScore


class EncoderReading(msgspec.Struct, frozen=True):
    """The logit of a window."""

    logit: float
    tokens: int  # read, including special ones


class EncoderDevice(ModelDevice):
    """Runs batches of windows on the device of the model."""

    def __init__(self, model: EncoderModel) -> None:
        super().__init__(model.device)
        self._model = model

    def launch(self, texts: Sequence[Sequence[int]]) -> DeviceBatch:
        """Queue windows of at least one id each, all below `words`. Raises DeviceLost or OutOfDeviceMemory."""
        model = self._model
        with device_errors(on_card=self._on_card), torch.inference_mode(), current(model.device):
            ids, mask = padded(texts, model.pad_id)
            logits = model.logits(self._send(ids), self._send(mask.astype(np.int64)))
            return self._collect(logits, lambda numbers: list(map(_reading, numbers.tolist(), texts)))


class EncoderEngine(ModelEngine[EncoderModel, EncoderReading]):
    """Reads texts with a sequence classifier."""

    def __init__(
        self,
        model: EncoderModel,
        settings: EncoderSettings,
        *,
        reload: Callable[[], EncoderModel],
        device: Callable[[EncoderModel], Device] = EncoderDevice,
        suspects: Path | None = None,
    ) -> None:
        """As `ModelEngine`."""
        super().__init__(model, settings, device, reload, suspects)


def _reading(logit: float, ids: Sequence[int]) -> EncoderReading | TextScore:
    if math.isfinite(logit):
        return EncoderReading(logit, len(ids))
    return TextScore(abstain="not_a_number", tokens=len(ids))
