"""FP8 layers multiply as they say, token by token, and a machine that cannot run them is refused in words."""

from __future__ import annotations

from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import pytest

from scoring.detectors.model_check import look
from scoring.engine import loading
from scoring.engine.loading import device_of
from scoring.errors import NoDevice
from scoring.pair.scores import PairReading
from scoring.pair.settings import PairSettings, pair_identity
from tests.support.lazily import Lazily
from tests.support.pairs import Pair, settings_of

if TYPE_CHECKING:
    import torch

    from scoring.engine import fp8
else:
    torch, fp8 = Lazily("torch"), Lazily("scoring.engine.fp8")

pytestmark = [pytest.mark.slow, pytest.mark.xdist_group("torch"), pytest.mark.usefixtures("needs_torch")]

TEXTS = [
    "The boats that had come in late were still being unloaded.",
    "She wrote to them about the garden, which had grown so much.",
    "It is not what the council had said it would be, but there were people who thought that it was better.",
]


@pytest.mark.parametrize("form", ["float32", "bfloat16"])
def test_a_layer_multiplies_the_rounded_numbers(form: str) -> None:
    """The product is that of the FP8 numbers and their scales, to bfloat16, and within 5% of the exact one."""
    torch.manual_seed(2)
    dtype = getattr(torch, form)
    weight, bias = torch.randn(48, 32, dtype=dtype) * 0.02, torch.randn(48, dtype=dtype)
    states = torch.randn(2, 5, 32, dtype=dtype) * 10 ** torch.randint(-3, 4, (2, 5, 1)).to(dtype)
    found = fp8.Fp8Linear(weight, bias)(states).double()
    (x8, x_scale), (w8, w_scale) = fp8.in_fp8(states.view(10, 32)), fp8.in_fp8(weight)
    rounded = (x8.double() * x_scale) @ (w8.double() * w_scale).T
    assert found == pytest.approx((rounded + bias).view(2, 5, 48), rel=2**-6, abs=2**-6)
    exact = states.double() @ weight.double().T
    assert (rounded.view(2, 5, 48) - exact).norm() <= 0.05 * exact.norm()


def test_rows_of_zeros_and_broken_rows_stay_among_themselves() -> None:
    """Zeros give zeros; a row that holds NaN or inf gives NaN; neither changes another row."""
    layer = fp8.Fp8Linear(torch.randn(16, 16), None)
    rows = torch.randn(4, 16)
    expected = layer(rows)
    rows[1], rows[2, 3] = 0.0, float("nan")
    found = layer(rows)
    assert torch.equal(found[[0, 3]], expected[[0, 3]])
    assert (found[1] == 0).all() and found[2].isnan().all()


def test_a_body_keeps_layers_that_do_not_fit() -> None:
    """Layers with a side that is no multiple of 16 stay as they are; GPT-2's transposed ones are replaced."""
    import transformers

    config: Any = transformers.AutoConfig.for_model("gpt2", vocab_size=90, n_embd=32, n_layer=1, n_head=2, n_inner=40)
    model: Any = transformers.AutoModel.from_config(config)
    assert fp8.shrink_linears(model.eval()) == 2  # attention; the inner layer is 40 wide
    assert type(model.h[0].mlp.c_fc).__name__ == "Conv1D"


@pytest.mark.parametrize("architecture", ["falcon", "llama", "gpt2"])
def test_a_pair_reads_in_fp8(pairs: dict[str, Pair], architecture: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Loaded as fp8, here on a CPU, a pair gives scores near those of float32, and the same in any batch."""
    from scoring.engine.fp8 import Fp8Linear
    from scoring.pair.engine import PairEngine
    from scoring.pair.models import load_models

    monkeypatch.setattr(loading, "_refuse_without_fp8", lambda *_: None)
    settings = settings_of(pairs[architecture], dtype="fp8")
    models = load_models(settings)
    layers = [layer for model in (models.observer, models.performer) for layer in _modules(model.body)]
    assert any(isinstance(layer, Fp8Linear) for layer in layers)
    engine, plain = PairEngine(models, settings), PairEngine(load_models(settings_of(pairs[architecture])), settings)
    together = engine.read(TEXTS)
    alone = [engine.read([text])[0] for text in TEXTS]
    for windows in zip(together, alone, plain.read(TEXTS), strict=True):
        one, other, exact = (of[0] if isinstance(of, list) else of for of in windows)
        assert isinstance(one, PairReading) and isinstance(other, PairReading) and isinstance(exact, PairReading)
        assert one.binoculars == pytest.approx(other.binoculars, rel=1e-2)
        assert one.binoculars == pytest.approx(exact.binoculars, rel=0.25)
    assert pair_identity(settings, "binoculars").split("/")[2] == "fp8"


def _modules(body: Any) -> list[Any]:
    cells = [cell.cell_contents for cell in getattr(body, "__closure__", None) or ()]
    return [layer for part in [body, *cells] if hasattr(part, "modules") for layer in part.modules()]


def test_a_cpu_is_refused_before_loading(pairs: dict[str, Pair]) -> None:
    """What `doctor` and SCORE look at first says that fp8 needs a card, and which setting to change."""
    found = look(settings_of(pairs["falcon"], dtype="fp8"))
    assert found.error == "NoDevice"
    assert found.message == (
        'score.pair.dtype is "fp8", which needs a card of compute capability 9.0 (Hopper) or later and torch 2.10 or'
        ' later; cpu is no CUDA card: set dtype = "" for the usual number format'
    )


@pytest.mark.parametrize(
    ("capability", "scaled_mm", "said"),
    [((8, 0), True, "A card has 8.0"), ((9, 0), False, "torch 2.9 is older"), ((9, 0), True, ""), ((10, 0), True, "")],
)
def test_older_cards_and_versions_are_refused(capability: tuple[int, int], scaled_mm: bool, said: str) -> None:
    """Cards of Hopper's capability and later are taken, if this torch has the product."""
    cuda = SimpleNamespace(
        is_available=lambda: True,
        device_count=lambda: 1,
        get_device_capability=lambda _: capability,
        get_device_name=lambda _: "A card",
    )
    functional = SimpleNamespace(scaled_mm=None) if scaled_mm else SimpleNamespace()
    stub = SimpleNamespace(cuda=cuda, device=torch.device, nn=SimpleNamespace(functional=functional), __version__="2.9")
    settings = PairSettings(dtype="fp8")
    if not said:
        assert device_of(settings, stub).type == "cuda"
        return
    with pytest.raises(NoDevice, match=said):
        device_of(settings, stub)
