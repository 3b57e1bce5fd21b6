"""Gives orders to CRAWL, and says which ones stand."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

from crawler.stages.orders import CrawlOrders, order_text
from crawler.web.exclusions import Exclusions
from farmwatch.config.config import Config
from farmwatch.config.opening import log_exists, opened
from farmwatch.config.topic_limits import create_missing
from farmwatch.terminal.messages import message
from replay.runs.control_update import operator
from stream.log.contract import Log, wall_ms
from stream.schema.orders import PAUSE, Order, OrderChange, Orders, exclusion, output_of
from stream.schema.topics import CONTROL


def order_pause(config: Config, why: str, *, on: bool) -> Order | None:
    """Pause the crawl or let it go on; returns the order that stood before, None if nothing changed."""
    with _written(config, create=on) as log:
        before = Orders(log).pause
        if before.on == on:
            return None
        log.append([output_of(PAUSE, before.changed(_change(why, on=on)))])
    return before


def order_exclusions(config: Config, names: Sequence[tuple[str, str]], *, on: bool) -> list[str]:
    """Exclude these (name, why), or end that; returns the names that changed, in all or in the reason.

    All of them change together.
    """
    with _written(config, create=on) as log:
        known = Orders(log).exclusions
        changed = {name: why for name, why in names if _is_new(known.get(name, Order()), why, on=on)}
        log.append(
            [
                output_of(exclusion(name), known.get(name, Order()).changed(_change(why, on=on)))
                for name, why in changed.items()
            ]
        )
    return list(changed)


@contextmanager
def _written(config: Config, *, create: bool) -> Iterator[Log]:
    is_new = create and not log_exists(config)
    with opened(config, write=True, create=create) as log:
        if CONTROL not in log.topics():
            create_missing(log, config)
        yield log
    if is_new:
        message(f"{config.log.url} is a new log")


def pause_in_words(log: Log) -> str:
    """Who paused the crawl, when, and why; "" while it is not paused by an operator. Raises as `Orders.refresh`."""
    pause = Orders(log).pause
    return f"the crawl is paused {order_text(pause.changes[-1])}; `farmwatch crawl resume` ends it" if pause.on else ""


@dataclass(frozen=True, slots=True)
class NotVisited:
    """The hosts that are never visited, as the log has them."""

    orders: CrawlOrders
    exclusions: Mapping[str, Order]

    @classmethod
    def of(cls, log: Log) -> NotVisited:
        """Raises as `Orders.refresh`."""
        return cls(CrawlOrders(log, {}, 0), {name: order for name, order in Orders(log).exclusions.items() if order.on})

    def exclusion_of(self, host: str) -> str:
        """The exclusion that covers a host; "" for a forgotten one."""
        return next((name for name in self.exclusions if Exclusions([name]).covers(host)), "")

    def why(self, host: str) -> str:
        """Why a host is not visited, in words; "" if it may be."""
        if not self.orders.excludes(host):
            return ""
        name = self.exclusion_of(host)
        if not name:
            return "forgotten for ever (`farmwatch crawl forget`)"
        return f"excluded as {name} {order_text(self.exclusions[name].changes[-1])}"


def _is_new(order: Order, why: str, *, on: bool) -> bool:
    return order.on != on or (on and why not in ("", order.changes[-1].why))


def _change(why: str, *, on: bool) -> OrderChange:
    return OrderChange(on, wall_ms(), operator(), why)
