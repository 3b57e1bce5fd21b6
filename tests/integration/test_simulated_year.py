"""A year of records with retention, time compressed: disk, state and memory stay within bounds."""

from __future__ import annotations

import gc
import os
import threading
import tracemalloc
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import msgspec
import pytest

from farmwatch.audit.audit import audit
from farmwatch.audit.scope import TALLIED
from farmwatch.config.config import Config
from scoring.sites.settings import TallySettings
from scoring.stages.score import score_key
from scoring.stages.tally import TallyStage
from stream.embedded.log import EmbeddedLog
from stream.log.contract import CleanupPolicy, Output, Topic
from stream.processing.loop import LoopSettings, StageLoop
from stream.processing.metrics import Metrics
from stream.schema.records import Decision, Hit, Record, SiteState, decode, encode
from stream.schema.topics import DECISIONS, HITS, SCORES, SITE_TERMS, SITES, VERDICTS, all_topics
from tests.support.limits import with_limits
from tests.support.logs.tally_desk import DETECTOR, SPRT, page, score
from tests.support.worlds import EmbeddedWorld, TestClock

DAY_MS = 86_400_000
PARTITIONS = 4
BUDGET = 20_000_000  # the size limits of all topics
STEP_DAYS = 5  # between two rounds of retention, or of the loop


def _on_disk(folder: Path) -> int:
    return sum(path.stat().st_size for path in folder.rglob("*") if path.is_file())


def test_a_year_stays_within_its_budget(tmp_path: Path) -> None:
    """Records of every size arrive for 365 days, 75 times as many in spring, with retention every few days.

    The folder never exceeds the limits by more than a third, and shrinks in the months after the burst.
    """
    clock, folder = TestClock(), tmp_path / "log"
    with closing(EmbeddedLog(folder, clock=clock, segment_bytes=500_000)) as log:
        log.create(
            [
                Topic("pages", PARTITIONS, retention_ms=30 * DAY_MS, retention_bytes=BUDGET // 2 // PARTITIONS),
                Topic("features", PARTITIONS, retention_ms=90 * DAY_MS, retention_bytes=BUDGET // 2 // PARTITIONS),
                Topic("sites", PARTITIONS, CleanupPolicy.COMPACT),
            ]
        )
        sizes = []
        for day in [*range(0, 90, STEP_DAYS), *range(90, 100), *range(100, 365, STEP_DAYS)]:
            days = 1 if 90 <= day < 100 else STEP_DAYS
            burst = 75 if 90 <= day < 100 else 1
            outputs = []
            for number in range(8 * burst * days):
                site, partition = f"s{(day + number) % 40}.example".encode(), number % PARTITIONS
                outputs += [
                    Output("pages", partition, site, os.urandom(9000)),
                    Output("features", partition, site, os.urandom(1500)),
                    Output("sites", partition, site, os.urandom(300)),
                ]
            log.append(outputs)
            log.expire(clock.now_ms)
            sizes.append(_on_disk(folder) - (folder / "log.sqlite-wal").stat().st_size)
            clock.turn(days * DAY_MS)
        assert max(sizes) < BUDGET * 4 / 3
        assert max(sizes[-90 // STEP_DAYS :]) < 0.4 * max(sizes)
        assert sum(1 for p in range(PARTITIONS) for _ in log.read("sites", p)) <= 40 * PARTITIONS
        assert max(sizes) > 0.6 * BUDGET  # the burst fills it


SITES_MADE, PAGES_EACH = 8, 6
HITS_A_DAY = 4
CACHED = 300  # values of state that a process caches: fewer than hits in 200 days, after which its tables grow no more
TALLY = TallySettings(sprt=SPRT)


def _output(topic: str, record: Record, key: str = "") -> Output:
    return Output(topic, 0, (key or record.site).encode(), encode(record))


class _Year:
    """TALLY live on a log, some days at a time; a site is measured in the round after it was found or reopened."""

    def __init__(self, world: EmbeddedWorld) -> None:
        self.world, self.log, self.day = world, world.log, 0
        self.log.create(all_topics(1, "e"))
        self.first: dict[str, int] = {}  # site -> time of its first page
        self._read = self._hits = 0
        stage = TallyStage(DETECTOR, TALLY)
        stage.poll_s = 0.001
        member = world.join(*stage.inputs, group="tally", store=stage.store)
        quick = with_limits(LoopSettings(), linger_s=0.0)
        self._loop = StageLoop(stage, member, metrics=Metrics(), settings=quick, clock=world.clock)

    def live(self, days: int) -> None:
        for _ in range(days // STEP_DAYS):
            outputs: list[Output] = []
            for place, message in enumerate(list(self.log.read(DECISIONS, 0, self._read))):
                decision = decode(Decision, message.value or b"")
                self._read = message.offset + 1
                if not decision.stop:
                    outputs += self._measured(decision.site, place)
            for number in range(self.day, min(self.day + STEP_DAYS, SITES_MADE)):
                outputs += self._measured(f"s{number}.example", 0)
            for number in range(HITS_A_DAY * STEP_DAYS):
                site = f"s{(self.day + number) % SITES_MADE}.example"
                name, self._hits = f"h{self._hits}", self._hits + 1
                hit = Hit(id=name, site=site, url=f"https://{site}/", fetched_at=self.world.clock())
                outputs.append(_output(HITS, hit))
            self.log.append(outputs)
            for _ in range(4):
                self._loop.cycle(threading.Event())
            self.log.expire(self.world.clock())
            self.world.clock.turn(STEP_DAYS * DAY_MS)
            self.day += STEP_DAYS

    def _measured(self, site: str, place: int) -> Iterator[Output]:
        """The pages of a term: known ones with new texts."""
        now_ms = self.world.clock() + place
        first = self.first.setdefault(site, now_ms)
        for number in range(PAGES_EACH):
            text = f"{site} {now_ms} {number}"
            judged = page(number, visit=now_ms + number, text=text, first_at=first)
            names = {"site": site, "id": f"{site} {judged.id}", "page_id": f"{site} {number}", "epoch": "e"}
            yield _output(VERDICTS, msgspec.structs.replace(judged, **names))
            scored = msgspec.structs.replace(score(text, self.day > 200), site=site)
            yield _output(SCORES, scored, score_key(scored))

    def sizes(self) -> tuple[int, int, int]:
        """Keys of TALLY's state, its bytes, and the memory that Python has allocated."""
        rows = list(self.log.scan_state("tally", 0))
        state_bytes = sum(len(key) + len(value) for key, value in rows)
        keys = len(rows)
        del rows
        gc.collect()
        return keys, state_bytes, tracemalloc.get_traced_memory()[0]


@pytest.mark.slow
def test_a_year_leaves_the_state_of_tally_as_it_was_after_its_first_terms(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Sites are measured in five terms, with hits every day: keys, state and memory are flat; the audit is clean."""
    monkeypatch.setattr("stream.processing.state._ROOM", CACHED)
    with closing(EmbeddedWorld(tmp_path)) as world:
        year = _Year(world)
        tracemalloc.start()
        year.live(200)
        before = year.sizes()
        year.live(200)
        after = year.sizes()
        tracemalloc.stop()
        assert before[0] <= SITES_MADE + (101 + STEP_DAYS) * HITS_A_DAY
        assert all(late <= 1.1 * early for early, late in zip(before, after, strict=True)), (before, after)
        rows = [
            decode(SiteState, m.value) for topic in (SITES, SITE_TERMS) for m in world.log.read(topic, 0) if m.value
        ]
        verdicts = {(row.site, row.term): row.verdict for row in rows}
        assert [verdicts["s0.example", term] for term in range(5)] == ["human", "human", "human", "llm", "llm"]
        report = audit(world.log, config=Config(tally=TALLY))
        assert [record.how for record in report.broken if record.step == TALLIED] == []
        assert report.steps[TALLIED].records >= 5 * SITES_MADE
