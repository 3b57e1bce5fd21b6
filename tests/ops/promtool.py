"""Debian's Prometheus, Alertmanager, their tools and systemd's, as unpacked by tests/ops/install.sh."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from tests.support.paths import ROOT

REQUIRED = "FARMWATCH_REQUIRE_PROMETHEUS"
_FOLDER = ROOT / ".prometheus" / "usr" / "bin"


def tool(name: str) -> Path:
    """The program; skips if it is missing, fails if it is required (as in CI)."""
    program = _FOLDER / name
    if not program.exists():
        said = f"{name} is not here: tests/ops/install.sh unpacks it on Debian"
        if os.environ.get(REQUIRED):
            pytest.fail(said)
        pytest.skip(said)
    return program


def promtool(*arguments: str | Path, given: str | None = None) -> subprocess.CompletedProcess[str]:
    """Run promtool; `stdout` has both of its outputs."""
    return subprocess.run(
        [tool("promtool"), *arguments],
        input=given,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
    )
