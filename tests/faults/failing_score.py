"""SCORE in a process whose device is slow, then full, then lost: `python -m tests.faults.failing_score up …`."""

from __future__ import annotations

import itertools
import sys
import time
from typing import Any

from farmwatch.__main__ import run
from scoring.encoder.engine import EncoderDevice
from scoring.errors import DeviceLost, OutOfDeviceMemory
from scoring.pair.device import PairDevice

FULL, LOST = 3, 5  # batches of each engine, its first one of warming up included
SLOW_S = 0.1


def fail(kind: type[Any]) -> None:
    """The devices of this class fail at these batches."""
    launch, batches = kind.launch, itertools.count(1)

    def failing(device: Any, texts: Any) -> Any:
        number = next(batches)
        time.sleep(SLOW_S)
        if number == FULL:
            raise OutOfDeviceMemory("CUDA out of memory (a test)")
        if number == LOST:
            raise DeviceLost("CUDA error: the card has fallen off the bus (a test)")
        return launch(device, texts)

    kind.launch = failing


if __name__ == "__main__":
    for device in (EncoderDevice, PairDevice):
        fail(device)
    sys.exit(run(sys.argv[1:]))
