"""The orders that CRAWL follows: the operator's, from the log, and the pause while a disk has too little room."""

from __future__ import annotations

import shutil
import time
from collections.abc import Callable, Mapping
from pathlib import Path

from crawler.web.exclusions import Exclusions
from stream.log.contract import Log
from stream.schema.forgotten import Forgotten
from stream.schema.orders import OrderChange, Orders
from stream.text.wording import moment, one_line, size

LOOK_S = 1.0  # between two looks at the log and the disks
RESUME_AT = 1.25  # times the low-water mark: a pause for the disk ends there, so that it does not flutter
OPERATOR, DISK = PAUSE_REASONS = ("operator", "disk")


def free_bytes(folder: Path) -> float | None:
    """Free bytes of a folder's disk; None where it cannot be asked."""
    try:
        return float(shutil.disk_usage(folder).free)
    except OSError:  # not created yet, or its disk is gone
        return None


def exclusions_of(orders: Orders) -> Exclusions:
    """The exclusions in force."""
    return Exclusions(name for name, order in orders.exclusions.items() if order.on)


def order_text(pause: OrderChange) -> str:
    """Who paused the crawl, when, and why."""
    why = f": {pause.why}" if pause.why else ""
    return one_line(f"by {pause.by} since {moment(pause.at)}{why}")


class CrawlOrders:
    """What CRAWL may do now. `look` belongs to one thread."""

    def __init__(
        self,
        log: Log,
        folders: Mapping[str, Path],
        pause_below_bytes: int,
        *,
        free: Callable[[Path], float | None] = free_bytes,
        monotonic: Callable[[], float] = time.monotonic,
    ) -> None:
        """`folders` by name: the crawl pauses while one of their disks has less than `pause_below_bytes` free.

        Raises as `Orders.refresh`.
        """
        self.paused: Mapping[str, str] = {}  # reason -> in words
        self._orders = Orders(log)
        self._forgotten = Forgotten(log)
        self._exclusions = exclusions_of(self._orders)
        self._folders = folders
        self._mark = pause_below_bytes
        self._free = free
        self._monotonic = monotonic
        self._looked_at = -LOOK_S
        self.look()

    def look(self) -> None:
        """Look at the log and the disks, once a second at most. Raises as `Orders.refresh`."""
        now = self._monotonic()
        if now - self._looked_at < LOOK_S:
            return
        self._looked_at = now
        if self._orders.refresh():
            self._exclusions = exclusions_of(self._orders)
        self._forgotten.refresh()
        pause = self._orders.pause
        paused = {OPERATOR: order_text(pause.changes[-1])} if pause.on else {}
        if low := self._low_disk():
            paused[DISK] = low
        self.paused = paused

    def excludes(self, host: str) -> bool:
        return self._exclusions.covers(host) or self._forgotten.covers(host)

    def _low_disk(self) -> str:
        """The disk with too little room, in words; "" while all have enough."""
        mark = self._mark * (RESUME_AT if DISK in self.paused else 1)
        for name, folder in self._folders.items():
            free = self._free(folder)
            if free is not None and free < mark:
                return one_line(f"{size(free)} free on the disk of the {name} ({folder}), below {size(mark)}")
        return ""
