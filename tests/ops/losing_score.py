"""SCORE in a process whose device is lost once, some time after its start: `python -m tests.ops.losing_score …`."""

from __future__ import annotations

import sys
import time
from typing import Any

from farmwatch.__main__ import run
from scoring.errors import DeviceLost
from scoring.pair.device import PairDevice

AFTER_S = 30.0  # counted from its first batch; the time before is quiet


def lose_once() -> None:
    """The first batch after that time fails without a device."""
    launch, began_s, lost = PairDevice.launch, list[float](), list[bool]()

    def losing(device: PairDevice, texts: Any) -> Any:
        now_s = time.monotonic()
        began_s.append(now_s)
        if not lost and now_s - began_s[0] > AFTER_S:
            lost.append(True)
            raise DeviceLost("CUDA error: the card has fallen off the bus (a test)")
        return launch(device, texts)

    setattr(PairDevice, "launch", losing)  # noqa: B010 - mypy has no word for it


if __name__ == "__main__":
    lose_once()
    sys.exit(run(sys.argv[1:]))
