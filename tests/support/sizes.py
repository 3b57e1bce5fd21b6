"""The environment of long tests: FARMWATCH_LONG is their full size (`make real`, `make chaos`)."""

from __future__ import annotations

import os
import random

LONG = bool(os.environ.get("FARMWATCH_LONG"))


def kill_chance() -> random.Random:
    """The dice of a test that kills at random moments; FARMWATCH_KILL_SEED repeats what an earlier run printed."""
    seed = int(os.environ.get("FARMWATCH_KILL_SEED", random.randrange(2**32)))
    print(f"FARMWATCH_KILL_SEED={seed}")
    return random.Random(seed)
