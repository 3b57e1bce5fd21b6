"""The comparison of two runs: flips and their rules, counts, and records that are left out."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from filters.rules.judgement import judge
from filters.rules.ruleset import parse_ruleset
from replay.compare.comparer import ComparisonRequest, compare
from replay.compare.comparison import (
    DISAGREEMENTS_NAMED,
    SITE_KINDS,
    SITES_NAMED,
    ChangeKind,
    ChangeRemark,
    Comparison,
    RuleChange,
    ShareChange,
)
from replay.compare.run_pair import ComparedRun, SiteRows, in_same_terms
from replay.rows.site_table import compared_row, read_rows
from scoring.rates.settings import RateSettings
from scoring.rates.split_rates import rate_lines
from scoring.stages.score import score_key
from scoring.stages.site_tally import term_key
from stream.log.contract import Log, Output, partition_of
from stream.memory.log import MemoryLog
from stream.opening import open_log
from stream.processing.heartbeat import HEADER, travelling
from stream.schema.records import Features, Score, Segments, SiteState, Verdict, encode
from stream.schema.runs import Run, RunStatus, names_of
from stream.schema.topics import SITE_TERMS, all_topics
from stream.text.user_errors import NotFound
from tests.support.logs.term_rows import term_row
from tests.support.runs.two_runs import EXTRACTED, PARTITIONS, RULESETS, A, B, begin, page, put_features, put_run, site

KEPT, LANGUAGE, SHORT, REPEATS, SHORT_REPEATS, NEITHER = range(6)
PAGES = [  # mild wants English and 50 words; strict wants 100 words and few repeats
    page(KEPT),
    page(LANGUAGE, language="de"),
    page(SHORT, 70),
    page(REPEATS, repeats=0.5),
    page(SHORT_REPEATS, 70, repeats=0.5),
    page(NEITHER, 20, language="de"),
]
SITES = {"a.example": "human"}
NOW = 10_000


@pytest.fixture
def log(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Log]:
    """A log with the topics of a live farmwatch, in memory unless the test names another kind."""
    is_embedded = getattr(request, "param", "memory") == "embedded"
    found: Log = open_log(f"sqlite:{tmp_path / 'log'}") if is_embedded else MemoryLog()
    begin(found)
    yield found
    found.close()


def two_runs(log: Log, pages: list[Features] = PAGES, sites: dict[str, str] = SITES) -> None:
    put_features(log, pages)
    put_run(log, A, RULESETS[A], pages, sites)
    put_run(log, B, RULESETS[B], pages, sites)


def compared(log: Log, a: str = A, b: str = B, *, sample: int = 20, seed: int = 0, **rate: Any) -> Comparison:
    return compare(log, a, b, ComparisonRequest(sample, seed, 200), RateSettings(**rate), NOW)


def rule(found: Comparison, name: str) -> RuleChange:
    return next(change for change in found.rules if change.rule == name)


def change(found: Comparison, name: str) -> ShareChange:
    return next(one for one in found.changes if one.name == name)


@pytest.mark.parametrize("log", ["memory", "embedded"], indirect=True)
def test_a_flip_counts_for_its_rules(log: Log) -> None:
    """A page let in counts for the rules of A that it failed, a page thrown out for those of B: first, only, any."""
    two_runs(log)
    found = compared(log)
    pages = found.pages
    assert (pages.both_articles, pages.a_only_article, pages.b_only_article, pages.both_dropped) == (1, 3, 1, 1)
    language, short, repeats = (rule(found, name) for name in ("language", "min_tokens", "duplicate_share"))
    assert (language.let_in_first, language.let_in_only, language.let_in_any) == (1, 1, 1)
    assert (short.thrown_first, short.thrown_only, short.thrown_any) == (2, 1, 2)
    assert (repeats.thrown_first, repeats.thrown_only, repeats.thrown_any) == (1, 1, 2)
    assert language.thrown_any == short.let_in_any == repeats.let_in_any == 0


def test_an_article_that_counts_by_its_segments_is_no_equal_one(log: Log) -> None:
    """Kept by both, but as a whole page by one and by segments by the other: counted, in both directions."""
    words = '[rules.segment_words]\nthreshold = 50\non_unknown = "drop"\n'
    rulesets = parse_ruleset(EXTRACTED, "all"), parse_ruleset(f'scores = "segments"\n{EXTRACTED}{words}', "segments")
    pages = [page(n, segments=[Segments("post", "div", [f"Post {n}"], words=50 * n)]) for n in range(3)]
    put_features(log, pages)
    for name, ruleset in zip((A, B), rulesets, strict=True):
        put_run(log, name, ruleset, pages, SITES)
    for found in (compared(log), compared(log, B, A)):
        assert (found.pages.both_articles, found.pages.other_class, found.identical) == (2, 2, False)
    assert compared(log, A, A).pages.other_class == 0


def test_an_article_of_which_another_text_is_scored_is_no_equal_one(log: Log) -> None:
    """Kept by the segments of all kinds or of posts alone: a page with a teaser, too, is counted."""
    words = f'{EXTRACTED}[rules.segment_words]\nthreshold = 50\non_unknown = "drop"\n'
    head = 'scores = "segments"\n'
    rulesets = parse_ruleset(f"{head}{words}", "all"), parse_ruleset(f'{head}kinds = ["post"]\n{words}', "posts")
    post, teaser = Segments("post", "div", ["A post"], words=50), Segments("teaser", "li", ["A teaser"], words=50)
    pages = [page(0, segments=[post]), page(1, segments=[post, teaser]), page(2, segments=[teaser])]
    put_features(log, pages)
    for name, ruleset in zip((A, B), rulesets, strict=True):
        put_run(log, name, ruleset, pages, SITES)
    for found in (compared(log), compared(log, B, A)):
        table = found.pages
        assert (table.both_articles, table.other_class, table.other_text, found.identical) == (2, 0, 1, False)
    assert compared(log, A, A).pages.other_text == 0


def test_the_reverse_comparison_mirrors_all_flips(log: Log) -> None:
    """Comparing B with A: pages thrown out are let in, by the same rules, and every difference changes its sign."""
    two_runs(log, sites={"a.example": "llm"})
    there, back = compared(log), compared(log, B, A)
    for one in there.rules:
        other = rule(back, one.rule)
        thrown, let_in = (one.thrown_first, one.thrown_only, one.thrown_any), (one.let_in_first, one.let_in_any)
        assert thrown == (other.let_in_first, other.let_in_only, other.let_in_any)
        assert let_in == (other.thrown_first, other.thrown_any)
        assert (one.threshold_a, one.threshold_b) == (other.threshold_b, other.threshold_a)
    assert there.pages.a_only_article == back.pages.b_only_article
    ahead, astern = change(there, "article_share"), change(back, "article_share")
    assert ahead.difference is not None and ahead.difference == -(astern.difference or 0) != 0


def test_rules_of_one_ruleset_only_are_named(log: Log) -> None:
    """A rule in force in only one ruleset is listed; the threshold of the other ruleset is ""."""
    two_runs(log)
    found = compared(log)
    assert (found.only_in_a, found.only_in_b) == (["language"], ["duplicate_share"])
    thresholds = {change.rule: (change.threshold_a, change.threshold_b) for change in found.rules}
    assert (thresholds["language"], thresholds["min_tokens"]) == (("in en", ""), (">= 50", ">= 100"))


@pytest.mark.parametrize("b", [A, "again"])
def test_identical_runs_compare_as_identical(log: Log, b: str) -> None:
    """A run and itself, and two runs of one ruleset: no flip, and each difference is exactly 0, from 0 to 0."""
    two_runs(log, sites={"a.example": "llm", "b.example": "human"})
    put_run(log, "again", RULESETS[A], PAGES, {"a.example": "llm", "b.example": "human"})
    found = compared(log, A, b)
    assert found.identical
    assert (found.pages.a_only_article, found.pages.b_only_article, found.sample, found.strata) == (0, 0, [], [])
    said = [one for one in found.changes if one.difference is not None]
    assert {one.name for one in said} >= {"site_rate", "article_share", "flagged_share"}
    assert all((one.difference, one.low, one.high) == (0, 0, 0) for one in said)
    assert all(ChangeKind.SAME_RUN in kinds(one) for one in said)


def test_runs_with_other_canaries_are_not_identical(log: Log) -> None:
    """Two runs that agree except for their canaries have changes whose interval is not exactly 0."""
    sites = {f"s{n}.example": "llm" if n < 12 else "human" for n in range(40)}
    for name, missed in ((A, 0), ("again", 3)):
        put_run(log, name, RULESETS[A], PAGES, {**sites, **_canaries(20, missed)})
    found = compared(log, A, "again")
    assert not found.identical
    assert found.a.judged.share != found.b.judged.share
    assert ChangeKind.SAME_RUN not in kinds(change(found, "site_rate"))
    assert compared(log, A, A).identical


def test_agreeing_runs_are_not_identical(log: Log) -> None:
    """Two rulesets with the same verdicts on these pages: the difference is 0, but its interval is not."""
    pages = [page(number, site=f"s{number}.example") for number in range(30)]
    two_runs(log, pages, {f"s{number}.example": "human" for number in range(30)})
    found = compared(log)
    assert not found.identical
    rate = change(found, "site_rate")
    assert (rate.difference, rate.moved) == (0, 0)
    assert rate.low is not None and rate.high is not None
    assert rate.low < rate.high
    assert ChangeKind.NONE_MOVED in kinds(rate)


def kinds(compared_share: ShareChange) -> list[ChangeKind]:
    return [remark.kind for remark in compared_share.remarks]


KINDS = st.sampled_from(SITE_KINDS)
PAGE = st.tuples(
    st.sampled_from([20, 70, 500]), st.booleans(), st.booleans(), st.sampled_from("AB*"), st.integers(0, 4)
)


@settings(max_examples=20)
@given(st.lists(PAGE, max_size=30), st.lists(st.tuples(KINDS, KINDS), max_size=12))
def test_every_cell_equals_a_plain_count(
    pages: list[tuple[int, bool, bool, str, int]], sites: list[tuple[str, str]]
) -> None:
    """For any pages, judged by one run or both, and any sites."""
    log = MemoryLog()
    begin(log)
    made = [
        (page(n, tokens, repeats=0.5 * repeats, language="de" if german else "en", site=f"s{host}.example"), by)
        for n, (tokens, repeats, german, by, host) in enumerate(pages)
    ]
    made.append((page(99), "*"))  # a run that judged nothing is an error
    of = {run: [features for features, by in made if by in ("*", run)] for run in "AB"}
    rows = [{f"s{n}.example": kinds[run] for n, kinds in enumerate(sites) if kinds[run] != "absent"} for run in (0, 1)]
    put_run(log, A, RULESETS[A], of["A"], rows[0])
    put_run(log, B, RULESETS[B], of["B"], rows[1])
    found = compared(log)
    says = {
        run: {features.id: judge(features, RULESETS[name]).verdict for features in of[run]}
        for run, name in (("A", A), ("B", B))
    }
    cells = Counter((says["A"][fetch], says["B"][fetch]) for fetch in says["A"].keys() & says["B"].keys())
    table = found.pages
    assert table.both_articles == cells["article", "article"]
    assert table.a_only_article == cells["article", "dropped"]
    assert table.b_only_article == cells["dropped", "article"]
    assert table.both_dropped == cells["dropped", "dropped"]
    assert table.only_in_a == len(says["A"].keys() - says["B"].keys())
    assert table.only_in_b == len(says["B"].keys() - says["A"].keys())
    assert table.common + table.only_in_a == found.a.verdicts == len(says["A"])
    assert sum(one.thrown_first for one in found.rules) == table.a_only_article
    assert sum(one.let_in_first for one in found.rules) == table.b_only_article
    assert sum(stratum.flips for stratum in found.strata) == table.a_only_article + table.b_only_article
    expected = Counter(kinds for kinds in sites if kinds != ("absent", "absent"))
    for row, a in enumerate(SITE_KINDS):
        assert found.sites.counts[row] == [expected[a, b] for b in SITE_KINDS]
    for side, counts in ((found.a, rows[0]), (found.b, rows[1])):
        whole = Counter(counts.values())
        assert (side.llm, side.human, side.undecided, side.unclassifiable) == tuple(whole[k] for k in SITE_KINDS[:4])


def test_the_rates_are_those_of_the_rate_command(log: Log) -> None:
    """The rate of each run, its interval and its text equal those of `rate` for the same rows."""
    sites = {f"s{n}.example": "llm" if n < 4 else "undecided" if n < 6 else "human" for n in range(20)}
    two_runs(log, sites=sites | {"t.example": "unclassifiable"})
    found = compared(log)
    (line,) = rate_lines(read_rows(log, f"sites.{B}"))
    judged = found.b.judged
    assert (judged.share, judged.low, judged.high) == (line.judged_share, line.judged_low, line.judged_high)
    assert judged.remarks == line.judged_remarks
    direct = found.b.estimate
    assert (direct.share, direct.low, direct.high) == (line.share, line.low, line.high)
    assert direct.remarks == line.remarks
    rate = change(found, "site_rate")
    assert (rate.b, rate.b_part, rate.b_whole) == (line.judged_share, 4, 20)


def test_unscored_articles_are_noted_and_not_counted(log: Log) -> None:
    """Unscored articles are not human ones: a remark counts them, and no share of flagged articles includes them."""
    put_run(log, A, RULESETS[A], PAGES, [site("a.example", "llm", pages=6, articles=4, scored=4, flagged=2)])
    in_b = site("a.example", "unclassifiable", pages=6, articles=4, scored=1, abstained=1, flagged=1)
    put_run(log, B, RULESETS[B], PAGES, [in_b])
    found = compared(log)
    assert (found.a.unscored, found.b.unscored, found.b.abstained) == (0, 2, 1)
    flagged = change(found, "flagged_share")
    assert (flagged.b_part, flagged.b_whole, flagged.b) == (1, 1, 1.0)
    rate = change(found, "site_rate")
    assert (rate.a, rate.b, rate.difference) == (1.0, None, None)
    unscored = ChangeRemark(ChangeKind.UNSCORED, counts=(0, 4, 2, 4))
    assert rate.remarks == [ChangeRemark(ChangeKind.NO_DENOMINATOR, ("B",)), unscored]
    assert unscored not in change(found, "article_share").remarks


def test_pages_of_one_run_only_are_counted_separately(log: Log) -> None:
    """Runs with different windows are compared on common pages; the rest is counted and noted with the windows."""
    put_run(log, A, RULESETS[A], PAGES[:4], SITES)
    put_run(log, B, RULESETS[B], PAGES[2:], SITES, to_at=1_700_000_000_000)
    found = compared(log)
    assert (found.pages.common, found.pages.only_in_a, found.pages.only_in_b) == (2, 2, 2)
    assert change(found, "site_rate").difference == 0
    assert found.other_windows
    put_run(log, B, RULESETS[B], PAGES[2:], SITES)
    assert not compared(log).other_windows  # one window, in which a run lacks some


def test_changed_sites_are_named(log: Log) -> None:
    """Sites with most articles in either run come first, up to the limit; unchanged sites are not named."""
    many = {f"s{n:03}.example": n for n in range(120)}
    put_run(log, A, RULESETS[A], PAGES, [site(one, "human", pages=n, articles=n, scored=n) for one, n in many.items()])
    rows = [site(one, "llm" if n % 60 else "human", pages=n, articles=n // 2) for one, n in many.items()]
    put_run(log, B, RULESETS[B], PAGES, [*rows, site("new.example", "llm", pages=500, articles=500, scored=500)])
    found = compared(log)
    assert found.sites.changed == 119
    assert len(found.changed_sites) == SITES_NAMED
    new, first, *_ = found.changed_sites
    assert (new.site, new.verdict_a, new.articles_a) == ("new.example", "absent", 0)
    assert (first.site, first.verdict_a, first.verdict_b) == ("s119.example", "human", "llm")
    assert (first.articles_a, first.articles_b, first.unscored_b) == (119, 59, 59)


def put_scores(log: Log, detector: str, scores: Mapping[int, tuple[float | None, bool | None]]) -> None:
    """Scores and flags of the texts of these pages; the topic is keyed by site and id."""
    for number, (score, flag) in scores.items():
        digest = page(number).text_digest
        said = Score(
            id=f"{digest}:{detector}",
            site="a.example",
            page_id="",
            fetch_id="",
            text_digest=digest,
            detector=detector,
            score=score,
            flag=flag,
        )
        log.append([Output("scores", number % PARTITIONS, score_key(said).encode(), encode(said))])


@pytest.mark.parametrize("log", ["memory", "embedded"], indirect=True)
def test_pages_on_which_two_detectors_disagree(log: Log) -> None:
    """Counted by text and named, those first of which both detectors are sure; the direction of scores is seen.

    Texts that one run drops, or one detector did not decide on, are left out. A text of two pages counts once.
    """
    one, other = "one/1", "other/1"  # low scores are flagged by one, high ones by the other
    pages = [page(n) for n in range(6)] + [page(6, 70), page(7), page(8), page(9, site="b.example", text=page(0).text)]
    put_features(log, pages)
    put_run(log, A, RULESETS[A], pages, SITES, detector=one)
    put_run(log, B, RULESETS[B], pages, SITES, detector=other)
    flags = {0: 0.1, 1: 0.4, 2: 0.2, 3: 0.9, 4: 0.6, 5: 0.8, 6: 0.1, 7: 0.1}
    put_scores(log, one, {0: (0.9, False)} | {n: (score, score < 0.5) for n, score in flags.items()})
    others = {0: -1.0, 1: -0.1, 2: 1.0, 3: 2.0, 4: -0.05, 5: -2.0, 6: -1.0, 8: 1.0}
    put_scores(log, other, {n: (score, score > 0) for n, score in others.items()} | {7: (None, None)})
    put_scores(log, "third/1", {4: (0.1, True)})
    found = compared(log).flags
    assert found is not None
    assert (found.both, found.a_only, found.b_only, found.neither) == (1, 2, 1, 2)
    twice = {"fetch-0", "fetch-9"}
    ids = ["a text of two fetches" if each.fetch_id in twice else each.fetch_id for each in found.apart]
    named = [
        (one_id, each.flagged_by, each.score_a, each.score_b) for one_id, each in zip(ids, found.apart, strict=True)
    ]
    assert named == [("a text of two fetches", "A", 0.1, -1.0), ("fetch-3", "B", 0.9, 2.0), ("fetch-1", "A", 0.4, -0.1)]
    assert found.apart[1].url == "https://a.example/3"
    assert compared(log, A, A).flags is None


def test_disagreements_are_listed_up_to_a_limit(log: Log) -> None:
    """All are counted; at most DISAGREEMENTS_NAMED are named."""
    count = DISAGREEMENTS_NAMED + 20
    pages = [page(n) for n in range(count)]
    put_run(log, A, RULESETS[A], pages, SITES, detector="one/1")
    put_run(log, B, RULESETS[B], pages, SITES, detector="other/1")
    for detector, flag in (("one/1", True), ("other/1", False)):
        put_scores(log, detector, dict.fromkeys(range(count), (0.5, flag)))
    found = compared(log).flags
    assert found is not None
    assert (found.a_only, found.texts, len(found.apart)) == (count, count, DISAGREEMENTS_NAMED)


def test_the_newest_verdict_of_a_fetch_counts(log: Log) -> None:
    """A fetch judged twice counts once, by its last verdict; a last verdict of another ruleset is left out."""
    other = parse_ruleset(f"{EXTRACTED}[rules.min_tokens]\nthreshold = 7\n", "other")
    put_run(log, A, other, PAGES, [])
    put_run(log, A, RULESETS[A], PAGES[:3], SITES)
    put_run(log, A, RULESETS[A], PAGES[:1], SITES)
    put_run(log, B, RULESETS[B], PAGES, SITES)
    found = compared(log)
    assert (found.a.verdicts, found.a.other_verdicts, found.pages.common) == (3, 3, 3)
    assert found.a.digest == RULESETS[A].digest


def test_sites_of_another_ruleset_detector_or_method_are_left_out(log: Log) -> None:
    """Such rows count as absent, and their number is reported."""
    rows = [site(f"s{n}.example", "human", pages=1) for n in range(3)]
    rows.append(site("t.example", "llm", pages=1, detector="another/2"))
    rows.append(site("u.example", "llm", pages=1, method="deciles"))
    put_run(log, A, RULESETS[A], PAGES, rows)
    put_run(log, B, RULESETS[B], PAGES, rows)
    stale = SiteState(id="v.example", site="v.example", verdict="llm", ruleset="old", digest="0", detector="x/1")
    partition = partition_of(stale.site, PARTITIONS)
    log.append([Output(f"sites.{A}", partition, stale.site.encode(), encode(stale))])
    found = compared(log)
    assert (found.a.sites, found.a.other_sites, found.b.other_sites) == (3, 3, 2)


def test_canaries_are_no_sites_and_no_pages(log: Log) -> None:
    """Canary sites count in no table and in no rate."""
    canary = "novels.5f0c2a91d3b7e604.1.20405.human.canary.invalid"
    pages = [*PAGES, page(50, 70, site=canary)]
    two_runs(log, pages, {**SITES, canary: "llm"})
    found = compared(log)
    assert (found.a.sites, found.a.llm, found.pages.common) == (1, 0, len(PAGES))
    assert all(flip.site != canary for flip in found.sample)


def test_two_detectors_are_compared(log: Log) -> None:
    """Their scores are not pooled: the runs are not identical."""
    put_run(log, A, RULESETS[A], PAGES, SITES)
    put_run(log, B, RULESETS[A], PAGES, {"a.example": "llm"}, detector="another/2")
    found = compared(log)
    assert not found.identical
    assert (found.a.detector, found.b.detector) == ("some-detector/1", "another/2")
    assert change(found, "site_rate").difference == 1


def test_an_unfinished_run_has_its_progress(log: Log) -> None:
    """What is judged and tallied; a finished run has none."""
    put_features(log, PAGES)
    partition = partition_of("a.example", PARTITIONS)
    ends = [len(PAGES) if place == partition else 0 for place in range(PARTITIONS)]
    put_run(log, A, RULESETS[A], PAGES, SITES)
    put_run(log, B, RULESETS[B], PAGES[:2], SITES, finished=False, state=RunStatus.RUNNING, stop={"features": ends})
    log.reset(f"judge.{B}", "features", [2 if place == partition else 0 for place in range(PARTITIONS)])
    found = compared(log)
    assert found.a.progress == ""
    assert found.b.progress == "judged 2 of 6 records (33%); tallied 0 of 6 records (0%)"


def test_a_run_without_verdicts_is_an_error_with_its_progress(log: Log) -> None:
    """Nothing can be compared; the message shows the progress."""
    two_runs(log)
    put_run(log, "young", RULESETS[B], [], finished=False, state=RunStatus.RUNNING)
    with pytest.raises(NotFound, match=r"young has judged nothing yet \(6 records behind the live topics\)"):
        compared(log, A, "young")
    with pytest.raises(NotFound, match="before: there was no cutover yet, so no run was live before first"):
        compared(log, "before", A)


def test_heartbeats_of_a_follower_cause_no_note(log: Log) -> None:
    """A follower stopped before an idle night is up to date with its records."""
    two_runs(log)
    put_run(log, "young", RULESETS[B], PAGES, SITES, finished=False, state=RunStatus.RUNNING)
    log.reset("judge.young", "features", log.end("features"))
    log.reset("tally.young", "verdicts.young", log.end("verdicts.young"))
    log.append([travelling("features", partition, {HEADER: "1"}) for partition in range(PARTITIONS)] * 300)
    assert compared(log, A, "young").b.progress == ""


def test_verdicts_before_heartbeats_are_found(log: Log) -> None:
    """The topic of verdicts may end with hundreds of heartbeats."""
    two_runs(log)
    beats = [travelling(f"verdicts.{B}", partition, {HEADER: "1"}) for partition in range(PARTITIONS)] * 300
    log.append(beats)
    found = compared(log)
    assert (found.b.digest, found.b.verdicts) == (RULESETS[B].digest, len(PAGES))


def test_rates_are_corrected_by_the_canaries_of_each_run(log: Log) -> None:
    """Each run has its own canaries, judged by its ruleset: each rate is corrected by those of its run."""
    sites = {f"s{n}.example": "llm" if n < 12 else "human" for n in range(40)}
    for name, missed in ((A, 0), (B, 2)):
        put_run(log, name, RULESETS[name], PAGES, {**sites, **_canaries(20, missed)})
    found = compared(log)
    assert (found.a.judged.method, found.b.judged.method) == ("corrected by canaries",) * 2
    assert (found.a.sites, found.b.sites) == (40, 40)
    assert found.a.judged.share is not None and found.b.judged.share is not None
    assert found.a.judged.share < found.b.judged.share
    assert change(found, "site_rate").difference == 0
    assert [each.remark and each.remark.facts["llm_sites"] for each in found.corrections] == [20, 20]


def _canaries(number: int, missed: int) -> dict[str, str]:
    """This many canary sites of either truth with their verdicts; some LLM ones are judged human."""
    verdicts = {}
    for n in range(number):
        for truth in ("human", "llm"):
            said = "human" if n < missed else truth
            verdicts[f"{truth}{n}.{n:015x}{'0' if truth == 'llm' else '1'}.1.20405.{truth}.canary.invalid"] = said
    return verdicts


def run_of(name: str) -> ComparedRun:
    newest = Verdict(id="f", site="a.test", page_id="p", url="u", verdict="article", digest="d1")
    run = Run(name=name, ruleset="default", digest="d1", detector="fake/1", epoch="e")
    return ComparedRun(run, names_of(name), "done", newest, "")


def rows_of(*rows: SiteState) -> SiteRows:
    return SiteRows({row.site: compared_row(row) for row in rows}, [], 0, "fake/1", "sprt m")


def test_the_newer_run_is_set_back_to_the_term_of_the_other() -> None:
    """A site that one run has in a later term is compared by its earlier row; the search results stay; others stay."""
    newest = [
        term_row("a.test", "llm", 1, (1,), best_rank=3),
        term_row("b.test", "llm", 1),
        term_row("c.test", "human", 1),
    ]
    older = [term_row("a.test", "human"), term_row("b.test", "llm", 1)]
    with closing(MemoryLog()) as log:
        log.create(all_topics(1, "e"))
        for row in (term_row("a.test", "human"), term_row("b.test", "human"), term_row("c.test", "llm")):
            log.append([Output(SITE_TERMS, 0, term_key(row.site, row.term).encode(), encode(row))])
        a, b = in_same_terms(log, (run_of("live"), run_of("other")), rows_of(*newest), rows_of(*older))
    verdicts = {site: (row.verdict, row.term) for site, row in a.rows.items()}
    assert verdicts == {"a.test": ("human", 0), "b.test": ("llm", 1), "c.test": ("human", 1)}
    assert (a.rows["a.test"].sources, a.rows["a.test"].best_rank) == (["file"], 3)
    assert b == rows_of(*older)
