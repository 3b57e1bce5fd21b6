"""One tiled pass over the vocabulary for both heads of a pair: the sums that Binoculars and Fast-DetectGPT need.

**The sums.** At one token position the observer p has logits z_p[v] and the performer q has z_q[v] over the same V
words. With w_v = softmax(z_p)_v, five numbers are enough:

    lse_p = log sum_v exp z_p[v]        lse_q = log sum_v exp z_q[v]        z_q[y], y = the token that followed
    mean_q = sum_v w_v z_q[v]           var_q = sum_v w_v (z_q[v] - mean_q)^2

because log q(v) = z_q[v] - lse_q, and the constant lse_q leaves a mean and drops out of a variance. Both detectors'
scores follow from them: scoring/pair/scores.py.

**Without two full logit tensors.** The vocabulary is cut into tiles and the positions into blocks; only one
[block, tile] piece of each head's logits exists at a time, made by a matrix product and folded at once. A tile b of
one row gives m_b = max z_p, W_b = sum exp(z_p - m_b) >= 1, and, with the weights exp(z_p - m_b), the mean a_b of z_q
and the sum of squares about it, M_b. Two such summaries of disjoint sets merge exactly:

    m = max(m_a, m_b)     A = W_a exp(m_a - m)     B = W_b exp(m_b - m)     W = A + B       (online log-sum-exp)
    mean = mean_a + (mean_b - mean_a) B / W
    M    = M_a exp(m_a - m) + M_b exp(m_b - m) + (mean_b - mean_a)^2 A B / W

The last two lines are the pairwise update of Chan, Golub and LeVeque (Am. Stat. 37, 1983), weighted. The sum of squares
is never sum w z^2 - mean^2, which loses all digits if z_q is large and nearly constant. Inside a tile it comes from
their corrected two-pass rule: with d = z_q - a for a rounded mean a, M = sum w d^2 - (sum w d)^2 / W, and the mean
becomes a + (sum w d) / W. The running maximum starts at -inf, so the first tile is no special case.

**Costs.** Per logit pair, two exponentials and some ten cheap passes over a piece in the cache, besides 2 (H_p + H_q)
floating-point operations of the products. On CUDA a Triton kernel folds in one read (scoring/pair/kernel.py).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal, NamedTuple

import torch
from torch import Tensor

from scoring.engine.linears import onednn_linear, onednn_multiplies

Kernel = Literal["torch", "triton"]

# Positions and words of one piece. On a CPU 256 x 1024 fp32 logits are 1 MiB, which stays in L2 or L3, and both sides
# are long enough for the product to run at full speed. On CUDA the pair of pieces takes 512 MiB and fills the card.
CPU_PIECE = (256, 1024)
CUDA_PIECE = (16_384, 4_096)


Fold = Callable[[Tensor, Tensor, Tensor, int, Tensor], None]  # (p, q, targets, first word, state), as fold_torch


class Head(NamedTuple):
    """The output layer of a language model: logits = hidden @ weight.T + bias."""

    weight: Tensor  # [V, H]
    bias: Tensor | None = None  # [V]


class TokenSums(NamedTuple):
    """The results of one pass for each of N positions; fp32 [N] each, on the device of the hidden states."""

    lse_p: Tensor  # log sum exp of the observer's logits
    lse_q: Tensor  # the same of the performer's
    z_q_target: Tensor  # the performer's logit of the target; 0 without a target
    mean_q: Tensor  # mean of the performer's logits under the observer's softmax
    var_q: Tensor  # their variance under it


class RunningSums(NamedTuple):
    """Summaries of the tiles folded so far; fp32 [N] each. A row of `state` each, so that a kernel may write it."""

    max_p: Tensor
    sum_p: Tensor  # sum exp(z_p - max_p)
    mean: Tensor  # of z_q under exp(z_p)
    squares: Tensor  # sum exp(z_p - max_p) (z_q - mean)^2
    max_q: Tensor
    sum_q: Tensor
    z_target: Tensor


@torch.no_grad()
def vocab_pass(
    hidden_p: Tensor,
    hidden_q: Tensor,
    head_p: Head,
    head_q: Head,
    targets: Tensor,
    *,
    tile: int | None = None,
    block: int | None = None,
    kernel: Kernel = "torch",
) -> TokenSums:
    """Both heads at N positions in one pass; memory is bounded by block x tile, whatever N and V are.

    `hidden_p` [N, H_p] and `hidden_q` [N, H_q] are the last hidden states, gathered without padding, of any number of
    documents; `targets` [N] (int64) holds the word whose performer's logit is wanted, or -1 for none. Words beyond the
    tokenizer's (padded heads) count, as in the authors' code. The kernel "triton" needs a CUDA device, or Triton's
    interpreter. A row that holds NaN or inf gives NaN and does not touch the others.
    """
    fold: Fold = fold_torch
    if kernel == "triton":
        from scoring.pair.kernel import fold_triton as fold
    state = torch.zeros(len(RunningSums._fields), len(targets), dtype=torch.float32, device=hidden_p.device)
    state[0] = state[4] = -torch.inf
    walk((hidden_p, hidden_q), (head_p, head_q), targets, state, tile, block, fold)
    sums = RunningSums(*state)
    return TokenSums(
        lse_p=sums.max_p + sums.sum_p.log(),
        lse_q=sums.max_q + sums.sum_q.log(),
        z_q_target=sums.z_target,
        mean_q=sums.mean,
        var_q=(sums.squares / sums.sum_p).clamp_min(0),
    )


def walk(
    hidden: tuple[Tensor, Tensor],
    heads: tuple[Head, Head],
    targets: Tensor,
    state: Tensor,
    tile: int | None,
    block: int | None,
    fold: Fold,
) -> None:
    """Make each piece of both heads' logits and pass it to `fold`, with the part of `state` for its rows."""
    usual_block, usual_tile = CUDA_PIECE if state.device.type == "cuda" else CPU_PIECE
    tile, block = tile or usual_tile, block or usual_block
    _keep_freed_pages(block * tile, state.device)
    blocks = [slice(start, start + block) for start in range(0, len(targets), block)]
    pieces = [[_widened(states[rows]) for rows in blocks] for states in hidden]
    for first in range(0, len(heads[0].weight), tile):  # tiles outside: each tile of the weights is read once
        words = slice(first, first + tile)
        p, q = (Head(_widened(weight[words]), None if bias is None else bias[words]) for weight, bias in heads)
        for rows, states_p, states_q in zip(blocks, *pieces, strict=True):
            fold(_logits(states_p, p), _logits(states_q, q), targets[rows], first, state[:, rows])


def fold_torch(p: Tensor, q: Tensor, targets: Tensor, first: int, state: Tensor) -> None:
    """Fold a piece of logits [B, T], words first … first + T, into `state` [7, B]. Destroys p and q."""
    sums = RunningSums(*state)
    column = targets - first
    inside = (column >= 0) & (column < q.shape[1])
    picked = q.gather(1, column.clamp(0, q.shape[1] - 1).unsqueeze(1)).squeeze(1)
    sums.z_target.copy_(torch.where(inside, picked, sums.z_target))

    max_q = q.amax(1)
    scratch = torch.sub(q, max_q.unsqueeze(1)).exp_()
    sum_q = scratch.sum(1)
    new_q = torch.maximum(sums.max_q, max_q)
    sums.sum_q.mul_((sums.max_q - new_q).exp_()).add_(sum_q.mul_((max_q - new_q).exp_()))
    sums.max_q.copy_(new_q)

    max_p = p.amax(1)
    weights = p.sub_(max_p.unsqueeze(1)).exp_()
    sum_p = weights.sum(1)
    mean = torch.mul(weights, q, out=scratch).sum(1).div_(sum_p)
    apart = q.sub_(mean.unsqueeze(1))
    weighted = weights.mul_(apart)
    left = weighted.sum(1)  # what rounding left of sum w d, which is 0 in exact arithmetic
    squares = weighted.mul_(apart).sum(1).sub_(left * left / sum_p)
    mean.add_(left / sum_p)

    new_p = torch.maximum(sums.max_p, max_p)
    scale_a, scale_b = (sums.max_p - new_p).exp_(), (max_p - new_p).exp_()
    weight_a, weight_b = sums.sum_p * scale_a, sum_p * scale_b
    total = weight_a + weight_b
    delta = mean - sums.mean
    share = weight_b / total
    sums.squares.mul_(scale_a).add_(squares * scale_b).add_(delta * delta * weight_a * share)
    sums.mean.add_(delta * share)
    sums.sum_p.copy_(total)
    sums.max_p.copy_(new_p)


def _logits(hidden: Tensor, part: Head) -> Tensor:
    """Logits of a block of positions and a tile of a head: fp32 [B, T], a new tensor, summed in fp32."""
    weight, bias = part
    if hidden.device.type == "cpu" and onednn_multiplies():
        product = onednn_linear(hidden, weight, None)
    elif hidden.dtype == torch.float32:
        product = torch.mm(hidden, weight.T)
    elif _MM_WIDENS and hidden.is_cuda:
        product = torch.mm(hidden, weight.T, out_dtype=torch.float32)
    else:  # torch < 2.8: the logits are rounded once
        product = torch.mm(hidden, weight.T).float()
    return product if bias is None else product.add_(bias)


def _widened(tensor: Tensor) -> Tensor:
    """Half precision on a CPU as fp32, in which a product of two such numbers is exact."""
    return tensor.float().contiguous() if tensor.device.type == "cpu" else tensor


def _keep_freed_pages(piece: int, device: torch.device) -> None:
    """Let the C allocator reuse the pieces' pages.

    glibc returns freed memory to the kernel above a limit, twice the largest mapping it has seen freed; below it, each
    piece would be faulted in again, which takes as long as the products. Freeing one untouched mapping of six pieces
    sets the limit high enough.
    """
    if device.type == "cpu":
        torch.empty(6 * piece, dtype=torch.float32)


# torch.mm writes fp32 from half-precision matrices since 2.8, on CUDA.
_MM_WIDENS = tuple(int(part) for part in torch.__version__.split(".")[:2]) >= (2, 8)
