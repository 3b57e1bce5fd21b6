"""The counts of an evaluation, on verdicts with known results."""

from __future__ import annotations

from itertools import starmap

import pytest
from hypothesis import given
from hypothesis import strategies as st

from filters.rules.evaluation import Confusion, KeptShare, LabelledVerdict, Pages, evaluate
from stream.schema.records import RuleOutcome, Verdict

pytestmark = pytest.mark.xdist_group("labelled")

RULES = ("extracted", "min_tokens", "url_kind")


def verdict(*failed: str, unknown: tuple[str, ...] = (), disabled: tuple[str, ...] = (), digest: str = "d") -> Verdict:
    """A verdict of the three rules; rules that fail are named, in any order."""
    outcomes = []
    for name in RULES:
        outcome = "n/a" if name in unknown + disabled else "fail" if name in failed else "pass"
        value, threshold = None if name in unknown else 1.0, None if name in disabled else 1.0
        outcomes.append(RuleOutcome(name, value, ">=", threshold, outcome))
    in_order = [name for name in RULES if name in failed]
    return Verdict(
        id="p",
        site="s.example",
        page_id="p",
        url="",
        verdict="dropped" if failed else "article",
        first_failed=in_order[0] if in_order else "",
        failed=in_order,
        rules=outcomes,
        digest=digest,
    )


def test_drops_are_counted_in_three_ways() -> None:
    """A page that fails two rules is a drop of both, a marginal drop of the first, and a sole drop of neither."""
    pages = [("article", "a", verdict("min_tokens", "url_kind")), ("forum", "a", verdict("url_kind"))]
    pages += [("", "b", verdict("min_tokens")), ("article", "a", verdict())]
    found = evaluate(list(starmap(LabelledVerdict, pages)))
    extracted, tokens, url_kind = found.rules
    assert [rule.name for rule in found.rules] == list(RULES)
    assert extracted.drops == extracted.marginal == extracted.sole == Pages(0, 0, 0)
    assert (tokens.drops, tokens.marginal, tokens.sole) == (Pages(1, 0, 1), Pages(1, 0, 1), Pages(0, 0, 1))
    assert (url_kind.drops, url_kind.marginal, url_kind.sole) == (Pages(1, 1, 0), Pages(0, 1, 0), Pages(0, 1, 0))


def test_pass_rates_stand_per_label_and_source() -> None:
    """Pages without a page_type count for their source and the total, and for no label."""
    pages = [("article", "b", verdict()), ("article", "b", verdict("url_kind"))]
    pages += [("forum", "a", verdict("url_kind")), ("", "a", verdict())]
    found = evaluate(list(starmap(LabelledVerdict, pages)))
    assert found.whole == KeptShare(2, 4)
    assert found.labels == {"article": KeptShare(1, 2), "forum": KeptShare(0, 1)}
    assert found.sources == {"a": KeptShare(1, 2), "b": KeptShare(1, 2)}
    assert list(found.sources) == ["a", "b"]
    assert found.confusion == Confusion(KeptShare(1, 2), KeptShare(0, 1))


def test_an_unknown_measure_is_counted_and_drops_where_the_policy_says_so() -> None:
    """n/a is counted whether or not it drops the page; a rule without a threshold is disabled."""
    dropped = verdict("min_tokens", unknown=("min_tokens",), disabled=("url_kind",))
    kept = verdict(unknown=("min_tokens",), disabled=("url_kind",))
    found = evaluate([LabelledVerdict("article", "a", dropped), LabelledVerdict("forum", "a", kept)])
    _, tokens, url_kind = found.rules
    assert tokens.unknown == Pages(1, 1, 0) and tokens.drops == tokens.sole == Pages(1, 0, 0)
    assert not tokens.disabled
    assert url_kind.disabled and url_kind.unknown == Pages(0, 0, 0)


def test_precision_recall_and_f1() -> None:
    """With 6 of 8 articles and 2 of 10 others kept, precision, recall and F1 are .75."""
    confusion = Confusion(articles=KeptShare(6, 8), others=KeptShare(2, 10))
    assert (confusion.precision, confusion.recall, confusion.f1) == (0.75, 0.75, 0.75)
    uneven = Confusion(articles=KeptShare(3, 4), others=KeptShare(7, 10))
    assert uneven.precision == 0.3 and uneven.f1 == pytest.approx(2 * 0.3 * 0.75 / 1.05)


def test_what_cannot_be_said_is_none() -> None:
    """A value without a denominator is None: precision without a kept page, recall without an article."""
    nothing_kept = Confusion(KeptShare(0, 3), KeptShare(0, 2))
    assert nothing_kept.precision is None and nothing_kept.f1 == 0
    assert Confusion(KeptShare(0, 0), KeptShare(1, 2)).recall is None
    nothing = evaluate([])
    assert nothing.whole.share is None and nothing.confusion.f1 is None and nothing.rules == []


def test_verdicts_of_two_rulesets_are_refused() -> None:
    """Counts of two rulesets are refused, because they have different rules."""
    with pytest.raises(ValueError, match="different rulesets"):
        evaluate([LabelledVerdict("", "a", verdict()), LabelledVerdict("", "a", verdict(digest="other"))])


judged_pages = st.lists(
    st.builds(
        lambda page_type, source, failed: LabelledVerdict(page_type, source, verdict(*failed)),
        st.sampled_from(["", "article", "forum", "product"]),
        st.sampled_from(["a", "b"]),
        st.sets(st.sampled_from(RULES)),
    )
)


@given(judged_pages)
def test_sums_agree(judged: list[LabelledVerdict]) -> None:
    """Sources sum to the total, marginal drops to the drops; a sole drop is marginal, a marginal drop a drop."""
    found = evaluate(judged)
    assert found.whole.pages == len(judged) == sum(kept.pages for kept in found.sources.values())
    assert found.whole.kept == sum(kept.kept for kept in found.sources.values())
    labelled = [page for page in judged if page.page_type]
    assert sum(kept.pages for kept in found.labels.values()) == len(labelled)
    assert found.confusion.articles.pages + found.confusion.others.pages == len(labelled)
    assert sum(sum(rule.marginal) for rule in found.rules) == found.whole.pages - found.whole.kept
    for rule in found.rules:
        for sole, marginal, drops in zip(rule.sole, rule.marginal, rule.drops, strict=True):
            assert sole <= marginal <= drops


@given(judged_pages, st.sampled_from(RULES))
def test_disabling_a_rule_keeps_its_sole_drops(judged: list[LabelledVerdict], rule: str) -> None:
    """The pages kept without the rule are those kept with it and its sole drops."""
    found = evaluate(judged)
    without = sum(not set(page.verdict.failed) - {rule} for page in judged)
    sole = sum(sum(work.sole) for work in found.rules if work.name == rule)
    assert without == found.whole.kept + sole
