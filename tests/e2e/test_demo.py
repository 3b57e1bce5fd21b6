"""`farmwatch demo` as its users run it."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

from farmwatch.demo.demo_web import build_demo_web

_ROOT = Path(__file__).resolve().parents[2]


def test_the_demo_carries_its_web_to_a_rate(tmp_path: Path) -> None:
    """Every site of the web has a verdict, the audit is clean, the rate has its denominators and its warning."""
    environment = {**os.environ, "PYTHONPATH": str(_ROOT), "HOME": str(tmp_path)}
    done = subprocess.run(
        [sys.executable, "-m", "farmwatch", "demo", "--json", "--keep", str(tmp_path / "kept")],
        cwd=tmp_path,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    result = json.loads(done.stdout)
    truth = build_demo_web().truth
    assert {site["site"]: site["truth"] for site in result["sites"]} == truth
    assert result["audit_ok"]
    (rate,) = result["rates"]
    assert rate["sites"] == rate["llm"] + rate["human"] + rate["undecided"] + rate["unclassifiable"] == len(truth)
    assert "indicative only" in result["warning"]
    humans = [site for site in result["sites"] if site["truth"] == "human"]
    assert all(site["verdict"] == "human" for site in humans)
    assert not any(site["verdict"] == "llm" and site["truth"] != "llm" for site in result["sites"])
    kept = subprocess.run(
        [sys.executable, "-m", "farmwatch", "audit", "--config", str(tmp_path / "kept" / "farmwatch.toml")],
        cwd=tmp_path,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    assert (kept.returncode, "audit: clean" in kept.stderr) == (0, True)
