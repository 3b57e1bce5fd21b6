"""Python's cyclic garbage collector in processes whose objects live for a batch."""

from __future__ import annotations

import gc

_OBJECTS = 10_000  # more than a batch holds; Python's own number is 700


def collect_rarely() -> None:
    """Have the collector look for cycles once there are 10,000 new objects; where it is rarer still, it stays so.

    Nearly all that a batch makes is freed by reference counts at its end. Until then the collector would look at it
    again and again in vain: that was a tenth of CRAWL's CPU.
    """
    if 0 < gc.get_threshold()[0] < _OBJECTS:
        gc.set_threshold(_OBJECTS)
