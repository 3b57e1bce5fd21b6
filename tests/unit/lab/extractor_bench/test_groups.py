"""Groups of pages, errors of labels, ensembles, and orders of tools."""

from __future__ import annotations

import numpy as np
import pytest

from farmwatch.labels.labelled_pages import Label
from filters.measure.page_measures import RawPage
from lab.extractor_bench.body_text import body_text
from lab.extractor_bench.clusters import k_means, principal, tag_ratios
from lab.extractor_bench.ensembles import Ensemble, nodes_in
from lab.extractor_bench.gold_errors import Cause, gold_error
from lab.extractor_bench.groups import complexities
from lab.extractor_bench.metrics import Scores
from lab.extractor_bench.page_facts import PageFacts, page_facts
from lab.extractor_bench.pages import BenchPage
from lab.extractor_bench.report import ToolRow, correlations


def page(gold: str) -> BenchPage:
    return BenchPage(Label(source="web", id="0" * 64, place=""), gold, RawPage("", "utf-8", b""))


def test_facts_are_text_nodes_in_order_and_tags() -> None:
    """Text of scripts and noscript is apart, wherever it stands; comments are no text; a block begins a line."""
    facts = page_facts("<body>a  <b>b</b>, c<!--d--><noscript><p>e</p></noscript> f<script>g</script>h<p> </p>i")
    assert facts.leaves == ["\na ", "b", ", c", " f", "h ", "\ni"] and facts.unseen.split() == ["e", "g"]
    assert facts.tags["b"] == 1 and page_facts(" ") == page_facts("<!-- -->") == PageFacts()


def test_body_text_is_the_run_with_most_words() -> None:
    """A menu has as many tags as words, so it is left out; words of scripts do not count."""
    menu = "<ul>" + "<li><a>x</a></li>" * 5 + "</ul>"
    html = f"<body>{menu}<script>a b c d e</script><p>one two &amp; three <p>four < five{menu}</body> after"
    assert body_text(html) == "one two & three\nfour < five" and body_text("") == ""


def test_complexity_is_the_part_of_the_page_that_is_main_text() -> None:
    """A page without words counts as easy, as one whose label has more words than it."""
    facts = [PageFacts(["a b", "\nc d"]), PageFacts(), PageFacts(["a"])]
    assert complexities([page("a"), page("a"), page("a a")], facts).tolist() == [25, 100, 100]


@pytest.mark.parametrize(
    ("gold", "leaves", "unseen", "cause"),
    [
        ("one two three", ["x y", "\nz"], "", Cause.OTHER_PAGE),
        ("one two three", ["x"], "var a = 'one two three'", Cause.UNSEEN),
        ("one two threefour", ["one\n", "two\n", "three\n", "four"], "", Cause.JOINED),
        ("one two three four", ["one two three"], "", Cause.MISSING),
    ],
)
def test_words_that_the_page_lacks_have_a_cause(gold: str, leaves: list[str], unseen: str, cause: Cause) -> None:
    """E is their number by the words of the page; above 2% the page is set aside."""
    error = gold_error(page(gold), PageFacts(leaves, {}, unseen))
    assert error is not None and error.cause == cause and error.set_aside


def test_a_word_that_is_more_frequent_in_the_label_counts_once() -> None:
    """One of 60 words is above 1% and below 2%; all words of the page are no error."""
    leaves = [f"\nw{number}" for number in range(60)]
    error = gold_error(page("w1 w1 w1"), PageFacts(leaves))
    assert error is not None and error.error == pytest.approx(1 / 60) and not error.set_aside
    assert gold_error(page("w1 w2"), PageFacts(leaves)) is None


def test_an_ensemble_has_the_text_nodes_of_enough_members() -> None:
    """A node counts as whole words; members that did not run are named, and too few of them make no text."""
    leaves, members = ["\na ", "b", ", c", "\nd"], ("x", "y", "z")
    votes = dict(zip("xy", nodes_in(["a  b\nc", "a b, c-cd"], leaves), strict=True))
    two, three = Ensemble(2, members), Ensemble(3, members)
    assert two.text(leaves, votes) == "\na b, c" and two.can_run(votes) and not three.can_run(votes)
    assert (two.name, two.run(votes).note) == ("em_2_3", "without z") and two.run(members).note == ""
    assert three.run(votes).note == "too few members: without z"


def test_k_means_finds_what_lies_apart() -> None:
    """The largest cluster is first, and the same rows have the same clusters; so do their principal components."""
    rng = np.random.default_rng(3)
    rows = np.concatenate([rng.normal(at, 0.1, (size, 5)) for at, size in ((5, 4), (0, 9), (-5, 6))])
    expected = [1 + 1] * 4 + [0] * 9 + [1] * 6
    assert k_means(rows).tolist() == k_means(principal(rows, 2)).tolist() == expected
    assert k_means(np.zeros((2, 3))).tolist() == [0, 0]


def test_tag_ratios_are_standardised() -> None:
    """A tag that no page has stays 0, and so does a page without tags before."""
    ratios = tag_ratios([PageFacts([], {"p": 1, "b": 3}), PageFacts([], {"p": 3, "b": 1}), PageFacts()])
    assert ratios[:, 6].mean() == pytest.approx(0) and ratios[:, 6].std() == pytest.approx(1)
    assert not ratios[:, 0].any()


def test_orders_are_compared_with_ties() -> None:
    """Kendall's tau-b and Spearman's rho, as published for a small table, from bad to good; a constant has no order."""
    means = {"f1": (1, 2, 3), "jaccard": (1, 3, 2), "recall": (1, 1, 2), "distance": (3, 2, 1), "words": (1, 1, 1)}
    every = {name: means.get(name, (0, 0, 0)) for name in Scores._fields}
    tools = [ToolRow(name="", version="", mean={name: of[at] for name, of in every.items()}) for at in range(3)]
    found = {(of.first, of.second): (of.kendall, of.spearman) for of in correlations(tools)}
    assert found["f1", "jaccard"] == pytest.approx((1 / 3, 0.5)) and found["f1", "distance"] == pytest.approx((1, 1))
    assert found["recall", "f1"] == pytest.approx((2 / np.sqrt(6), np.sqrt(3) / 2))
    assert found["f1", "words"] == (None, None) and correlations(tools[:1]) == []
