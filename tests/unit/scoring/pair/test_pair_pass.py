"""The tiled pass over the vocabulary against a float64 softmax over all words."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.support.lazily import Lazily

if TYPE_CHECKING:
    import torch

    from scoring.pair import vocabulary_pass as tiled
    from scoring.pair.vocabulary_pass import Head, TokenSums
else:
    torch, tiled = Lazily("torch"), Lazily("scoring.pair.vocabulary_pass")

pytestmark = [pytest.mark.slow, pytest.mark.xdist_group("torch"), pytest.mark.usefixtures("needs_torch")]

Array = np.ndarray[tuple[int, int], np.dtype[np.float64]]
SHAPES = st.fixed_dictionaries(
    {
        "count": st.integers(1, 9),
        "words": st.integers(1, 40),
        "width_p": st.integers(1, 12),
        "width_q": st.integers(1, 12),
        "bias": st.booleans(),
        "seed": st.integers(0, 2**31),
    }
)
PIECES = st.tuples(st.integers(1, 50), st.integers(1, 12))


@dataclass
class Case:
    """Arguments of a pass, and its logits in float64."""

    hidden_p: torch.Tensor
    hidden_q: torch.Tensor
    head_p: Head
    head_q: Head
    targets: torch.Tensor

    def run(self, tile: int | None = None, block: int | None = None) -> TokenSums:
        return tiled.vocab_pass(
            self.hidden_p, self.hidden_q, self.head_p, self.head_q, self.targets, tile=tile, block=block
        )


def random_case(
    count: int = 6, words: int = 37, width_p: int = 8, width_q: int = 5, bias: bool = False, seed: int = 0
) -> Case:
    """A pair of random heads, and targets, some of them -1."""
    made = torch.Generator().manual_seed(seed)

    def normal(*shape: int) -> torch.Tensor:
        return torch.randn(*shape, generator=made)

    heads = [tiled.Head(normal(words, width), normal(words) if bias else None) for width in (width_p, width_q)]
    targets = torch.randint(-1, words, (count,), generator=made)
    return Case(normal(count, width_p), normal(count, width_q), heads[0], heads[1], targets)


def exact_case(p: Array, q: Array, targets: list[int]) -> Case:
    """A pass whose logits are exactly p and q [N, V]: position n's hidden state picks column n of the weights."""
    one_hot = torch.eye(len(p))
    heads = [tiled.Head(torch.tensor(logits.T.copy(), dtype=torch.float32)) for logits in (p, q)]
    return Case(one_hot, one_hot.clone(), heads[0], heads[1], torch.tensor(targets))


def logits_of(hidden: torch.Tensor, head: Head) -> Array:
    """The whole matrix in float64."""
    product: Array = hidden.double().numpy() @ head.weight.double().numpy().T
    return product if head.bias is None else product + head.bias.double().numpy()


def naive(case: Case) -> dict[str, Array]:
    """The definitions in float64, over all words."""
    p, q = logits_of(case.hidden_p, case.head_p), logits_of(case.hidden_q, case.head_q)
    peaks = p.max(1, keepdims=True), q.max(1, keepdims=True)
    weights = np.exp(p - peaks[0])
    weights /= weights.sum(1, keepdims=True)
    mean = (weights * q).sum(1)
    wanted = case.targets.numpy()
    return {
        "lse_p": peaks[0][:, 0] + np.log(np.exp(p - peaks[0]).sum(1)),
        "lse_q": peaks[1][:, 0] + np.log(np.exp(q - peaks[1]).sum(1)),
        "z_q_target": np.where(wanted < 0, 0.0, q[np.arange(len(q)), wanted]),
        "mean_q": mean,
        "var_q": (weights * (q - mean[:, None]) ** 2).sum(1),
    }


def assert_equals(found: TokenSums, case: Case) -> None:
    """Within 1e-5 of the value, plus what fp32 loses on logits of the case's size: 1e-6 of the largest, S.

    The variance, a square, may besides move by 2 sqrt(var) S + S^2, as it does when each logit moves by S.
    """
    expected = naive(case)
    largest = max(
        np.abs(logits_of(case.hidden_p, case.head_p)).max(), np.abs(logits_of(case.hidden_q, case.head_q)).max()
    )
    lost = 1e-6 * max(1.0, float(largest))
    for name, value in expected.items():
        allowed = 1e-5 * np.abs(value) + (lost if name != "var_q" else 2 * np.sqrt(value) * lost + lost**2)
        off = np.abs(getattr(found, name).double().numpy() - value)
        assert np.all(off <= allowed), (name, off, allowed, value)


@given(shape=SHAPES, piece=PIECES)
@settings(max_examples=60)
def test_equals_the_float64_softmax(shape: dict[str, int], piece: tuple[int, int]) -> None:
    """For any shape, bias, tile and block, the five numbers equal those of a float64 softmax over all words."""
    case = random_case(**shape)  # type: ignore[arg-type]
    assert_equals(case.run(*piece), case)


LOGITS = st.one_of(
    st.floats(-1e4, 1e4, width=32), st.sampled_from([-1e4, 0.0, 1e4, 9_999.0]), st.floats(-5, 5, width=32)
)


@given(data=st.data(), words=st.integers(1, 12), count=st.integers(1, 3), piece=PIECES)
@settings(max_examples=80)
def test_extreme_logits(data: st.DataObject, words: int, count: int, piece: tuple[int, int]) -> None:
    """Logits up to ±1e4, equal logits and one dominant logit neither overflow nor lose digits, for any tiles."""
    rows = st.lists(st.lists(LOGITS, min_size=words, max_size=words), min_size=count, max_size=count)
    targets = data.draw(st.lists(st.integers(-1, words - 1), min_size=count, max_size=count))
    case = exact_case(np.array(data.draw(rows)), np.array(data.draw(rows)), targets)
    assert_equals(case.run(*piece), case)


def test_a_small_variance_on_large_logits_keeps_its_digits() -> None:
    """Logits of 8,192 ± 1/4 have variance 1/16, which sum w z^2 - mean^2 in fp32 would lose."""
    q = np.where(np.arange(4_000) % 2, 8192.25, 8191.75)[None, :]
    case = exact_case(np.zeros((1, 4_000)), q, [0])
    for tile in (64, 256, 4_000):
        assert case.run(tile=tile).var_q.item() == pytest.approx(0.0625, rel=1e-5)


def test_a_mean_that_fp32_cannot_hold_does_not_spoil_the_variance() -> None:
    """If the mean cannot be exact in fp32, the variance is still right, by the corrected two-pass rule.

    Every third logit is 1/64 above 8,192: the mean is rounded by more than a hundredth of the deviation.
    """
    q = np.where(np.arange(4_000) % 3, 8192.0, 8192.0 + 1 / 64)[None, :]
    found = exact_case(np.zeros((1, 4_000)), q, [0]).run(tile=4_000)
    assert found.var_q.item() == pytest.approx(float(q.var()), rel=1e-4)


@pytest.mark.parametrize("poison", [float("nan"), float("inf"), float("-inf")])
@pytest.mark.parametrize("side", ["hidden_p", "hidden_q"])
def test_a_poisoned_row_gives_nan_and_spoils_no_other(poison: float, side: str) -> None:
    """NaN or inf in one position's hidden state gives NaN there, and changes no other position."""
    case, clean = random_case(count=5), random_case(count=5)
    getattr(case, side)[2, 3] = poison
    found, expected = case.run(tile=8), clean.run(tile=8)
    others = [0, 1, 3, 4]
    assert np.isnan(found.mean_q[2].item()) and np.isnan(found.var_q[2].item())
    assert np.isnan((found.lse_p if side == "hidden_p" else found.lse_q)[2].item())
    for one, other in zip(found, expected, strict=True):
        assert torch.equal(one[others], other[others])


def test_half_precision_weights_are_summed_in_fp32() -> None:
    """bfloat16 heads and hidden states on a CPU give the logits of their exact values."""
    case = random_case(count=16, words=300, width_p=64, width_q=64)
    case.hidden_p, case.hidden_q = case.hidden_p.bfloat16(), case.hidden_q.bfloat16()
    case.head_p, case.head_q = (tiled.Head(case.head_p.weight.bfloat16()), tiled.Head(case.head_q.weight.bfloat16()))
    assert_equals(case.run(tile=64), case)


def test_with_and_without_onednn_the_sums_are_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without torch's operator for oneDNN, its own product gives the same sums."""
    case = random_case(count=20, words=70, bias=True)
    expected = case.run(tile=32, block=8)
    monkeypatch.setattr("scoring.engine.linears._POINTWISE", None)
    for one, other in zip(case.run(tile=32, block=8), expected, strict=True):
        torch.testing.assert_close(one, other, rtol=1e-5, atol=1e-5)
