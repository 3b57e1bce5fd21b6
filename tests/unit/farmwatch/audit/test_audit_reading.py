"""The audit of waiting and unreadable records, and of records removed before they were read."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from msgspec.structs import replace

from farmwatch.audit.audit import audit
from farmwatch.audit.scope import CRAWLED, JUDGED, MEASURED, SCORED, TALLIED
from filters.rules.ruleset import load_ruleset
from filters.stages.judge import JudgeStage
from stream.log.contract import Message, Output, partition_of
from stream.memory.log import MemoryLog
from stream.processing import heartbeat
from stream.processing.dead_letters import dead_letter
from stream.schema.records import Hit, Page, encode
from stream.schema.runs import LIVE, Gap, Run
from stream.schema.topics import DEAD_LETTERS, FEATURES, HITS, PAGES, SCORE_REQUESTS, SCORES, SITES, VERDICTS
from stream.text.user_errors import Exit
from tests.support.front_door import PARTITIONS, Runner
from tests.support.logs.tallied_log import DAY_MS, LLM_SITES, rewrite, rows_of, site_name, tallied
from tests.support.runs.audit_world import OTHER, SITE, World
from tests.support.runs.cutover_world import CutoverWorld, cutover_world
from tests.support.runs.replay_world import put_rows

GARBAGE = b"\xc1 no record"
NOT_UTF8 = encode(Hit(id="x", site=SITE, url="http://a/?")).replace(b"/?", b"/\xff")
READER = {  # topic -> stage that dead-letters what it cannot read, and the step that the record goes into
    HITS: ("crawl", CRAWLED),
    PAGES: ("measure", MEASURED),
    FEATURES: ("judge", JUDGED),
    VERDICTS: ("tally", SCORED),
    SCORE_REQUESTS: ("score", SCORED),
    SCORES: ("tally", TALLIED),
}


@pytest.fixture
def world() -> World:
    return World()


@pytest.fixture
def at_rest(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[CutoverWorld]:
    """An embedded log with site rows, where every stage has read everything."""
    with cutover_world("embedded", tmp_path, monkeypatch) as made:
        tallied(made)
        yield made


@pytest.mark.parametrize(
    ("stage", "topic"),
    [
        ("measure", PAGES),
        ("judge", FEATURES),
        ("score", SCORE_REQUESTS),
        *(("tally", t) for t in (HITS, VERDICTS, SCORES)),
    ],
)
def test_unread_records_are_in_the_last_line(world: World, stage: str, topic: str) -> None:
    """Nothing is broken and rows are right, but unread records make the audit neither settled nor clean.

    Heartbeats do not count.
    """
    for number in range(5):
        world.judged(str(number))
    world.row(pages=5, articles=5)
    world.read_all()
    world.log.append([heartbeat.travelling(HITS, 0, {heartbeat.HEADER: "1"})])
    assert audit(world.log).settled
    for read, said in ((2, f"3 records wait ({stage}: 3)"), (4, f"1 record waits ({stage}: 1)")):
        world.read_all()
        world.log.reset(stage, topic, [read])
        report = audit(world.log)
        assert (report.ok, report.settled, report.steps[TALLIED].done) == (True, False, 1)
        assert report.text == f"nothing broken; {said}"


def test_the_command_ends_with_0_while_records_wait(at_rest: CutoverWorld, farmwatch: Runner) -> None:
    """The last line counts the records by stage; JSON has the same."""
    at_rest.log.reset("measure", PAGES, [0] * PARTITIONS)
    pages = sum(len(list(at_rest.log.read(PAGES, partition))) for partition in range(PARTITIONS))
    ran, said = (
        farmwatch("doctor", "audit", "--log", at_rest.config.log.url),
        f"{pages} records wait (measure: {pages})",
    )
    assert (ran.code, ran.err.splitlines()[-1]) == (Exit.OK, f"audit: nothing broken; {said}")
    told = farmwatch("doctor", "audit", "--json", "--log", at_rest.config.log.url).json
    assert (told["ok"], told["settled"], told["waiting"]["measure"]) == (True, False, pages)


def test_a_site_whose_records_are_all_read_does_not_wait_for_others(at_rest: CutoverWorld) -> None:
    """While hits of one site are unread, a changed row of another site is broken."""
    behind, changed = site_name(LLM_SITES), site_name(LLM_SITES + 1)
    rows = rows_of(at_rest)
    hit = Hit(id="new", site=behind, url=f"http://{behind}/new")
    at_rest.log.append([Output(HITS, partition_of(behind, PARTITIONS), behind.encode(), encode(hit))])
    for site in (behind, changed):
        rewrite(at_rest, rows[site], verdict="llm")
    report = audit(at_rest.log, "", at_rest.config)
    assert [broken.site for broken in report.broken] == [changed]
    assert report.steps[TALLIED].waiting == 1


@pytest.mark.parametrize("value", [GARBAGE, NOT_UTF8, b""], ids=["garbage", "utf8", "empty"])
@pytest.mark.parametrize("topic", READER)
def test_an_unreadable_record_stops_nothing(world: World, topic: str, value: bytes) -> None:
    """It waits until its stage reads it, is dead once dead-lettered, and broken without a dead letter."""
    world.judged("1")
    world.row(pages=1, articles=1)
    stage, step = READER[topic]
    offset = world.log.end(topic)[0]
    world.read_all()
    world.log.append([Output(topic, 0, OTHER.encode(), value)])
    for read, state in ((False, "waiting"), (True, "broken"), (True, "dead")):
        if read:
            world.read_all()
        if state == "dead":
            world.bury(stage, topic, offset, OTHER)
        report = audit(world.log)
        counts = report.steps[step]
        assert (counts.unreadable, getattr(counts, state)) == (1, 1), report
        (named,) = report.unreadable
        assert (named.topic, named.partition, named.offset, named.state) == (topic, 0, offset, state)
        assert named.text.startswith(f"{topic}/0 offset {offset}: not a ")
        assert report.ok is (state != "broken")
        assert report.settled is (state != "waiting")
        assert report.steps[TALLIED].done == 1


def damage(world: World, topic: str, offset: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Make this record unreadable from now on."""
    plain = world.log.read

    def read(name: str, partition: int, start: int = 0, stop: int | None = None) -> Iterator[Message]:
        for message in plain(name, partition, start, stop):
            hurt = name == topic and message.offset == offset
            yield replace(message, value=b"", damage="segments/x byte 7: checksum") if hurt else message

    monkeypatch.setattr(world.log, "read", read)


@pytest.mark.parametrize("topic", [PAGES, FEATURES, VERDICTS, SCORE_REQUESTS, SCORES])
def test_sources_of_an_unreadable_record_are_accounted_for(
    world: World, topic: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """If one record of a site is unreadable and dead-lettered, no other record of it counts as missing."""
    for name in ("1", "2"):
        world.judged(name)
    world.row(pages=2, articles=2)
    stage, step = READER[topic]
    damage(world, topic, 1, monkeypatch)
    world.read_all()
    report = audit(world.log)
    assert [(broken.step, broken.id) for broken in report.broken] == [(step, f"{topic}/0 offset 1")]
    assert "segments/x byte 7: checksum" in report.broken[0].how
    assert report.text == "1 record unreadable"
    world.bury(stage, topic, 1, SITE)
    report = audit(world.log)
    assert report.ok, report.broken
    assert report.steps[step].dead == 1


def test_a_damaged_score_counts_once_for_all_visits_with_its_text(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """SCORE scores a site's text once: later visits with this text depend on the same unreadable score."""
    world.judged("1", text="same")
    for visit in (2, 3):
        world.judged("1", visit=visit, text="same", scored=False)
    world.judged("2", scored=False)
    world.row(pages=2, articles=2)
    damage(world, SCORES, 0, monkeypatch)
    report = world.report()
    assert [(broken.step, broken.how) for broken in report.broken if broken.id != "scores/0 offset 0"] == [
        (SCORED, "nothing in scores")
    ]
    assert report.text == "1 record unaccounted for, 1 record unreadable"


def test_an_unreadable_row_is_broken_unless_superseded(world: World) -> None:
    """Rows have no dead letters: the newest of a site must be readable; older ones are superseded."""
    world.judged("1")
    world.row(pages=1, articles=1)
    world.log.append([Output(SITES, 0, SITE.encode(), GARBAGE)])
    report = world.report()
    assert [(broken.step, broken.id, broken.site) for broken in report.broken] == [(TALLIED, "sites/0 offset 1", SITE)]
    assert report.steps[TALLIED].broken == report.steps[TALLIED].records == 1
    world.row(pages=1, articles=1)
    report = world.report()
    assert report.ok
    assert [unreadable.state for unreadable in report.unreadable] == ["superseded"]


def test_an_expired_dead_letter_still_excuses() -> None:
    """Dead letters expire before hits: a dead-lettered hit is not broken after its letter expired."""
    now = [1_000_000]
    world = World(MemoryLog(clock=lambda: now[0]))
    world.log.append([Output(HITS, 0, SITE.encode(), GARBAGE)])
    world.bury("crawl", HITS, 0, SITE)
    now[0] += 40 * DAY_MS
    world.log.expire(now[0])
    world.log.append([Output(HITS, 0, SITE.encode(), GARBAGE)])
    world.read_all()
    found = audit(world.log, clock=lambda: now[0]).unreadable
    assert [(unreadable.offset, unreadable.state) for unreadable in found] == [(0, "expired"), (1, "broken")]


def lost_letter(stage: str, topic: str, offset: int, records: int, run: str = "") -> Output:
    """The dead letter of a stage about records that expired unread."""
    letter = dead_letter(Message(topic, 0, offset, b"", b"", {}, 0), stage, ValueError("removed by retention"), 1, run)
    return replace(letter, headers={**letter.headers, "expired": str(records)})


@pytest.mark.parametrize(("run", "ok"), [("", False), (LIVE, False), ("other", True)])
def test_records_removed_unread_are_reported(world: World, run: str, ok: bool) -> None:
    """The letter of a stage of this run, or of no run, makes the audit fail; that of another run does not."""
    world.log.append([lost_letter("measure", PAGES, 40, 212, run)])
    report = world.report()
    assert (report.ok, report.broken) == (ok, [])
    if not ok:
        (lost,) = report.lost
        assert lost.text == "pages/0: 212 records from offset 40 on were removed by retention before MEASURE read them"
        assert report.text == "212 records removed by retention before being read"


def test_such_a_letter_excuses_no_record_of_its_offset(world: World) -> None:
    """It is about expired offsets, not about the record at its offset: TALLY's rows are still compared."""
    world.judged("1")
    world.row(pages=1, articles=0)
    world.log.append([replace(lost_letter("tally", HITS, 0, 3), key=SITE.encode())])
    report = world.report()
    assert [broken.step for broken in report.broken] == [TALLIED]


def test_an_unpassed_gap_is_reported(at_rest: CutoverWorld, farmwatch: Runner) -> None:
    """Pages expired before MEASURE read them: exit code 1, with partition, offset and number."""
    log, ends = at_rest.log, at_rest.log.end(PAGES)
    read = [2] * PARTITIONS
    log.reset("measure", PAGES, read)
    log.expire(max(m.timestamp_ms for m in log.read(PAGES, 0)) + 31 * DAY_MS)
    ran = farmwatch("doctor", "audit", "--log", at_rest.config.log.url)
    assert ran.code == Exit.PROBLEM
    for partition, end in enumerate(ends):
        told = f"lost: pages/{partition}: {end - 2} records from offset 2 on were removed by retention before MEASURE"
        assert told in ran.err
    log.reset("measure", PAGES, ends)
    assert audit(log, "", at_rest.config).lost == []


@pytest.mark.parametrize(("last", "lost"), [(0, 4), (3, 1), (4, 0)])
def test_a_recorded_gap_is_not_reported_again(last: int, lost: int) -> None:
    """`control` stores the gaps from the begin or resume of a run."""
    world = World()
    for number in range(4):
        world.put(PAGES, Page(id=f"f{number}", site=SITE, page_id="p", url="u"))
    world.log.expire(max(message.timestamp_ms for message in world.log.read(PAGES, 0)) + 31 * DAY_MS)
    gaps = [Gap(PAGES, 0, 0, last)] if last else []
    put_rows(world.log, Run(name=LIVE, ruleset="r", digest="", detector="d/1", epoch="e", gaps=gaps))
    world.log.reset("crawl", HITS, [0])
    assert [(gone.offset, gone.records) for gone in audit(world.log).lost] == ([(last, lost)] if lost else [])


def test_a_gap_of_a_run_that_is_not_live_is_no_loss(at_rest: CutoverWorld) -> None:
    """The previous live run reads on only after a cutover, which checks for gaps."""
    run = at_rest.begin("r1")
    at_rest.replay(run)
    at_rest.log.reset("tally.r1", HITS, [0] * PARTITIONS)
    at_rest.log.expire(max(message.timestamp_ms for message in at_rest.log.read(HITS, 0)) + 100 * DAY_MS)
    assert audit(at_rest.log, "r1", at_rest.config).lost == []
    at_rest.log.reset("tally", HITS, [0] * PARTITIONS)
    assert "tally" in {lost.stage for lost in audit(at_rest.log, "", at_rest.config).lost}


def test_a_passed_gap_is_reported_by_its_letter(at_rest: CutoverWorld) -> None:
    """The stage passes the gap and writes a dead letter: the audit reports the loss before and after."""
    at_rest.features(30)
    at_rest.log.expire(max(message.timestamp_ms for message in at_rest.log.read(FEATURES, 0)) + 181 * DAY_MS)
    before = audit(at_rest.log, "", at_rest.config).lost
    assert {lost.stage for lost in before} == {"crawl", "judge", "tally"}
    at_rest.work("judge", JudgeStage(load_ruleset("default")))
    after = audit(at_rest.log, "", at_rest.config)
    assert sorted(after.lost, key=str) == sorted(before, key=str) and not after.ok


def test_a_group_beyond_the_end_has_read_nothing(world: World) -> None:
    """A recreated topic is read from its beginning, so all its records wait."""
    world.judged("1")
    world.row(pages=1, articles=1)
    world.read_all()
    world.log.reset("tally", HITS, [7])
    assert audit(world.log).text == "nothing broken; 1 record waits (tally: 1)"


def test_an_unreadable_dead_letter_excuses_nothing(world: World) -> None:
    """It is listed, and its record is broken."""
    world.page("1")
    world.row(pages=0, articles=0)
    world.log.append([Output(DEAD_LETTERS, 0, SITE.encode(), b"x", {"stage": "measure"})])
    report = world.report()
    assert [broken.step for broken in report.broken] == [MEASURED]
    assert [(bad.topic, bad.offset) for bad in report.unreadable] == [(DEAD_LETTERS, 0)]


class _SlowLog(MemoryLog):
    """A log that hides the last record of one topic, as Kafka may after a broker's restart; `says` so or not."""

    hidden = ""
    says = True

    def in_flight(self, topic: str) -> list[bool]:
        return [self.says and topic == self.hidden for _ in super().in_flight(topic)]

    def read(self, topic: str, partition: int, start: int = 0, stop: int | None = None) -> Iterator[Message]:
        messages = list(super().read(topic, partition, start, stop))
        return iter(messages[:-1] if topic == self.hidden else messages)


@pytest.mark.parametrize(
    ("hidden", "stage", "row"),
    [
        (PAGES, "crawl", (0, 0, 0)),
        (FEATURES, "measure", (0, 0, 0)),
        (VERDICTS, "judge", (0, 0, 0)),
        (SCORE_REQUESTS, "judge", (1, 1, 0)),
        (SCORES, "score", (1, 1, 0)),
        (SITES, "tally", (1, 1, 1)),
    ],
)
def test_a_result_in_flight_is_waited_for(hidden: str, stage: str, row: tuple[int, int, int]) -> None:
    """A record whose result is not visible yet waits for its stage; a result that is missing otherwise is broken."""
    log = _SlowLog()
    world = World(log)
    if hidden in (PAGES, FEATURES):
        world.page("a")
    if hidden == FEATURES:
        world.features("a")
    elif hidden != PAGES:
        world.judged("a", article=hidden != VERDICTS, scored=hidden in (SCORES, SITES))
    log.hidden = hidden
    world.row(*row)
    world.read_all()
    report = audit(log)
    assert (report.ok, report.settled, report.waiting[stage]) == (True, False, 1), report.broken
    log.says = False
    assert not audit(log).ok
