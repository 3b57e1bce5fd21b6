"""The share from labels of several people who err."""

from __future__ import annotations

import numpy as np
import pytest

from scoring.estimate.labeller_errors import chances_of_llm
from scoring.estimate.remarks import RemarkKind
from scoring.estimate.reviewed_share import FEWEST_TWICE, Review, reviewed_share
from scoring.rates.split_rates import RateLine, RateQuery, rate_lines
from tests.bench.studies.share_labellers import Case, reviewed_case
from tests.support.remarks import facts, kinds
from tests.support.site_rows import cell_rows
from tests.support.sizes import LONG

DRAWS = 400 if LONG else 60
Labels = dict[str, dict[str, float]]


def line_of(labels: Labels, drawn: int = 80) -> RateLine:
    """The share of 300 sites, a third of which is flagged."""
    rows = cell_rows([(9, 8)] * 100, "llm{}.com") + cell_rows([(9, 0)] * 200, "human{}.com")
    return rate_lines(rows, RateQuery(review=Review(labels, drawn, 0, 86_400_000)))[0]


def right(llm: int = 27, human: int = 53) -> dict[str, float]:
    """The right labels of some sites."""
    return {f"llm{n}.com": 1.0 for n in range(llm)} | {f"human{n}.com": 0.0 for n in range(human)}


def test_people_who_agree_change_nothing_but_the_remark() -> None:
    """The share of two or three who agree is that of one of them."""
    one, two, three = (line_of({f"p{n}": right() for n in range(people)}) for people in (1, 2, 3))
    assert (one.labellers, two.labellers, three.labellers) == (1, 2, 3)
    assert (one.alpha, two.alpha, three.alpha) == (None, 1.0, 1.0)
    assert {(line.share, line.low, line.high, line.look_low) for line in (two, three)} == {
        (one.share, one.low, one.high, one.look_low)
    }
    assert facts(one.remarks, RemarkKind.LABELLED)["labellers"] == 1
    assert facts(two.remarks, RemarkKind.LABELLED)["twice"] == 80


def test_people_who_differ_widen_the_interval_and_it_is_said() -> None:
    """Who errs is not known: the interval is wider, the remark says how much, and no vote decides the share."""
    one = line_of({"p0": right()})
    wrong = right() | {f"human{n}.com": 1.0 for n in range(8)} | {f"llm{n}.com": 0.0 for n in range(4)}
    two = line_of({"p0": right(), "p1": wrong})
    three = line_of({"p0": right(), "p1": wrong, "p2": right()})
    widths = [(line.high or 1) - (line.low or 0) for line in (one, three, two)]
    assert widths == sorted(widths) and widths[2] > 1.2 * widths[0]
    assert 0.5 < (two.alpha or 0) < 0.8
    assert float(str(facts(two.remarks, RemarkKind.LABELLERS_DIFFER)["times"])) > 1.2
    assert one.share is not None and two.share is not None and three.share is not None
    assert abs(three.share - one.share) < 0.02 and abs(two.share - one.share) < 0.06


def test_few_sites_with_two_labellers_do_not_tell_who_errs() -> None:
    """With fewer than FEWEST_TWICE of them each site with as many votes for either counts half, and it is said."""
    again = list(right().items())[27 : 27 + FEWEST_TWICE - 1]
    line = line_of({"p0": right(), "p1": {site: 1 - label for site, label in again}})
    one, other = line_of({"p0": right()}), line_of({"p0": right() | {site: 1 - label for site, label in again}})
    assert one.share and line.share and other.share and one.low and line.low and one.high and line.high
    assert one.share < line.share < other.share and line.share == pytest.approx((one.share + other.share) / 2, abs=0.02)
    assert line.high - line.low > one.high - one.low
    assert RemarkKind.LABELLERS_DIFFER in kinds(line.remarks)
    assert facts(line.remarks, RemarkKind.FEW_TWICE) == {"twice": FEWEST_TWICE - 1, "needed": FEWEST_TWICE}


def test_people_who_hardly_differ_are_not_said_to_widen_the_interval() -> None:
    """One of forty labels differs: the interval is hardly wider, and no remark says 1.0 times."""
    wrong = right() | {next(iter(right())): 1 - next(iter(right().values()))}
    line = line_of({"p0": right(), "p1": wrong, "p2": right()})
    assert line.alpha is not None and line.alpha > 0.9
    assert RemarkKind.LABELLERS_DIFFER not in kinds(line.remarks)


def test_names_do_not_matter() -> None:
    """Under other names of people and sites the numbers are the same to the last digit."""
    wrong = right() | {f"human{n}.com": 1.0 for n in range(9)}
    first = Review({"zoe": right(), "ada": wrong}, 80, 0, 1).truths("sites")
    renamed = [{f"x{hash(site)}": label for site, label in labels.items()} for labels in (right(), wrong)]
    second = Review({"1": renamed[0], "2": renamed[1]}, 80, 0, 1).truths("sites")
    assert list(first.likely.values()) == list(second.likely.values())


def test_a_wider_interval_than_without_labels_is_said() -> None:
    """Few labels are worth less than the flags; labels that contradict these widen the interval: remarks say so."""
    labels = right() | {f"human{n}.com": 1.0 for n in range(6)}
    line = line_of({"p0": labels})
    assert RemarkKind.WIDER in kinds(line.remarks)
    assert facts(line.remarks, RemarkKind.AGAINST_FLAGS) == {"against": 6, "number": 80}
    few = kinds(line_of({"p0": right(7, 13)}, 20).remarks)
    assert RemarkKind.WIDER in few and RemarkKind.AGAINST_FLAGS not in few


def test_the_errors_of_three_are_found() -> None:
    """Of three labellers one calls a third of the human sites llm: where only he says so, the site is human."""
    rng = np.random.default_rng(1)
    is_llm = rng.random(200) < 0.3
    votes = np.array([is_llm, is_llm ^ (rng.random(200) < 0.05), is_llm | (rng.random(200) < 0.33)], float)
    chances = chances_of_llm(votes).mean(0)
    assert ((chances > 0.5) == is_llm).mean() > 0.99
    assert chances.mean() == pytest.approx(is_llm.mean(), abs=0.01)


@pytest.mark.slow
@pytest.mark.parametrize(("people", "labelled", "share"), [(2, 50, 0.3), (2, 100, 0.05), (3, 50, 0.05), (3, 200, 0.3)])
def test_the_interval_covers_the_truth_though_people_err(people: int, labelled: int, share: float) -> None:
    """Labellers err in 5 to 20% of either kind: it covers in at least 93% of 60 draws (FARMWATCH_LONG: 400)."""
    case = Case(people, labelled, share)
    found = np.array([reviewed_case(np.random.default_rng(seed), case)[0] for seed in range(DRAWS)])
    assert found[:, 1].mean() >= 0.93 and abs(found[:, 0].mean()) < 0.04


def test_sure_chances_are_labels() -> None:
    """Chances of 0 and 1 that do not vary give the share of the labels."""
    f, labels = np.linspace(0, 1, 100), np.full(100, np.nan)
    labels[::2] = f[::2] > 0.5
    plain, sure = reviewed_share(f, labels), reviewed_share(f, labels, chances=np.tile(labels[::2], (9, 1)))
    assert plain is not None and sure is not None
    assert sure.interval == pytest.approx(plain.interval) and sure.widened == pytest.approx(1)
