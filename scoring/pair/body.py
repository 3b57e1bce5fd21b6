"""Faster bodies of language models, with the same numbers as transformers.

- **Falcon's attention.** transformers always passes a causal mask, and one key and value head beside many query heads;
  no fused attention kernel takes that, so the scores [B, heads, T, T] are written out and read several times in every
  layer. Here attention is marked as causal with shared heads, which the flash kernels support. The rotary embedding
  turns queries and keys together.
- **Matrix products on a CPU.** Linear layers in fp32 go through oneDNN, see `onednn_linear`, and GPT-2's GELU, six
  operations in transformers, is one.

Other bodies run as transformers has them.
"""

from __future__ import annotations

from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional

from scoring.pair.vocabulary_pass import onednn_linear, onednn_multiplies

_FALCON_ASSUMES = {
    "multi_query": True,
    "parallel_attn": True,
    "new_decoder_architecture": False,
    "alibi": False,
    "bias": False,
    "activation": "gelu",
}


def fast_body(body: Any) -> Callable[..., Any]:
    """A body that replaces `body`, on the same weights: (input_ids [B, T]) -> .last_hidden_state [B, T, H].

    Padding must be on the right. On a CPU the linear layers of `body` itself are changed. Fast is a FalconModel of the
    7B kind: one key and value head, attention and MLP side by side behind one norm.
    """
    widen_linears(body)
    if body.config.model_type != "falcon" or any(
        getattr(body.config, name, None) != value for name, value in _FALCON_ASSUMES.items()
    ):
        return body  # type: ignore[no-any-return]

    def falcon_body(input_ids: Tensor, *, use_cache: bool = False) -> Any:  # noqa: ARG001  # as other bodies
        states = body.word_embeddings(input_ids)
        places = torch.arange(states.shape[1], device=states.device).unsqueeze(0)
        cos, sin = (part.unsqueeze(2) for part in body.rotary_emb(states, position_ids=places))  # [1, T, 1, D]
        for block in body.h:
            states = _falcon_layer(states, cos, sin, block)
        return SimpleNamespace(last_hidden_state=body.ln_f(states))

    return falcon_body


def _falcon_layer(states: Tensor, cos: Tensor, sin: Tensor, block: Any) -> Tensor:
    batch, width, _ = states.shape
    attention, mlp = block.self_attention, block.mlp
    normed = block.input_layernorm(states)
    fused = attention.query_key_value(normed).view(batch, width, attention.num_heads + 2, -1)
    turning, value = fused[:, :, :-1], fused[:, :, -1:]  # queries with the key; the value
    half = turning.shape[-1] // 2
    turned = torch.cat((-turning[..., half:], turning[..., :half]), dim=-1)
    turned = torch.addcmul(turning * cos, turned, sin)
    query, key = turned[:, :, :-1].transpose(1, 2), turned[:, :, -1:].transpose(1, 2)
    seen = functional.scaled_dot_product_attention(query, key, value.transpose(1, 2), is_causal=True, enable_gqa=True)
    attended = attention.dense(seen.transpose(1, 2).reshape(batch, width, -1))
    thought = mlp.dense_4h_to_h(functional.gelu(mlp.dense_h_to_4h(normed)))
    result: Tensor = states + attended + thought
    return result


def widen_linears(body: nn.Module) -> int:
    """Replace the fp32 linear layers of `body` on an x86 CPU by WideLinear; returns their number, elsewhere 0."""
    if not onednn_multiplies():
        return 0
    count = 0
    for parent in list(body.modules()):
        for name, layer in list(parent.named_children()):
            # the weights [out, in] of a plain linear layer; GPT-2 calls its own Conv1D and keeps them transposed
            weight: Any = layer.weight if isinstance(layer, nn.Linear) else None
            if type(layer).__name__ == "Conv1D":
                weight = layer.weight.T
            if weight is not None and weight.dtype == torch.float32 and weight.device.type == "cpu":
                setattr(parent, name, WideLinear(weight, layer.bias))  # type: ignore[arg-type]
                count += 1
            elif type(layer).__name__ == "NewGELUActivation":
                setattr(parent, name, nn.GELU(approximate="tanh"))
    return count


class WideLinear(nn.Module):
    """x @ weight.T + bias in fp32 by oneDNN. No gradients."""

    def __init__(self, weight: Tensor, bias: Tensor | None) -> None:
        super().__init__()
        self.weight = nn.Buffer(weight.detach().contiguous(), persistent=False)
        self.bias = None if bias is None else nn.Buffer(bias.detach(), persistent=False)

    @torch.no_grad()
    def forward(self, states: Tensor) -> Tensor:
        flat = states.reshape(-1, states.shape[-1]).contiguous()
        return onednn_linear(flat, self.weight, self.bias).view(*states.shape[:-1], -1)
