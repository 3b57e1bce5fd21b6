"""Faster bodies of language models, with the same numbers as transformers.

- **Falcon's attention.** transformers always passes a causal mask, and one key and value head beside many query heads;
  no fused attention kernel takes that, so the scores [B, heads, T, T] are written out and read several times in every
  layer. Here attention is marked as causal with shared heads, which the flash kernels support. The rotary embedding
  turns queries and keys together.
- **Matrix products on a CPU.** See `scoring.engine.linears`.

Other bodies run as transformers has them.
"""

from __future__ import annotations

from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import torch
from torch import Tensor
from torch.nn import functional

from scoring.engine.linears import widen_linears

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
