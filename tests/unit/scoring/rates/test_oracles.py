"""The share beside other people's code: QuaPy's expectation maximization, and the authors' PPI++."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest

from scoring.rates.mixture import Components, estimate_share, log_beta_binomial
from scoring.rates.reviewed_share import reviewed_share

pytestmark = pytest.mark.slow


@pytest.mark.parametrize("share", [0.02, 0.15, 0.5])
@pytest.mark.parametrize("flagged", [0.6, 0.8])
def test_with_known_kinds_the_share_is_that_of_quapy(share: float, flagged: float) -> None:
    """Where the kinds of sites are known, the direct share is the maximum that EMQ climbs to (Saerens et al. 2002)."""
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
    """Point and interval of `ppi_py`; ours is wider by what two supposed contradictions and Student's t add."""
    from ppi_py import ppi_mean_ci, ppi_mean_pointestimate

    rng = np.random.default_rng(6)
    truth = rng.random(5000) < 0.3
    likely = np.clip(np.where(rng.random(5000) < right, truth, ~truth) * 0.8 + rng.normal(0.1, 0.05, 5000), 0, 1)
    labelled = rng.choice(5000, 1000, replace=False)
    names = [f"s{number}" for number in range(5000)]
    found = reviewed_share(
        dict(zip(names, likely.tolist(), strict=True)), {names[at]: bool(truth[at]) for at in labelled}, 0.95
    )
    given = truth[labelled].astype(float), likely[labelled], likely
    low, high = (float(end[0]) for end in ppi_mean_ci(*given, alpha=0.05))
    assert found is not None and found.point == pytest.approx(float(ppi_mean_pointestimate(*given)[0]), abs=1e-3)
    assert 1 <= (found.high - found.low) / (high - low) < 1.03
