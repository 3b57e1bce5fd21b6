"""DeBERTa's attention on a CPU, with the same numbers as transformers, in two thirds of its time.

The score of a query q and a key k is (Q_q K_k + Q_q A_b + K_k B_b) / sqrt(3 D), where A and B are projections of the
embedding of the bucket b of their distance q - k. transformers projects these embeddings anew in each layer and batch,
and picks the products by an index for each q and k. Here they are projected once, and a block of n queries is
multiplied with the rows of all its distances at once:

    E[r, j] = Q_(q0 + r) A_bucket(q0 + n - 1 - j),   r < n, j < T + n - 1

holds the second term of (q0 + r, k) at j = k - r + n - 1. This is a view of E whose rows begin one number earlier each:
nothing is picked. The third term is the same for a block of keys, transposed.
"""

from __future__ import annotations

import math
from typing import Any

import torch
from torch import Tensor, nn

_BLOCK = 64
PIECE = 2**19  # scores at a time: some heads, which stay in the caches


def speed_up_attention(body: Any) -> int:
    """Replace the attention of a DeBERTa v2 or v3 in fp32 on a CPU; returns the number of its layers, of others 0."""
    if body.config.model_type != "deberta-v2" or body.device.type != "cpu" or body.dtype != torch.float32:
        return 0
    layers = [layer.attention for layer in body.encoder.layer if _is_usual(layer.attention.self)]
    if layers:
        embedded = body.encoder.get_rel_embedding()
        for attention in layers:
            attention.self = DisentangledAttention(attention.self, embedded)
    return len(layers)


def _is_usual(layer: Any) -> bool:
    return layer.relative_attention and layer.share_att_key and {"c2p", "p2c"} == set(layer.pos_att_type)


class DisentangledAttention(nn.Module):
    """Replaces transformers' DisentangledSelfAttention."""

    def __init__(self, layer: Any, embedded: Tensor) -> None:
        """`embedded` are the embeddings of distances [2 x buckets, H]."""
        super().__init__()
        self.query, self.key, self.value = layer.query_proj, layer.key_proj, layer.value_proj
        self.heads, self.buckets = layer.num_attention_heads, layer.pos_ebd_size
        self.scale = 1 / math.sqrt(3 * layer.attention_head_size)
        embedded = embedded[: 2 * self.buckets]
        self.of_keys = nn.Buffer(self._by_head(self.key(embedded)), persistent=False)  # A
        self.of_queries = nn.Buffer(self._by_head(self.query(embedded)) * self.scale, persistent=False)  # B

    def forward(
        self,
        hidden_states: Tensor,
        attention_mask: Tensor,
        output_attentions: bool = False,
        query_states: Tensor | None = None,
        relative_pos: Tensor | None = None,
        rel_embeddings: Tensor | None = None,
    ) -> tuple[Tensor, None]:
        """States [B, T, H]; mask [B, 1, T, T]; buckets of the distances q - k, [1, T, T]."""
        del output_attentions, query_states, rel_embeddings
        assert relative_pos is not None
        buckets = torch.cat((relative_pos[0, 0].flip(0), relative_pos[0, 1:, 0]))  # of the distances 1 - T … T - 1
        places = (buckets.long() + self.buckets).clamp(0, 2 * self.buckets - 1)
        of_keys = self.of_keys.index_select(1, places.flip(0)).mT
        of_queries = self.of_queries.index_select(1, places).mT
        seen = [
            self._attend(states, mask, of_keys, of_queries)
            for states, mask in zip(hidden_states, attention_mask, strict=True)
        ]
        return torch.stack(seen), None

    def _attend(self, states: Tensor, mask: Tensor, of_keys: Tensor, of_queries: Tensor) -> Tensor:
        query = self._by_head(self.query(states)).mul_(self.scale)
        key, value = self._by_head(self.key(states)), self._by_head(self.value(states))
        length = len(states)
        some = max(1, PIECE // length**2)
        mask = mask.bool()
        hidden = None if bool(mask.all()) else ~mask
        seen = torch.empty_like(query)
        for heads in (slice(first, first + some) for first in range(0, self.heads, some)):
            scores = torch.bmm(query[heads], key[heads].mT)
            for first in range(0, length, _BLOCK):
                block = slice(first, first + _BLOCK)
                scores[:, block] += _by_distance(query[heads, block], of_keys[heads], first, length)
                scores[:, :, block] += _by_distance(key[heads, block], of_queries[heads], first, length).mT
            if hidden is not None:
                scores.masked_fill_(hidden, torch.finfo(scores.dtype).min)
            torch.bmm(scores.softmax(-1), value[heads], out=seen[heads])
        return seen.transpose(0, 1).reshape(length, -1)

    def _by_head(self, states: Tensor) -> Tensor:
        """[T, H] -> [heads, T, H / heads]."""
        return states.view(len(states), self.heads, -1).transpose(0, 1).contiguous()


def _by_distance(block: Tensor, table: Tensor, first: int, length: int) -> Tensor:
    """Products of positions first … first + n with the table's columns of their distances to all: [heads, n, T]."""
    heads, count, _ = block.shape
    start = length - first - count
    products = torch.bmm(block, table[:, :, start : start + length + count - 1])
    width = products.shape[-1]
    return products.as_strided((heads, count, length), (count * width, width - 1, 1), count - 1)
