"""SCORE in a process whose device is lost once, a while after its start: `python -m tests.ops.losing_score …`."""

from __future__ import annotations

import sys
import time
from typing import Any

from farmwatch.__main__ import run
from scoring.errors import DeviceLost
from scoring.pair.device import PairDevice

AFTER_S = 25.0  # from its start on: what is before is the quiet time


def lose_once(began_s: float) -> None:
    """The first batch after that time finds no device."""
    launch, lost = PairDevice.launch, list[bool]()

    def losing(device: PairDevice, texts: Any) -> Any:
        if not lost and time.monotonic() - began_s > AFTER_S:
            lost.append(True)
            raise DeviceLost("CUDA error: the card has fallen off the bus (a test)")
        return launch(device, texts)

    setattr(PairDevice, "launch", losing)  # noqa: B010 - mypy has no word for it


if __name__ == "__main__":
    lose_once(time.monotonic())
    sys.exit(run(sys.argv[1:]))
