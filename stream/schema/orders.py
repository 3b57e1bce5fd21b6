"""The operator's orders to CRAWL, in the topic `control`: the pause, and the hosts that are never visited.

`order/pause` and `order/exclude/<name>` hold an `Order` each, with its changes: who gave it or took it back, when, why.
Orders need no fencing: each is one row, and the newest one counts.
"""

from __future__ import annotations

import msgspec

from stream.log.contract import Log, Message, Output
from stream.schema.control_rows import ControlRows, read_row
from stream.schema.topics import CONTROL

PAUSE = "pause"
_EXCLUDE = "exclude/"
_KEY = "order/"
_KEPT = 50  # changes of an order


class OrderChange(msgspec.Struct, array_like=True, frozen=True):
    """An order is given (`on`) or taken back."""

    on: bool
    at: int  # ms UTC
    by: str
    why: str = ""


class Order(msgspec.Struct, array_like=True, frozen=True):
    """An order with its changes, the newest last."""

    v: int = 1
    changes: list[OrderChange] = []

    @property
    def on(self) -> bool:
        """Whether the order stands."""
        return bool(self.changes) and self.changes[-1].on

    def changed(self, change: OrderChange) -> Order:
        """The order after one more change; the oldest are dropped."""
        return Order(changes=[*self.changes, change][-_KEPT:])


class Orders:
    """The orders as of the last `refresh`."""

    def __init__(self, log: Log) -> None:
        """Read them. Raises as `refresh`."""
        self._rows = ControlRows(log)
        self._orders: dict[str, Order] = {}
        self.refresh()

    def refresh(self) -> bool:
        """Read new rows; True if an order changed.

        Raises BadRecord while an order is unreadable: nobody may be visited whose exclusion is unknown. SchemaTooNew.
        """
        return self._rows.take(self._take)

    def _take(self, message: Message) -> bool:
        if not message.key.startswith(_KEY.encode()):
            return False
        name = message.key.decode(errors="replace").removeprefix(_KEY)
        if message.value is None:
            return self._orders.pop(name, None) is not None
        self._orders[name] = read_row(message, Order, f"order {name!r}")
        return True

    @property
    def pause(self) -> Order:
        """The pause of the crawl."""
        return self._orders.get(PAUSE, Order())

    @property
    def exclusions(self) -> dict[str, Order]:
        """Name -> order of everything that is or was excluded."""
        orders = self._orders.items()
        return {name.removeprefix(_EXCLUDE): order for name, order in orders if name.startswith(_EXCLUDE)}


def output_of(name: str, order: Order) -> Output:
    """The row of an order, by `PAUSE` or `exclusion`."""
    return Output(CONTROL, 0, key_of(name), msgspec.msgpack.encode(order))


def key_of(name: str) -> bytes:
    """The key of an order's row."""
    return f"{_KEY}{name}".encode()


def exclusion(name: str) -> str:
    """The name of the order that excludes `name`."""
    return f"{_EXCLUDE}{name}"
