"""The benchmark for a GPU: its arithmetic is right, and all of it runs on a small shape."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.bench.pair_bench import main

pytestmark = [pytest.mark.slow, pytest.mark.xdist_group("torch"), pytest.mark.usefixtures("needs_torch")]


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
    assert tables["throughput"]["fp8"]["documents_s"] > 0
    assert 0 <= tables["throughput"]["fast"]["padding_share"] < 1
    assert "limit" not in out.read_text() and "driver" not in tables["machine"], "there is no card to measure by"
    assert all(f"\n{name}\n" in said.out for name in ("machine", "throughput", "equality", "memory", "profile"))
