"""Linear layers in FP8: weights and states as float8 e4m3, products with wide sums.

e4m3 has a sign, 4 bits of exponent and 3 of fraction, up to 448. A weight has a scale per output channel, found once; a
state has one per token, found as it comes:

    y[t, o] = s_x[t] s_w[o] sum_i x8[t, i] w8[o, i],    x8 = x / s_x,    s_x[t] = max_i |x[t, i]| / 448

Scales per token, and not of the whole batch, so that the score of a text does not depend on the other texts of its
batch. The product is `torch.nn.functional.scaled_mm`, public since torch 2.10, which has replaced `torch._scaled_mm`.
Cards of compute capability 9.0 (Hopper) and later multiply FP8 twice as fast as bfloat16. torch does the same on a CPU,
slowly: so tests and studies measure the error of the format without a card.

Only the bodies' layers are changed: embeddings, norms, attention and the heads, a twentieth of the work, stay as they
are.
"""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.nn import functional

from scoring.engine.linears import replace_linears

FORMAT = torch.float8_e4m3fn
_LARGEST = 448.0
_SIDE = 16  # both sides of a weight are multiples of it: the cards' kernels take no others


def shrink_linears(body: nn.Module) -> int:
    """Replace the linear layers of `body` by Fp8Linear, one after the other in place; returns their number.

    A layer with a side that is no multiple of 16 stays.
    """

    def shrunk(weight: Tensor, bias: Tensor | None) -> nn.Module | None:
        return None if any(side % _SIDE for side in weight.shape) else Fp8Linear(weight, bias)

    return replace_linears(body, shrunk)


class Fp8Linear(nn.Module):
    """x @ weight.T + bias in FP8, see the module; the result has the format of x. No gradients."""

    def __init__(self, weight: Tensor, bias: Tensor | None) -> None:
        super().__init__()
        eighths, scales = in_fp8(weight.detach())
        self.weight = nn.Buffer(eighths, persistent=False)  # [out, in]
        self.scales = nn.Buffer(scales.T.contiguous(), persistent=False)  # [1, out]
        self.bias = None if bias is None else nn.Buffer(bias.detach(), persistent=False)

    @torch.no_grad()
    def forward(self, states: Tensor) -> Tensor:
        by_row = functional.ScalingType.RowWise
        eighths, scales = in_fp8(states.reshape(-1, states.shape[-1]))
        product = functional.scaled_mm(
            eighths, self.weight.T, scales, by_row, self.scales, by_row, output_dtype=torch.bfloat16
        )
        result = product.to(states.dtype).view(*states.shape[:-1], -1)
        return result if self.bias is None else result.add_(self.bias)


def in_fp8(rows: Tensor) -> tuple[Tensor, Tensor]:
    """Rows [N, K] in FP8, and their scales [N, 1] in float32: rows are about fp8 * scale."""
    largest = torch.linalg.vector_norm(rows, ord=torch.inf, dim=1, keepdim=True).float()
    scales = (largest / _LARGEST).clamp_min(torch.finfo(torch.float32).tiny).to(rows.dtype)
    # a scale that bfloat16 rounds down leaves at most 450, and up to 464 becomes 448
    return (rows / scales).to(FORMAT), scales.float()
