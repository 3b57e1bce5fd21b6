"""The Triton kernel of the pair pass, in Triton's interpreter, which needs a separate process."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

pytestmark = [pytest.mark.slow, pytest.mark.xdist_group("torch"), pytest.mark.usefixtures("needs_torch")]

_COMPARE = """
import torch
from scoring.pair.kernel import fold_triton
from scoring.pair.vocabulary_pass import Head, fold_torch, vocab_pass

def normal(*shape):
    return torch.randn(*shape, generator=made)

made = torch.Generator().manual_seed(7)
cases = 0
for count, words, tile, scale, bias in (
    (1, 1, 1, 1, False), (3, 5, 2, 1, True), (4, 37, 8, 1, False), (5, 64, 64, 30, True), (2, 100, 33, 1_000, True),
    (3, 130, 200, 1, False), (2, 4_200, 4_200, 1, True), (2, 2_049, 2_048, 3, False),
):
    heads = [Head(normal(words, 6) * scale, normal(words) if bias else None) for _ in range(2)]
    hidden = normal(count, 6), normal(count, 6)
    targets = torch.randint(-1, words, (count,), generator=made)
    targets[0], targets[-1] = 0, words - 1
    one, other = (
        vocab_pass(*hidden, *heads, targets, tile=tile, block=2, kernel=kernel) for kernel in ("torch", "triton")
    )
    for name, a, b in zip(one._fields, one, other):
        torch.testing.assert_close(a, b, rtol=1e-5, atol=2e-6 * scale * scale, msg=lambda m: f"{name} {words}: {m}")
    cases += 1

# equal logits, one that dominates, and logits of half precision with a gap between rows
for p in (torch.full((2, 40), 1e4), torch.cat([torch.full((2, 1), 1e4), torch.full((2, 39), -1e4)], 1)):
    for dtype in (torch.float32, torch.bfloat16):
        q = normal(2, 48).to(dtype)[:, :40]
        start = torch.zeros(7, 2)
        start[0] = start[4] = -torch.inf
        one, other = start.clone(), start.clone()
        fold_triton(p.to(dtype), q, torch.tensor([-1, 13]), 10, one)
        fold_torch(p.to(dtype).float(), q.float(), torch.tensor([-1, 13]), 10, other)
        torch.testing.assert_close(one, other, rtol=1e-5, atol=1e-6)
        cases += 1

hidden, head = normal(3, 4), Head(normal(20, 4))
hidden[1, 0] = torch.nan
sums = vocab_pass(hidden, hidden, head, head, torch.zeros(3, dtype=torch.int64), kernel="triton", tile=8)
assert sums.mean_q.isnan().tolist() == sums.lse_p.isnan().tolist() == [False, True, False]
print(cases, "cases equal")
"""


def test_the_kernel_equals_the_torch_path() -> None:
    """The kernel gives the torch path's sums within 1e-5.

    The cases are one tile or many, a tail beyond the chunk, biases, fp32 and bfloat16 logits, extreme logits and NaN.
    """
    pytest.importorskip("triton")
    environment = os.environ | {"TRITON_INTERPRET": "1", "OMP_NUM_THREADS": "1"}
    found = subprocess.run(
        [sys.executable, "-c", _COMPARE], env=environment, capture_output=True, text=True, timeout=300, check=False
    )
    assert found.returncode == 0, found.stderr[-3_000:]
    assert found.stdout.strip() == "12 cases equal"


def test_the_kernel_compiles_for_cards(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without a card, the kernel compiles to machine code for compute capabilities 8.0 and 9.0, both logit types."""
    pytest.importorskip("triton")
    from triton.backends.compiler import GPUTarget
    from triton.compiler import ASTSource, compile

    from scoring.pair.kernel import CHUNK, WARPS, _fold_row

    monkeypatch.setenv("TRITON_DEFAULT_FP_FUSION", "1")  # the default, without a warning
    for card, logits in ((80, "*fp32"), (90, "*bf16")):
        kinds = [logits, logits, "*i64", "*fp32", "i32", "i32", "i32", "i32", "i32"]
        signature = dict(zip(_fold_row.arg_names, [*kinds, "constexpr"], strict=True))
        source = ASTSource(_fold_row, signature, {"CHUNK": CHUNK})
        built = compile(source, target=GPUTarget("cuda", card, 32), options={"num_warps": WARPS})
        assert "ptx" in built.asm
