"""Canaries from their file through every stage: they correct the rate and never count in it."""

from __future__ import annotations

import json
import random
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest
from prometheus_client import generate_latest

from farmwatch.audit.audit import audit
from farmwatch.canaries.file import canary_sender, page_of_text, read_canaries
from farmwatch.config.config import Config, load
from farmwatch.share.live_share import LiveShare
from farmwatch.share.rate_series import read_points
from filters.measure.epoch import feature_epoch
from filters.rules.ruleset import load_ruleset
from filters.stages.judge import JudgeStage
from filters.stages.measure import MeasureStage
from replay.rows.site_table import read_sites
from replay.runs.run_rules import RunRules
from scoring.rates.canary import canary_name, is_canary
from scoring.rates.canary_counts import canary_summary
from scoring.rates.split_rates import RateQuery, rate_lines
from scoring.sites.registry import site_method
from scoring.stages.score import ScoreStage
from scoring.stages.tally import TallyStage
from stream.memory.log import MemoryLog
from stream.processing.metrics import Metrics
from stream.processing.stage import Stage
from stream.schema.records import Hit
from stream.schema.runs import Run
from stream.schema.topics import HITS, PAGES, all_topics
from tests.support.fake_detector import FakeDetector
from tests.support.logs.stage_work import put, work
from tests.support.pages.page_records import fetched_page

SITES, PAGES_EACH, PARTITIONS = 8, 8, 2
TURNED = (6, 10)  # pages of another LLM site: flagged ones, then clear ones
MISSED = ("human-0", "llm-0")  # sites that the detector misjudges
START_S = 1_790_000_000.0
_WORDS = (
    "river village boats market morning harvest people teacher garden window letter winter summer bridge church"
    " children horses evening mountain forest kitchen journey weather neighbour meadow"
)


def prose(seed: str, mark: str) -> str:
    """A text of 20 unique sentences that the default ruleset keeps."""
    chance = random.Random(seed)
    sentences = []
    for _ in range(20):
        one, two, three, four = chance.sample(_WORDS.split(), 4)
        sentences.append(f"When the {one} was near the {two}, they would walk to the {three} and talk of the {four}.")
    paragraphs = [" ".join(sentences[start : start + 5]) for start in range(0, 20, 5)]
    return "\n\n".join([*paragraphs, f"At the end of it all {mark} went home by the same road as the others."])


def canary_file(folder: Path) -> Path:
    """Canary sites; the detector misjudges the first of each truth.

    Another one is llm with its pages in file order, and in hardly any other order.
    """
    path = folder / "canaries.jsonl"
    lines = []
    for truth in ("human", "llm"):
        for site in range(SITES):
            name = f"{truth}-{site}"
            flagged = (truth == "llm") != (name in MISSED)
            for page in range(PAGES_EACH):
                text = prose(f"{name}/{page}", "LLM" if flagged else "nobody")
                line = {"truth": truth, "site": name, "title": f"Of {name}, {page}", "text": text}
                lines.append({**line, "made_at": "2019-04-02"})
    for page in range(sum(TURNED)):
        text = prose(f"turned/{page}", "LLM" if page < TURNED[0] else "nobody")
        lines.append({"truth": "llm", "site": "turned", "title": f"Turned, {page}", "text": text})
    lines.append({"truth": "llm", "site": "llm-1", "title": "Short", "text": "Too short to be an article."})
    path.write_text("\n".join(map(json.dumps, lines)), encoding="utf-8")
    return path


class World:
    """One log, one clock and the stages of a live farm except CRAWL."""

    def __init__(self, config: Config) -> None:
        self.config = config
        self.now_s = START_S
        self.log = MemoryLog(clock=lambda: int(self.now_s * 1000))
        self.log.create(all_topics(PARTITIONS, feature_epoch(config.measure)))
        self.detector = FakeDetector()
        self.metrics = Metrics()
        self.measure = MeasureStage(config.measure)

    def work(self) -> None:
        """Run every stage over all records; TALLY first, to send canaries, and last, to count."""
        self._tally()
        self._work(self.measure)
        self._work(JudgeStage(load_ruleset(self.config.judge.ruleset)))
        self._work(ScoreStage(lambda: [self.detector]))
        self._tally()

    def _tally(self) -> None:
        config = self.config
        canaries = canary_sender(config.canary, config.rate.canary_days, config.log.partitions)
        self._work(TallyStage(self.detector.identity, config.tally, canaries=canaries))

    def _work(self, stage: Stage) -> None:
        work(self.log, stage, lambda: int(self.now_s * 1000))


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    """A farm with a complete round of canaries and the pages of one real site."""
    file = canary_file(tmp_path_factory.mktemp("canaries"))
    flags = [f"canary.file={file}", "measure.workers=1", f"log.partitions={PARTITIONS}"]
    world = World(load(None, flags, {}).config)
    site = "real.example"
    for number in range(PAGES_EACH):
        url = f"https://{site}/{number}"
        html = page_of_text(f"Real {number}", prose(url, "LLM"))  # the pages are flagged
        put(world.log, HITS, Hit(id=url, site=site, url=url, query_id="q", fetched_at=int(START_S * 1000)))
        put(world.log, PAGES, fetched_page(url, html, fetched_at=1))
    with closing(world.measure), pytest.MonkeyPatch.context() as patch:
        patch.setattr("scoring.rates.canary_counts.CANARY_LEAST", 8)
        world.work()
        yield world


def test_canaries_are_judged_like_any_site(world: World) -> None:
    """Every canary site gets a verdict; the flags of one site of each truth make it wrong."""
    rows = {row.site: row for row in read_sites(world.log)}
    sent = read_canaries(world.config.canary)
    number = int(START_S) // world.config.canary.every_s
    assert {site.name(number).site for site in sent} == {site for site in rows if is_canary(site)}
    found = canary_summary(rows.values())
    assert found.sites == {"human": {"human": 7, "llm": 1}, "llm": {"llm": 8, "human": 1}}
    assert (found.pages["human"].sent, found.pages["human"].kept) == (64, 64)
    assert (found.pages["llm"].sent, found.pages["llm"].kept) == (81, 80)  # the short one was dropped


def test_they_correct_the_rate_and_do_not_count(world: World) -> None:
    """The rate covers the one real site, corrected by the canaries of each truth."""
    query = RateQuery(settings=world.config.rate, now_ms=int(world.now_s * 1000))
    (line,) = rate_lines(read_sites(world.log), query)
    assert (line.sites, line.llm, line.judged_method) == (1, 1, "corrected by canaries")
    assert line.canary_remark is not None
    counts = {"llm_sites": 9, "llm_found": 8, "human_sites": 8, "called": 1}
    assert counts.items() <= dict(line.canary_remark.facts).items()


def test_the_log_adds_up(world: World) -> None:
    """Canary pages have features, verdicts and scores once; nothing is broken, only CRAWL, which is not run, waits."""
    report = audit(world.log)
    assert report.ok and set(+report.waiting) == {"crawl"}, report
    assert {step.waiting for step in report.steps.values()} == {0}


def test_the_next_round_is_other_sites_and_the_same_counts(world: World) -> None:
    """A day later the same contents have new names, the same verdicts, in file order, and errors counted once."""
    before = canary_summary(read_sites(world.log))
    world.now_s += world.config.canary.every_s
    world.work()
    rows = read_sites(world.log)
    assert sum(is_canary(row.site) for row in rows) == 2 * (2 * SITES + 1)
    after = canary_summary(rows)
    assert (after.sites, after.counts) == (before.sites, before.counts)
    assert after.last_at > before.last_at
    assert audit(world.log).ok
    found: dict[str, set[tuple[str, int, float]]] = {}
    rounds: dict[str, set[int]] = {}
    for row in rows:
        name = canary_name(row.site)
        if name is not None:
            found.setdefault(name.content, set()).add((row.verdict, row.pages_used, row.llr))
            rounds.setdefault(name.content, set()).add(name.round)
    assert all(len(of_content) >= 2 for of_content in rounds.values())
    assert all(len(verdicts) == 1 for verdicts in found.values())
    assert ("llm", TURNED[0]) in {verdict[:2] for verdicts in found.values() for verdict in verdicts}


def test_memory_of_old_rounds_goes(world: World) -> None:
    """A week later MEASURE remembers no canary site of old rounds, but today's and the real site; the log adds up."""

    store = world.measure.store
    assert store is not None

    def remembered() -> set[str]:
        keys = [key for partition in range(PARTITIONS) for key, _ in world.log.scan_state(store, partition)]
        return {key.split(b"\0")[0].decode() for key in keys if not key.startswith(b"\0")}

    def rounds() -> set[int]:
        return {name.round for name in map(canary_name, remembered()) if name is not None}

    today = int(world.now_s) // world.config.canary.every_s
    assert rounds() == {today - 1, today}
    world.now_s += 8 * 86_400
    world.work()
    assert rounds() == {today + 8}
    assert {site for site in remembered() if not is_canary(site)} == {"real.example"}
    assert audit(world.log).ok


def test_gauges_and_series_tell_of_it(world: World) -> None:
    """The overview has canaries and the corrected rate of real sites, and a point of the series is kept."""
    method = site_method(world.config.tally, world.detector.identity)
    ruleset = load_ruleset(world.config.judge.ruleset)
    run = Run(name="live", ruleset=ruleset.name, digest=ruleset.digest, detector=world.detector.identity, epoch="e")
    in_force = (RunRules(run, ruleset.source), (method.name, method.digest))
    share = LiveShare(world.log, world.config.rate, world.metrics, *in_force, lambda: world.now_s)
    share.update_gauges()
    page = generate_latest(world.metrics.registry).decode()
    assert 'farmwatch_canary_sites{truth="human",verdict="llm"} 1.0' in page
    assert 'farmwatch_canary_share{kind="page_tpr"} 0.775' in page
    assert 'farmwatch_sites{ruleset="default",run="first",verdict="llm"} 1.0' in page
    assert "invalid" not in page
    share.append_points(world.now_s)
    (point,) = [point for point in read_points(world.log) if not point.by]
    assert (point.llm, point.human, point.method) == (1, 0, "corrected by canaries")
