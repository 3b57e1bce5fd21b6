"""The audit recomputes rows and rate: changed rows are named, rows with expired records are unprovable."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from farmwatch.audit.audit import audit
from farmwatch.audit.report import AuditReport
from farmwatch.audit.scope import TALLIED
from farmwatch.share.words import short_judged
from filters.rules.ruleset import load_ruleset
from replay.rows.site_table import read_sites
from scoring.rates.canary import CanaryName
from scoring.rates.direct_share import DirectShare
from scoring.rates.site_rates import EstimateLine, site_rate
from scoring.rates.split_rates import RateQuery, rate_lines
from scoring.stages.site_tally import SPARE_TEXTS
from scoring.stages.tally import TallyStage
from stream.log.contract import Output, partition_of
from stream.processing.stage import BY_REPLAY
from stream.schema.records import AdsTxt, Hit, Record, Score, SiteState, Verdict, decode, encode
from stream.schema.runs import RunStatus
from stream.schema.topics import ADS_TXT, FEATURES, HITS, SCORES, SITES, VERDICTS
from stream.text.user_errors import Exit
from tests.support.front_door import PARTITIONS, Runner
from tests.support.logs.tallied_log import (
    DAY_MS,
    LLM_SITES,
    SITES_MADE,
    put_site,
    rewrite,
    rows_of,
    score_of,
    site_name,
    tallied,
    tally,
)
from tests.support.logs.tally_desk import Desk, hit, page, score
from tests.support.runs.audit_world import World
from tests.support.runs.cutover_world import DETECTOR, CutoverWorld, cutover_world
from tests.support.runs.replay_world import put_rows

pytestmark = pytest.mark.slow

ON_EMBEDDED = pytest.mark.parametrize("world", ["embedded"], indirect=True)
HUMAN = site_name(LLM_SITES)


@pytest.fixture
def world(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[CutoverWorld]:
    """A log at rest with rows of TALLY."""
    with cutover_world(getattr(request, "param", "memory"), tmp_path, monkeypatch) as made:
        tallied(made)
        yield made


def look(world: CutoverWorld) -> AuditReport:
    """Run the audit as the command does."""
    return audit(world.log, "", world.config)


def named(report: AuditReport) -> dict[str, Any]:
    """Site -> what is wrong with its row: (field, stored, recomputed) of each difference, or how it is broken."""
    assert {broken.step for broken in report.broken} <= {TALLIED}
    return named_sites(report)


def named_sites(report: AuditReport) -> dict[str, Any]:
    """As `named`, with any other faults."""
    return {
        broken.site: [*map(tuple, broken.differences)] or broken.how
        for broken in report.broken
        if broken.step == TALLIED
    }


DEFAULT = load_ruleset("default").digest[:8]
SHARE = f"12.5% (95% interval 3.2% to 29.3%) of 24 sites, ruleset default {DEFAULT}, detector some-detector/1/x"


def judged(llm: int) -> str:
    """The judged share with its interval and verdicts, if this many of the sites are llm."""
    share = short_judged(EstimateLine.of(site_rate(Counter(llm=llm, human=SITES_MADE - llm)), DirectShare()))
    return f"by site verdicts alone: {share}"


def test_rows_that_tally_made_are_proved_and_so_is_the_rate(world: CutoverWorld) -> None:
    """Each field of each row follows from the log, nothing waits, and the rate is that of the rows."""
    report = look(world)
    step = report.steps[TALLIED]
    assert (step.records, step.done, report.text) == (SITES_MADE, SITES_MADE, "clean"), report
    (rate,) = report.rates
    assert rate.text == f"share recomputed from the log: {SHARE}; {judged(3)} (as in the stored rows)"


@ON_EMBEDDED
def test_the_command_names_them_and_ends_with_1(world: CutoverWorld, farmwatch: Runner) -> None:
    """Broken rows are on stderr and in the JSON; before the change the command ends with 0 and "clean"."""
    at = ("--log", world.config.log.url)
    ran = farmwatch("doctor", "audit", *at)
    assert (ran.code, ran.err.splitlines()[-1]) == (Exit.OK, "audit: clean")
    rewrite(world, rows_of(world)[HUMAN], verdict="llm")
    ran = farmwatch("doctor", "audit", *at)
    assert ran.code == Exit.PROBLEM
    assert f"broken: {TALLIED}: {HUMAN} ({HUMAN}): row says verdict llm, the log says human" in ran.err
    found, stored = f"{SHARE}; {judged(3)}", f"{SHARE}; {judged(4)}"
    assert f"share recomputed from the log: {found}; the stored rows give {stored}" in ran.err
    assert ran.err.splitlines()[-1] == "audit: 1 record unaccounted for, the share differs"
    ran = farmwatch("doctor", "audit", "--json", *at)
    told = ran.json
    (rate,) = told["rates"]
    assert (ran.code, told["ok"], rate["ok"]) == (Exit.PROBLEM, False, False)
    assert (rate["rows"]["llm"], rate["recomputed"]["llm"]) == (LLM_SITES + 1, LLM_SITES)


@st.composite
def a_site(draw: st.DrawFn) -> list[Record]:
    """Pages fetched and judged again, by two rulesets, with shared texts, late scores and repeated hits."""
    found: list[Record] = []
    for _ in range(draw(st.integers(1, 40))):
        number, text, kind = draw(st.integers(0, 6)), f"t{draw(st.integers(0, 8))}", draw(st.sampled_from("hpppsss"))
        if kind == "h":
            found.append(hit(number, number, draw(st.sampled_from("ab")), f"q{number}", at=number * DAY_MS))
        elif kind == "p":
            rules = draw(st.sampled_from(("d1", "d1", "d1", "d2")))
            article, visit = draw(st.integers(0, 4)) > 0, draw(st.integers(1, 3))
            day = draw(st.sampled_from(("", "2020-01-01", "2023-01-01")))
            found.append(page(number, article=article, text=text, visit=visit, rules=rules, published=day))
        else:
            found.append(score(text, draw(st.none() | st.booleans()), draw(st.sampled_from(["d/1", "d/1", "d/2"]))))
    return found


@settings(max_examples=15)
@given(a_site())
def test_a_row_is_proved_for_any_order_of_topics(records: list[Record]) -> None:
    """The row that TALLY made on arrival is proved from the log, which has an order only within each topic."""
    world = World()
    for record in records:
        topic = HITS if isinstance(record, Hit) else SCORES if isinstance(record, Score) else VERDICTS
        world.put(topic, record, f"{record.site} {record.id}" if topic == SCORES else "")
    world.put(SITES, Desk("d/1").feed(*records).row)
    step = world.report().steps[TALLIED]
    assert (step.records, step.done, step.unprovable) == (1, 1, 0)


def other(value: Any) -> Any:
    """Another value of the same kind."""
    if isinstance(value, bool):
        return not value
    if isinstance(value, float):
        return value + 0.001
    if isinstance(value, int):
        return value + 1
    if isinstance(value, str):
        return f"{value}x"
    return {**value, "x": 1} if isinstance(value, dict) else [*value, value[0]]


CHANGED = {"former": SiteState(id="x", site="x"), "turn_p": 0.5, "quarters": {"2021-Q1": [1, 0]}}
RECOMPUTED = [name for name in SiteState.__struct_fields__ if name not in ("v", "site", "updated_at")]


def test_each_field_of_a_row_is_recomputed(world: CutoverWorld) -> None:
    """If any field of a row is changed, that field of that site is named, and nothing else."""
    row = rows_of(world)[HUMAN]
    for name in RECOMPUTED:
        rewrite(world, row, **{name: CHANGED.get(name) or other(getattr(row, name))})
        faults = named(look(world))
        assert {site: [field for field, *_ in faults[site]] for site in faults} == {HUMAN: [name]}
    rewrite(world, row)
    assert named(look(world)) == {}


def test_the_last_bits_of_a_number_do_not_matter(world: CutoverWorld) -> None:
    """A sum that differs in its last bits, as on another processor, is still proved."""
    row = rows_of(world)[HUMAN]
    assert row.llr
    rewrite(world, row, llr=row.llr * (1 + 1e-12))
    assert look(world).text == "clean"


def test_a_row_of_an_unknown_site_is_broken(world: CutoverWorld) -> None:
    """An added row increases the denominators or the rate: it is named, and left out of the rate."""
    row = rows_of(world)[HUMAN]
    for number, verdict in enumerate(("llm", "unclassifiable")):
        site = f"no{number}.example"
        blank = SiteState(id=site, site=site, detector=row.detector, method_digest=row.method_digest, verdict=verdict)
        rewrite(world, blank)
    report = look(world)
    assert set(named(report)) == {"no0.example", "no1.example"}
    assert sum(rate.recomputed.sites for rate in report.rates if rate.recomputed) == SITES_MADE


def test_a_row_that_was_removed_is_broken_and_counts_in_the_recomputed_rate(world: CutoverWorld) -> None:
    """The tombstone of an llm site lowers the rate of the stored rows."""
    site = site_name(0)
    world.log.append([Output(SITES, partition_of(site, PARTITIONS), site.encode(), None)])
    report = look(world)
    assert named(report) == {site: "no row"}
    (rate,) = report.rates
    assert rate.text.startswith(f"share recomputed from the log: {SHARE}; {judged(3)}; the stored rows give 8.7% (")


def test_the_recomputed_rate_has_the_operators_that_ads_txt_states(world: CutoverWorld) -> None:
    """Its interval is that of `farmwatch rate`, and another than that of sites of different owners."""
    (apart,) = look(world).rates
    for number in range(LLM_SITES):
        site = site_name(number)
        stated = AdsTxt(id=site, site=site, owner_domain="owner.example")
        world.log.append([Output(ADS_TXT, partition_of(site, PARTITIONS), site.encode(), encode(stated))])
    (rate,) = look(world).rates
    (line,) = rate_lines(read_sites(world.log), RateQuery(now_ms=int(time.time() * 1000)))
    assert apart.recomputed and rate.ok and rate.recomputed
    assert (rate.recomputed.low, rate.recomputed.high) == (line.low, line.high)
    assert (line.low, line.high) != (apart.recomputed.low, apart.recomputed.high)


def test_a_superseded_score_is_no_loss(world: CutoverWorld) -> None:
    """Scores are compacted: the newest of a text replaces the earlier ones."""
    site = site_name(0)
    partition = partition_of(site, PARTITIONS)
    message = next(m for m in world.log.read(SCORES, partition) if m.key.decode().startswith(f"{site} "))
    world.log.append([Output(SCORES, partition, message.key, message.value)])
    tally(world, world.begin_live())
    for _ in range(2):
        assert look(world).steps[TALLIED].done == SITES_MADE
        world.log.expire(int(time.time() * 1000))


def test_rows_with_expired_records_are_unprovable(world: CutoverWorld) -> None:
    """Hits and verdicts expired: nothing is broken, and the rate says how many rows it could not recompute."""
    world.log.expire(int(time.time() * 1000) + 100 * DAY_MS)
    assert not any(map(list, (world.log.read(topic, 0) for topic in (HITS, VERDICTS))))
    report = look(world)
    step = report.steps[TALLIED]
    assert (report.text, step.done) == (f"clean; {SITES_MADE} rows unprovable", 0)
    (rate,) = report.rates
    assert rate.text.endswith(f"(as in the stored rows); {SITES_MADE} rows could not be recomputed")


def test_a_site_newer_than_the_expired_records_is_proved(world: CutoverWorld) -> None:
    """Older sites are unprovable; a site with all its hits, appended later, is recomputed and named."""
    now_ms, run = int(time.time() * 1000), world.begin_live()
    old = [site_name(number) for number in range(100, 110)]
    for number in range(100, 110):
        put_site(world, run, number, now_ms + 30 * DAY_MS)
    tally(world, run)
    young = [site_name(number) for number in range(110, 120)]
    for number in range(110, 120):
        put_site(world, run, number, now_ms + 90 * DAY_MS)
    tally(world, run)
    world.log.expire(now_ms + 125 * DAY_MS)  # those of 30 days are beyond the retention of hits and verdicts
    step = look(world).steps[TALLIED]
    assert (step.done, step.unprovable, step.broken) == (len(young), SITES_MADE + len(old), 0)
    rows = rows_of(world)
    for site in (old[0], young[0]):
        rewrite(world, rows[site], verdict="llm")
    assert named(look(world)) == {young[0]: [("verdict", "llm", "human")]}


@pytest.mark.parametrize("stamped", [True, False], ids=["fetched_at", "no time"])
def test_hits_that_are_appended_again_after_retention_prove_no_youth(world: CutoverWorld, stamped: bool) -> None:
    """If a file of hits is read again after its first hits expired, older verdicts may be missing."""
    run, now_ms = world.begin_live(), int(time.time() * 1000)
    old = 200
    partition = partition_of(site_name(old), PARTITIONS)
    neighbour = next(n for n in range(201, 300) if partition_of(site_name(n), PARTITIONS) == partition)
    put_site(world, run, old, now_ms)
    tally(world, run)
    kept = [message for message in world.log.read(HITS, partition) if message.key == site_name(old).encode()]
    put_site(world, run, neighbour, now_ms + 150 * DAY_MS)
    tally(world, run)
    later_ms = now_ms + 200 * DAY_MS
    world.log.expire(later_ms)
    for message in kept:
        found = decode(Hit, message.value or b"")
        found = found if stamped else msgspec.structs.replace(found, fetched_at=later_ms)
        world.log.append([Output(HITS, partition, message.key, encode(found), {}, later_ms)])
    tally(world, run)
    assert named(look(world)) == {}


def test_a_row_without_hits_is_recomputed(world: CutoverWorld) -> None:
    """Canaries have no hits: their rows follow from verdicts and scores, and must exist."""
    run, site = world.begin_live(), CanaryName("one", "0" * 16, 1, 1, "human").site
    partition = partition_of(site, PARTITIONS)
    verdict = Verdict(
        id="f", site=site, page_id="p", url="u", verdict="dropped", ruleset=run.ruleset, digest=run.digest
    )
    world.log.append([Output(VERDICTS, partition, site.encode(), encode(verdict))])
    tally(world, run)
    assert site not in named_sites(look(world))
    row = rows_of(world)[site]
    rewrite(world, row, verdict="llm")
    assert ("verdict", "llm") in [fault[:2] for fault in named_sites(look(world))[site]]
    rewrite(world, row, updated_at=5)
    assert ("updated_at", 5, 0) in named_sites(look(world))[site]
    world.log.append([Output(SITES, partition, site.encode(), None)])
    assert named_sites(look(world))[site] == "no row"


def test_a_score_repeated_after_the_window_is_no_loss(world: CutoverWorld) -> None:
    """Compaction keeps the newest score of each text, which may lie beyond the window of a finished replay."""
    log, live = world.log, world.begin_live()
    run = msgspec.structs.replace(world.begin("r1", ruleset="default"), site_method=live.site_method, start={})
    names = run.names()
    copied = [(p, message) for p in range(PARTITIONS) for message in log.read(VERDICTS, p)]
    log.append([Output(names.verdicts, p, found.key, found.value, {BY_REPLAY: "1"}) for p, found in copied])
    stop = {topic: log.end(topic) for topic in (SCORES, HITS, FEATURES)}
    stage = TallyStage(DETECTOR, world.config.tally, run="r1", names=names, decides=False)
    world.work(names.tally_group, stage)
    log.reset(names.judge_group, FEATURES, log.end(FEATURES))
    put_rows(log, msgspec.structs.replace(run, stop=stop, state=RunStatus.DONE))
    assert audit(log, "r1", world.config).ok
    again = [(p, message) for p in range(PARTITIONS) for message in log.read(SCORES, p)]
    log.append([Output(SCORES, p, message.key, message.value) for p, message in again])
    tally(world, live)
    log.expire(int(time.time() * 1000))
    report = audit(log, "r1", world.config)
    assert (report.ok, report.steps[TALLIED].unprovable > 0, report.text.startswith("clean; ")) == (True, True, True)


def test_hits_are_compared_where_retention_took_none_of_the_site(world: CutoverWorld) -> None:
    """In a partition with expired hits, a row may count more hits than the log has, but never fewer."""
    run, now_ms = world.begin_live(), int(time.time() * 1000)
    put_site(world, run, 100, now_ms + 90 * DAY_MS)
    tally(world, run)
    world.log.expire(now_ms + 95 * DAY_MS)
    row = rows_of(world)[site_name(100)]
    rewrite(world, row, hits=row.hits - 1)
    assert named(look(world)) == {row.site: [("hits", row.hits - 1, row.hits)]}
    rewrite(world, row, best_rank=1)
    assert named(look(world)) == {row.site: [("best_rank", 1, 2)]}


def test_scores_that_tally_may_have_dropped_are_unprovable(world: CutoverWorld) -> None:
    """With more early scores than TALLY keeps, some were dropped, and the log does not show which."""
    site, run = "large.example", world.begin_live()
    partition, number = partition_of(site, PARTITIONS), SPARE_TEXTS + 20
    url = f"http://{site}/"
    key = site.encode()
    scores = [score_of(site, f"t{place}", flag=False) for place in range(number)]
    world.log.append([Output(HITS, partition, key, encode(Hit(id="h", site=site, url=url)))])
    world.log.append([Output(SCORES, partition, f"{site} {s.id}".encode(), encode(s)) for s in scores])
    tally(world, run)
    verdicts = [
        Verdict(id=f"f{n}", site=site, page_id=f"p{n}", url=url, verdict="article", text_digest=f"t{n}", digest="d")
        for n in range(number)
    ]
    world.log.append([Output(VERDICTS, partition, key, encode(verdict)) for verdict in verdicts])
    tally(world, run)
    assert rows_of(world)[site].scored == SPARE_TEXTS
    report = audit(world.log, "", world.config)
    assert [broken for broken in report.broken if broken.step == TALLIED] == []
    assert report.steps[TALLIED].unprovable == 1
    rewrite(world, rows_of(world)[site], pages=1)
    assert named_sites(look(world)) == {site: [("pages", 1, number)]}


def test_a_row_of_an_unknown_method_is_unprovable(world: CutoverWorld) -> None:
    """Without a stored method, and with another configured one, verdicts are unprovable; counts are compared."""
    put_rows(world.log, msgspec.structs.replace(world.begin_live(), site_method=""))
    assert look(world).steps[TALLIED].done == SITES_MADE  # as configured
    rewrite(world, rows_of(world)[HUMAN], method_digest="")  # from before methods had digests
    step = look(world).steps[TALLIED]
    assert (step.done, step.unprovable, step.broken) == (SITES_MADE - 1, 1, 0)
    rewrite(world, rows_of(world)[HUMAN], flagged=7)
    assert named(look(world)) == {HUMAN: [("flagged", 7, 1)]}
