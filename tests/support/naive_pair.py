"""The reference for the pair engine: one document at a time, two full logit tensors, whole softmaxes, float64.

Written from the definitions of Binoculars (arXiv 2401.12070) and Fast-DetectGPT (arXiv 2310.05130) as a reader would
write them down; it shares no code with the package. Slow, and holds everything in memory.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import torch


class NaiveScores(NamedTuple):
    binoculars: float
    fast_detectgpt: float
    ppl: float
    x_ppl: float


class NaivePair:
    """Observer p and performer q in float64."""

    def __init__(self, observer: Path, performer: Path, pad_id: int = -1) -> None:
        import transformers

        load: Any = transformers.AutoModelForCausalLM.from_pretrained
        self.observer = load(observer, dtype=torch.float64).eval()
        self.performer = load(performer, dtype=torch.float64).eval()
        self.pad_id = pad_id

    @torch.no_grad()
    def score(self, ids: Sequence[int]) -> NaiveScores:
        """Scores of a document of at least two tokens."""
        tokens = torch.tensor([list(ids)])
        p = torch.softmax(self.observer(input_ids=tokens).logits[0].double(), dim=-1)
        log_q = torch.log_softmax(self.performer(input_ids=tokens).logits[0].double(), dim=-1)
        following = tokens[0, 1:]
        log_likelihood = log_q[:-1][torch.arange(len(following)), following]
        ppl = -log_likelihood.mean()
        cross_entropy = -(p * log_q).sum(dim=-1)
        x_ppl = cross_entropy[tokens[0] != self.pad_id].mean()
        mu = (p * log_q).sum(dim=-1)[:-1]
        var = (p * log_q.square()).sum(dim=-1)[:-1] - mu.square()
        fast_detectgpt = (log_likelihood - mu).sum() / var.sum().sqrt()
        return NaiveScores(*(float(x) for x in (ppl / x_ppl, fast_detectgpt, ppl, x_ppl)))
