"""How often the test of `scoring.sites.turn` finds sites, and which: the table of docs/explanation/dates.md.

Run by `python -m tests.bench.studies.turns [sites a row, default 10000]`. The articles of a simulated site are drawn
from the pages of one real site, with Binoculars scores; a change of writer or a turn draws the later ones from another.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import timedelta
from math import sqrt
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from scoring.sites.turn import MOST_BY_CHANCE, DatedScore, has_turned, rank_p, turn_of
from stream.schema.dates import CHATGPT
from tests.bench.timing import argument
from tests.support.paths import data_root
from tests.support.real_sites import ACCURACY, Site, read_sites

Floats = NDArray[np.float64]
SIZES = (5, 6, 8, 10)  # articles before, and as many since


class Draw(NamedTuple):
    """The chance, the human and the LLM sites."""

    rng: np.random.Generator
    human: Sequence[Floats]
    llm: Sequence[Floats]

    @classmethod
    def of(cls, sites: Sequence[Site], seed: int = 1) -> Draw:
        human, llm = ([np.array(site.scores) for site in sites if site.llm == kind] for kind in (False, True))
        return cls(np.random.default_rng(seed), human, llm)

    def from_one(self, sites: Sequence[Floats], number: int) -> Floats:
        """Scores of pages of one of these sites."""
        return self.rng.choice(sites[int(self.rng.integers(len(sites)))], number)


Halves = tuple[Floats, Floats]  # the scores before and since


def unchanged_human(draw: Draw, n: int) -> Halves:
    scores = draw.from_one(draw.human, 2 * n)
    return scores[:n], scores[n:]


def unchanged_llm(draw: Draw, n: int) -> Halves:
    scores = draw.from_one(draw.llm, 2 * n)
    return scores[:n], scores[n:]


def other_writer(draw: Draw, n: int) -> Halves:
    before, since = draw.rng.choice(len(draw.human), 2, replace=False).tolist()
    return draw.rng.choice(draw.human[before], n), draw.rng.choice(draw.human[since], n)


def half_llm(draw: Draw, n: int) -> Halves:
    human, llm = draw.from_one(draw.human, 2 * n), draw.from_one(draw.llm, 2 * n)
    scores = np.where(draw.rng.random(2 * n) < 0.5, llm, human)
    return scores[:n], scores[n:]


def turned(draw: Draw, n: int) -> Halves:
    return draw.from_one(draw.human, n), draw.from_one(draw.llm, n)


def turned_in_part(draw: Draw, n: int) -> Halves:
    """To 60% of the articles."""
    human, llm = draw.from_one(draw.human, 2 * n), draw.from_one(draw.llm, n)
    return human[:n], np.where(draw.rng.random(n) < 0.6, llm, human[n:])


def wrong_dates(draw: Draw, n: int) -> Halves:
    """Turned, and one date wrong on each side."""
    before, since = turned(draw, n)
    before[0], since[0] = since[0], before[0]
    return before, since


SCENES: dict[str, Callable[[Draw, int], Halves]] = {
    "human throughout": unchanged_human,
    "LLM throughout": unchanged_llm,
    "another human writer": other_writer,
    "half LLM throughout": half_llm,
    "turned": turned,
    "turned to 60% LLM": turned_in_part,
    "turned, one date wrong on each side": wrong_dates,
}


class Found(NamedTuple):
    """Shares of simulated sites: found, and with scores that differ whatever their flags."""

    turned: float
    differ: float


def find(scene: str, n: int, draw: Draw, runs: int) -> Found:
    """Simulate sites of a scene with n articles before and n since."""
    days = [CHATGPT - timedelta(days=1)] * n + [CHATGPT] * n
    found = differ = 0
    for _ in range(runs):
        before, since = SCENES[scene](draw, n)
        scores = np.concatenate([before, since]).tolist()
        articles = [DatedScore(day, score < ACCURACY, score) for day, score in zip(days, scores, strict=True)]
        found += has_turned(turn_of(articles).turn_p)
        differ += rank_p((-before).tolist(), (-since).tolist()) < MOST_BY_CHANCE
    return Found(found / runs, differ / runs)


def main() -> None:
    """Print the table."""
    runs = argument(1, 10_000)
    sites = read_sites(data_root() / "data" / "scores" / "page_scores.csv", 0)
    print(f"{len(sites)} real sites, {runs:,} simulated ones a cell; standard error at most {sqrt(0.25 / runs):.4f}")
    print(f"{'found (scores alone)':35}" + "".join(f"{f'{n}+{n}':>16}" for n in SIZES))
    for scene in SCENES:
        cells = [find(scene, n, Draw.of(sites), runs) for n in SIZES]
        print(f"{scene:35}" + "".join(f"{cell.turned:8.4f} ({cell.differ:.3f})" for cell in cells), flush=True)


if __name__ == "__main__":
    main()
