"""Bits that flip in the files of the embedded log: one dead letter each, and every other record is processed."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing
from pathlib import Path
from typing import Any

import msgspec
import pytest

from filters.measure.epoch import feature_epoch
from filters.settings import MeasureSettings
from filters.stages.measure import MeasureStage
from scoring.stages.tally import TallyStage
from stream.embedded.log import EmbeddedLog
from stream.log.contract import Output
from stream.processing.loop import LoopSettings, StageLoop
from stream.processing.metrics import Metrics
from stream.processing.stage import Stage
from stream.schema.records import Features, Hit, Page, Record, SiteState, Verdict, decode, encode
from stream.schema.topics import FEATURES, HITS, PAGES, SCORES, SITES, VERDICTS, all_topics
from tests.support.limits import with_limits
from tests.support.logs.embedded_worker import sql
from tests.support.logs.loops import letters
from tests.support.pages.page_records import fetched_page, text_score
from tests.support.waiting import wait_until
from tests.support.web.article_head import ARTICLE_HEAD

SITE = "river.test"
DETECTOR = "lite-ngram-1-accuracy"
MEASURE = MeasureSettings(workers=1)
PAGES_MADE = 30


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A log with all topics, of one partition each."""
    log = EmbeddedLog(tmp_path / "log")
    log.create(all_topics(1, feature_epoch(MEASURE)))
    log.close()
    return tmp_path / "log"


@pytest.fixture
def reopen(folder: Path) -> Iterator[Callable[[], EmbeddedLog]]:
    with ExitStack() as stack:
        yield lambda: stack.enter_context(closing(EmbeddedLog(folder)))


def append(folder: Path, records: list[tuple[str, Record]]) -> None:
    """Write records in a process that has ended."""
    log = EmbeddedLog(folder)
    log.append([Output(topic, 0, r.site.encode(), encode(r), {"run": "live"}) for topic, r in records])
    log.close()


def page(number: int) -> Page:
    """A fetched page with a unique article, too large for the database."""
    text = " ".join(f"On day {day} of year {number} the river rose by {day * number} feet." for day in range(60))
    html = f"<html>{ARTICLE_HEAD}<body><article><h1>Year {number}</h1><p>{text}</p></article></body></html>"
    headers = {"x-noise": "".join(chr(33 + (day * number) % 90) for day in range(3000))}
    url, name = f"https://{SITE}/{number}", f"p{number}"
    return fetched_page(url, html, id=name, page_id=name, headers=headers, fetched_at=1000 + number)


def work(log: EmbeddedLog, stage: Stage, **settings: float) -> StageLoop:
    """Run a stage over all records, or until its breaker opens."""
    stage.poll_s = 0.01
    member = log.join(stage.name, list(stage.inputs), member="m", store=stage.store)
    more = with_limits(LoopSettings(), linger_s=0.0, backoff_s=0.001, backoff_cap_s=0.002, **settings)
    loop = StageLoop(stage, member, metrics=Metrics(), settings=more)

    def done() -> bool:
        loop.cycle(threading.Event())
        return "BreakerOpen" in loop.health().detail or not sum(member.lag().values())

    wait_until(done, f"{stage.name} to read its input")
    stage.close()
    member.close()
    return loop


def measured(log: EmbeddedLog) -> list[str]:
    return [decode(Features, message.value or b"").id for message in log.read(FEATURES, 0)]


def test_a_flipped_bit_under_measure_costs_one_page(folder: Path, reopen: Callable[[], EmbeddedLog]) -> None:
    """If a bit of a segment file flips, that page is dead-lettered with file and byte, and the others are measured."""
    append(folder, [(PAGES, page(number)) for number in range(PAGES_MADE)])
    (segment,) = (folder / "segments").iterdir()
    (position,) = sql(folder, "SELECT position FROM records WHERE segment IS NOT NULL ORDER BY id")[7]
    data = bytearray(segment.read_bytes())
    data[position + 100] ^= 0x10
    segment.write_bytes(data)
    log = reopen()
    work(log, MeasureStage(MEASURE))
    (letter,) = letters(log, [0])
    assert (letter.topic, letter.partition, letter.offset, letter.stage) == (PAGES, 0, 7, "measure")
    assert f"segment {segment} is damaged at byte {position}: the checksum" in letter.error
    assert (letter.key, letter.value) == (SITE.encode(), b"")
    assert measured(log) == [f"p{number}" for number in range(PAGES_MADE) if number != 7]


def test_a_missing_segment_opens_the_breaker(folder: Path, reopen: Callable[[], EmbeddedLog]) -> None:
    """If a segment is missing, all its pages are damaged: MEASURE waits for the file, with the cause in its health."""
    append(folder, [(PAGES, page(number)) for number in range(PAGES_MADE)])
    (segment,) = (folder / "segments").iterdir()
    segment.rename(folder / "elsewhere")
    log = reopen()
    loop = work(log, MeasureStage(MEASURE))
    health = loop.health()
    assert "BreakerOpen: 30 of the last 30 records failed" in health.detail
    assert f"segment {segment} is damaged at byte " in health.detail
    assert health.detail.endswith(": the file is missing")
    assert letters(log, [0]) == []
    assert log.committed("measure", PAGES) == [None]
    (folder / "elsewhere").rename(segment)
    work(log, MeasureStage(MEASURE))
    assert letters(log, [0]) == []
    assert len(measured(log)) == PAGES_MADE


def test_a_flipped_bit_in_a_verdict_is_not_counted(folder: Path, reopen: Callable[[], EmbeddedLog]) -> None:
    """A verdict with a flipped bit that still decodes is dead-lettered, and the others are counted."""
    hit = Hit(id="h", site=SITE, url=f"https://{SITE}/0", query_id="q")
    by: dict[str, Any] = {"verdict": "article", "ruleset": "r", "digest": "d"}
    verdicts = [
        Verdict(id=f"p{n}", site=SITE, page_id=f"p{n}", url=hit.url, text_digest=f"t{n}", fetched_at=1000 + n, **by)
        for n in range(3)
    ]
    scores = [text_score(SITE, f"t{n}", "x", None, f"p{n}", f"p{n}") for n in range(3)]
    append(folder, [(HITS, hit), *((VERDICTS, verdict) for verdict in verdicts), *((SCORES, s) for s in scores)])
    flipped = encode(verdicts[1]).replace(b"p1", b"p3")  # one bit: another page, which has no verdict
    assert decode(Verdict, flipped).page_id == "p3"
    assert sql(folder, "UPDATE records SET value = ? WHERE value = ? RETURNING 1", flipped, encode(verdicts[1])) == [
        (1,)
    ]
    log = reopen()
    work(log, TallyStage(DETECTOR))
    (letter,) = letters(log, [0])
    assert (letter.topic, letter.partition, letter.offset, letter.stage) == (VERDICTS, 0, 1, "tally")
    assert f"{folder / 'log.sqlite'} is damaged in row " in letter.error
    row = [decode(SiteState, message.value or b"") for message in log.read(SITES, 0)][-1]
    assert (row.pages, row.articles) == (2, 2)


@pytest.mark.parametrize("garbage", [b"\xc1", b"", b"\x93\x01\xa2\xff\xfe"])
def test_state_that_cannot_be_decoded_costs_the_records_of_its_site(
    folder: Path, reopen: Callable[[], EmbeddedLog], garbage: bytes
) -> None:
    """If TALLY's row of a site is damaged, the records of that site are dead-lettered, and the others processed."""
    sites = [SITE, "lake.test", "sea.test"]

    def hits(source: str) -> list[tuple[str, Record]]:
        return [
            (HITS, Hit(id=f"{site}{source}", site=site, url=f"https://{site}/", query_id="q", source=source))
            for site in sites
        ]

    append(folder, hits("first"))
    work(reopen(), TallyStage(DETECTOR))
    assert sql(folder, "UPDATE state SET value = ? WHERE key = ? RETURNING 1", garbage, SITE.encode()) == [(1,)]
    append(folder, hits("second"))
    log = reopen()
    work(log, TallyStage(DETECTOR))
    (letter,) = letters(log, [0])
    assert (letter.topic, letter.offset, letter.key, letter.stage) == (HITS, 3, SITE.encode(), "tally")
    rows = {row.site: row.hits for m in log.read(SITES, 0) for row in [decode(SiteState, m.value or b"")]}
    assert rows == {SITE: 1, "lake.test": 2, "sea.test": 2}


def test_a_damaged_site_memory_costs_the_pages_of_its_site(folder: Path, reopen: Callable[[], EmbeddedLog]) -> None:
    """If MEASURE's memory of a site is damaged, its later pages are dead-lettered, and those of others measured."""
    append(folder, [(PAGES, page(1))])
    work(reopen(), MeasureStage(MEASURE))
    assert sql(folder, "UPDATE state SET value = x'c1' RETURNING 1")
    other = msgspec.structs.replace(page(3), site="lake.test", url="https://lake.test/3")
    append(folder, [(PAGES, page(2)), (PAGES, other)])
    log = reopen()
    work(log, MeasureStage(MEASURE))
    (letter,) = letters(log, [0])
    assert (letter.topic, letter.offset, letter.stage) == (PAGES, 1, "measure")
    assert measured(log) == ["p1", "p3"]
