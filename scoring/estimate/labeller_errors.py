"""The truth of sites that several people labelled, where each of them errs: the model of Dawid and Skene.

A site is an LLM site with probability s. Labeller j misses an LLM site with probability m_j and calls a human one llm
with probability c_j, whatever the others say (Dawid and Skene, Maximum likelihood estimation of observer error-rates
using the EM algorithm, Applied Statistics 28, 1979). Of two labellers, five unknown numbers stand against three
counts, so that the likelihood alone does not say who is wrong. Hence the priors: s is of Beta(1/2, 1/2), m_j and c_j
are of Beta(1, 5), as if each person had been wrong at one of six sites of either kind. In place of EM, which gives one
value, truths and errors are drawn in turn (data augmentation: Tanner and Wong, JASA 82, 1987) in independent chains, of
which the last states are kept: so what the labels do not tell of the errors is in the interval of the share too.
"""

from __future__ import annotations

import numpy as np

from scoring.estimate.beta_binomial import Floats

CHAINS = 300
_STEPS = 100
_WRONG, _RIGHT = 1.0, 5.0  # prior of an error
_TINY = 1e-9


def chances_of_llm(votes: Floats, seed: int = 0) -> Floats:
    """Draws of the chance of each site to be an LLM site, chains by sites, from votes [labellers, sites].

    A vote is 1 for llm, 0 for human, NaN for none.
    """
    rng = np.random.default_rng(seed)
    patterns, of_site, sites = np.unique(
        np.nan_to_num(votes, nan=-1).T, axis=0, return_inverse=True, return_counts=True
    )
    says_llm, says_human = (patterns == 1).T.astype(float), (patterns == 0).T.astype(float)
    majority = (says_llm.sum(0) + 0.5) / (says_llm.sum(0) + says_human.sum(0) + 1)
    chances = np.broadcast_to(majority, (CHAINS, len(sites)))
    for _ in range(_STEPS):
        llm = rng.binomial(sites, chances).astype(float)
        human = sites - llm
        share = _drawn(rng, 0.5 + llm.sum(1), 0.5 + human.sum(1))
        missed = _drawn(rng, _WRONG + llm @ says_human.T, _RIGHT + llm @ says_llm.T)
        called = _drawn(rng, _WRONG + human @ says_llm.T, _RIGHT + human @ says_human.T)
        odds = np.log((1 - missed) / called) @ says_llm + np.log(missed / (1 - called)) @ says_human
        chances = 1 / (1 + (1 / share - 1)[:, None] * np.exp(-odds))
    return chances[:, of_site.reshape(-1)]


def _drawn(rng: np.random.Generator, a: Floats, b: Floats) -> Floats:
    return np.clip(rng.beta(a, b), _TINY, 1 - _TINY)
