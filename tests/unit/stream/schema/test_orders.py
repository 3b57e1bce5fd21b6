"""Orders in the topic `control`: their history, and rows that cannot be read."""

from __future__ import annotations

from collections.abc import Iterator

import msgspec
import pytest

from stream.log.contract import CleanupPolicy, Output, Topic
from stream.log.errors import BadRecord, SchemaTooNew
from stream.memory.log import MemoryLog
from stream.schema.control import Control
from stream.schema.orders import PAUSE, Order, OrderChange, Orders, exclusion, output_of
from stream.schema.topics import CONTROL

KEY = b"order/exclude/a.example"


@pytest.fixture
def log() -> Iterator[MemoryLog]:
    """A log with the topic `control`."""
    made = MemoryLog()
    made.create([Topic(CONTROL, 1, CleanupPolicy.COMPACT)])
    yield made
    made.close()


def change(at: int, *, on: bool) -> OrderChange:
    return OrderChange(on, at, "ann@desk", f"reason {at}")


def test_an_order_keeps_its_history(log: MemoryLog) -> None:
    """Who gave and took back an order stays readable, the last 50 changes of it; runs are not disturbed."""
    assert not Orders(log).pause.on
    orders, order = Orders(log), Order()
    for at in range(60):
        order = order.changed(change(at, on=at % 2 == 0))
    log.append([output_of(PAUSE, order), output_of(exclusion("a.example"), Order().changed(change(1, on=True)))])
    assert orders.refresh() and not orders.refresh()
    assert not orders.pause.on and [each.at for each in orders.pause.changes] == list(range(10, 60))
    assert {name: found.on for name, found in orders.exclusions.items()} == {"a.example": True}
    assert Control(log).runs == {}
    log.append([Output(CONTROL, 0, KEY, None)])
    assert orders.refresh() and orders.exclusions == {}


def test_an_order_that_cannot_be_read_is_no_permission(log: MemoryLog) -> None:
    """A row of a newer schema, or no row at all, raises until the order is given again."""
    orders = Orders(log)
    newer = msgspec.msgpack.encode(msgspec.structs.replace(Order().changed(change(1, on=True)), v=9))
    for value, error in ((b"\xc1", SchemaTooNew), (newer, SchemaTooNew), (b"", BadRecord)):
        log.append([Output(CONTROL, 0, KEY, value)])
        with pytest.raises(error, match=r"a\.example"):
            orders.refresh()
        with pytest.raises(error):
            orders.refresh()
    log.append([output_of(exclusion("a.example"), Order().changed(change(2, on=True)))])
    assert orders.refresh() and orders.exclusions["a.example"].on
