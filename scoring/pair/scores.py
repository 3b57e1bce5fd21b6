"""Binoculars and Fast-DetectGPT from what one pass over the vocabulary leaves of each token.

Let p be the observer and q the performer, z_p and z_q their logits at position t (the prediction of token t + 1), v a
token of the vocabulary, natural logarithms throughout. The pass (scoring.pair.vocabulary_pass) gives per position

    lse_q        log sum_v exp z_q,v, so that log q(v) = z_q,v - lse_q
    z_q_target   z_q of the token that follows
    mean_q       sum_v p(v) z_q,v
    var_q        sum_v p(v) (z_q,v - mean_q)^2

Binoculars (Hans et al., arXiv 2401.12070; the definitions are those of its authors' code) divides how much the text
surprises the performer by how much the observer's predictions do:

    ppl   = mean over t = 1..T-1 of -log q(x_t+1)             = mean of lse_q - z_q_target
    x_ppl = mean over t = 1..T   of -sum_v p(v) log q(v)      = mean of lse_q - mean_q
    score = ppl / x_ppl                                       low: a language model's

x_ppl is not shifted: the last position counts, although no token follows. Positions whose token is the pad token are
left out of x_ppl, as there.

Fast-DetectGPT (Bao et al., arXiv 2310.05130, its analytic form) asks how far the text's log-likelihood under q lies
above what a sample of p would have, in standard deviations. With mu = mean_q - lse_q and the same variance, lse_q
cancels:

    score = sum over t = 1..T-1 of (z_q_target - mean_q) / sqrt(sum of var_q)      high: a language model's

The pass gives float32; sums here are float64. The authors' code of Binoculars rounds both means to bfloat16, which
moves a score by up to 0.01.
"""

from __future__ import annotations

from collections.abc import Sequence

import msgspec
import numpy as np
from numpy.typing import NDArray

from scoring.pair.tokens import Abstained

Floats = NDArray[np.float32] | NDArray[np.float64]


class PairReading(msgspec.Struct, frozen=True):
    """Both scores of a text, and the means that they come from (nats per token)."""

    binoculars: float
    fast_detectgpt: float
    ppl: float  # mean surprise of the performer at the text
    x_ppl: float  # mean surprise of the performer at the observer's predictions
    tokens: int  # read, special ones included


class PerToken(msgspec.Struct, frozen=True):
    """What a pass gives, for the positions of several texts one after another; arrays of one length."""

    lse_q: Floats
    z_q_target: Floats  # of no meaning at the last position of a text
    mean_q: Floats
    var_q: Floats


def readings(
    passed: PerToken, lengths: Sequence[int], is_pad: NDArray[np.bool_] | None = None
) -> list[PairReading | Abstained]:
    """Scores of texts of these lengths (each at least 2), whose positions stand one after another in `passed`.

    `is_pad` marks positions whose token is the pad token. What is not a finite number is Abstained("not_a_number").
    """
    ends = np.cumsum(lengths)
    return [
        _reading(passed, slice(int(end) - length, int(end)), is_pad) for end, length in zip(ends, lengths, strict=True)
    ]


def _reading(passed: PerToken, positions: slice, is_pad: NDArray[np.bool_] | None) -> PairReading | Abstained:
    lse_q, mean_q = _float64(passed.lse_q[positions]), _float64(passed.mean_q[positions])
    z_q_target, var_q = _float64(passed.z_q_target[positions])[:-1], _float64(passed.var_q[positions])[:-1]
    crossed = lse_q - mean_q
    if is_pad is not None and is_pad[positions].any():
        crossed = crossed[~is_pad[positions]]
    tokens = len(lse_q)
    with np.errstate(all="ignore"):
        ppl = float(np.mean(lse_q[:-1] - z_q_target))
        x_ppl = float(np.sum(crossed) / np.float64(len(crossed)))
        binoculars = float(np.float64(ppl) / np.float64(x_ppl))
        fast_detectgpt = float(np.sum(z_q_target - mean_q[:-1]) / np.sqrt(np.sum(var_q)))
    if not np.isfinite([binoculars, fast_detectgpt, ppl, x_ppl]).all():
        return Abstained("not_a_number", tokens)
    return PairReading(binoculars, fast_detectgpt, ppl, x_ppl, tokens)


def _float64(values: Floats) -> NDArray[np.float64]:
    return np.asarray(values, np.float64)
