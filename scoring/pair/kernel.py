"""The fold of scoring/pair/vocabulary_pass.py as one Triton kernel: each logit is read from memory once.

One program owns one row (a token position). It walks the row's tile in chunks of `CHUNK` words that stay in registers,
merged into the row's seven running numbers by the rule of Chan, Golub and LeVeque (see vocabulary_pass).

2,048 words over 4 warps are 16 words a thread and head, read 16 bytes at a time; compiled for compute capability 9.0
that takes 56 registers without spills, so nine programs share a multiprocessor and hide each other's reductions.
Offsets of rows are 64-bit: 16,384 rows of 131,072 words pass 2^31. The columns beyond the tile have weight 0.

`TRITON_INTERPRET=1`, set before triton is imported, runs the same code on a CPU, for tests.
"""

from __future__ import annotations

import triton
import triton.language as tl
from torch import Tensor

CHUNK = 2_048
WARPS = 4


@triton.jit  # type: ignore[untyped-decorator]  # triton publishes no types
def _fold_row(  # type: ignore[no-untyped-def]  # its parameters are Triton's own values
    p_ptr, q_ptr, targets_ptr, state_ptr, first, width, p_stride, q_stride, state_stride, CHUNK: tl.constexpr
):
    row = tl.program_id(0).to(tl.int64)
    p_row = p_ptr + row * p_stride
    q_row = q_ptr + row * q_stride
    held = state_ptr + row
    max_p = tl.load(held)
    sum_p = tl.load(held + state_stride)
    mean = tl.load(held + 2 * state_stride)
    squares = tl.load(held + 3 * state_stride)
    max_q = tl.load(held + 4 * state_stride)
    sum_q = tl.load(held + 5 * state_stride)
    lanes = tl.arange(0, CHUNK)
    for start in range(0, width, CHUNK):
        inside = start + lanes < width
        p = tl.load(p_row + start + lanes, mask=inside, other=float("-inf")).to(tl.float32)
        q = tl.load(q_row + start + lanes, mask=inside, other=float("-inf")).to(tl.float32)

        peak_q = tl.maximum(max_q, tl.max(q, axis=0))
        sum_q = sum_q * tl.exp(max_q - peak_q) + tl.sum(tl.exp(q - peak_q), axis=0)
        max_q = peak_q

        top = tl.max(p, axis=0)
        weights = tl.exp(p - top)  # 0 beyond the tile
        weight = tl.sum(weights, axis=0)
        known = tl.where(inside, q, 0.0)  # 0 * -inf would be NaN
        centre = tl.sum(weights * known, axis=0) / weight
        apart = known - centre
        weighted = weights * apart
        left = tl.sum(weighted, axis=0)  # what rounding left of sum w d
        around = tl.sum(weighted * apart, axis=0) - left * left / weight
        centre += left / weight

        peak_p = tl.maximum(max_p, top)
        scale_a = tl.exp(max_p - peak_p)
        scale_b = tl.exp(top - peak_p)
        weight_a = sum_p * scale_a
        sum_p = weight_a + weight * scale_b
        share = weight * scale_b / sum_p
        delta = centre - mean
        squares = squares * scale_a + around * scale_b + delta * delta * weight_a * share
        mean += delta * share
        max_p = peak_p
    tl.store(held, max_p)
    tl.store(held + state_stride, sum_p)
    tl.store(held + 2 * state_stride, mean)
    tl.store(held + 3 * state_stride, squares)
    tl.store(held + 4 * state_stride, max_q)
    tl.store(held + 5 * state_stride, sum_q)
    column = tl.load(targets_ptr + row) - first
    here = (column >= 0) & (column < width)
    z_target = tl.load(q_row + column, mask=here, other=0.0).to(tl.float32)
    tl.store(held + 6 * state_stride, z_target, mask=here)


def fold_triton(p: Tensor, q: Tensor, targets: Tensor, first: int, state: Tensor) -> None:
    """Fold a piece of logits [B, T] (fp32 or half precision), words first … first + T, into `state` [7, B].

    The same numbers as scoring.pair.vocabulary_pass.fold_torch, and p and q are left as they are. Rows must be
    contiguous.
    """
    count, width = p.shape
    strides = p.stride(0), q.stride(0), state.stride(0)
    chunk = min(CHUNK, triton.next_power_of_2(width))
    _fold_row[(count,)](p, q, targets.contiguous(), state, first, width, *strides, CHUNK=chunk, num_warps=WARPS)
