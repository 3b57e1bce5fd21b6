"""The share from labels of several people who err, and intervals that more correct labels widen.

Run by `python -m tests.bench.studies.share_labellers [draws, default 400]`; docs/explanation/rates.md has the figures.
Webs have 600 sites; the detector is blind to 30 % of the LLM sites.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from scoring.estimate.beta_binomial import Floats
from scoring.estimate.definitions import SITES
from scoring.estimate.reviewed_share import FEWEST_LABELS, Review, ReviewedShare, reviewed_share
from tests.bench.timing import argument

Found = tuple[float, float, float]  # share less the truth, whether the interval covers it, and its width
WEB = 600
ERRORS = (0.05, 0.2)


class Case(NamedTuple):
    """A review: `missed` and `called` are the errors of each labeller, by default drawn within ERRORS."""

    people: int
    labelled: int
    share: float
    missed: float | None = None
    called: float | None = None
    overlap: float = 1.0  # share of the sites that the others label too
    together: float = 0.0  # share of the errors that all make on the same sites


CASES = (
    *(Case(people, labelled, share) for people in (2, 3) for labelled in (50, 100, 200) for share in (0.05, 0.3)),
    *(Case(people, 200, 0.3, *errors) for people in (2, 3) for errors in ((0.2, 0.05), (0.05, 0.2))),
    Case(2, 100, 0.3, overlap=0.3),
    Case(3, 100, 0.3, 0.0, 0.0),
    Case(3, 100, 0.3, 0.4, 0.4),
    Case(3, 100, 0.3, together=0.5),
)


def main() -> None:
    """Print a line for each case."""
    draws = argument(1, 400)
    for case in CASES:
        pairs = [reviewed_case(np.random.default_rng(seed), case) for seed in range(draws)]
        said = "  ".join(
            f"{name} {_summary([pair[at] for pair in pairs])}" for at, name in enumerate(("model", "vote"))
        )
        print(f"{case}\n  {said}", flush=True)
    for share in (0.05, 0.3):
        few = [_perfect(np.random.default_rng(seed), share, FEWEST_LABELS) for seed in range(draws)]
        print(f"{FEWEST_LABELS} labels of one person who is right, share {share}: {_summary(few)}")
        print(f"  ten more labels widen the interval: {_widened(share, draws)}", flush=True)


def reviewed_case(rng: np.random.Generator, case: Case) -> tuple[Found, Found]:
    """By the model of errors, and by the vote of the majority."""
    f, is_llm = _web(rng, case.share)
    chosen = rng.choice(WEB, case.labelled, replace=False)
    low, high = ERRORS
    missed = rng.uniform(low, high, case.people) if case.missed is None else np.full(case.people, case.missed)
    called = rng.uniform(low, high, case.people) if case.called is None else np.full(case.people, case.called)
    luck = rng.random((case.people, case.labelled))
    luck = np.where(rng.random(case.labelled) < case.together, luck[0], luck)
    wrong = luck < np.where(is_llm[chosen], missed[:, None], called[:, None])
    votes = is_llm[chosen] ^ wrong
    has = np.vstack([np.ones(case.labelled, bool), rng.random((case.people - 1, case.labelled)) < case.overlap])
    labels = {
        f"p{person}": {str(site): float(votes[person, at]) for at, site in enumerate(chosen) if has[person, at]}
        for person in range(case.people)
    }
    truths = Review(labels, case.labelled, 0, 1).truths(SITES)
    counts = has.sum(0)
    majority = 2 * (votes & has).sum(0) >= counts
    found = []
    for of_sites in (truths.likely, {str(site): float(vote) for site, vote in zip(chosen, majority, strict=True)}):
        y = np.array([of_sites.get(str(site), np.nan) for site in range(WEB)])
        labelled = [str(site) for site in range(WEB) if str(site) in of_sites]
        share = reviewed_share(f, y, chances=truths.chances_of(labelled) if of_sites is truths.likely else None)
        found.append(_found(share, float(is_llm.mean())))
    return found[0], found[1]


def _perfect(rng: np.random.Generator, share: float, labelled: int) -> Found:
    f, is_llm = _web(rng, share)
    y = np.full(WEB, np.nan)
    chosen = rng.choice(WEB, labelled, replace=False)
    y[chosen] = is_llm[chosen]
    return _found(reviewed_share(f, y), float(is_llm.mean()))


def _widened(share: float, draws: int) -> str:
    """How often ten more right labels of which some or none contradict the flags widen it, and by how much at most."""
    found: dict[bool, list[float]] = {False: [], True: []}
    for seed in range(draws):
        rng = np.random.default_rng(seed)
        f, is_llm = _web(rng, share)
        order, y, before = rng.permutation(WEB), np.full(WEB, np.nan), 1.0
        for number in range(FEWEST_LABELS - 10, 200, 10):
            new = order[number : number + 10] if number > FEWEST_LABELS - 10 else order[: number + 10]
            y[new] = is_llm[new]
            reviewed = reviewed_share(f, y)
            assert reviewed is not None
            width = reviewed.interval.high - reviewed.interval.low
            if number > FEWEST_LABELS - 10:
                found[bool((np.abs(is_llm[new] - f[new]) > 0.5).any())].append(width - before)
            before = width
    return "; ".join(
        f"{'some' if contradict else 'none'} against the flags: {np.mean(np.array(by) > 0.001):.2f} of"
        f" {len(by)}, by up to {max(by):.3f}, by more than .01 {np.mean(np.array(by) > 0.01):.3f}"
        for contradict, by in found.items()
    )


def _web(rng: np.random.Generator, share: float) -> tuple[Floats, np.ndarray]:
    is_llm = rng.random(WEB) < share
    seen = is_llm & (rng.random(WEB) >= 0.3)
    return np.clip(np.where(seen, 0.9, 0.05) + rng.normal(0, 0.05, WEB), 0, 1), is_llm


def _found(share: ReviewedShare | None, truth: float) -> Found:
    assert share is not None
    point, low, high = share.interval
    return point - truth, float(low <= truth <= high), high - low


def _summary(found: list[Found]) -> str:
    bias, covered, width = np.mean(found, axis=0)
    return f"covered {covered:.3f}, width {width:.3f}, bias {bias:+.3f}"


if __name__ == "__main__":
    main()
