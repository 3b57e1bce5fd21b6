"""The benchmark for a GPU: its arithmetic is right, and all of it runs on a small shape."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.bench.pair_bench import main

pytestmark = [pytest.mark.slow, pytest.mark.xdist_group("torch"), pytest.mark.usefixtures("needs_torch")]


def test_the_whole_script_runs_small(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """`--tiny` measures every table on the CPU, prints it, writes it as JSON and exits with 0.

    The scores equal those of the loop in float64.
    """
    out = tmp_path / "figures.json"
    status = main(["--tiny", "--out", str(out)])
    said = capsys.readouterr()
    assert status == 0, said.out + said.err
    tables = json.loads(out.read_text())
    assert tables["equality"]["equal"] and tables["equality"]["documents"] == 4
    assert tables["throughput"]["fast"]["of_loop"] > 0
    assert tables["throughput"]["fast"]["tokens_s"] > tables["throughput"]["fast"]["documents_s"]
    assert tables["fp8_equality"]["binoculars"]["largest_difference"] < tables["fp8_equality"]["binoculars"]["spread"]
    assert tables["encoder"]["articles_an_hour"] > 0
    assert tables["throughput"]["fp8"]["documents_s"] > 0
    assert 0 <= tables["throughput"]["fast"]["padding_share"] < 1
    assert "limit" not in out.read_text() and "driver" not in tables["machine"], "there is no card to measure by"
    assert all(
        f"\n{name}\n" in said.out
        for name in ("machine", "throughput", "equality", "fp8_equality", "memory", "profile", "encoder")
    )


def test_the_reference_is_in_float64() -> None:
    """Inside, a model of bfloat16 gives the logits of a float64 copy; afterwards it is as it was."""
    import torch

    from tests.bench.bench_fp8 import WORDS, random_model
    from tests.bench.pair_reference import in_float64

    model = random_model(1).to(torch.bfloat16)
    ids = torch.arange(40).view(1, 40) * 31 % WORDS
    weights = {name: tensor.clone() for name, tensor in model.state_dict().items()}
    with torch.no_grad():
        plain = model(input_ids=ids).logits
        with in_float64(model):
            found = model(input_ids=ids).logits
        assert torch.equal(model(input_ids=ids).logits, plain)
        expected = model.double()(input_ids=ids).logits
    assert found.dtype == torch.float64 and plain.dtype == torch.bfloat16
    assert (found - expected).abs().max() < 1e-5 < (plain - expected).abs().max()
    model.to(torch.bfloat16)
    assert all(torch.equal(tensor, weights[name]) for name, tensor in model.state_dict().items())
