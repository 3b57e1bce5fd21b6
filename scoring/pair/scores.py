"""Binoculars and Fast-DetectGPT from the sums that one pass over the vocabulary leaves of each token.

Let p be the observer and q the performer. `scoring.pair.vocabulary_pass` defines lse_q, z_q_target, mean_q and var_q,
natural logarithms throughout; t is a position, whose prediction is token t + 1.

Binoculars (Hans et al., arXiv 2401.12070; the definitions are those of its authors' code) divides the text's surprise
to the performer by the surprise of the observer's predictions:

    ppl   = mean over t = 1..T-1 of -log q(x_t+1)             = mean of lse_q - z_q_target
    x_ppl = mean over t = 1..T   of -sum_v p(v) log q(v)      = mean of lse_q - mean_q
    score = ppl / x_ppl                                       low: a language model's

x_ppl is not shifted: the last position counts, although no token follows. As there, positions whose token is the pad
token are left out of x_ppl.

Fast-DetectGPT (Bao et al., arXiv 2310.05130, its analytic form) asks how far the text's log-likelihood under q lies
above that of a sample of p, in standard deviations; lse_q cancels:

    score = sum over t = 1..T-1 of (z_q_target - mean_q) / sqrt(sum of var_q)      high: a language model's

The pass gives float32; sums here are float64. The authors' code of Binoculars rounds both means to bfloat16, which
moves a score by up to 0.01.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import msgspec
import numpy as np
from numpy.typing import NDArray

from scoring.interface import TextScore

Floats = NDArray[np.float32] | NDArray[np.float64]


class PairReading(msgspec.Struct, frozen=True):
    """Both scores of a window, and the means from which they are computed (nats per token)."""

    binoculars: float
    fast_detectgpt: float
    ppl: float  # mean surprise of the performer at the text
    x_ppl: float  # mean surprise of the performer at the observer's predictions
    tokens: int  # read, including special ones


class PerToken(NamedTuple):
    """The sums of a pass, for the positions of several texts one after another; arrays of one length."""

    lse_q: Floats
    z_q_target: Floats  # meaningless at the last position of a text
    mean_q: Floats
    var_q: Floats


def readings(passed: PerToken, lengths: Sequence[int], is_pad: NDArray[np.bool_]) -> list[PairReading | TextScore]:
    """Scores of texts of these lengths (each at least 2), whose positions follow one another in `passed`.

    `is_pad` marks positions whose token is the pad token. A text without finite numbers has no score: "not_a_number".
    """
    scored: list[PairReading | TextScore] = []
    for end, tokens in zip(np.cumsum(lengths).tolist(), lengths, strict=True):
        positions = slice(end - tokens, end)
        lse_q, z_q_target, mean_q, var_q = (np.asarray(column[positions], np.float64) for column in passed)
        crossed = (lse_q - mean_q)[~is_pad[positions]]
        with np.errstate(all="ignore"):
            ppl = np.mean(lse_q[:-1] - z_q_target[:-1])
            x_ppl = np.sum(crossed) / np.float64(len(crossed))
            fast_detectgpt = np.sum(z_q_target[:-1] - mean_q[:-1]) / np.sqrt(np.sum(var_q[:-1]))
            binoculars = ppl / x_ppl
        if np.isfinite([binoculars, fast_detectgpt, ppl, x_ppl]).all():
            scored.append(PairReading(float(binoculars), float(fast_detectgpt), float(ppl), float(x_ppl), tokens))
        else:
            scored.append(TextScore(abstain="not_a_number", tokens=tokens))
    return scored
