"""kill -9 at random moments of any role, and of the Kafka broker: the result equals that of an undisturbed run.

On the embedded log the console is a role, too.
"""

from __future__ import annotations

import time
import uuid
from contextlib import ExitStack
from pathlib import Path

import pytest

from crawler.frontier.report import frontier_left
from farmwatch.demo.server import LoopbackWeb
from stream.schema.topics import VERDICTS
from tests.support.kafka_broker import Broker, own_broker
from tests.support.processes.farm import PARTITIONS, Farm, Outcome, write_hits
from tests.support.sizes import LONG, kill_chance
from tests.support.waiting import wait_until
from tests.support.web.webs import Web, sample_web

pytestmark = [pytest.mark.data]

SETTLE_S = 400.0
SITES = 30 if LONG else 3
PACE_S = 1.5  # mean time between two kills: long enough for a restarted role to begin work
SERVED = "\nconsole: http://"
REQUESTS = 17  # per site: robots.txt, sitemap, 15 pages


@pytest.fixture(scope="module")
def web(shared: Path) -> Web:
    return sample_web(shared, SITES)


@pytest.fixture(scope="module")
def undisturbed(web: Web, tmp_path_factory: pytest.TempPathFactory) -> Outcome:
    folder = tmp_path_factory.mktemp("undisturbed")
    with LoopbackWeb(web.hosts) as served, Farm(folder, f"sqlite:{folder / 'log'}", served) as farm:
        farm.work_here(write_hits(folder, web), SETTLE_S)
        report = farm.audit()
        assert report.ok, report.broken[:5]
        assert report.settled
        return farm.outcome()


def slowed(kills: int) -> dict[str, str]:
    """A crawl slow enough to last through all kills and the starts before them."""
    return {"crawl.delay_s": str((kills + 4) * PACE_S / REQUESTS)}


def kill_and_compare(farm: Farm, hits: Path, kills: int, expected: Outcome, broker: Broker | None = None) -> None:
    """Kill `kills` times once every role has worked, every fifth time the broker; compare with the undisturbed run.

    Without a broker there is a console, which is the second to be killed.
    """
    chance = kill_chance()
    farm.start(hits, console=broker is None)
    with farm.log() as log:
        wait_until(lambda: VERDICTS in log.topics() and any(log.end(VERDICTS)), farm.tail, SETTLE_S, every_s=0.5)
    if broker is None:
        wait_until(lambda: count(farm, SERVED), farm.tail, SETTLE_S)
    killed: dict[str, int] = {}
    while sum(killed.values()) < kills:
        time.sleep(chance.uniform(0.1, 2 * PACE_S))
        if broker is not None and sum(killed.values()) % 5 == 2:
            broker.kill()
            time.sleep(chance.uniform(0.0, 1.0))
            broker.start()
            killed["broker"] = killed.get("broker", 0) + 1
        elif role := farm.kill_one(chance, "console" if broker is None and sum(killed.values()) == 1 else ""):
            killed[role] = killed.get(role, 0) + 1
    with farm.log() as log:
        print(f"at the last kill: {frontier_left(log, PARTITIONS)}")
    print(f"killed: {killed}")
    farm.settle(SETTLE_S)
    wait_until(lambda: broker is not None or count(farm, SERVED) > 1, farm.tail, SETTLE_S)
    assert farm.stop() == 0, farm.tail()
    report = farm.audit()
    assert report.ok, report.broken[:5]
    assert report.settled
    found = farm.outcome()
    for kind in ("verdicts", "scores", "sites"):
        mine, theirs = getattr(found, kind), getattr(expected, kind)
        assert mine.keys() == theirs.keys(), f"{kind}: {mine.keys() ^ theirs.keys()}"
        assert [key for key in mine if mine[key] != theirs[key]] == [], kind


def count(farm: Farm, text: str) -> int:
    return farm.output.read_text().count(text)


CASES = [  # tests/e2e/test_real_input.py kills the broker once
    pytest.param("embedded", 3, marks=pytest.mark.kill),
    pytest.param("embedded", 50, marks=pytest.mark.chaos),
    pytest.param("kafka", 50, marks=[pytest.mark.chaos, pytest.mark.kafka]),
]


@pytest.mark.parametrize(("kind", "kills"), CASES)
def test_kills(web: Web, tmp_path: Path, undisturbed: Outcome, kind: str, kills: int) -> None:
    """Every verdict, score and row equals those of an undisturbed run; the embedded log's console is served again."""
    with ExitStack() as stack:
        broker = own_broker() if kind == "kafka" else None
        url = f"sqlite:{tmp_path / 'log'}" if broker is None else f"kafka:{broker.address}"
        served = stack.enter_context(LoopbackWeb(web.hosts))
        settings = slowed(kills) | {"log.prefix": f"kills-{uuid.uuid4().hex[:12]}."}
        farm = stack.enter_context(Farm(tmp_path, url, served, settings))
        kill_and_compare(farm, write_hits(tmp_path, web), kills, undisturbed, broker)
