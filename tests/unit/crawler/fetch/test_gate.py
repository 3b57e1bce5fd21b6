"""The politeness gate: one request at a time per host, on a simulated clock."""

from __future__ import annotations

import asyncio

from crawler.fetch.gate import HostGate
from tests.support.web.crawl_driver import patient_settings


class Time:
    """A clock that moves only on sleep."""

    def __init__(self) -> None:
        self.now = 100.0

    async def sleep(self, seconds: float) -> None:
        self.now += seconds
        await asyncio.sleep(0)

    def gate(self, **changes: object) -> HostGate:
        return HostGate(patient_settings("", **changes), lambda: self.now, self.sleep)

    def starts(self, gate: HostGate, *turns: tuple[str, float, float]) -> list[float]:
        """Start times of each (host, delay, duration), one after the other."""
        found = []

        async def main() -> None:
            for host, delay_s, took_s in turns:
                turn = gate.turn(host, delay_s)
                await turn.take()
                found.append(self.now)
                self.now += took_s
                turn.leave()

        asyncio.run(main())
        return found


def test_the_gate_spaces_starts_and_never_overlaps() -> None:
    """Requests to one host start a delay apart and one at a time; other hosts do not wait."""
    time = Time()
    log: list[tuple[str, str, float]] = []
    gate = time.gate()

    async def visit(host: str) -> None:
        turn = gate.turn(host, 5.0)
        await turn.take()
        log.append((host, "in", time.now))
        await asyncio.sleep(0)
        log.append((host, "out", time.now))
        turn.leave()

    async def main() -> None:
        await asyncio.gather(*map(visit, "aaab"))

    asyncio.run(main())
    of_a = [(what, when) for host, what, when in log if host == "a"]
    assert [what for what, _ in of_a] == ["in", "out"] * 3
    assert [when for what, when in of_a if what == "in"] == [100.0, 105.0, 110.0]
    assert next(when for host, _, when in log if host == "b") == 100.0


def test_a_turn_that_waits_holds_no_slot() -> None:
    """Requests that wait for their host or its delay are not in flight: other hosts get the slots."""

    async def never(_: float) -> None:
        await asyncio.Event().wait()

    async def main() -> None:
        gate = HostGate(patient_settings("", max_in_flight=2), lambda: 100.0, never)
        first, other = gate.turn("a", 5.0), gate.turn("b", 5.0)
        await first.take()
        waits = asyncio.create_task(gate.turn("a", 5.0).take())
        await asyncio.sleep(0)
        await asyncio.wait_for(other.take(), 1)
        first.leave()
        other.leave()
        await asyncio.sleep(0)  # the host is free, and its delay is not over
        for name in "cd":
            await asyncio.wait_for(gate.turn(name, 5.0).take(), 1)
        assert gate.slots.locked() and not waits.done()
        waits.cancel()

    asyncio.run(main())


def test_a_slow_host_rests() -> None:
    """The turn after a slow response comes later, by the same factor and cap as between pages."""
    time = Time()
    turns = [("a", 1.0, took_s) for took_s in (0.0, 4.0, 100.0, 0.0)]
    assert time.starts(time.gate(delay_slow_cap_s=30.0), *turns) == [100.0, 101.0, 109.0, 209.0]


def test_a_start_counts_from_when_the_request_is_sent() -> None:
    """A request that was slow to connect is recorded when it is sent, and waits if another one has begun since."""
    time = Time()
    gate = time.gate(address_delay_s=1.0)
    sent: list[tuple[str, float]] = []

    async def main() -> None:
        time.now = 200.0
        slow, quick, last = (gate.turn(f"{name}.test", 0.1, ["192.0.2.1"]) for name in ("slow", "quick", "last"))
        await slow.take()
        await quick.take()
        sent.append(("quick", time.now))
        time.now = 201.5  # half a second after the other one: connected
        await slow.sent()
        sent.append(("slow", time.now))
        await last.take()
        sent.append(("last", time.now))

    asyncio.run(main())
    assert sent == [("quick", 201.0), ("slow", 202.0), ("last", 203.0)]


def test_the_gate_keeps_the_larger_delay() -> None:
    """A request with a longer delay than the one before it waits that long from the other's start."""
    time = Time()
    assert time.starts(time.gate(), ("a", 1.0, 0.0), ("a", 30.0, 0.0), ("a", 1.0, 0.0)) == [100.0, 130.0, 160.0]
