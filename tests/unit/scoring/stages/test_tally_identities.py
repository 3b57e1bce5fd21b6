"""TALLY never pools detectors or rulesets, and uses the site test of the detector."""

from __future__ import annotations

import math
from typing import Any

import msgspec
import pytest

from scoring.errors import NoSiteTest
from scoring.sites.registry import site_method
from scoring.sites.settings import TallySettings
from scoring.sites.sprt import SprtParams
from scoring.stages.tally import TallyStage
from stream.processing.metrics import Metrics
from tests.support.logs.tally_desk import DETECTOR, FALCON, SPRT, Desk, hit, page, score


def test_scores_of_another_detector_are_never_pooled() -> None:
    """Scores of another detector change no row and are counted separately."""
    desk = Desk(sprt=SPRT).feed(*(page(i) for i in range(4)))
    before = list(desk.outputs)
    desk.feed(*(score(f"t{i}", True, "fake/2") for i in range(4)))
    assert desk.outputs == before
    metrics = Metrics()
    desk.meter.apply(metrics)
    labels = {"run": "first", "ruleset": "", "stage": "tally", "result": "other_detector"}
    assert metrics.registry.get_sample_value("farmwatch_stage_records_total", labels) == 4


def test_another_detector_over_kept_state_starts_from_its_own_scores() -> None:
    """After a change of detector, old flags do not count; after changing back, no flag is lost."""
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
    """After a change of ruleset, a page counts once the new ruleset has judged it: pages, articles, scores, drops."""
    desk = Desk(sprt=SPRT).feed(*(page(i) for i in range(4)), *(score(f"t{i}", True) for i in range(4)))
    row = desk.feed(page(9, article=False), page(0, rules="d2")).row
    assert (row.ruleset, row.digest, row.pages, row.articles, row.scored) == ("other", "d2", 1, 1, 1)
    assert (row.verdict, row.flagged, row.pages_used, row.dropped_by) == ("unclassifiable", 1, 1, {})
    row = desk.feed(*(page(i, rules="d2") for i in (1, 2, 3)), page(9, rules="d2", article=False, failed="lang")).row
    assert (row.verdict, row.pages, row.articles, row.dropped_by) == ("llm", 5, 4, {"lang": 1})
    row = desk.feed(page(5, article=False)).row
    assert (row.ruleset, row.digest, row.pages, row.dropped_by) == ("default", "d1", 1, {"short_text": 1})


def test_an_older_fetch_that_arrives_late_is_judged_by_the_new_ruleset_in_vain() -> None:
    """A verdict of the new ruleset on an older fetch does not count if the newer fetch has only the old verdict."""
    row = Desk().feed(page(1, visit=2), page(1, visit=1, rules="d2")).row
    assert (row.digest, row.pages, row.articles) == ("d2", 0, 0)


def test_the_threshold_sets_site_test_stands_behind_the_settings() -> None:
    """[tally.sprt] takes precedence over the test of the threshold set, and that over the detector's own."""
    records = [*(page(i) for i in range(20)), *(score(f"t{i}", True) for i in range(20))]
    bold, shy = SprtParams(p0=0.01, p1=0.9, min_articles=2), SprtParams(min_articles=15)
    used = []
    for ours, theirs in ((None, None), (None, bold), (shy, bold)):
        desk = Desk()
        desk.stage = TallyStage(DETECTOR, method=site_method(TallySettings(sprt=ours), DETECTOR, theirs))
        used.append(desk.feed(*records).row.pages_used)
    assert used == [6, 3, 15]


def test_a_row_says_which_test_judged_it() -> None:
    """Rows with other parameters, closing rule or method have another digest; the same test has the same digest."""
    tests: list[dict[str, Any]] = [{}, {"sprt": SprtParams(p0=0.19)}, {"close_after_s": 3600}, {"method": "deciles"}]
    digests = [Desk(FALCON, **test).feed(hit(1)).row.method_digest for test in tests]
    assert all(len(digest) == 8 for digest in digests)
    assert len(set(digests)) == len(tests)
    assert digests == [Desk(FALCON, **test).feed(hit(1), page(1)).row.method_digest for test in tests]


def test_a_detector_without_numbers_has_no_tally() -> None:
    """A detector without a site test is refused at construction, not at the first score.

    Settings or a threshold set provide one.
    """
    name = "fast-detectgpt/a+b@0a1b2c3d/float32/512/mine-1"
    with pytest.raises(NoSiteTest):
        TallyStage(name)
    TallyStage(name, method=site_method(TallySettings(), name, SPRT))
    TallyStage(name, TallySettings(sprt=SPRT))
    with pytest.raises(NoSiteTest):
        TallyStage(name, TallySettings(method="deciles", sprt=SPRT))


def test_settings_that_make_no_sense_are_refused() -> None:
    """Invalid settings are refused: zero enough_articles, fewer mixed_articles than that, no closing time."""
    wrong: list[tuple[dict[str, Any], str]] = [
        ({"enough_articles": 0}, "enough_articles"),
        ({"method": "deciles", "enough_articles": 14}, "at least 15"),
        ({"enough_articles": 20, "mixed_articles": 19}, "mixed_articles"),
        *(({"close_after_s": seconds}, "close_after_s") for seconds in (-1.0, math.nan, 1e12)),
    ]
    for settings, said in wrong:
        with pytest.raises(msgspec.ValidationError, match=said):
            msgspec.convert(settings, TallySettings)
