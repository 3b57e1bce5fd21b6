"""The fast bodies give the same hidden states as transformers' bodies."""

from __future__ import annotations

import copy
from typing import TYPE_CHECKING, Any

import pytest

from tests.support.lazily import Lazily

if TYPE_CHECKING:
    import torch

    from scoring.engine import linears
    from scoring.pair import body
else:
    torch, body, linears = Lazily("torch"), Lazily("scoring.pair.body"), Lazily("scoring.engine.linears")
transformers: Any = Lazily("transformers")

pytestmark = [pytest.mark.slow, pytest.mark.xdist_group("torch"), pytest.mark.usefixtures("inference")]

CONFIGS: dict[str, dict[str, Any]] = {
    "falcon": {"hidden_size": 48, "num_hidden_layers": 3, "num_attention_heads": 6},
    "falcon-alibi": {"hidden_size": 48, "num_hidden_layers": 2, "num_attention_heads": 4, "alibi": True},
    "falcon-new": {
        "hidden_size": 48,
        "num_hidden_layers": 2,
        "num_attention_heads": 4,
        "new_decoder_architecture": True,
        "num_kv_heads": 2,
    },
    "llama": {
        "hidden_size": 48,
        "num_hidden_layers": 2,
        "num_attention_heads": 4,
        "num_key_value_heads": 2,
        "intermediate_size": 80,
    },
    "gpt2": {"n_embd": 48, "n_layer": 2, "n_head": 4, "n_positions": 64},
}


def body_of(name: str) -> Any:
    """A body with wide random weights, so that an error in any term shows."""
    torch.manual_seed(5)
    config = transformers.AutoConfig.for_model(
        name.split("-")[0], vocab_size=90, initializer_range=0.3, **CONFIGS[name]
    )
    return transformers.AutoModel.from_config(config).eval()


def assert_equal_states(fast: Any, own: Any, limit: float, *shapes: tuple[int, int]) -> None:
    """The same hidden states, within `limit` of the largest."""
    for shape in shapes:
        ids = torch.randint(0, 90, shape)
        expected = own(input_ids=ids, use_cache=False).last_hidden_state
        found = fast(input_ids=ids, use_cache=False).last_hidden_state
        assert (found - expected).abs().max() <= limit * (1 + expected.abs().max())


@pytest.mark.parametrize("name", CONFIGS)
def test_the_same_hidden_states(name: str) -> None:
    """Falcon of all kinds, Llama and GPT-2 give transformers' hidden states for any number and length of texts."""
    own = body_of(name)
    fast = body.fast_body(copy.deepcopy(own))
    assert isinstance(fast, torch.nn.Module) == (name != "falcon")
    assert_equal_states(fast, own, 1e-5, (1, 1), (1, 17), (3, 40))


def test_what_stands_on_the_right_is_not_seen() -> None:
    """Ids after a text do not change its hidden states."""
    fast = body.fast_body(body_of("falcon"))
    ids = torch.randint(0, 90, (2, 30))
    ids[1, :20] = ids[0, :20]
    found = fast(input_ids=ids).last_hidden_state
    torch.testing.assert_close(found[0, :20], found[1, :20], rtol=1e-5, atol=1e-5)
    assert not torch.allclose(found[0, 20:], found[1, 20:], atol=0.1)


def test_every_fp32_linear_layer_is_replaced_and_no_other() -> None:
    """All of GPT-2's products (4 per layer) are replaced, and none of a body in half precision.

    A new layer has the numbers of the replaced layer, with and without bias.
    """
    assert linears.widen_linears(body_of("gpt2")) == 8
    assert linears.widen_linears(body_of("gpt2").bfloat16()) == 0
    for bias in (False, True):
        layer = torch.nn.Linear(30, 20, bias=bias)
        states = torch.randn(2, 5, 30)
        wide = linears.WideLinear(layer.weight, layer.bias)
        torch.testing.assert_close(wide(states), layer(states), rtol=1e-5, atol=1e-6)
