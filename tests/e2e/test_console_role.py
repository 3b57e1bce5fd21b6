"""The console beside the stages: whatever becomes of it, they measure the same."""

from __future__ import annotations

import json
import os
import signal
import socket
from pathlib import Path

import pytest

from farmwatch.demo.demo_web import build_demo_web
from farmwatch.demo.server import LoopbackWeb
from tests.support.farm import Farm, Outcome
from tests.support.waiting import wait_until

pytestmark = pytest.mark.slow

_SITES = ("tidynest.example", "docs.serpentmanual.example")
_SETTINGS = {"crawl.page_budget": "6", "crawl.delay_s": "0.3"}
_SETTLE_S = 120.0


def _hits(folder: Path) -> Path:
    file = folder / "hits.jsonl"
    hits = [hit for hit in build_demo_web().hits if any(f"//{site}/" in str(hit["url"]) for site in _SITES)]
    file.write_text("".join(json.dumps(hit) + "\n" for hit in hits))
    return file


@pytest.fixture(scope="module")
def alone(tmp_path_factory: pytest.TempPathFactory) -> Outcome:
    """The result of a run without console."""
    folder = tmp_path_factory.mktemp("alone")
    with LoopbackWeb(build_demo_web().hosts) as web, Farm(folder, f"sqlite:{folder / 'log'}", web, _SETTINGS) as farm:
        farm.work_here(_hits(folder), _SETTLE_S)
        assert farm.audit().ok
        outcome = farm.outcome()
    assert set(outcome.sites) == set(_SITES) and outcome.scores
    return outcome


def test_a_console_that_dies_is_started_again_and_changes_no_number(tmp_path: Path, alone: Outcome) -> None:
    """With a taken port it names the setting and is tried again until it is served; so it is after each kill -9.

    The stages measure as without it, and `up` ends with 0.
    """
    url = f"sqlite:{tmp_path / 'log'}"
    with socket.create_server(("127.0.0.1", 0)) as taken, LoopbackWeb(build_demo_web().hosts) as web:
        settings = {**_SETTINGS, "console.port": str(taken.getsockname()[1])}
        with Farm(tmp_path, url, web, settings) as farm:

            def count(text: str) -> int:
                return farm.output.read_text().count(text)

            farm.start(_hits(tmp_path), console=True)
            wait_until(lambda: count("role_died role=console") > 1, farm.tail, _SETTLE_S)
            assert count("console.port: cannot serve on 127.0.0.1:") and not count("\nconsole: http://")
            taken.close()
            for starts in (1, 2):
                wait_until(lambda: count("\nconsole: http://") == starts, farm.tail, _SETTLE_S)  # noqa: B023 - called at once
                if starts < 2:
                    os.kill(farm.roles()["console"], signal.SIGKILL)
            farm.settle(_SETTLE_S)
            assert farm.stop() == 0, farm.tail()
            assert farm.audit().ok
            assert farm.outcome() == alone
