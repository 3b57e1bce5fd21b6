"""Spacing by domain and address: simulated hosts ask for a place, are deferred, and ask again."""

from __future__ import annotations

import heapq
import itertools
from collections import Counter, defaultdict
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from crawler.fetch.spacing import FORGOTTEN_S, PATIENCE_S, Spacing

BORN = 1000.0
NEAR = 3e-6  # the sums of delays are not exact


@dataclass
class Crowd:
    """Runs hosts through the places in simulated time; it stands in for the gate and the frontier."""

    places: Spacing
    late_s: Callable[[str], float] = lambda _: 0.0
    starts: list[tuple[float, str]] = field(default_factory=list)
    sent_away: Counter[str] = field(default_factory=Counter)
    most_waiting: int = 0

    def run(self, comers: Sequence[tuple[float, str, str, tuple[str, ...]]]) -> None:
        """Run the arrivals: each has a time, a host, a domain and addresses."""
        number = itertools.count()
        events = [(when, next(number), (host, domain, at), False) for when, host, domain, at in comers]
        heapq.heapify(events)
        waiting = 0
        while events:
            now, _, comer, goes_on = heapq.heappop(events)
            host, domain, addresses = comer
            if not goes_on:
                at = self.places.ask(host, domain, addresses, now)
                if at:
                    assert at > now + PATIENCE_S or self.sent_away[host], "sent away for a place that is near"
                    self.sent_away[host] += 1
                    heapq.heappush(events, (at + self.late_s(host), next(number), comer, False))
                    continue
                waiting += 1
            self.most_waiting = max(self.most_waiting, waiting)
            wait_s = self.places.begin(domain, addresses, now)
            if wait_s:
                heapq.heappush(events, (now + wait_s, next(number), comer, True))
            else:
                waiting -= 1
                self.starts.append((now, host))


def closest(starts: Sequence[tuple[float, str]], shared: dict[str, Sequence[str]]) -> dict[str, float]:
    """Smallest time between two starts, by shared domain and address."""
    times: dict[str, list[float]] = defaultdict(list)
    for when, host in starts:
        for name in shared[host]:
            times[name].append(when)
    return {name: min((b - a for a, b in itertools.pairwise(found)), default=1e9) for name, found in times.items()}


COMERS = st.lists(
    st.tuples(st.floats(0, 30), st.integers(0, 3), st.lists(st.integers(0, 4), min_size=1, max_size=2, unique=True)),
    max_size=60,
)


@settings(max_examples=150)
@given(COMERS, st.sampled_from([0.0, 0.7, 2.0, 5.0]), st.sampled_from([0.0, 0.3, 1.0]), st.data())
def test_no_two_starts_are_closer_than_the_delay(
    found: list[tuple[float, int, list[int]]], domain_s: float, address_s: float, data: st.DataObject
) -> None:
    """For any order and delay, every host starts, and starts are a delay apart per domain and address."""
    late = st.sampled_from([0.0, 0.0, 0.1, 0.4, 3.0, 40.0])
    crowd = Crowd(Spacing(domain_s, address_s, BORN), lambda _: data.draw(late))
    comers = [
        (BORN + when, f"h{number}", f"domain{domain}", tuple(f"address{address}" for address in addresses))
        for number, (when, domain, addresses) in enumerate(found)
    ]
    crowd.run(comers)
    assert len(crowd.starts) == len(comers)
    domains = closest(crowd.starts, {host: [domain] for _, host, domain, _ in comers})
    addresses = closest(crowd.starts, {host: addresses for _, host, _, addresses in comers})
    assert all(gap >= domain_s - NEAR for gap in domains.values())
    assert all(gap >= address_s - NEAR for gap in addresses.values())
    for when, host in crowd.starts:
        domain = next(comer[2] for comer in comers if comer[1] == host)
        assert when >= BORN + max(domain_s, address_s) - NEAR, domain


@settings(max_examples=60)
@given(st.lists(st.floats(0, 100), min_size=1, max_size=100), st.sampled_from([0.05, 0.5, 1.0, 7.0]), st.booleans())
def test_hosts_that_come_in_time_are_sent_away_once(whens: list[float], delay_s: float, by_domain: bool) -> None:
    """Hosts of one domain or address that ask again at their time are deferred at most once."""
    crowd = Crowd(Spacing(delay_s if by_domain else 0.0, 0.0 if by_domain else delay_s, BORN))
    crowd.run([(BORN + when, f"h{number}", "d", ("a",)) for number, when in enumerate(whens)])
    assert len(crowd.starts) == len(whens) and set(crowd.sent_away.values()) <= {1}
    last = max(when for when, _ in crowd.starts)
    assert last <= BORN + max(whens) + len(whens) * delay_s + delay_s + NEAR, "no place is wasted"


@pytest.mark.parametrize("late_s", [0.0, 0.1, 0.5])
def test_a_farm_holds_few_of_the_requests_under_way(late_s: float) -> None:
    """At most three of a thousand hosts at one address wait in flight, and all finish as fast as the address allows."""
    crowd = Crowd(Spacing(2.0, 1.0, BORN), lambda _: late_s)
    crowd.run([(BORN, f"h{number}", f"d{number}", ("a",)) for number in range(1000)])
    assert crowd.most_waiting <= 3
    assert max(crowd.sent_away.values()) <= 1
    assert max(when for when, _ in crowd.starts) <= BORN + 1003 + late_s


def test_a_farm_takes_nothing_from_its_neighbours() -> None:
    """A domain of a thousand hosts leaves room at its address for a host of another domain within seconds."""
    places = Spacing(2.0, 1.0, BORN)
    crowd = Crowd(places)
    farm = [(BORN + 5, f"h{number}", "farm", ("a",)) for number in range(1000)]
    crowd.run([*farm, (BORN + 6, "other", "other", ("a",)), (BORN + 6, "far", "far", ("b",))])
    when = {host: when for when, host in crowd.starts}
    assert when["far"] == BORN + 6 and when["other"] <= BORN + 10


def test_two_queues_that_cross() -> None:
    """If queues of a domain and of an address cross, hosts are deferred twice at most and lose little time."""
    crowd = Crowd(Spacing(2.0, 1.0, BORN))
    comers = [(BORN, f"f{number}", "farm", ("a",)) for number in range(100)]
    comers += [(BORN, f"n{number}", f"n{number}", ("a",)) for number in range(100)]
    crowd.run(comers)
    assert max(crowd.sent_away.values()) <= 2
    assert max(when for when, _ in crowd.starts) <= BORN + 260


def test_the_other_shares_of_several_processes() -> None:
    """A process with a quarter of the sites keeps four times the delays; with all sites, it keeps the plain delays."""
    places = Spacing(2.0, 1.0, BORN)
    places.share(0.25)
    assert places.begin("d", ("a",), BORN) == 8.0
    assert places.begin("d", ("a",), BORN + 8) == 0.0
    places.share(1.0)
    assert places.begin("d", ("a",), BORN + 9) == 1.0


def test_an_address_without_a_claim_is_charged() -> None:
    """A request over an old connection to another address spaces that address as well."""
    places = Spacing(0.0, 10.0, BORN - 10)
    places.charge("b", BORN)
    assert places.begin("d", ("b",), BORN + 4) == 6.0


def test_what_is_past_is_forgotten() -> None:
    """Idle clocks and unused places are removed, and the number of places is bounded."""
    places = Spacing(2.0, 1.0, BORN, room=500)
    for number in range(20_000):
        places.begin(f"d{number}", (f"a{number}",), BORN + 10 + number)
    assert len(places) < 10_000
    places = Spacing(0.0, 1.0, BORN, room=500)
    for number in range(5000):
        places.ask(f"h{number}", "d", ("a",), BORN)
    assert len(places) == 501
    now = BORN + 500 + FORGOTTEN_S + 1
    places.begin("d", ("a",), now)
    places.ask("x", "d", ("a",), now)
    assert len(places) == 2


def test_a_stall_costs_each_host_one_more_way() -> None:
    """After a pause of ten seconds, each host is deferred at most once more, and none waits long."""
    places = Spacing(0.0, 1.0, BORN)
    crowd = Crowd(places)
    halted = {f"h{number}" for number in range(20, 30)}
    crowd.late_s = lambda host: float(30 - int(host[1:])) if host in halted and crowd.sent_away[host] == 1 else 0.0
    crowd.run([(BORN, f"h{number}", "d", ("a",)) for number in range(100)])
    assert len(crowd.starts) == 100 and max(crowd.sent_away.values()) <= 2 and crowd.most_waiting <= 4


def test_one_that_comes_early_is_told_the_same() -> None:
    """A host that asks before its place gets the same time again; no other place moves."""
    places = Spacing(0.0, 10.0, BORN)
    assert places.ask("x", "x", ("a",), BORN) == BORN + 10
    assert [places.ask("y", "y", ("a",), BORN + second) for second in range(3)] == [BORN + 20] * 3
    assert places.ask("z", "z", ("a",), BORN) == BORN + 30
