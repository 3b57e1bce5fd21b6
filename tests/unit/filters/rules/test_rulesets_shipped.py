"""The shipped rulesets against the published thresholds, which this file repeats, with the values that just pass."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import msgspec
import pytest

from filters.extraction.blocks import Block, BlockKind, pack
from filters.quality.names import MEASURES
from filters.rules.judgement import judge
from filters.rules.ruleset import load_ruleset, shipped_rulesets
from stream.schema.records import Features
from tests.support.pages.numbered_pages import page_features

Published = list[tuple[str, str, str, float]]  # rule, measure, drops when the value is ... than, this


def ngram_rules(prefix: str, measure: str, first: int, *limits: float) -> Published:
    kind = measure.removeprefix("dolma_")
    return [
        (f"{prefix}{kind}_{n}gram_share", f"{measure}_{n}gram_share", ">", limit)
        for n, limit in enumerate(limits, start=first)
    ]


GOPHER: Published = [
    ("gopher_min_words", "words", "<", 50),
    ("gopher_max_words", "words", ">", 100_000),
    ("gopher_min_mean_word_chars", "mean_word_chars", "<", 3),
    ("gopher_max_mean_word_chars", "mean_word_chars", ">", 10),
    ("gopher_max_hashes_per_word", "hashes_per_word", ">", 0.1),
    ("gopher_max_ellipses_per_word", "ellipses_per_word", ">", 0.1),
    ("gopher_max_bullet_line_share", "bullet_line_share", ">", 0.9),
    ("gopher_max_ellipsis_line_share", "ellipsis_line_share", ">", 0.3),
    ("gopher_min_alpha_word_share", "alpha_word_share", "<", 0.8),
    ("gopher_min_stop_words", "stop_words", "<", 2),
    ("gopher_max_duplicate_paragraph_share", "duplicate_paragraph_share", ">", 0.3),
    ("gopher_max_duplicate_paragraph_char_share", "duplicate_paragraph_char_share", ">", 0.2),
    ("gopher_max_duplicate_line_share", "duplicate_line_share", ">", 0.3),
    ("gopher_max_duplicate_line_char_share", "duplicate_line_char_share", ">", 0.2),
    *ngram_rules("gopher_max_", "top", 2, 0.2, 0.18, 0.16),
    *ngram_rules("gopher_max_", "duplicate", 5, 0.15, 0.14, 0.13, 0.12, 0.11, 0.1),
]
C4: Published = [
    ("c4_lorem_ipsum", "c4_lorem_ipsum_lines", ">", 0),
    ("c4_curly_bracket", "c4_curly_bracket_lines", ">", 0),
    ("c4_min_sentences", "c4_sentences", "<", 5),
]
FINEWEB: Published = [
    ("fineweb_min_punctuated_line_share", "fineweb_punctuated_line_share", "<", 0.12),
    ("fineweb_max_short_line_share", "fineweb_short_line_share", ">", 0.67),
    ("fineweb_max_duplicate_line_char_share", "fineweb_duplicate_line_char_share", ">", 0.01),
    ("fineweb_max_newlines_per_word", "fineweb_newlines_per_word", ">", 0.3),
]
DOLMA: Published = [
    ("dolma_min_words", "dolma_words", "<", 50),
    ("dolma_max_words", "dolma_words", ">", 100_000),
    ("dolma_min_median_word_chars", "median_word_chars", "<", 3),
    ("dolma_max_median_word_chars", "median_word_chars", ">", 10),
    ("dolma_max_symbol_word_share", "dolma_symbol_word_share", ">", 0.1),
    ("dolma_min_alpha_word_share", "alpha_word_share", "<", 0.8),
    ("dolma_min_required_words", "dolma_required_words", "<", 2),
    ("dolma_max_bullet_line_share", "dolma_bullet_line_share", ">", 0.9),
    ("dolma_max_ellipsis_line_share", "dolma_ellipsis_line_share", ">", 0.3),
    ("dolma_max_duplicate_line_share", "dolma_duplicate_line_share", ">", 0.3),
    ("dolma_max_duplicate_line_char_share", "dolma_duplicate_line_char_share", ">", 0.3),
    *ngram_rules("dolma_max_", "dolma_top", 2, 0.2, 0.18, 0.16),
    *ngram_rules("dolma_max_", "dolma_duplicate", 5, 0.15, 0.14, 0.13, 0.12, 0.11, 0.1),
    ("dolma_max_repetitions", "dolma_repetitions", ">", 100),
]
PUBLISHED = {"gopher": GOPHER, "c4": C4, "fineweb": FINEWEB, "dolma": DOLMA}
CASES = [(name, *published) for name, rules in PUBLISHED.items() for published in rules]


def features(values: dict[str, float | None], ruleset: str) -> Features:
    """A page with these quality measures of the text that a ruleset reads; the others are unknown."""
    return page_features(quality={load_ruleset(ruleset).reads: [values.get(measure) for measure in MEASURES]})


def passing(published: Published) -> dict[str, float | None]:
    least = {measure: limit for _, measure, op, limit in published if op == "<"}
    return {measure: least.get(measure, 0.0) for _, measure, _, _ in published}


def test_eight_rulesets_are_shipped() -> None:
    """There are four rulesets of our own and four published ones; each has a description, and all differ."""
    rulesets = [load_ruleset(name) for name in shipped_rulesets()]
    assert [ruleset.name for ruleset in rulesets] == [
        "c4",
        "default",
        "dolma",
        "fineweb",
        "gopher",
        "notes",
        "notes-run",
        "whole-web",
    ]
    assert len({ruleset.digest for ruleset in rulesets}) == len({ruleset.description for ruleset in rulesets}) == 8
    assert all(ruleset.description for ruleset in rulesets)


def test_thresholds_of_the_notes() -> None:
    """The shipped numbers are those of the users' notes and no others, and every paragraph is a block."""
    notes = load_ruleset("notes")
    assert notes.blocks == "paragraph"
    assert {rule.name: (rule.threshold, rule.block_chars) for rule in notes.rules} == {
        "extracted": ("ok", 0),
        "min_tokens": (200, 0),
        "link_code_share": (0.2, 0),
        "longest_block": (250, 0),
        "large_block_share": (0.75, 200),
        "list_table_share": (0.2, 100),
        "duplicate_share": (0.5, 0),
    }


def test_the_notes_with_runs_drop_unknown_shares() -> None:
    """`notes-run` has the same thresholds over runs, and a page of flat text, whose links are unknown, fails them."""
    notes, runs = load_ruleset("notes"), load_ruleset("notes-run")
    assert runs.blocks == "run"
    assert [replace(rule, drop_unknown=False) for rule in runs.rules] == list(notes.rules)
    flat = msgspec.structs.replace(
        page_features(tokens=400), blocks=pack([Block(0, 900, 0, 0)]), extract_path="fallback"
    )
    assert judge(flat, notes).failed == []
    assert judge(flat, runs).failed == ["link_code_share", "list_table_share"]


@pytest.mark.parametrize("name", PUBLISHED)
def test_rules_are_those_published_in_their_order(name: str) -> None:
    """The published rules with their thresholds follow `extracted`, in the order of evaluation."""
    rules = [rule for rule in load_ruleset(name).rules if rule.threshold is not None]
    assert [(rule.name, rule.threshold) for rule in rules] == [
        ("extracted", "ok"),
        *((rule, limit) for rule, _, _, limit in PUBLISHED[name]),
    ]


@pytest.mark.parametrize(("ruleset", "rule", "measure", "op", "limit"), CASES, ids=[case[1] for case in CASES])
def test_a_published_threshold_drops_just_beyond_it(
    ruleset: str, rule: str, measure: str, op: str, limit: float
) -> None:
    """The comparison is exact: the threshold itself, and the nearest number on each side of it."""
    good = passing(PUBLISHED[ruleset])
    below, above = math.nextafter(limit, -math.inf), math.nextafter(limit, math.inf)
    for value in (below, float(limit), above):
        failed = judge(features({**good, measure: value}, ruleset), load_ruleset(ruleset)).failed
        assert (rule in failed) == (value < limit if op == "<" else value > limit)


@pytest.mark.parametrize("name", PUBLISHED)
def test_what_every_rule_passes_is_kept(name: str) -> None:
    """A page within all thresholds is an article; if every rule fails, the first of the file is the reason."""
    published = PUBLISHED[name]
    assert judge(features(passing(published), name), load_ruleset(name)).first_failed == ""
    worst: dict[str, Any] = {measure: -1.0 if op == "<" else 1e9 for _, measure, op, _ in reversed(published)}
    verdict = judge(features(worst, name), load_ruleset(name))
    assert verdict.first_failed == published[0][0]


@pytest.mark.parametrize("name", PUBLISHED)
def test_features_older_than_the_measures_are_dropped(name: str) -> None:
    """A page without quality measures is dropped: one rule fails, and the others are n/a."""
    verdict = judge(page_features(), load_ruleset(name))
    assert len(verdict.failed) == 1
    assert {rule.outcome for rule in verdict.rules[1:]} == {"n/a"}


def test_texts_that_rulesets_read_and_score() -> None:
    """C4's ruleset scores the kept lines; DOLMa's reads and scores the punctuated lines; the others the main text."""
    found = {name: (load_ruleset(name).reads, load_ruleset(name).scores) for name in shipped_rulesets()}
    assert found.pop("c4") == ("main", "c4")
    assert found.pop("dolma") == ("nopunc", "nopunc")
    assert set(found.values()) == {("main", "main")}


DEFAULT, NOTES = load_ruleset("default"), load_ruleset("notes")


def failed(url_path: str, listed: int = 0, prose: int = 1, **measures: float) -> list[str]:
    """The rules that a page of English words fails, with characters in short list items and in paragraphs."""
    defaults: dict[str, Any] = {"tokens": 400, "link_code_share": None, "language": "en", "duplicate_share": 0.0}
    page = page_features(**defaults | measures, url_path=url_path)
    blocks = [Block(BlockKind.ITEM, 1, 0, 0)] * listed + [Block(BlockKind.PARAGRAPH, prose, 0, 0)]
    return judge(msgspec.structs.replace(page, blocks=pack(blocks), extract_path="recall"), DEFAULT).failed


def test_what_the_users_ask_is_in_force_and_their_other_rules_are_shown() -> None:
    """`default` has every rule of the notes: two are shown only, and two allow four times as much."""
    rules = {rule.name: rule for rule in DEFAULT.rules}
    assert {name for name, rule in rules.items() if rule.threshold is not None} == {
        *("extracted", "no_page", "min_tokens", "duplicate_share", "language", "url_kind", "article_probability"),
        *("link_code_share", "list_table_share"),
    }
    differ = {rule.name: rules[rule.name].threshold for rule in NOTES.rules if rule != rules[rule.name]}
    assert differ == {
        **dict.fromkeys(("link_code_share", "list_table_share"), 0.8),
        **dict.fromkeys(("longest_block", "large_block_share")),
    }
    assert {rule.name for rule in NOTES.rules} <= set(rules)


NO_ARTICLES = """
/ /tag/rivers /forum/boats/how-do-i-moor /threads/leaking-hull.123/ /viewtopic.php?t=99 /t/welcome/1
/questions/4711/why-do-rivers-meander /r/boats/comments/1a2b3c/my_boat/ /products/oar /gp/product/B000 /Store/oars
/app/1091500/Sailing /docs/install.html /en-us/docs/Web/API /collections/summer /c/oars /shop/boats/ /services
/services/repair/ /pricing /about/team /contact?from=home
"""
ARTICLES = """
/how-rivers-rise /2024/05/the-product-of-a-long-winter /p/a-letter-from-the-river /wiki/River /guide/mooring
/features/the-last-ferryman /news/about-a-boat /blog/what-services-cost /docs-are-fun /boarding-the-ferry
/blog/2023/collections-of-poems /story?id=5&title=forum
"""


def test_urls_of_articles_and_of_other_pages() -> None:
    """Index, tag, forum, shop and company pages are dropped; a word in a title, or a shared path, is no kind."""
    assert [path for path in NO_ARTICLES.split() if failed(path) != ["url_kind"]] == []
    assert [path for path in ARTICLES.split() if failed(path)] == []


def test_a_page_that_is_mostly_links_or_lists_is_dropped() -> None:
    """Links and code, and lists and tables, may have four fifths of the text each; short blocks decide nothing."""
    assert failed("/a", link_code_share=0.8, listed=8, prose=2) == []
    assert failed("/a", link_code_share=0.801) == ["link_code_share"]
    assert failed("/a", listed=9, prose=2) == ["list_table_share"]
    assert failed("/a", tokens=199) == ["min_tokens"]
