"""Waiting for a condition, with a deadline."""

from __future__ import annotations

import time
from collections.abc import Callable

PATIENCE_S = 60.0


def wait_until(
    condition: Callable[..., object],
    what: str | Callable[[], str],
    timeout_s: float = PATIENCE_S,
    every_s: float = 0.02,
) -> None:
    """Call `condition` until it is true; after the timeout, fail with the text `what`."""
    deadline = time.monotonic() + timeout_s
    while not condition():
        assert time.monotonic() < deadline, f"waited in vain for {what if isinstance(what, str) else what()}"
        time.sleep(every_s)
