"""kill -9 in the middle of `farmwatch crawl forget`: running it again completes the removal."""

from __future__ import annotations

import signal
import time
from pathlib import Path

import pytest

from tests.support.logs.forgettable import HOST, make_log, serve, traces
from tests.support.runs.replay_process import Command
from tests.support.waiting import wait_until
from tests.support.web.loopback import Web

pytestmark = [pytest.mark.kill]

DELAYS_S = (0.0, 0.01)  # after the removal of records began
_BEGUN = "removing records"


def test_a_killed_removal_is_completed(tmp_path: Path) -> None:
    """Killed at several moments of the removal, the next run goes on; at the end nothing of the host is found."""
    folder, archive = tmp_path / "log", tmp_path / "archive"
    with Web() as web:
        serve(web)
        make_log(folder, web, archive)

    def forget(number: int) -> Command:
        settings = (f"log.url=sqlite:{folder}", "log.partitions=2", f"crawl.warc_folder={archive}")
        flags = (word for setting in settings for word in ("--set", setting))
        return Command(tmp_path / f"said-{number}", "crawl", "forget", HOST, "--yes", *flags)

    killed = 0
    for number, delay_s in enumerate(DELAYS_S):
        process = forget(number)
        wait_until(lambda p=process: not p.runs or _BEGUN in p.said(), "the removal", every_s=0.001)
        time.sleep(delay_s)  # the moment of the kill
        process.kill()
        killed += process.code() == -signal.SIGKILL
    assert killed > 0
    process = forget(len(DELAYS_S))
    assert process.code() == 0, process.said()
    assert traces(folder, archive) == []
