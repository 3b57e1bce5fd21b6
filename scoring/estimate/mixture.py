"""The share of LLM sites, estimated directly from the flagged pages of all sites.

A site has n pages with a usable score, k of them flagged. Pages of a site agree, so k is beta-binomial: Beta(a, b) is
the flagged share of a human site's pages, another beta that of an LLM site's. With the share p of LLM sites the log
likelihood is

    sum over sites of log[(1 - p) BB(k | n, human) + p BB(k | n, LLM)]  +  weight * the same of sites of known truth.

LLM sites may have more or fewer articles than human ones, so p has a value for each bucket of n; a normal prior holds
the buckets' log odds together. A site that is decided is crawled no further, so its n follows from its flags. That
leaves the likelihood unchanged (optional stopping) where one p holds for all n at which crawling may have stopped: no
site method decides on fewer than 5 pages, and the last bucket begins there. Sites enter as counts of (n, k) cells: the
cost does not grow with their number.

The interval is that of the profile likelihood. Its ends are found by tilting: the maximum of the log likelihood plus
t * share moves along the profile as t grows (Lagrange multiplier).

Sites of known truth weigh HUMAN_WEIGHT and LLM_WEIGHT. A newer generation of models is flagged less often than the
known LLM sites, and a register of human pages more often; the sites that are measured must be able to say so.
"""

from __future__ import annotations

import functools
import math
from statistics import NormalDist
from typing import NamedTuple

import numpy as np

from scoring.estimate.beta_binomial import Floats, LogTerm, log_beta_binomial
from scoring.estimate.fit import BETAS, CellCounts, Cells, Components, Fit, KnownSites

_Key = tuple[tuple[tuple[int, int], float], ...]  # CellCounts, sorted

HUMAN_WEIGHT, LLM_WEIGHT = 0.5, 0.1  # of sites of known truth in the likelihood: by simulation, see docs
BUCKETS = (1, 2, 3, 5)  # first number of pages of each bucket: 1, 2, 3-4, 5 and more
_BUCKET_SD = 1.0  # of a bucket's log odds around their mean
_LOWEST, _HIGHEST = -6.0, 7.0  # of log a and log b
_EXTREME = 12.0  # of log odds
_ITERATIONS, _LONGEST_STEP = 100, 1.5
_TILTS = 25
_STARTS = (-3.0, 0.0)  # log odds of LLM sites
_LEAST_EXPECTED = 3.0  # sites of a group
_MISFIT_Z = 2.326  # 1% of samples that fit are reported as misfits
_NOTHING_KNOWN = KnownSites({}, {})


class _Point(NamedTuple):
    """The penalised log likelihood at `theta`, plus tilt times share."""

    theta: Floats
    value: float
    gradient: Floats
    curvature: Floats  # negative Hessian
    share: float


def estimate_share(
    counts: CellCounts, prior: Components, known: KnownSites = _NOTHING_KNOWN, confidence: float = 0.95
) -> Fit | None:
    """The share of LLM sites among those of `counts`; None without a site that has a usable score.

    `low` is 0 and `high` is 1 where the likelihood has no bound there. Where the sites do not fit the mixture, the
    interval is wider by the factor `misfit`. Fits are remembered, because most rates are asked for again unchanged.
    """
    cells = (tuple(sorted(part.items())) for part in (counts, *known))
    return _fit(*cells, prior.mean.tobytes(), prior.precision.tobytes(), confidence)


@functools.lru_cache(maxsize=100)
def _fit(counts: _Key, human: _Key, llm: _Key, mean: bytes, precision: bytes, confidence: float) -> Fit | None:
    cells, known = Cells.of(dict(counts)), KnownSites(dict(human), dict(llm))
    if not len(cells.n):
        return None
    prior = Components(np.frombuffer(mean), np.frombuffer(precision).reshape(BETAS, BETAS))
    model = Mixture(cells, known, prior)
    best = model.best()
    root = NormalDist().inv_cdf((1 + confidence) / 2)  # of the deviance at the ends: chi-square with one degree
    misfit = model.misfit(best)
    ends = [model.end(best, root, sign) for sign in (-1, 1)]
    low, high = (misfit * (end - best.share) + best.share for end, _ in ends)
    cautious = model.end(best, misfit * root, -1)[1] if misfit > 1 else ends[0][1]
    influence, of_human, of_llm = model.influence(best)
    components, chance = model.components(best), model.chance(best)
    posterior, of_cautious = model.posterior(best.theta), model.posterior(cautious)
    return Fit(
        share=best.share,
        low=min(max(low, 0.0), best.share),
        high=max(min(high, 1.0), best.share),
        sites=round(cells.sites.sum()),
        components=components,
        posterior=cells.named(posterior),
        cautious=cells.named(of_cautious),
        chance=chance,
        misfit=misfit,
        influence=cells.named(influence),
        known_influence=KnownSites(model.human.named(of_human), model.llm.named(of_llm)),
        known=known,
    )


class Mixture:
    """The likelihood of the measured sites, of which there may be none, and of those of known truth."""

    def __init__(
        self,
        cells: Cells,
        known: KnownSites,
        prior: Components,
        weights: tuple[float, float] = (HUMAN_WEIGHT, LLM_WEIGHT),
    ) -> None:
        self._cells, self.human, self.llm = cells, *map(Cells.of, known)
        self._known = ((self.human, 0, weights[0]), (self.llm, 2, weights[1]))
        bucket = np.searchsorted(BUCKETS, cells.n, side="right") - 1
        used, self._bucket = np.unique(bucket, return_inverse=True)
        self._buckets = len(used)
        self._of_bucket = np.bincount(self._bucket, cells.sites) / cells.sites.sum()  # share of the sites
        self._prior = prior
        from_mean = np.eye(self._buckets) - self._of_bucket
        self._holding = from_mean.T @ from_mean / _BUCKET_SD**2

    def best(self) -> _Point:
        """The maximum, from several starts, because the likelihood of a mixture may have more than one."""
        starts = [np.concatenate([self._prior.mean, np.full(self._buckets, odds)]) for odds in _STARTS]
        return max((self._climb(start, 0.0) for start in starts), key=lambda point: point.value)

    def posterior(self, theta: Floats) -> Floats:
        """For each cell, the probability that its sites are LLM sites."""
        return _logistic(self._branches(theta)[2])

    def chance(self, point: _Point) -> dict[int, float]:
        """For each number of pages, the share of LLM sites."""
        return dict(zip(self._cells.n.tolist(), _logistic(point.theta[BETAS:])[self._bucket].tolist(), strict=True))

    def components(self, point: _Point) -> Components:
        """The betas given the sites; the log odds are integrated out (Schur complement)."""
        curvature, mixed = point.curvature, point.curvature[:BETAS, BETAS:]
        precision = curvature[:BETAS, :BETAS] - mixed @ np.linalg.solve(curvature[BETAS:, BETAS:], mixed.T)
        values, vectors = np.linalg.eigh(precision)
        least = np.linalg.eigvalsh(self._prior.precision).min()
        return Components(point.theta[:BETAS], (vectors * np.maximum(values, least)) @ vectors.T)

    def misfit(self, point: _Point) -> float:
        """Pearson's statistic over its degrees of freedom, as a factor of the interval; 1 where chance explains it.

        Of sites with fewer pages than the last bucket's: there n does not follow from the flags. Cells in which hardly
        a site is expected are one.
        """
        theta, short = point.theta, self._cells.n < BUCKETS[-1]
        observed: list[float] = []
        expected: list[float] = []
        rest = np.zeros(2)
        for n in np.unique(self._cells.n[short]):
            same = self._cells.n == n
            k = np.arange(n + 1)
            seen = np.bincount(self._cells.k[same], self._cells.sites[same], minlength=n + 1)
            human, llm = (np.exp(log_beta_binomial(np.full(n + 1, n), k, *theta[at : at + 2]).value) for at in (0, 2))
            chance = _logistic(theta[BETAS + self._bucket[same][0]])
            for count, wanted in zip(seen, seen.sum() * ((1 - chance) * human + chance * llm), strict=True):
                if wanted < _LEAST_EXPECTED:
                    rest += count, wanted
                else:
                    observed.append(count)
                    expected.append(wanted)
        if rest[1] >= _LEAST_EXPECTED:
            observed.append(rest[0])
            expected.append(rest[1])
        lengths = len(np.unique(self._cells.n[short]))
        freedom = len(expected) - lengths - int(np.unique(self._bucket[short]).size)
        if freedom < 1:
            return 1.0
        apart = np.array(observed) - np.array(expected)
        statistic = float((apart**2 / np.array(expected)).sum())
        # chi-square is nearly a cubed normal (Wilson and Hilferty 1931)
        z = ((statistic / freedom) ** (1 / 3) - (1 - 2 / (9 * freedom))) / math.sqrt(2 / (9 * freedom))
        return math.sqrt(statistic / freedom) if z > _MISFIT_Z else 1.0

    def influence(self, point: _Point) -> list[Floats]:
        """The effect of a site of each cell on the share, then of a known human and of a known LLM site of each cell.

        (Infinitesimal jackknife: van der Vaart, Asymptotic Statistics, 1998, 5.3).
        """
        theta, (_, way) = point.theta, self._way(point)
        human, llm, odds = self._branches(theta)
        posterior, chance = _logistic(odds), _logistic(theta[BETAS:])[self._bucket]
        of_betas = (1 - posterior) * (human.gradient @ way[:2]) + posterior * (llm.gradient @ way[2:BETAS])
        of_odds = way[BETAS:][self._bucket] * (posterior - chance)
        of_sites = of_betas + of_odds + (chance - point.share) / self._cells.sites.sum()
        known = (
            weight * (log_beta_binomial(cells.n, cells.k, theta[at], theta[at + 1]).gradient @ way[at : at + 2])
            for cells, at, weight in self._known
        )
        return [of_sites, *known]

    def _way(self, point: _Point) -> tuple[Floats, Floats]:
        """The gradient of the share, and the direction in which the share costs the least likelihood."""
        slope = np.zeros(len(point.theta))
        chance = _logistic(point.theta[BETAS:])
        slope[BETAS:] = self._of_bucket * chance * (1 - chance)
        return slope, np.asarray(np.linalg.lstsq(point.curvature, slope, rcond=None)[0], np.float64)

    def end(self, best: _Point, root: float, sign: int) -> tuple[float, Floats]:
        """The share at which the deviance of the profile is root², 0 or 1 if it never is; the parameters there."""
        slope, way = self._way(best)
        variance = max(float(slope @ way), 1e-10)
        tilt, inside, outside = sign * root / math.sqrt(variance), (0.0, 0.0, best.share), None
        theta = best.theta
        for _ in range(_TILTS):
            point = self._climb(theta, tilt)
            depth = math.sqrt(max(2 * (best.value - (point.value - tilt * point.share)), 0.0))
            reached = (tilt, depth, point.share)
            if abs(depth - root) < 0.01:
                return point.share, point.theta
            if depth < root:
                inside, theta = reached, point.theta
            else:
                outside = reached
            if outside is None:
                if min(point.share, 1 - point.share) < 1e-5:
                    break
                tilt *= min(max(1.05 * root / max(depth, 1e-3), 1.3), 3.0)
            elif abs(outside[2] - inside[2]) < 1e-4:
                break
            else:
                part = (root - inside[1]) / (outside[1] - inside[1])
                tilt = inside[0] + (outside[0] - inside[0]) * min(max(part, 0.1), 0.9)
        if outside is None:
            return (0.0 if sign < 0 else 1.0), point.theta
        part = (root - inside[1]) / (outside[1] - inside[1])
        return inside[2] + (outside[2] - inside[2]) * part, point.theta

    def _climb(self, theta: Floats, tilt: float) -> _Point:
        """The maximum near `theta`: Newton's steps with damping, and with the curvature made positive."""
        bound = np.concatenate([np.full(BETAS, _HIGHEST), np.full(self._buckets, _EXTREME)])
        floor = np.concatenate([np.full(BETAS, _LOWEST), np.full(self._buckets, -_EXTREME)])
        here, damping = self._at(theta, tilt), 0.0
        for _ in range(_ITERATIONS):
            values, vectors = np.linalg.eigh(here.curvature)
            step = vectors @ ((vectors.T @ here.gradient) / (np.maximum(np.abs(values), 1e-3) + damping))
            step *= min(1.0, _LONGEST_STEP / max(float(np.abs(step).max()), 1e-12))
            there = self._at(np.clip(here.theta + step, floor, bound), tilt)
            if there.value >= here.value - 1e-10 * abs(here.value):
                gain = float(here.gradient @ (there.theta - here.theta))  # bounds cut steps short
                here, damping = there, damping / 10 if damping > 1e-4 else 0.0
                if gain < 1e-8:
                    break
            else:
                damping = max(damping * 10, 1e-2 * float(values.max()))
                if damping > 1e9 * float(values.max()):
                    break
        return here

    def _branches(self, theta: Floats) -> tuple[LogTerm, LogTerm, Floats]:
        """The terms of a human and of an LLM site, and the posterior log odds of each cell."""
        human = log_beta_binomial(self._cells.n, self._cells.k, theta[0], theta[1])
        llm = log_beta_binomial(self._cells.n, self._cells.k, theta[2], theta[3])
        return human, llm, theta[BETAS:][self._bucket] + llm.value - human.value

    def _at(self, theta: Floats, tilt: float) -> _Point:
        size, sites = len(theta), self._cells.sites
        human, llm, odds = self._branches(theta)
        prior_odds = theta[BETAS:]
        chance = _logistic(prior_odds)
        posterior = _logistic(odds)
        value = float(sites @ (np.logaddexp(0, odds) - np.logaddexp(0, prior_odds)[self._bucket] + human.value))

        each = np.arange(len(sites))
        by_human, by_llm = np.zeros((len(sites), size)), np.zeros((len(sites), size))
        by_human[:, :2], by_llm[:, 2:BETAS] = human.gradient, llm.gradient
        by_human[each, BETAS + self._bucket] = -chance[self._bucket]
        by_llm[each, BETAS + self._bucket] = 1 - chance[self._bucket]
        weights = np.stack([sites * (1 - posterior), sites * posterior])
        gradient = weights[0] @ by_human + weights[1] @ by_llm
        apart = by_llm - by_human
        hessian = (apart * (sites * posterior * (1 - posterior))[:, None]).T @ apart
        hessian[:2, :2] += _weighted(weights[0], human.hessian)
        hessian[2:BETAS, 2:BETAS] += _weighted(weights[1], llm.hessian)
        odds_at = np.arange(BETAS, size)
        spread = chance * (1 - chance)
        hessian[odds_at, odds_at] -= np.bincount(self._bucket, sites) * spread

        for known, at, weight in self._known:
            if not len(known.n):
                continue
            term = log_beta_binomial(known.n, known.k, theta[at], theta[at + 1])
            value += weight * float(known.sites @ term.value)
            gradient[at : at + 2] += weight * (known.sites @ term.gradient)
            hessian[at : at + 2, at : at + 2] += weight * _weighted(known.sites, term.hessian)

        pull = self._holding @ prior_odds
        value -= 0.5 * float(prior_odds @ pull)
        gradient[BETAS:] -= pull
        hessian[BETAS:, BETAS:] -= self._holding
        off = theta[:BETAS] - self._prior.mean
        value -= 0.5 * float(off @ self._prior.precision @ off)
        gradient[:BETAS] -= self._prior.precision @ off
        hessian[:BETAS, :BETAS] -= self._prior.precision

        share = float(self._of_bucket @ chance)
        value += tilt * share
        gradient[BETAS:] += tilt * self._of_bucket * spread
        hessian[odds_at, odds_at] += tilt * self._of_bucket * spread * (1 - 2 * chance)
        return _Point(theta, value, gradient, -hessian, share)


def _weighted(weights: Floats, hessians: Floats) -> Floats:
    """The weighted sum of the cells' Hessians: (c,), (c, 2, 2) -> (2, 2)."""
    result: Floats = (weights @ hessians.reshape(-1, 4)).reshape(2, 2)
    return result


def _logistic(x: Floats) -> Floats:
    result: Floats = (1 + np.tanh(x / 2)) / 2  # no overflow
    return result
