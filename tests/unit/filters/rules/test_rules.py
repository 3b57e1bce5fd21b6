"""Each rule on pages made for it, and the policy for unknown measures."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from datetime import date
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from filters.errors import BadRuleset
from filters.extraction.blocks import ITEM_SHIFT, JOINED, Block, BlockKind, Definition, pack
from filters.quality.names import LANGUAGES, MEASURES
from filters.rules.catalogue import RULES, _kind
from filters.rules.judgement import judge
from filters.rules.kinds import MOST, PASSES
from filters.rules.published import QUALITY_RULES
from filters.rules.ruleset import Ruleset, load_ruleset, parse_ruleset
from filters.structure.names import MEASURES as STRUCTURE
from stream.schema.dates import PageDate, PageDates
from stream.schema.records import Features, Verdict, decode, encode
from tests.support.pages.numbered_pages import page_features

_MORE = [rule for rule in load_ruleset("default").rules if rule.name in ("language", "url_kind")]
NOTES = replace(load_ruleset("notes"), rules=(*load_ruleset("notes").rules, *_MORE))
RUNS = replace(NOTES, name="runs", blocks=Definition.RUN)
GOOD: dict[str, Any] = {
    "tokens": 400,
    "chars": 2000,
    "link_code_share": 0.05,
    "language": "en",
    "language_probability": 0.99,
    "url_path": "/how-rivers-rise",
    "duplicate_share": 0.1,
}
LONG = Block(BlockKind.PARAGRAPH, 500, 0, 0)


def features(*blocks: Block, error: str = "", path: str = "recall", **measures: Any) -> Features:
    page = page_features(**{**GOOD, **measures})
    return msgspec.structs.replace(page, extract_path=path, extract_error=error, blocks=pack(blocks or [LONG] * 4))


def outcome(verdict: Verdict, rule: str) -> tuple[Any, str]:
    return next((found.value, found.outcome) for found in verdict.rules if found.name == rule)


def test_a_rule_reads_a_measure_that_pages_have() -> None:
    """A rule on a name outside `features.measures` could never fail, so it is refused at import."""
    with pytest.raises(ValueError, match=r"'mean_word_chars' is not in features\.measures"):
        _kind("mean_word_chars", "<=", "of quality.names")


def test_good_article_passes_every_rule() -> None:
    """An article is kept; each active rule passes, in the file's order, and disabled rules give nothing."""
    for ruleset in (NOTES, RUNS):
        verdict = judge(features(), ruleset, now_ms=9, run="r1")
        assert (verdict.verdict, verdict.first_failed, verdict.failed) == ("article", "", [])
        assert [(rule.name, rule.outcome) for rule in verdict.rules] == [
            (rule.name, "pass" if rule.threshold is not None else "n/a") for rule in ruleset.rules
        ]
        for field in ("id", "page_id", "site", "url", "epoch", "extract_path", "text_digest", "fetched_at"):
            assert getattr(verdict, field) == getattr(features(), field)
        assert (verdict.ruleset, verdict.digest) == (ruleset.name, ruleset.digest)
        assert (verdict.judged_at, verdict.run) == (9, "r1")


@pytest.mark.parametrize(
    ("rule", "measure", "passing", "failing"),
    [
        ("min_tokens", "tokens", 200, 199),
        ("link_code_share", "link_code_share", 0.2, 0.2001),
        ("duplicate_share", "duplicate_share", 0.5, 0.5001),
        ("language", "language", "en", "de"),
    ],
)
def test_rules_on_measures(rule: str, measure: str, passing: Any, failing: Any) -> None:
    """A value at the notes' threshold passes; just beyond it, only this rule drops the page."""
    assert judge(features(**{measure: passing}), NOTES).verdict == "article"
    verdict = judge(features(**{measure: failing}), NOTES)
    assert (verdict.verdict, verdict.first_failed, verdict.failed) == ("dropped", rule, [rule])
    assert outcome(verdict, rule) == (failing, "fail")


SHORT_AND_LONG = [(BlockKind.ITEM, 100), (BlockKind.CELL, 100), (BlockKind.ITEM, 101), (0, 50), (0, 649)]


@pytest.mark.parametrize(
    ("rule", "blocks", "value", "expected"),
    [
        ("longest_block", [(0, 250)] * 8, 250, "fail"),
        ("longest_block", [(0, 251)] * 8, 251, "pass"),
        ("large_block_share", [(0, 200), (0, 199)], 200 / 399, "fail"),
        ("large_block_share", [(0, 300)] * 3 + [(0, 150)] * 2, 0.75, "pass"),
        ("list_table_share", SHORT_AND_LONG, 0.2, "pass"),
        ("list_table_share", [*SHORT_AND_LONG, (BlockKind.CELL, 3)], 203 / 1003, "fail"),
        ("list_table_share", [(BlockKind.ITEM | 7 << ITEM_SHIFT, 80)] * 2 + [(0, 840)], 0.0, "pass"),
        ("list_table_share", [(BlockKind.ITEM | 7 << ITEM_SHIFT, 50)] * 2 + [(0, 300)], 0.25, "fail"),
    ],
)
def test_rules_on_blocks(rule: str, blocks: list[tuple[int, int]], value: float, expected: str) -> None:
    """The longest block exceeds 250, large ones have 200; items and cells up to 100, of any rows, are listed."""
    page = features(*[Block(kind, chars, 0, 0) for kind, chars in blocks])
    assert outcome(judge(page, NOTES), rule) == (value, expected)


def test_short_paragraphs_pass_as_runs_only() -> None:
    """News with paragraphs of 150 characters is dropped by the notes, and kept if runs are blocks."""
    news = features(*[Block(0, 150, 0, 0)] * 10)
    assert judge(news, NOTES).failed == ["longest_block", "large_block_share"]
    verdict = judge(news, RUNS)
    assert verdict.verdict == "article"
    assert outcome(verdict, "longest_block") == (1500, "pass")


def test_code_in_a_line_splits_blocks_of_the_notes_only() -> None:
    """Inline code ends a block if paragraphs are blocks, and does not if runs are."""
    line = [Block(0, 180, 0, 0), Block(JOINED, 10, 0, 10), Block(JOINED, 180, 0, 0)]
    assert outcome(judge(features(*line), NOTES), "longest_block") == (180, "fail")
    assert outcome(judge(features(*line), RUNS), "longest_block") == (370, "pass")


URL_KINDS: dict[str | None, Sequence[str | None]] = {
    "index": ["/", "/index.html", "/archive/"],
    "tag": ["/tag/rivers", "/blog/tags/rivers/"],
    "category": ["/Category/News"],
    "search": ["/search?q=river", "/?s=river"],
    "paging": ["/blog/page/3/", "/blog?page=3"],
    "other": ["/how-to-search-a-river", "/?p=123", "/tagging-fish", "/2024/05/page-turners", "/index-of-rivers"],
    None: ["", None],
}


@pytest.mark.parametrize("kind", URL_KINDS)
def test_url_kinds(kind: str | None) -> None:
    """URLs of index, tag, category, search and paging pages are recognised; an unreadable one is of no kind."""
    for path in URL_KINDS[kind]:
        expected = "n/a" if kind is None else "pass" if kind == "other" else "fail"
        assert outcome(judge(features(url_path=path), NOTES), "url_kind") == (kind, expected), path


def test_page_without_text_is_dropped_as_not_extracted() -> None:
    """An extraction error fails the first rule; the rules on the text give n/a."""
    bare = msgspec.structs.replace(
        page_features(url_path="/x", duplicate_share=None), extract_path="none", extract_error="timeout"
    )
    verdict = judge(bare, NOTES)
    assert (verdict.verdict, verdict.first_failed, verdict.failed) == ("dropped", "extracted", ["extracted"])
    assert outcome(verdict, "extracted") == ("timeout", "fail")
    assert {found.outcome for found in verdict.rules[1:-1]} == {"n/a"}
    assert outcome(verdict, "url_kind") == ("other", "pass")


@pytest.mark.parametrize("path", ["fallback", "plain"])
def test_flat_text_has_unknown_shares(path: str) -> None:
    """For a flat text the shares of links and lists are n/a and do not drop it; other rules are evaluated."""
    verdict = judge(features(path=path, link_code_share=None), NOTES)
    assert verdict.verdict == "article"
    assert [rule.name for rule in verdict.rules if rule.outcome == "n/a"] == ["link_code_share", "list_table_share"]


@pytest.mark.parametrize(
    ("anchor_share", "code_share", "value", "expected"),
    [
        (0.2, 0.0, 0.2, "pass"),
        (0.93, 0.0, 0.93, "fail"),
        (0.125, 0.125, 0.25, "fail"),
        (0.75, 0.5, 1.0, "fail"),
        (0.93, None, 0.93, "fail"),
        (None, None, None, "n/a"),
    ],
)
def test_a_flat_fallback_counts_as_linked_as_its_page(
    anchor_share: float | None, code_share: float | None, value: float | None, expected: str
) -> None:
    """Where the fallback lost links and code, their shares of the whole page decide, as far as they are known."""
    known = {"anchor_share": anchor_share, "page_code_share": code_share}
    structure = [known.get(name, 0.5) for name in STRUCTURE]
    flat = msgspec.structs.replace(features(path="fallback", link_code_share=None), structure=structure)
    assert outcome(judge(flat, NOTES), "link_code_share") == (value, expected)
    older = msgspec.structs.replace(flat, structure=structure[: STRUCTURE.index("anchor_share") + 1])
    assert outcome(judge(older, NOTES), "link_code_share")[0] == anchor_share


def test_a_known_share_of_links_is_that_of_the_main_text() -> None:
    """The links of the whole page count for a fallback only: not for a text with links, plain text, or no text."""
    structure = [0.93] * len(STRUCTURE)
    known = msgspec.structs.replace(features(link_code_share=0.1), structure=structure)
    assert outcome(judge(known, NOTES), "link_code_share") == (0.1, "pass")
    for path in ("plain", "none"):
        other = msgspec.structs.replace(features(path=path, link_code_share=None), structure=structure)
        assert outcome(judge(other, NOTES), "link_code_share") == (None, "n/a")


def ruled(*rules: str, **fields: str) -> Ruleset:
    top = "".join(f"{field} = '{value}'\n" for field, value in fields.items())
    return parse_ruleset(top + '[rules.extracted]\nthreshold = "ok"\n' + "".join(rules), "mine")


@pytest.mark.parametrize(
    ("rule", "threshold", "passing", "failing"),
    [
        ("template_share", 0.8, (0.0, 0.8), (0.81, 1.0)),
        ("template_block_share", 0.5, (0.0, 0.5), (0.51, 1.0)),
        ("simhash_distance", 3, (3, 64), (0, 2)),
    ],
)
def test_templated_pages_are_dropped_where_a_ruleset_says_so(
    rule: str, threshold: float, passing: tuple[float, ...], failing: tuple[float, ...]
) -> None:
    """A page too near to earlier pages of its site is dropped; the measure of a site's first page is unknown."""
    ruleset = ruled(f"[rules.{rule}]\nthreshold = {threshold}\n")
    for value in (*passing, *failing, None):
        measures: dict[str, Any] = {rule: value}
        verdict = judge(features(**measures), ruleset)
        assert verdict.failed == ([rule] if value in failing else [])
    assert outcome(verdict, rule) == (None, "n/a")


def test_a_rule_reads_its_own_text_or_that_of_its_ruleset() -> None:
    """The text that a rule names comes before that of the ruleset, and is in the digest; unmeasured it is n/a."""
    words = MEASURES.index("words")
    counts = {"main": 60.0, "c4": 40.0, "nopunc": 50.0, "own": 45.0}
    values = {text: [None] * words + [count] for text, count in counts.items()}
    page = msgspec.structs.replace(features(), quality=values)
    least, most = "[rules.gopher_min_words]\nthreshold = 50\n", "[rules.gopher_max_words]\nthreshold = 50\n"
    for text, count in counts.items():
        ruleset = ruled(least, f'{most}text = "{text}"\n', reads="nopunc")
        verdict = judge(page, ruleset)
        assert outcome(verdict, "gopher_min_words") == (50, "pass")
        assert outcome(verdict, "gopher_max_words") == (count, "fail" if count > 50 else "pass")
        assert ruleset.digest != ruled(least, most, reads="nopunc").digest
        of_text = "fail" if count < 50 else "pass"
        assert outcome(judge(page, ruled(least, reads=text)), "gopher_min_words") == (count, of_text)
    assert outcome(judge(page, ruled(least)), "gopher_min_words") == (60, "pass")
    only_main = msgspec.structs.replace(page, quality={"main": values["main"]})
    assert outcome(judge(only_main, ruled(least, reads="c4")), "gopher_min_words") == (None, "n/a")


def test_own_text_without_template_lines_is_the_main_text() -> None:
    """A page without template lines has the quality of its main text; with some, unmeasured quality is unknown."""
    page = msgspec.structs.replace(features(), quality={"main": [None] * MEASURES.index("words") + [60.0]})
    rules = ruled("[rules.gopher_min_words]\nthreshold = 50\n", reads="own")
    assert outcome(judge(page, rules), "gopher_min_words") == (60, "pass")
    marked = msgspec.structs.replace(page, template_lines=b"\1")
    assert outcome(judge(marked, rules), "gopher_min_words") == (None, "n/a")


def test_measures_newer_than_the_features_are_unknown() -> None:
    """Features of an epoch with fewer measures are judged by those; rules on other measures are n/a."""
    page = msgspec.structs.replace(features(), quality={"main": [100.0]})
    rules = "[rules.gopher_min_words]\nthreshold = 50\n", "[rules.dolma_max_repetitions]\nthreshold = 9\n"
    verdict = judge(page, ruled(*rules))
    assert outcome(verdict, "gopher_min_words") == (100, "pass")
    assert outcome(verdict, "dolma_max_repetitions") == (None, "n/a")


@pytest.mark.parametrize("name", RULES)
def test_every_rule_says_what_it_measures(name: str) -> None:
    """Each rule has one line of documentation and a non-empty range of thresholds with printable ends."""
    kind = RULES[name]
    assert 10 < len(kind.doc) < 140
    assert "\n" not in kind.doc
    assert kind.op in PASSES
    if kind.threshold is float:
        assert kind.low < kind.high and kind.refusal(kind.low) == kind.refusal(kind.high) == ""
        assert kind.refusal(kind.low - 1)
        assert kind.refusal(kind.high + 1)
        for threshold in (kind.low, kind.high):
            assert any(PASSES[kind.op](value, threshold) for value in (0, 1, kind.high, 2 * MOST))


def test_languages_are_those_that_the_identifier_tells() -> None:
    """A ruleset may name exactly the languages that the identifier can return."""
    from py3langid.langid import MODEL_FILE, LanguageIdentifier

    identifier = LanguageIdentifier.from_model_file(MODEL_FILE, norm_probs=True)
    assert {str(code) for code in identifier.nb_classes} == LANGUAGES


def test_every_quality_measure_has_its_rule() -> None:
    """Each measure has a rule, whose name says min or max."""
    bounded: dict[str, list[str]] = {}
    for name, kind in QUALITY_RULES.items():
        bounded.setdefault(kind.of, []).append(name)
    assert list(dict.fromkeys([*bounded, *MEASURES])) == list(bounded)
    for names in bounded.values():
        for name in names:
            assert ("_min_" in name) == (RULES[name].op == ">=")


def test_policy_of_the_ruleset_decides_on_unknown_measures() -> None:
    """With on_unknown = "drop" an n/a drops the page, and its rule counts as failed."""
    strict = ruled('[rules.link_code_share]\nthreshold = 0.2\non_unknown = "drop"\n')
    verdict = judge(features(link_code_share=None), strict)
    assert (verdict.verdict, verdict.first_failed) == ("dropped", "link_code_share")
    assert outcome(verdict, "link_code_share") == (None, "n/a")


def test_rule_without_threshold_decides_nothing() -> None:
    """A disabled rule shows its value and never fails or drops a page, with either policy for unknown measures."""
    off = ruled('[rules.min_tokens]\non_unknown = "drop"\n')
    for tokens in (1, None):
        verdict = judge(features(tokens=tokens), off)
        assert verdict.verdict == "article"
        assert outcome(verdict, "min_tokens") == (tokens, "n/a")


def test_unsure_language_is_unknown() -> None:
    """Below the ruleset's probability the language is n/a."""
    sure = ruled('[rules.language]\nthreshold = ["en"]\nmin_probability = 0.9\n')
    assert outcome(judge(features(language="de", language_probability=0.5), sure), "language") == (None, "n/a")
    assert outcome(judge(features(language="de", language_probability=0.95), sure), "language") == ("de", "fail")


def test_first_failed_is_in_the_rulesets_order() -> None:
    """All failures are listed; the first one follows the order of the file, not of the code."""
    ruleset = ruled('[rules.language]\nthreshold = ["en"]\n', "[rules.min_tokens]\nthreshold = 200\n")
    verdict = judge(features(tokens=1, language="de"), ruleset)
    assert (verdict.first_failed, verdict.failed) == ("language", ["language", "min_tokens"])
    assert judge(features(tokens=1, language="de"), NOTES).failed == ["min_tokens", "language"]


@given(
    st.lists(st.tuples(st.integers(0, 5), st.integers(1, 900)), max_size=30),
    st.floats(0, 1),
    st.sampled_from(["recall", "precision", "fallback", "none"]),
    st.sampled_from(["", "timeout"]),
)
def test_judging_is_pure_and_survives_the_log(rows: list[tuple[int, int]], share: float, path: str, error: str) -> None:
    """The same features, also read from a record, give the same verdict, stay unchanged, and have all outcomes."""
    page = features(*[Block(kind, chars, 0, 0) for kind, chars in rows], path=path, error=error, duplicate_share=share)
    packed = encode(page)
    for ruleset in (NOTES, RUNS):
        verdict = judge(page, ruleset)
        assert judge(decode(Features, packed), ruleset) == verdict
        assert encode(page) == packed
        assert len(verdict.rules) == len(ruleset.rules)
        assert (verdict.verdict == "dropped") == bool(verdict.failed) == bool(verdict.first_failed)
        assert decode(Verdict, encode(verdict)) == verdict


def _dated(day: str, *flags: str, source: str = "json-ld", precision: str = "day") -> Features:
    published = PageDate(date.fromisoformat(day), precision, source)
    return msgspec.structs.replace(features(), dates=PageDates(published, flags=list(flags)))


_BY_DATE = """
[rules.extracted]
threshold = "ok"
[rules.published_before]
threshold = "2022-11-30"
on_unknown = "POLICY"
[rules.published_after]
threshold = "2015-01-01"
"""


@pytest.mark.parametrize(
    ("day", "before", "after"),
    [
        ("2022-11-29", "pass", "pass"),
        ("2022-11-30", "fail", "pass"),
        ("2015-01-01", "pass", "pass"),
        ("2014-12-31", "pass", "fail"),
    ],
)
def test_pages_are_told_by_their_day_of_publication(day: str, before: str, after: str) -> None:
    """`published_before` passes an earlier day, `published_after` that day or a later one."""
    verdict = judge(_dated(day), parse_ruleset(_BY_DATE.replace("POLICY", "pass"), "by-date"))
    assert outcome(verdict, "published_before") == (day, before)
    assert outcome(verdict, "published_after") == (day, after)


@pytest.mark.parametrize(
    "page",
    [
        features(),
        msgspec.structs.replace(features(), dates=PageDates()),
        _dated("2021-05-04", "conflict"),
        _dated("2021-05-04", source="byline"),
        _dated("2021-01-01", precision="year"),
    ],
)
def test_a_day_that_is_not_trusted_is_unknown(page: Features) -> None:
    """Without a trusted day the rule is n/a, and its policy decides; the verdict has the dates of the features."""
    for policy, verdict_of in (("pass", "article"), ("drop", "dropped")):
        verdict = judge(page, parse_ruleset(_BY_DATE.replace("POLICY", policy), "by-date"))
        assert outcome(verdict, "published_before") == (None, "n/a")
        assert verdict.verdict == verdict_of
        assert decode(Verdict, encode(verdict)).dates == page.dates


def test_a_date_without_quotes_is_named_without_them() -> None:
    """TOML has dates of its own: the message shows the threshold as it is written, not as it is wanted."""
    with pytest.raises(BadRuleset, match="threshold is 2022-11-30, not a day in quotes"):
        parse_ruleset(_BY_DATE.replace("POLICY", "pass").replace('"2015-01-01"', "2022-11-30"), "by-date")


@pytest.mark.parametrize("threshold", ['"2022-13-30"', '"20221130"', '"yesterday"', "2022", '["2022-11-30"]'])
def test_a_date_as_threshold_is_a_day_in_quotes(threshold: str) -> None:
    """Other values are refused with the form."""
    source = _BY_DATE.replace("POLICY", "pass").replace('"2015-01-01"', threshold)
    with pytest.raises(BadRuleset, match=r'published_after: threshold is .*, not a day in quotes such as "2022-11-30"'):
        parse_ruleset(source, "by-date")
