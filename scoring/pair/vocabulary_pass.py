"""One tiled pass over the vocabulary for both heads of a pair: what Binoculars and Fast-DetectGPT need of each token.

**What is computed.** At one token position the observer p has logits z_p[v] and the performer q has z_q[v] over the
same V words. With w_v = softmax(z_p)_v, five numbers are enough:

    lse_p = log sum_v exp z_p[v]        lse_q = log sum_v exp z_q[v]        z_q[y], y = the token that followed
    mean_q = sum_v w_v z_q[v]           var_q = sum_v w_v (z_q[v] - mean_q)^2

because log q(v) = z_q[v] - lse_q, and the constant lse_q leaves a mean and drops out of a variance:

    ppl   = mean over t of -log q(x_t)                  = mean(lse_q - z_q[y])
    x_ppl = mean over t of -sum_v p(v) log q(v)         = mean(lse_q - mean_q)           (Binoculars, arXiv 2401.12070)
    d     = sum_t (log q(x_t) - mu_t) / sqrt(sum var_t) = sum(z_q[y] - mean_q) / sqrt(sum var_q)
                                                                             (Fast-DetectGPT, arXiv 2310.05130)

**How, without two full logit tensors.** The vocabulary is cut into tiles and the positions into blocks; only one
[block, tile] piece of each head's logits exists at a time, made by a matrix product and folded at once. A tile b of
one row gives m_b = max z_p, W_b = sum exp(z_p - m_b) >= 1, and, with the weights exp(z_p - m_b), the mean a_b of z_q
and the sum of squares about it, M_b. Two such summaries of disjoint sets merge exactly:

    m = max(m_a, m_b)     A = W_a exp(m_a - m)     B = W_b exp(m_b - m)     W = A + B       (online log-sum-exp)
    mean = mean_a + (mean_b - mean_a) B / W
    M    = M_a exp(m_a - m) + M_b exp(m_b - m) + (mean_b - mean_a)^2 A B / W

The last two lines are the pairwise update of Chan, Golub and LeVeque ("Updating formulae and a pairwise algorithm for
computing sample variances", 1979; "Algorithms for computing the sample variance", Am. Stat. 37, 1983), weighted. The
sum of squares is never found as sum w z^2 - mean^2, which loses all digits where z_q is large and nearly constant.
Inside a tile it is found by their corrected two-pass rule: with d = z_q - a for a rounded mean a,
M = sum w d^2 - (sum w d)^2 / W, and the mean becomes a + (sum w d) / W.
The running maximum starts at -inf, so the first tile is no special case: its weight is multiplied by exp(-inf) = 0.

**Costs.** Per logit pair, two exponentials and some ten cheap passes over a piece that lies in the cache, beside
2 (H_p + H_q) floating-point operations of the products. On a CPU the products go through oneDNN, which uses the
widest vectors of any x86 CPU (torch's default, MKL, uses half of them on AMD's). On CUDA a Triton kernel does the
folding in one read (scoring/pair/kernel.py).
"""

from __future__ import annotations

import platform
from collections.abc import Callable
from importlib.util import find_spec
from typing import Any, Literal, NamedTuple

import torch
from torch import Tensor
from torch.nn import functional

from scoring.errors import BadParameters

Kernel = Literal["auto", "torch", "triton"]

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
    """What one pass leaves of each of N positions; fp32 [N] each, on the device of the hidden states."""

    lse_p: Tensor  # log sum exp of the observer's logits
    lse_q: Tensor  # the same of the performer's
    z_q_target: Tensor  # the performer's logit of the target; 0 where there is none
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
    kernel: Kernel = "auto",
) -> TokenSums:
    """Both heads at N positions in one pass; memory is bounded by block x tile, whatever N and V are.

    `hidden_p` [N, H_p] and `hidden_q` [N, H_q] are the last hidden states, gathered without padding, from as many
    documents as one likes; `targets` [N] (int64) holds the word whose performer's logit is wanted, or -1 for none.
    Words beyond the tokenizer's (padded heads) count, as in the authors' code. `kernel`: "torch", "triton" (a CUDA
    device, or Triton's interpreter), or "auto": triton on CUDA where it is installed, torch elsewhere.
    A row that holds NaN or inf gives NaN and does not touch the others. Raises BadParameters where shapes disagree,
    a piece is empty, or the kernel cannot run here.
    """
    _check(hidden_p, hidden_q, head_p, head_q, targets)
    fold = _fold_by(kernel, hidden_p.device)
    state = torch.zeros(len(RunningSums._fields), len(targets), dtype=torch.float32, device=hidden_p.device)
    state[0] = state[4] = -torch.inf
    _walk((hidden_p, hidden_q), (head_p, head_q), targets, state, tile, block, fold)
    sums = RunningSums(*state)
    return TokenSums(
        lse_p=sums.max_p + sums.sum_p.log(),
        lse_q=sums.max_q + sums.sum_q.log(),
        z_q_target=sums.z_target,
        mean_q=sums.mean,
        var_q=(sums.squares / sums.sum_p).clamp_min(0),
    )


@torch.no_grad()
def head_products(hidden_p: Tensor, hidden_q: Tensor, head_p: Head, head_q: Head) -> None:
    """The matrix products of `vocab_pass` and nothing else: the floor of its time, for benchmarks."""
    nothing = torch.empty(len(RunningSums._fields), len(hidden_p), device=hidden_p.device)
    _walk((hidden_p, hidden_q), (head_p, head_q), nothing[0], nothing, None, None, lambda *_: None)


def _walk(
    hidden: tuple[Tensor, Tensor],
    heads: tuple[Head, Head],
    targets: Tensor,
    state: Tensor,
    tile: int | None,
    block: int | None,
    fold: Fold,
) -> None:
    """Make each piece of both heads' logits and hand it to `fold`, with the part of `state` that is its rows'."""
    device, words = state.device, len(heads[0].weight)
    usual_block, usual_tile = CUDA_PIECE if device.type == "cuda" else CPU_PIECE
    tile, block = usual_tile if tile is None else tile, usual_block if block is None else block
    if block < 1 or tile < 1:
        raise BadParameters(f"a piece of {block} positions by {tile} words is empty: both must be at least 1")
    _keep_freed_pages(block * tile, device)
    p, q = (_product_for(states, head) for states, head in zip(hidden, heads, strict=True))
    pieces = [
        (p.hidden(hidden[0][rows]), q.hidden(hidden[1][rows]), targets[rows], state[:, rows])
        for rows in (slice(start, start + block) for start in range(0, len(targets), block))
    ]
    for first in range(0, words, tile):  # tiles outside: each tile of the weights is read from memory once
        tile_p, tile_q = p.tile(first, tile), q.tile(first, tile)
        for piece_p, piece_q, wanted, folded in pieces:
            fold(p.logits(piece_p, tile_p), q.logits(piece_q, tile_q), wanted, first, folded)


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


class _Product:
    """Logits of a block of positions and a tile of a head's words: fp32 [B, T], a new tensor each time."""

    def __init__(self, head: Head) -> None:
        self.head = head

    def hidden(self, block: Tensor) -> Tensor:
        """A block of hidden states, as `logits` takes it."""
        return block

    def tile(self, first: int, width: int) -> tuple[Tensor, Tensor | None]:
        """The weights and the bias of `width` words from `first` on, as `logits` takes them."""
        weight, bias = self.head
        return self._weight(weight[first : first + width]), None if bias is None else bias[first : first + width]

    def logits(self, hidden: Tensor, tile: tuple[Tensor, Tensor | None]) -> Tensor:
        """hidden @ weight.T + bias, summed in fp32."""
        weight, bias = tile
        product = self._multiply(hidden, weight)
        return product if bias is None else product.add_(bias)

    def _weight(self, weight: Tensor) -> Tensor:
        return weight

    def _multiply(self, hidden: Tensor, weight: Tensor) -> Tensor:
        if hidden.dtype == torch.float32:
            return torch.mm(hidden, weight.T)
        if _MM_WIDENS and hidden.is_cuda:
            return torch.mm(hidden, weight.T, out_dtype=torch.float32)
        return torch.mm(hidden, weight.T).float()  # torch < 2.8: the logits are rounded once


class _WideProduct(_Product):
    """Half precision on a CPU: widened first, because a product of two such numbers is exact in fp32."""

    def hidden(self, block: Tensor) -> Tensor:
        return block.float()

    def _weight(self, weight: Tensor) -> Tensor:
        return weight.float()


class _OneDnnProduct(_WideProduct):
    """fp32 products by oneDNN."""

    def hidden(self, block: Tensor) -> Tensor:
        return super().hidden(block).contiguous()

    def _weight(self, weight: Tensor) -> Tensor:
        return super()._weight(weight).contiguous()

    def _multiply(self, hidden: Tensor, weight: Tensor) -> Tensor:
        return onednn_linear(hidden, weight, None)


def _product_for(hidden: Tensor, head: Head) -> _Product:
    if hidden.device.type != "cpu":
        return _Product(head)
    return _OneDnnProduct(head) if onednn_multiplies() else _WideProduct(head)


def onednn_multiplies() -> bool:
    """Whether fp32 products on this CPU go through oneDNN: it is part of torch and made for x86."""
    mkldnn: Any = torch.backends.mkldnn
    return bool(mkldnn.is_available()) and platform.machine() in {"x86_64", "AMD64"}


def onednn_linear(states: Tensor, weight: Tensor, bias: Tensor | None) -> Tensor:
    """states @ weight.T + bias by oneDNN; fp32, contiguous, on a CPU: [N, in], [out, in], [out] -> [N, out].

    Measured on an AMD EPYC (Zen 5): 190 GFLOP/s a core, where torch.mm, which is MKL, makes 90.
    """
    if _POINTWISE is not None:
        fused: Tensor = _POINTWISE(states, weight, bias, "none", [], "")
        return fused
    packed = None if bias is None else bias.to_mkldnn()  # the documented way, which copies both matrices
    return functional.linear(states.to_mkldnn(), weight.to_mkldnn(), packed).to_dense()


def _pointwise() -> Any:
    """The operator that torch.compile uses for linear layers on a CPU; None in a torch that does not have it."""
    try:
        operator = torch.ops.mkldnn._linear_pointwise
        operator(torch.ones(2, 3), torch.ones(4, 3), None, "none", [], "")
    except (AttributeError, RuntimeError, NotImplementedError):
        return None
    return operator


_POINTWISE = _pointwise() if onednn_multiplies() else None


def _keep_freed_pages(piece: int, device: torch.device) -> None:
    """Let the C allocator reuse the pieces' pages.

    glibc hands freed memory back to the kernel above a limit, twice the largest mapping it has seen freed; below it,
    each piece would be faulted in anew, which takes as long as the products. To free one mapping of six pieces, never
    touched, sets the limit high enough.
    """
    if device.type == "cpu":
        torch.empty(6 * piece, dtype=torch.float32)


# torch.mm writes fp32 from half-precision matrices since 2.8, on CUDA.
_MM_WIDENS = tuple(int(part) for part in torch.__version__.split(".")[:2]) >= (2, 8)


def _fold_by(kernel: Kernel, device: torch.device) -> Fold:
    if kernel == "torch" or (kernel == "auto" and not (device.type == "cuda" and find_spec("triton"))):
        return fold_torch
    if find_spec("triton") is None:
        raise BadParameters("kernel 'triton' needs the package triton, which is not installed: take 'torch' or 'auto'")
    from scoring.pair.kernel import can_run, fold_triton

    if not can_run(device):
        raise BadParameters(f"kernel 'triton' cannot run on the device {device}: take 'torch' or 'auto'")
    return fold_triton


def _check(hidden_p: Tensor, hidden_q: Tensor, head_p: Head, head_q: Head, targets: Tensor) -> None:
    if len(head_p.weight) != len(head_q.weight):
        raise BadParameters(
            f"the heads have {len(head_p.weight)} and {len(head_q.weight)} words: a pair has one vocabulary"
        )
    for name, hidden, head in (("observer", hidden_p, head_p), ("performer", hidden_q, head_q)):
        if hidden.shape != (len(targets), head.weight.shape[1]):
            raise BadParameters(
                f"the {name}'s hidden states are {list(hidden.shape)}, but there are {len(targets)} targets and its "
                f"head takes {head.weight.shape[1]} numbers a position"
            )
    # On a card the question would wait for all that is queued there; a target beyond the words then counts as none.
    if (
        len(targets)
        and targets.device.type == "cpu"
        and not -1 <= int(targets.min()) <= int(targets.max()) < len(head_q.weight)
    ):
        raise BadParameters(f"targets must lie in -1 … {len(head_q.weight) - 1}")
