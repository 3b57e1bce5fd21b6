"""`farmwatch demo`, run once for all tests of a run, by the process that needs it first."""

from __future__ import annotations

import fcntl
import json
import os
import re
import shutil
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any
from urllib.request import HTTPCookieProcessor, build_opener

import pytest

from tests.support.paths import ROOT
from tests.support.waiting import wait_until


def demo_run(factory: pytest.TempPathFactory, folder: Path) -> dict[str, Any]:
    """Put a log of the demo into `folder`; the output of `--json`, and what its console served, in `served`."""
    shared = factory.getbasetemp()
    if "PYTEST_XDIST_WORKER" in os.environ:
        shared = shared.parent  # of all processes of the run
    kept, told = shared / "demo", shared / "demo.json"
    with (shared / "demo.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not told.exists():
            shutil.rmtree(kept, ignore_errors=True)  # of a run that failed
            told.write_text(json.dumps(run_demo(kept)), encoding="utf-8")
    shutil.copytree(kept, folder)
    config = folder / "farmwatch.toml"
    config.write_text(config.read_text(encoding="utf-8").replace(str(kept), str(folder)), encoding="utf-8")
    found: dict[str, Any] = json.loads(told.read_text(encoding="utf-8"))
    return found


def run_demo(kept: Path) -> dict[str, Any]:
    """Run it with its log in `kept`; the same output."""
    clean = {name: value for name, value in os.environ.items() if not name.startswith("FARMWATCH_")}
    process = subprocess.Popen(
        [sys.executable, "-m", "farmwatch", "demo", "--json", "--serve", "--keep", str(kept)],
        cwd=kept.parent,
        env={**clean, "PYTHONPATH": str(ROOT), "HOME": str(kept.parent)},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    assert process.stderr is not None
    try:
        said = re.match(r"console: (\S+);", next((line for line in process.stderr if line.startswith("console: ")), ""))
        assert said is not None, process.communicate()
        token = (kept / "log" / "console.token").read_text().strip()
        opener = build_opener(HTTPCookieProcessor())

        def page(path: str) -> str:
            with opener.open(said[1] + path, timeout=60) as answer:
                return str(answer.read().decode())

        page(f"answer.json?token={token}")

        def no_page() -> dict[str, str]:
            return {row["site"]: row["no_page"] for row in json.loads(page("sites.json"))["sites"] if row["no_page"]}

        wait_until(no_page, "the console has read the log")
        served = json.loads(page("answer.json"))
        served["no_page"] = no_page()
        served["site"] = page("site?site=members.closedshelf.example")
        process.send_signal(signal.SIGINT)
        printed: dict[str, Any] = json.loads(process.communicate(timeout=60)[0])
    finally:
        process.kill()
    assert process.returncode == 0
    return {**printed, "served": served}
