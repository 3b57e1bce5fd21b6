"""TALLY: one row per site, the same for every interleaving of hits, verdicts and scores."""

from __future__ import annotations

import math
import random
from collections.abc import Sequence
from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from scoring.errors import NoSiteTest
from scoring.gaussian_test import GaussianParams
from scoring.settings import TallySettings
from scoring.site_tally import SiteTally
from scoring.site_verdict import SprtParams
from scoring.tally_stage import TallyStage
from stream.memory_state import MemoryState
from stream.metrics import Meter, Metrics
from stream.records import Decision, Hit, Record, Score, SiteState, Verdict, decode
from stream.stage import Context
from stream.state import KeyedState

SITE = "a.example"
DAY_MS = 86_400_000
DETECTOR = "fake/1"
SPRT = SprtParams(p0=0.10, min_articles=4)


class Desk:
    """A stage with its state, fed record by record, each in a batch of its own."""

    def __init__(self, detector: str = DETECTOR, **settings: Any) -> None:
        self.stage = TallyStage(detector, TallySettings(**settings))
        self.store = MemoryState()
        self.outputs: list[tuple[str, Record]] = []
        self.meter = Meter()
        self.now_ms = 1000

    def feed(self, *records: Record) -> Desk:
        """Process the records, keeping outputs and state."""
        for record in records:
            state = KeyedState(self.store)
            ctx = Context(3, state, self.meter, self.now_ms)
            self.stage.process(record, record, ctx)
            self.store.apply(state.changes())
            for output in ctx.outputs:
                assert output.partition == 3 and output.value is not None and output.key == record.site.encode()
                kind = SiteState if output.topic == "sites" else Decision
                self.outputs.append((output.topic, decode(kind, output.value)))
            self.now_ms += 1
        return self

    @property
    def rows(self) -> list[SiteState]:
        """Rows emitted so far."""
        return [record for _, record in self.outputs if isinstance(record, SiteState)]

    @property
    def decisions(self) -> list[Decision]:
        """Decisions emitted so far."""
        return [record for _, record in self.outputs if isinstance(record, Decision)]

    @property
    def row(self) -> SiteState:
        """The newest row, without its time."""
        return msgspec.structs.replace(self.rows[-1], updated_at=0)


def hit(number: int, rank: int = 1, source: str = "file", query: str = "q1", site: str = SITE, at: int = 0) -> Hit:
    """A search result."""
    url = f"https://{site}/{number}"
    return Hit(id=f"h{number}", site=site, url=url, query_id=query, source=source, rank=rank, fetched_at=at)


def page(
    number: int,
    *,
    article: bool = True,
    text: str | None = None,
    visit: int = 1,
    failed: str = "short_text",
    rules: str = "d1",
) -> Verdict:
    """A verdict on page `number`, fetched at `visit`, by the ruleset with the digest `rules`."""
    return Verdict(
        id=f"p{number}v{visit}",
        site=SITE,
        page_id=f"p{number}",
        url=f"https://{SITE}/{number}",
        verdict="article" if article else "dropped",
        first_failed="" if article else failed,
        ruleset="default" if rules == "d1" else "other",
        digest=rules,
        text_digest=text or f"t{number}",
        fetched_at=visit,
    )


def score(text: str, flag: bool | None, detector: str = DETECTOR, number: float = 1.0) -> Score:
    """A score of a text; flag None = abstained."""
    return Score(
        id=f"{text}:{detector}",
        site=SITE,
        page_id="",
        fetch_id="",
        text_digest=text,
        detector=detector,
        score=None if flag is None else number,
        flag=flag,
        abstain="too_short" if flag is None else "",
    )


def test_a_hit_alone_makes_a_row() -> None:
    """A site that was only found has its row: unclassifiable, no pages, its sources, queries and best rank."""
    row = Desk().feed(hit(1, 7, "b"), hit(2, 3, "a", "q2"), hit(2, 1, "c"), hit(3, 0)).row
    assert (row.verdict, row.pages, row.hits, row.best_rank) == ("unclassifiable", 0, 3, 3)
    assert (row.sources, row.queries) == (["a", "b", "file"], ["q1", "q2"])


def test_a_site_of_every_query_keeps_a_small_row() -> None:
    """Of 1,500 queries the row keeps 1,000, the same ones for every order; hits are all counted, repeats are not."""
    hits = [hit(number, query=f"q{number}") for number in range(1500)]
    shuffled = random.Random(1).sample(hits, len(hits))
    first, second = Desk().feed(*hits), Desk().feed(*shuffled, *hits[:100])
    assert first.row == second.row
    assert (first.row.hits, len(first.row.queries)) == (1500, 1000)


def test_flags_in_page_order_decide() -> None:
    """Four flagged articles make the site llm; the row counts pages, articles, scores and dropped pages by rule."""
    desk = Desk(sprt=SPRT).feed(hit(1), page(9, article=False), page(8, article=False, failed="lang"))
    desk.feed(*(page(i) for i in range(6)), *(score(f"t{i}", i < 4) for i in range(6)))
    row = desk.row
    assert (row.verdict, row.pages_used, row.pages, row.articles, row.scored, row.flagged) == ("llm", 4, 8, 6, 6, 4)
    assert row.dropped_by == {"lang": 1, "short_text": 1}
    assert (row.detector, row.ruleset, row.digest) == (DETECTOR, "default", "d1")


def test_a_row_is_emitted_only_when_it_differs() -> None:
    """Records that change nothing emit nothing, whatever the clock says."""
    desk = Desk().feed(hit(1), page(1), score("t1", True))
    count = len(desk.outputs)
    desk.feed(hit(1), page(1), score("t1", True))
    assert len(desk.outputs) == count == 3
    assert [row.updated_at for row in desk.rows] == [1000, 1001, 1002]


def test_a_score_without_its_article_waits() -> None:
    """A score counts once a verdict makes its page an article, and only then."""
    desk = Desk().feed(hit(1), score("t1", True))
    assert (desk.row.scored, desk.row.pages) == (0, 0)
    assert desk.feed(page(1)).row.scored == 1
    assert Desk().feed(score("t1", True), page(1, article=False)).row.scored == 0


def test_the_same_text_on_two_pages_counts_once() -> None:
    """Four pages of one text are four articles and one piece of evidence."""
    desk = Desk(sprt=SPRT).feed(*(page(i, text="same") for i in range(4)), score("same", True))
    assert (desk.row.articles, desk.row.scored, desk.row.pages_used) == (4, 4, 1)
    assert desk.row.verdict == "unclassifiable"


def test_abstentions_are_skipped() -> None:
    """An abstained score is counted as abstained and is no evidence."""
    row = Desk(sprt=SPRT).feed(*(page(i) for i in range(5)), *(score(f"t{i}", None) for i in range(5))).row
    assert (row.abstained, row.scored, row.flagged, row.pages_used) == (5, 0, 0, 0)
    assert row.verdict == "unclassifiable"


@pytest.mark.parametrize("number", [math.nan, math.inf, -math.inf])
def test_a_score_that_is_no_number_is_absent(number: float) -> None:
    """A record with NaN or infinity keeps its flag; for a method that reads scores it is not there."""
    records = [*(page(i) for i in range(8)), *(score(f"t{i}", True, number=number) for i in range(8))]
    assert Desk(sprt=SPRT).feed(*records).row.pages_used == 4
    row = Desk(method="gaussian", gaussian=GaussianParams()).feed(*records).row
    assert (row.pages_used, row.llr, row.verdict) == (0, 0.0, "unclassifiable")


def test_scores_of_another_detector_are_never_pooled() -> None:
    """Scores of another identity change no row, and are counted apart."""
    desk = Desk(sprt=SPRT).feed(*(page(i) for i in range(4)))
    before = list(desk.outputs)
    desk.feed(*(score(f"t{i}", True, "fake/2") for i in range(4)))
    assert desk.outputs == before
    metrics = Metrics()
    desk.meter.apply(metrics)
    labels = {"run": "live", "ruleset": "", "stage": "tally", "result": "other_detector"}
    assert metrics.registry.get_sample_value("farmwatch_stage_records_total", labels) == 4


def test_another_detector_over_kept_state_starts_from_its_own_scores() -> None:
    """After a change of detector no old flag counts under the new name; after the change back none is lost."""
    desk = Desk(sprt=SPRT).feed(*(page(i) for i in range(4)), *(score(f"t{i}", True) for i in range(4)))
    assert (desk.row.detector, desk.row.verdict, desk.row.scored) == (DETECTOR, "llm", 4)
    desk.feed(score("t0", False, "fake/2"))  # SCORE was changed first
    desk.stage = TallyStage("fake/2", TallySettings(sprt=SPRT))
    row = desk.feed(hit(1)).row
    assert (row.detector, row.verdict, row.scored, row.flagged) == ("fake/2", "unclassifiable", 1, 0)
    row = desk.feed(*(score(f"t{i}", False, "fake/2") for i in range(1, 4))).row
    assert (row.verdict, row.scored, row.flagged) == ("undecided", 4, 0)
    desk.stage = TallyStage(DETECTOR, TallySettings(sprt=SPRT))
    row = desk.feed(hit(2)).row
    assert (row.detector, row.verdict, row.scored, row.flagged) == (DETECTOR, "llm", 4, 4)


def test_a_row_never_mixes_two_rulesets() -> None:
    """After a change of ruleset a page counts once the new one has judged it: pages, articles, scores and drops."""
    desk = Desk(sprt=SPRT).feed(*(page(i) for i in range(4)), *(score(f"t{i}", True) for i in range(4)))
    row = desk.feed(page(9, article=False), page(0, rules="d2")).row
    assert (row.ruleset, row.digest, row.pages, row.articles, row.scored) == ("other", "d2", 1, 1, 1)
    assert (row.verdict, row.flagged, row.pages_used, row.dropped_by) == ("unclassifiable", 1, 1, {})
    row = desk.feed(*(page(i, rules="d2") for i in (1, 2, 3)), page(9, rules="d2", article=False, failed="lang")).row
    assert (row.verdict, row.pages, row.articles, row.dropped_by) == ("llm", 5, 4, {"lang": 1})
    row = desk.feed(page(5, article=False)).row
    assert (row.ruleset, row.digest, row.pages, row.dropped_by) == ("default", "d1", 1, {"short_text": 1})


def test_an_older_fetch_that_arrives_late_is_judged_by_the_new_ruleset_in_vain() -> None:
    """The new ruleset on an older fetch does not count a page whose newer fetch has only the old one's verdict."""
    row = Desk().feed(page(1, visit=2), page(1, visit=1, rules="d2")).row
    assert (row.digest, row.pages, row.articles) == ("d2", 0, 0)


def test_a_tally_stored_before_versions_were_kept_is_read() -> None:
    """Flags and pages stored without detector and ruleset are taken as of those in use then, and of no others later."""
    pages = {f"p{i}": [1, f"p{i}v1", True, f"t{i}", ""] for i in range(4)}
    stored = [1, ["file"], ["q1"], 1, pages, {f"t{i}": True for i in range(4)}, "default", "d1", b"", ""]
    desk = Desk(sprt=SPRT)
    state = KeyedState(desk.store)
    state.put(SITE.encode(), msgspec.msgpack.encode(stored))
    desk.store.apply(state.changes())
    row = desk.feed(page(4)).row
    assert (row.verdict, row.pages, row.articles, row.scored, row.hits) == ("llm", 5, 5, 4, 1)
    desk.stage = TallyStage("fake/2", TallySettings(sprt=SPRT))
    assert desk.feed(page(5)).row.scored == 0
    assert desk.feed(page(6, rules="d2")).row.pages == 1


def test_a_newer_fetch_replaces_its_page_in_place() -> None:
    """A page fetched again keeps its place with the newer verdict; an older fetch arriving late changes nothing."""
    desk = Desk().feed(page(1), page(2), page(1, article=False, visit=2))
    assert (desk.row.pages, desk.row.articles) == (2, 1)
    late = desk.feed(page(1, visit=1))
    assert (late.row.pages, late.row.articles) == (2, 1)
    data = desk.store.get(SITE.encode())
    assert data is not None and list(msgspec.msgpack.decode(data)[4]) == ["p1", "p2"]


def test_a_tally_of_flags_alone_is_read() -> None:
    """Layout 2 kept flags without scores: sprt goes on with them, for gaussian they are absent until scored anew."""
    name = "binoculars/falcon-7b+falcon-7b-instruct@0a1b2c3d/bfloat16/512/accuracy"
    pages = {f"p{i}": [1 + i, f"p{i}v1", i < 6, f"t{i}", "" if i < 6 else "lang", "d1"] for i in range(7)}
    flags = {f"t{i}:{name}": True for i in range(6)} | {"t0:fake/2": False}
    stored = [1, ["file"], ["q1"], 1, pages, flags, "default", "d1", b"", "", 2]
    rows = {}
    for method in ("sprt", "gaussian"):
        desk = Desk(name, method=method)
        state = KeyedState(desk.store)
        state.put(SITE.encode(), msgspec.msgpack.encode(stored))
        desk.store.apply(state.changes())
        desk.feed(hit(2, at=3 * DAY_MS))
        rows[method] = desk.row
    row = rows["sprt"]
    assert (row.verdict, row.pages_used, row.decided_at, row.scored, row.flagged) == ("llm", 6, 6, 6, 6)
    assert (row.pages, row.articles, row.dropped_by, row.days, row.hits) == (7, 6, {"lang": 1}, [3], 2)
    row = rows["gaussian"]
    assert (row.verdict, row.pages_used, row.scored, row.flagged, row.method) == ("unclassifiable", 0, 6, 6, "gaussian")
    row = desk.feed(*(score(f"t{i}", True, name, 0.7) for i in range(6))).row
    assert (row.verdict, row.pages_used) == ("llm", 5)


def test_a_refetched_page_moves_the_counts_and_not_the_evidence() -> None:
    """The counts follow a page's newest fetch; the method reads its first fetch as an article, whatever came later."""
    desk = Desk(sprt=SPRT).feed(*(page(i) for i in range(5)), *(score(f"t{i}", False) for i in range(5)))
    first = desk.row
    assert (first.verdict, first.pages_used, first.decided_at) == ("human", 5, 1)
    desk.feed(*(page(i, visit=2, text=f"new{i}") for i in range(5)), *(score(f"new{i}", True) for i in range(5)))
    row = desk.row
    assert (row.verdict, row.pages_used, row.llr, row.decided_at) == ("human", 5, first.llr, 1)
    assert (row.articles, row.scored, row.flagged) == (5, 5, 5)
    late = Desk(sprt=SPRT).feed(page(1, visit=2, text="new"), score("new", True), page(1, visit=1), score("t1", False))
    early = Desk(sprt=SPRT).feed(page(1, visit=1), page(1, visit=2, text="new"), score("t1", False), score("new", True))
    assert late.row == early.row


def test_a_page_that_was_no_article_at_first_is_evidence_from_when_it_is_one() -> None:
    """A first fetch that was dropped is passed over; the evidence is the first that was an article."""
    desk = Desk(sprt=SPRT).feed(page(1, article=False), page(1, visit=5, text="t"), score("t", True))
    assert (desk.row.articles, desk.row.pages_used) == (1, 1)


@pytest.mark.parametrize("scores_first", [False, True])
def test_a_page_that_changes_for_ever_does_not_make_the_tally_grow(scores_first: bool) -> None:
    """Of 3,000 texts of one page the last few hundred scores are kept, beside those that rows are made of."""
    desk = Desk(sprt=SPRT).feed(page(1, text="first"), score("first", True), page(2), score("t2", False))
    sizes = []
    for visit in range(2, 3002):
        text = f"{visit:032x}"
        records = [page(1, visit=visit, text=text), score(text, True)]
        desk.feed(*(reversed(records) if scores_first else records))
        sizes.append(len(desk.store.get(SITE.encode()) or b""))
    assert max(sizes) < 16_384
    assert max(sizes[500:]) < 1.1 * sizes[500]
    assert (desk.row.scored, desk.row.flagged, desk.row.pages_used) == (2, 1, 2)


def test_scores_of_the_detector_in_use_outlast_those_of_many_others() -> None:
    """Of twenty detectors the one in use is kept, with the last of the others."""
    desk = Desk(sprt=SPRT).feed(page(1), score("t1", True))
    desk.feed(*(score("t1", True, f"other/{number}") for number in range(20)))
    assert desk.feed(page(2)).row.scored == 1
    tally = SiteTally.load(desk.store.get(SITE.encode()), DETECTOR)
    assert set(tally.scores) == {DETECTOR, *(f"other/{number}" for number in range(15, 20))}


def site_of(flags: Sequence[bool], at: Sequence[int]) -> list[Record]:
    """Articles with these flags, fetched at these times."""
    records: list[Record] = []
    for number, (flag, visit) in enumerate(zip(flags, at, strict=True)):
        records += [page(number, visit=visit), score(f"t{number}", flag)]
    return records


def test_later_pages_correct_a_site_until_it_closes() -> None:
    """Five clear pages, then flagged ones: within the time the row is corrected to llm, after it the row stands."""
    flags = [False] * 5 + [True] * 10
    near, far = [*range(1, 16)], [1, 2, 3, 4, 5, *range(60_006, 60_016)]
    corrected = Desk(sprt=SPRT, close_after_s=60).feed(*site_of(flags, near))
    assert (corrected.row.verdict, corrected.row.pages_used, corrected.row.decided_at) == ("llm", 12, 5)
    frozen = Desk(sprt=SPRT, close_after_s=60).feed(*site_of(flags, far))
    assert (frozen.row.verdict, frozen.row.pages_used, frozen.row.decided_at) == ("human", 5, 5)
    assert (frozen.row.scored, frozen.row.flagged) == (15, 10)
    for desk in (corrected, frozen):
        assert [decision.reason for decision in desk.decisions] == ["decided_human"]


def test_a_mixed_site_is_crawled_for_longer() -> None:
    """Two clear groups of scores: marked, and no word to stop before mixed_articles, by default twice the number."""
    desk = Desk(sprt=SPRT, enough_articles=10, mixed_articles=12)
    numbers = [0.97, 0.85, 0.98, 0.86, 0.99, 0.84, 1.0, 0.87] * 2
    desk.feed(*(page(i) for i in range(16)))
    for number, value in enumerate(numbers[:11]):
        desk.feed(score(f"t{number}", value < 0.9, number=value))
    assert (desk.row.mixed, desk.row.verdict, desk.decisions) == (True, "undecided", [])
    desk.feed(score("t11", True, number=numbers[11]))
    assert [decision.reason for decision in desk.decisions] == ["enough_articles"]
    assert TallySettings(enough_articles=7).enough_if_mixed == 14


def test_a_site_that_is_no_longer_mixed_stops() -> None:
    """The word to stop waits only while the site is mixed."""
    desk = Desk(sprt=msgspec.structs.replace(SPRT, min_pages=8), mixed_articles=40)
    numbers = [0.84, 0.85, 0.86, 0.87, 0.97, 0.98, 0.99, 1.0]
    desk.feed(*(page(i) for i in range(40)), *(score(f"t{i}", x < 0.9, number=x) for i, x in enumerate(numbers)))
    assert (desk.row.mixed, desk.decisions) == (True, [])
    desk.feed(*(score(f"t{i}", True, number=0.86) for i in range(8, 40)))
    assert (desk.row.mixed, desk.row.verdict) == (False, "llm")
    assert [decision.reason for decision in desk.decisions] == ["decided_llm"]


@pytest.mark.parametrize("method", ["sprt", "gaussian", "deciles"])
def test_a_mixed_site_stops_once_it_has_closed(method: str) -> None:
    """Decided and mixed on the first day, and 300 pages on the third that are no evidence any more: crawling stops."""
    name = "binoculars/falcon-7b+falcon-7b-instruct@0a1b2c3d/bfloat16/512/accuracy"
    desk = Desk(name, method=method)
    flags = [True] * 2 + [False] * 4 + [True] * 9
    for number, flag in enumerate(flags):
        value = (0.84 if flag else 1.0) + 0.001 * number
        desk.feed(page(number, visit=1 + number), score(f"t{number}", flag, name, value))
    assert (desk.row.mixed, desk.row.verdict, desk.decisions) == (True, "llm", [])
    for number in range(100, 400):
        desk.feed(page(number, visit=2 * DAY_MS + number), score(f"t{number}", True, name, 0.85))
    assert [decision.reason for decision in desk.decisions] == ["decided_llm"]


def test_days_with_a_hit_are_kept() -> None:
    """Days of hits, each once, in order; of more than 400 the newest; a hit without a time has none."""
    desk = Desk().feed(hit(1), hit(2, at=2 * DAY_MS), hit(3, at=2 * DAY_MS + 5), hit(4, at=DAY_MS - 1))
    assert desk.row.days == [0, 2]
    many = random.Random(3).sample(range(1000), 500)
    row = Desk().feed(*(hit(day, at=day * DAY_MS + 1) for day in many)).row
    assert row.days == sorted(many)[-400:]


def test_the_threshold_sets_site_test_stands_behind_the_settings() -> None:
    """[tally.sprt] comes first, then the test of the threshold set, then the detector's own."""
    records = [*(page(i) for i in range(20)), *(score(f"t{i}", True) for i in range(20))]
    bold, shy = SprtParams(p0=0.01, p1=0.9, min_articles=2), SprtParams(min_articles=15)
    used = []
    for ours, theirs in ((None, None), (None, bold), (shy, bold)):
        desk = Desk()
        desk.stage = TallyStage(DETECTOR, TallySettings(sprt=ours), site_test=theirs)
        used.append(desk.feed(*records).row.pages_used)
    assert used == [6, 3, 15]


def test_a_row_says_which_test_judged_it() -> None:
    """Rows of other parameters, another closing rule or another method have another digest; the same test the same."""
    name = "binoculars/falcon-7b+falcon-7b-instruct@0a1b2c3d/bfloat16/512/accuracy"
    tests: list[dict[str, Any]] = [
        {},
        {"sprt": SprtParams(p0=0.19)},
        {"close_after_s": 3600},
        {"method": "gaussian"},
        {"method": "gaussian", "gaussian": GaussianParams(mu0=0.99)},
        {"method": "deciles"},
    ]
    digests = [Desk(name, **test).feed(hit(1)).row.method_digest for test in tests]
    assert all(len(digest) == 8 for digest in digests)
    assert len(set(digests)) == len(tests)
    assert digests == [Desk(name, **test).feed(hit(1), page(1)).row.method_digest for test in tests]


def test_a_detector_without_numbers_has_no_tally() -> None:
    """The stage is refused when it is made, not at the first score; settings or a threshold set mend it."""
    name = "fast-detectgpt/a+b@0a1b2c3d/float32/512/mine-1"
    with pytest.raises(NoSiteTest):
        TallyStage(name)
    TallyStage(name, site_test=SPRT)
    TallyStage(name, TallySettings(sprt=SPRT))
    for method in ("gaussian", "deciles"):
        with pytest.raises(NoSiteTest):
            TallyStage(name, TallySettings(method=method, sprt=SPRT))


def test_one_decision_per_site() -> None:
    """A decided site is told to stop once, with the reason; later flags tell nothing more."""
    desk = Desk(sprt=SPRT).feed(*(page(i) for i in range(8)), *(score(f"t{i}", True) for i in range(8)))
    assert [(d.stop, d.reason, d.site) for d in desk.decisions] == [(True, "decided_llm", SITE)]
    human = Desk(sprt=SPRT).feed(*(page(i) for i in range(8)), *(score(f"t{i}", False) for i in range(8)))
    assert [d.reason for d in human.decisions] == ["decided_human"]


def test_enough_articles_stop_an_undecided_site() -> None:
    """A site that stays between the bounds is stopped at the number of usable scores in the settings."""
    desk = Desk(sprt=SPRT, enough_articles=6).feed(*(page(i) for i in range(7)))
    desk.feed(*(score(f"t{i}", i % 3 == 0) for i in range(5)))
    assert desk.decisions == []
    desk.feed(score("t5", False), score("t6", True))
    assert [d.reason for d in desk.decisions] == ["enough_articles"]
    assert desk.row.verdict == "undecided"


def test_built_in_parameters_follow_the_detector() -> None:
    """Without parameters in the settings, seven pages of the built-in detector do not classify, eight clear ones do."""
    name = "lite-ngram/00000000/p0.95"
    desk = Desk(name).feed(*(page(i) for i in range(8)), *(score(f"t{i}", False, name) for i in range(7)))
    assert desk.row.verdict == "unclassifiable"
    assert desk.feed(score("t7", False, name)).row.verdict == "human"


def test_settings_that_make_no_sense_are_refused() -> None:
    """Zero articles can never be enough, a mixed site wants no fewer than another, and a site closes some day."""
    with pytest.raises(ValueError, match="enough_articles"):
        TallySettings(enough_articles=0)
    with pytest.raises(ValueError, match="at least 15"):
        TallySettings(method="deciles", enough_articles=14)
    with pytest.raises(ValueError, match="mixed_articles"):
        TallySettings(enough_articles=20, mixed_articles=19)
    for seconds in (-1.0, math.nan, 1e12):
        with pytest.raises(ValueError, match="close_after_s"):
            TallySettings(close_after_s=seconds)


FLAG = st.none() | st.booleans()


@st.composite
def a_site(draw: st.DrawFn) -> tuple[Sequence[Record], Sequence[Record], Sequence[Record]]:
    """The three topics of a site, each in its own order: repeated pages, shared texts, abstentions, other detectors."""
    hits = [hit(draw(st.integers(0, 4)), draw(st.integers(0, 9)), draw(st.sampled_from("ab"))) for _ in range(3)]
    pages = [
        page(
            draw(st.integers(0, 6)),
            article=draw(st.booleans()),
            text=f"t{draw(st.integers(0, 6))}",
            visit=draw(st.integers(1, 3)),
            rules=draw(st.sampled_from(("d1", "d2"))),
        )
        for _ in range(draw(st.integers(0, 12)))
    ]
    flags = draw(st.lists(FLAG, min_size=7, max_size=7))
    order = draw(st.permutations(range(7)))
    scores = [score(f"t{i}", flags[i]) for i in order[: draw(st.integers(0, 7))]]
    scores.insert(draw(st.integers(0, len(scores))), score("t1", True, "fake/2"))
    return hits, pages, scores


def interleaved(topics: Sequence[Sequence[Record]], rng: random.Random) -> list[Record]:
    """The topics merged at random, the order within each kept."""
    slots = [topic for topic, records in enumerate(topics) for _ in records]
    rng.shuffle(slots)
    streams = [iter(records) for records in topics]
    return [next(streams[slot]) for slot in slots]


@settings(max_examples=60, deadline=None)
@given(a_site(), st.integers(0, 2**32))
def test_the_row_is_independent_of_the_interleaving(
    topics: tuple[Sequence[Record], Sequence[Record], Sequence[Record]], seed: int
) -> None:
    """Whatever the interleaving of the three topics, the last row is the same in everything but its time."""
    rng = random.Random(seed)
    in_turn = Desk(sprt=SPRT).feed(*topics[0], *topics[1], *topics[2])
    mixed = Desk(sprt=SPRT).feed(*interleaved(topics, rng))
    assert mixed.row == in_turn.row
    for earlier, later in zip(mixed.rows, mixed.rows[1:], strict=False):
        assert msgspec.structs.replace(earlier, updated_at=later.updated_at) != later
    assert len(mixed.decisions) <= 1


@st.composite
def a_decidable_site(draw: st.DrawFn) -> list[Record]:
    """Records of one ruleset: pages fetched over some days, some again, most with a score; hits on several days."""
    records: list[Record] = [hit(number, at=draw(st.integers(0, 5)) * DAY_MS) for number in range(3)]
    flags = draw(st.lists(st.booleans(), min_size=4, max_size=24))
    for number, flag in enumerate(flags):
        visits = draw(st.sets(st.integers(1, 5), min_size=1, max_size=2))
        for visit in visits:
            text = f"t{number}v{visit}"
            article = draw(st.integers(0, 9)) > 0
            records.append(page(number, visit=visit * 40_000 + number, text=text, article=article))
            if draw(st.integers(0, 9)):
                records.append(score(text, flag, number=0.7 + 0.02 * draw(st.integers(0, 15))))
    return records


@settings(max_examples=60, deadline=None)
@given(a_decidable_site(), st.randoms(use_true_random=False), st.sampled_from(("sprt", "gaussian", "deciles")))
def test_the_row_is_a_function_of_the_set_of_records(records: list[Record], rng: random.Random, method: str) -> None:
    """Under one ruleset any order at all of hits, verdicts and scores leaves the same row, and so does a repetition."""
    name = "binoculars/falcon-7b+falcon-7b-instruct@0a1b2c3d/bfloat16/512/accuracy"
    records = [
        msgspec.structs.replace(record, detector=name, id=f"{record.text_digest}:{name}")
        if isinstance(record, Score)
        else record
        for record in records
    ]
    shuffled = rng.sample(records, len(records))
    one = Desk(name, method=method, close_after_s=60, sprt=SPRT).feed(*records)
    other = Desk(name, method=method, close_after_s=60, sprt=SPRT).feed(*shuffled)
    assert one.row == other.row
    assert one.row.method == method
    assert len(one.decisions) <= 1 and len(other.decisions) <= 1
    again = other.feed(*shuffled).row
    assert again == one.row
