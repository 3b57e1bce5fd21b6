"""The benchmark for a GPU: its arithmetic is right, and all of it runs on a small shape."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.bench.pair_bench import main

pytestmark = [pytest.mark.slow, pytest.mark.xdist_group("torch"), pytest.mark.usefixtures("needs_torch")]


def test_a_document_of_the_falcon_pair_costs_14_33_tflop() -> None:
    """512 tokens through two Falcon-7B with heads cost 14.33 TFLOP.

    The weights' part grows with the tokens, and attention's with their square.
    """
    from tests.bench.pair_reference import FalconShape, document_flops

    falcon = FalconShape()
    assert document_flops(falcon, 512) == pytest.approx(14.33e12, rel=5e-4)
    weights = 2 * 2 * (32 * (4_544 * 4_672 + 4_544 * 4_544 + 2 * 4_544 * 18_176) + 4_544 * 65_024)
    for tokens in (1, 512, 2_048):
        attention = 2 * 32 * 2 * 4_544 * tokens**2
        assert document_flops(falcon, tokens) == pytest.approx(weights * tokens + attention, rel=1e-12)


def test_the_whole_script_runs_small(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """`--tiny` measures every table on the CPU, prints it, writes it as JSON and exits with 0.

    The scores equal those of the loop.
    """
    out = tmp_path / "figures.json"
    status = main(["--tiny", "--out", str(out)])
    said = capsys.readouterr()
    assert status == 0, said.out + said.err
    tables = json.loads(out.read_text())
    assert tables["equality"]["equal"] and tables["equality"]["documents"] == 4
    assert tables["throughput"]["fast"]["of_loop"] > 0
    assert 0 <= tables["throughput"]["fast"]["padding_share"] < 1
    assert "limit" not in out.read_text() and "driver" not in tables["machine"], "there is no card to measure by"
    assert all(f"\n{name}\n" in said.out for name in ("machine", "throughput", "equality", "memory", "profile"))


def test_without_a_card_it_says_what_it_needs(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """If torch sees no GPU, the exit code is 3, and one line names the requirement and `--tiny`."""
    monkeypatch.setattr("torch.cuda.is_available", lambda: False)
    assert main([]) == 3
    said = capsys.readouterr()
    assert "NVIDIA card" in said.err and "--tiny" in said.err
    assert said.out == ""
