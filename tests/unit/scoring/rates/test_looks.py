"""Claims for any number of looks: the interval of every look, and the alarm for a changed share."""

from __future__ import annotations

import json
import math
from collections import Counter
from pathlib import Path

import numpy as np
import pytest
from msgspec.structs import replace

from scoring.estimate.fit import WIDE, CellCounts, Fit, KnownSites
from scoring.estimate.intervals import TIGHTEST_AT, Z95, every_look
from scoring.estimate.mixture import estimate_share
from scoring.rates.change_alarm import find_change
from scoring.rates.direct_share import direct_share
from scoring.rates.split_rates import RateQuery, rate_lines
from tests.support.site_rows import cell_rows
from tests.support.sizes import LONG

pytestmark = pytest.mark.slow

Cells = Counter[tuple[int, int]]
TODAY = 20_000
ROOT = Path(__file__).parents[3]


def drawn(rng: np.random.Generator, sites: int, share: float) -> Cells:
    """Sites with this share of LLM sites."""
    cells: Cells = Counter()
    for is_llm in (rng.random(sites) < share).tolist():
        n = min(int(rng.geometric(0.25)), 20)
        cells[n, int(rng.binomial(n, rng.beta(19, 5) if is_llm else rng.beta(0.5, 11)))] += 1
    return cells


def fit_of(cells: CellCounts) -> Fit:
    """The mixture of these sites, 30 of either kind known."""
    rng = np.random.default_rng(99)
    fit = estimate_share(cells, WIDE, KnownSites(drawn(rng, 30, 0.0), drawn(rng, 30, 1.0)))
    assert fit is not None
    return fit


def days_of(rng: np.random.Generator, shares: list[float], per_day: int = 60) -> dict[int, Cells]:
    """Sites of consecutive days until today."""
    first = TODAY - len(shares) + 1
    return {first + number: drawn(rng, per_day, share) for number, share in enumerate(shares)}


def test_an_interval_of_every_look_is_never_left_in_95_of_100_walks() -> None:
    """At most 5% of 2,000 growing samples ever leave the interval; most leave the interval of one look."""
    rng = np.random.default_rng(4)
    sizes = np.arange(20, 5001)
    means = np.abs(rng.normal(size=(2000, 5000)).cumsum(axis=1)[:, 19:] / sizes)
    half = Z95 / np.sqrt(sizes)
    times = np.array([every_look(int(size), 0.95) for size in sizes])
    assert (means > half * times).any(axis=1).mean() <= 0.05
    assert (means > half).any(axis=1).mean() > 0.5
    assert times.max() < 3 and 1.5 < times.min() < 1.6


def test_the_factor_is_the_published_boundary_of_the_normal_mixture() -> None:
    """The factor equals the published values of `confseq` (Howard, Ramdas, McAuliffe and Sekhon).

    The mixture gives the boundary at any time, where its logarithm reaches log(1 / alpha).
    """
    golden = json.loads((ROOT / "golden" / "normal_mixture.json").read_text(encoding="utf-8"))
    v, rho = float(golden["variance"]), float(golden["best_rho"])

    def log_mixture(s: float, v: float) -> float:
        return 0.5 * math.log(rho / (v + rho)) + s * s / (2 * (v + rho))

    assert log_mixture(golden["sum"], v) == pytest.approx(golden["log_mixture"], abs=1e-6)
    assert every_look(TIGHTEST_AT, 0.95) * Z95 * math.sqrt(v) == pytest.approx(golden["bound"], abs=1e-4)
    for sites in (20, 500, 5000, 100_000):
        time = v * sites / TIGHTEST_AT
        reached = log_mixture(every_look(sites, 0.95) * Z95 * math.sqrt(time), time)
        assert reached == pytest.approx(math.log(1 / golden["alpha"]), abs=1e-5)


def test_the_share_carries_both_intervals() -> None:
    """The interval of every look contains that of one look, and both contain the share."""
    found, _ = direct_share(drawn(np.random.default_rng(1), 400, 0.2))
    ends = [found.look_low, found.low, found.share, found.high, found.look_high]
    assert None not in ends and ends == sorted(ends, key=float) and len(set(ends)) == 5  # type: ignore[arg-type]
    nothing, _ = direct_share({})
    assert (nothing.look_low, nothing.look_high) == (None, None)


def test_sites_that_come_in_leave_the_interval_of_every_look_alone() -> None:
    """In 2 crawls with 6 looks each, the true share stays inside at every look."""
    known = KnownSites(*(drawn(np.random.default_rng(8), 30, share) for share in (0.0, 1.0)))
    for seed in range(6 if LONG else 2):
        rng = np.random.default_rng(seed)
        cells: Cells = Counter()
        for _ in range(6):
            cells += drawn(rng, 60, 0.2)
            found, _ = direct_share(cells, known)
            assert found.look_low is not None and found.look_high is not None
            assert found.look_low <= 0.2 <= found.look_high


def test_a_changed_share_is_found_with_its_day() -> None:
    """If the share changes from 10% to 30%, the alarm names a day near the change and both shares."""
    days = days_of(np.random.default_rng(2), [0.1] * 40 + [0.3] * 15)
    found = find_change(days, fit_of(sum(days.values(), Counter())))
    assert found is not None
    assert abs(found.day - (TODAY - 14)) <= 4
    assert found.before == pytest.approx(0.1, abs=0.04) and found.after == pytest.approx(0.3, abs=0.06)
    assert found.evidence > 20


def test_without_a_change_there_is_no_alarm() -> None:
    """None of 2 webs of 60 days without a change, seen every 20 days, raises an alarm."""
    for seed in range(10 if LONG else 2):
        days = days_of(np.random.default_rng(seed), [0.15] * 60, per_day=20)
        seen = [{day: days[day] for day in sorted(days)[:until]} for until in range(20, 61, 20)]
        assert not any(find_change(one, fit_of(sum(one.values(), Counter()))) for one in seen)


def test_a_change_of_more_than_a_year_ago_is_none_of_the_last_year() -> None:
    """Days more than a year ago are one block: a change within them raises no alarm."""
    rng = np.random.default_rng(6)
    days = days_of(rng, [0.05] * 20 + [0.3] * 20) | {TODAY + 360 + day: drawn(rng, 60, 0.2) for day in range(5)}
    days = {day: cells for day, cells in days.items() if day <= TODAY or day > TODAY + 360}
    found = find_change(days, fit_of(sum(days.values(), Counter())))
    assert found is None or found.day > TODAY


def test_rates_of_all_sites_carry_the_alarm() -> None:
    """The alarm dates sites by their first hit; groups have no alarm, and sites without a day are left out."""
    days = days_of(np.random.default_rng(2), [0.1] * 30 + [0.4] * 10)
    rows = [
        row for day, cells in days.items() for row in cell_rows(cells.elements(), f"{day}-{{}}.test", days=[day, TODAY])
    ]
    (line,) = rate_lines(rows)
    assert line.change is not None and abs(line.change.day - (TODAY - 9)) <= 3
    assert all(line.change is None for line in rate_lines(rows, RateQuery(by="source")))
    assert rate_lines([replace(row, days=[]) for row in rows])[0].change is None


def test_subdomains_of_one_operator_raise_no_alarm_alone() -> None:
    """Two hundred LLM subdomains of one operator on one day raise no alarm; as separate sites they do."""
    days = days_of(np.random.default_rng(3), [0.15] * 30, per_day=15)
    old = [row for day, of in days.items() for row in cell_rows(of.elements(), f"a{day}-{{}}.test", days=[day])]
    apart, of_one = (cell_rows([(9, 8)] * 200, name, days=[TODAY]) for name in ("own{}.test", "b{}.operator.test"))
    assert rate_lines([*old, *apart])[0].change is not None
    assert rate_lines([*old, *of_one])[0].change is None
