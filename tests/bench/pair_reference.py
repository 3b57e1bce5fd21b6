"""The plain loop with which the pair engine is compared: one document at a time, two full logit tensors.

It follows the published formulas literally (Binoculars, arXiv 2401.12070; Fast-DetectGPT, arXiv 2310.05130) on whole
models of transformers, as the authors' code does. It also counts the floating-point operations of a document.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, NamedTuple

import torch
from torch import Tensor
from torch.nn import functional


class ReferenceScores(NamedTuple):
    binoculars: float
    fast_detectgpt: float | None  # on request


@torch.inference_mode()
def reference_loop(
    observer: Any, performer: Any, documents: Iterable[Sequence[int]], *, both: bool = False
) -> list[ReferenceScores]:
    """Scores of each document by two models of transformers (AutoModelForCausalLM) on one device.

    `both` adds Fast-DetectGPT. Logits keep the models' number format, as the authors have it.
    """
    scores = []
    for document in documents:
        ids = torch.tensor([list(document)], device=performer.device)
        mask = torch.ones_like(ids)
        p = observer(input_ids=ids, attention_mask=mask, use_cache=False).logits
        q = performer(input_ids=ids, attention_mask=mask, use_cache=False).logits
        crossed = functional.cross_entropy(q[0], functional.softmax(p[0], dim=-1), reduction="none").mean()
        surprise = functional.cross_entropy(q[:, :-1].transpose(1, 2), ids[:, 1:], reduction="none").mean()
        detect = float(_fast_detectgpt(p[:, :-1], q[:, :-1], ids[:, 1:])) if both else None
        scores.append(ReferenceScores(float(surprise / crossed), detect))
    return scores


def _fast_detectgpt(p: Tensor, q: Tensor, labels: Tensor) -> Tensor:
    log_q = functional.log_softmax(q, dim=-1)
    weights = functional.softmax(p, dim=-1)
    said = log_q.gather(-1, labels.unsqueeze(-1)).squeeze(-1)
    mean = (weights * log_q).sum(-1)
    variance = (weights * log_q.square()).sum(-1) - mean.square()
    return (said.sum(-1) - mean.sum(-1)) / variance.sum(-1).sqrt()


@contextmanager
def in_float64(model: Any) -> Iterator[None]:
    """Run `model` in float64: each layer is widened while it works, so that a large model needs no second copy.

    Weights are the same afterwards. The angles of rotary embeddings stay float32, as transformers computes them.
    """
    dtype = model.dtype
    layers = [layer for layer in model.modules() if next(layer.parameters(recurse=False), None) is not None]
    hooks = [layer.register_forward_pre_hook(lambda of, _: of.double() and None) for layer in layers]
    hooks += [layer.register_forward_hook(lambda of, *_: of.to(dtype) and None) for layer in layers]
    try:
        yield
    finally:
        for hook in hooks:
            hook.remove()


class FalconShape(NamedTuple):
    """The dimensions that decide the cost of a Falcon of the 7B kind."""

    hidden: int = 4_544
    layers: int = 32
    heads: int = 71
    words: int = 65_024


def document_flops(shape: FalconShape, tokens: int) -> float:
    """Floating-point operations of one document of `tokens` tokens through both models of a pair, heads included.

    Two per weight and token; attention (query by key, weights by value) over the tokens before each, causal. Norms,
    rotary embeddings, GELU, softmax and the sums over the vocabulary are not counted: they are not the tensor cores'.
    """
    hidden, layers, heads, words = shape
    key_and_value = 2 * (hidden // heads)  # multi-query: one head of each
    weights = layers * (hidden * (hidden + key_and_value) + hidden * hidden + 8 * hidden * hidden) + hidden * words
    attention = layers * 2 * hidden * tokens**2  # 4 hidden operations per pair of tokens, half of the pairs
    return 2.0 * (2 * weights * tokens + attention)


def head_products(hidden_p: Any, hidden_q: Any, head_p: Any, head_q: Any) -> None:
    """Only the matrix products of `vocab_pass`: the lower bound of its time."""
    from scoring.pair.vocabulary_pass import RunningSums, walk

    nothing = torch.empty(len(RunningSums._fields), len(hidden_p), device=hidden_p.device)
    with torch.no_grad():
        walk((hidden_p, hidden_q), (head_p, head_q), nothing[0], nothing, None, None, lambda *_: None)
