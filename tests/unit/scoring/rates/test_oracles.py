"""The share against independent code: QuaPy's expectation maximization, and the authors' PPI++."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest

from scoring.estimate.beta_binomial import log_beta_binomial
from scoring.estimate.fit import Components
from scoring.estimate.mixture import estimate_share
from scoring.estimate.reviewed_share import reviewed_share

pytestmark = pytest.mark.slow


@pytest.mark.parametrize("share", [0.02, 0.15, 0.5])
@pytest.mark.parametrize("flagged", [0.6, 0.8])
def test_with_known_kinds_the_share_is_that_of_quapy(share: float, flagged: float) -> None:
    """If the kinds of sites are known, the direct share is the maximum of EMQ (Saerens et al. 2002)."""
    from quapy.method.aggregative import EMQ

    rng = np.random.default_rng(5)
    n = rng.integers(5, 20, 600)
    betas = [0.5, 9.5, 10 * flagged, 10 - 10 * flagged]
    is_llm = rng.random(600) < share
    k = rng.binomial(n, np.where(is_llm, rng.beta(betas[2], betas[3], 600), rng.beta(betas[0], betas[1], 600)))
    sure = Components(np.log(betas), np.eye(4) * 1e9)
    fit = estimate_share(Counter(zip(n.tolist(), k.tolist(), strict=True)), sure)
    human, llm = (np.exp(log_beta_binomial(n, k, *np.log(betas[at : at + 2])).value) for at in (0, 2))
    posterior = np.stack([human, llm], axis=1) / (human + llm)[:, None]
    (_, theirs), _ = EMQ.EM(np.array([0.5, 0.5]), posterior, epsilon=1e-9)
    assert fit is not None and fit.share == pytest.approx(theirs, abs=1e-4)


@pytest.mark.parametrize("right", [0.5, 0.8, 0.95])
def test_the_share_by_labels_is_that_of_ppi_py(right: float) -> None:
    """Point and interval match `ppi_py`, except for two pseudo-observations and Student's t, which widen ours."""
    from ppi_py import ppi_mean_ci, ppi_mean_pointestimate

    rng = np.random.default_rng(6)
    truth = rng.random(5000) < 0.3
    likely = np.clip(np.where(rng.random(5000) < right, truth, ~truth) * 0.8 + rng.normal(0.1, 0.05, 5000), 0, 1)
    labelled = rng.choice(5000, 1000, replace=False)
    labels = np.full(5000, np.nan)
    labels[labelled] = truth[labelled]
    found = reviewed_share(likely, labels)
    given = truth[labelled].astype(float), likely[labelled], likely[np.isnan(labels)]
    low, high = (float(end[0]) for end in ppi_mean_ci(*given, alpha=0.05))
    assert found is not None
    assert found.interval.point == pytest.approx(float(ppi_mean_pointestimate(*given)[0]), abs=1e-3)
    assert 1 <= (found.interval.high - found.interval.low) / (high - low) < 1.03


def test_forty_known_sites_of_either_kind_bound_what_any_estimate_reaches() -> None:
    """By the Cramér-Rao bound the RMSE at 5,000 sites is 1.3 to 1.5 times an oracle's; with 1,000 known sites 1.1."""
    from scipy.stats import betabinom

    def cells(share: float, betas: np.ndarray, lengths: dict[int, float]) -> np.ndarray:
        a, b, c, d = np.exp(betas)
        kinds = (((1 - share), a, b), (share, c, d))
        return np.concatenate(
            [
                part * sum(w * betabinom.pmf(np.arange(n + 1), n, x, y) for w, x, y in kinds)
                for n, part in lengths.items()
            ]
        )

    def information(share: float, lengths: dict[int, float]) -> np.ndarray:
        """Information of one site on the share and the logarithms of the betas."""
        steps = np.eye(5) * 1e-5
        slopes = [
            (cells(share + step[0], betas + step[1:], lengths) - cells(share - step[0], betas - step[1:], lengths))
            / 2e-5
            for step in steps
        ]
        found: np.ndarray = (np.array(slopes) / np.maximum(cells(share, betas, lengths), 1e-300)) @ np.array(slopes).T
        return found

    betas = np.log([11.5 * 0.045, 11.5 * 0.955, 24 * 0.8, 24 * 0.2])
    lengths = {n: 0.25 * 0.75 ** (n - 1) for n in range(1, 20)} | {20: 0.75**19}
    known_lengths = dict.fromkeys(range(5, 20), 1 / 15)
    for share, known, least, most in ((0.02, 40, 1.25, 1.35), (0.05, 40, 1.4, 1.5), (0.05, 1000, 1.05, 1.15)):
        of_sites = 5000 * information(share, lengths)
        of_all = of_sites.copy()
        of_all[1:, 1:] += known * (information(0.0, known_lengths) + information(1.0, known_lengths))[1:, 1:]
        drawn = share * (1 - share) / 5000  # the truth is the share among the drawn sites
        best, oracle = np.linalg.inv(of_all)[0, 0] - drawn, 1 / of_sites[0, 0] - drawn
        assert least < np.sqrt(best / oracle) < most
