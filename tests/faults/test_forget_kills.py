"""kill -9 in the middle of `farmwatch forget`: running it again completes the removal."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tests.support.forgettable import HOST, make_log, serve, traces
from tests.support.paths import ROOT
from tests.support.web.loopback import Web

pytestmark = [pytest.mark.kill, pytest.mark.xdist_group("kills")]

DELAYS_S = (0.0, 0.005, 0.02)  # after the removal of records began
_BEGUN = "removing records"


def forget(folder: Path, archive: Path) -> subprocess.Popen[str]:
    settings = [f"log.url=sqlite:{folder}", "log.partitions=2", f"crawl.warc_folder={archive}"]
    flags = [part for setting in settings for part in ("--set", setting)]
    command = [sys.executable, "-m", "farmwatch", "forget", HOST, "--yes", *flags]
    return subprocess.Popen(command, stderr=subprocess.PIPE, text=True, cwd=ROOT, env={**os.environ, "COLUMNS": "200"})


def test_a_killed_removal_is_completed(tmp_path: Path) -> None:
    """Killed at several moments of the removal, the next run goes on; at the end nothing of the host is found."""
    folder, archive = tmp_path / "log", tmp_path / "archive"
    with Web() as web:
        serve(web)
        make_log(folder, web, archive)
    killed = 0
    for delay_s in DELAYS_S:
        process = forget(folder, archive)
        assert process.stderr is not None
        for line in process.stderr:
            if _BEGUN in line:
                break
        time.sleep(delay_s)  # the moment of the kill
        process.send_signal(signal.SIGKILL)
        killed += process.wait() == -signal.SIGKILL
    assert killed > 0
    process = forget(folder, archive)
    _, said = process.communicate()
    assert process.returncode == 0, said
    assert traces(folder, archive) == []
