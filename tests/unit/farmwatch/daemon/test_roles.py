"""A role as a process: works, serves its pages, drains on SIGTERM, restarts after a kill, in any working folder."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import urllib.request
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from urllib.error import HTTPError
from urllib.request import HTTPCookieProcessor, build_opener

import pytest

from farmwatch.config.config import load
from farmwatch.config.opening import open_configured
from stream.schema.topics import FEATURES, SCORE_REQUESTS
from stream.text.user_errors import Exit
from tests.support.front_door import PARTITIONS, finished_log
from tests.support.paths import ROOT
from tests.support.waiting import PATIENCE_S, wait_until

pytestmark = pytest.mark.slow


class _Process:
    """`farmwatch up` with these arguments, in a separate folder."""

    def __init__(self, folder: Path, *arguments: str) -> None:
        self._output = folder / "output"
        clean = {name: value for name, value in os.environ.items() if not name.startswith("FARMWATCH_")}
        with self._output.open("wb") as output:
            self.process = subprocess.Popen(
                [sys.executable, "-m", "farmwatch", "up", *arguments],
                cwd=folder,
                env={**clean, "HOME": str(folder), "PYTHONPATH": str(ROOT)},
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=output,
            )

    def output(self) -> str:
        return self._output.read_text(errors="replace")

    def until(self, pattern: str) -> re.Match[str]:
        """Wait until the output, also that of orphaned roles, has this."""
        wait_until(lambda: re.search(pattern, self.output()), lambda: f"{pattern} in {self.output()}")
        found = re.search(pattern, self.output())
        assert found is not None
        return found

    def stop(self) -> int:
        self.process.send_signal(signal.SIGTERM)
        return self.process.wait(PATIENCE_S)


@pytest.fixture
def started() -> Iterator[list[_Process]]:
    """Processes that must not outlive the test."""
    processes: list[_Process] = []
    yield processes
    for process in processes:
        process.process.kill()
        process.process.wait()


def _flags(url: str) -> list[str]:
    return ["--log", url, "--set", f"log.partitions={PARTITIONS}", "--set", "metrics.port=0"]


def test_a_role_works_serves_its_pages_and_drains(tmp_path: Path, started: list[_Process]) -> None:
    """JUDGE processes the features of the log, serves /metrics and /readyz, and ends with 0 on SIGTERM."""
    url = finished_log(tmp_path / "log")
    role = _Process(tmp_path, "--role", "judge", "--in-process", *_flags(url))
    started.append(role)
    address = role.until(r"url=(http://127\.0\.0\.1:\d+)/metrics").group(1)
    config = load(None, [f"log.url={url}", f"log.partitions={PARTITIONS}"], {}).config
    with closing(open_configured(config)) as log:
        wait_until(lambda: sum(offset or 0 for offset in log.committed("judge", FEATURES)) == 2, role.output)
        assert sum(log.end(SCORE_REQUESTS)) == 1
    assert _read(f"{address}/readyz").startswith("ok")
    page = _read(f"{address}/metrics")
    assert 'farmwatch_page_verdicts_total{role="judge",ruleset="default",run="first",verdict="article"} 1.0' in page
    assert 'farmwatch_rule_drops_total{role="judge",rule="url_kind",ruleset="default",run="first"} 0.0' in page
    assert re.search(r'farmwatch_ruleset_info\{digest="[0-9a-f]{16}",role="judge",ruleset="default"\} 1\.0', page)
    assert 'process_open_fds{role="judge"}' in page
    assert re.search(r'farmwatch_disk_free_bytes\{folder="log",role="judge"\} \d', page)
    assert role.stop() == Exit.OK


def test_the_console_serves_its_pages_and_ends(tmp_path: Path, started: list[_Process]) -> None:
    """It reads the log to its end, counts the requests, is ready, and ends with 0 on SIGTERM."""
    url = finished_log(tmp_path / "log")
    role = _Process(tmp_path, "--role", "console", "--in-process", *_flags(url), "--set", "console.port=0")
    started.append(role)
    metrics = role.until(r"url=(http://127\.0\.0\.1:\d+)/metrics").group(1)
    shown = role.until(r"console: (http://127\.0\.0\.1:\d+/); the token is in (\S+)")
    with pytest.raises(HTTPError, match="401"):
        urllib.request.urlopen(shown[1], timeout=10)
    token = Path(shown[2]).read_text().strip()
    with build_opener(HTTPCookieProcessor()).open(f"{shown[1]}health.json?token={token}", timeout=30) as answer:
        assert answer.status == 200
    wait_until(
        lambda: 'farmwatch_console_behind_records{role="console"} 0.0' in _read(f"{metrics}/metrics"), role.output
    )
    counted = "farmwatch_console_request_duration_seconds_count"
    for page, status in (("/", 401), ("/health.json", 303), ("/health.json", 200)):
        assert f'{counted}{{page="{page}",role="console",status="{status}"}} 1.0' in _read(f"{metrics}/metrics")
    assert _read(f"{metrics}/readyz") == "ok: ok\n"
    assert role.stop() == Exit.OK


def _read(address: str) -> str:
    with urllib.request.urlopen(address, timeout=10) as answer:
        return str(answer.read().decode())


def test_up_supervises_and_restarts_a_killed_role(tmp_path: Path, started: list[_Process]) -> None:
    """After kill -9 of a role, a new process starts and counts the restart; SIGTERM drains it.

    As in `search`, a skipped line of hits is reported, and the exit code is 1.
    """
    url = finished_log(tmp_path / "log")
    (tmp_path / "hits.txt").write_text("https://a.example/x\nno address\n")
    up = _Process(tmp_path, "--role", "judge", "--hits", "hits.txt", *_flags(url))
    started.append(up)
    up.until("hits.txt: line 2: ")
    up.until("hits.txt: 1 hit read, 1 new, 1 line skipped")
    first = int(up.until(r"role_started role=judge pid=(\d+)").group(1))
    up.until("event=assigned")
    os.kill(first, signal.SIGKILL)
    up.until(rf"role_died role=judge code=-9(.|\n)*role_started role=judge pid=(?!{first})\d+(.|\n)*event=assigned")
    address = re.findall(r"url=(http://127\.0\.0\.1:\d+/metrics)", up.output())[-1]
    assert 'farmwatch_role_restarts_total{role="judge"} 1.0' in _read(address)
    assert up.stop() == Exit.PROBLEM


def test_a_member_has_the_same_name_after_every_start(tmp_path: Path, started: list[_Process]) -> None:
    """After kill -9 of `up`, a new `up` gives the role the same name, partitions and local state."""
    url = finished_log(tmp_path / "log")
    for _ in range(2):
        up = _Process(tmp_path, "--role", "judge", *_flags(url))
        started.append(up)
        up.until("event=assigned")
        up.process.kill()
        up.process.wait()
        name = up.until(r"event=role_ended .*member=(\S+)").group(1)
        assert name.startswith("judge-") and name.endswith("-1"), name
    assert len(list((tmp_path / "log" / "members").iterdir())) == 1


PROGRAM = Path(sys.executable).with_name("farmwatch")
PAGE = {"url": "http://a.test/1", "html": "<html><body><article><p>One sentence of text.</p></article></body></html>"}
TEXTS = [{"id": str(number), "text": f"This is the text number {number} of many."} for number in range(600)]


@pytest.fixture
def trap(tmp_path: Path) -> Path:
    """A folder whose modules end the process that imports them."""
    for name in ("stream", "crawler", "random", "socket", "json"):
        (tmp_path / f"{name}.py").write_text("raise SystemExit('a module of the working folder')")
    for name in ("scoring", "filters", "replay"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "__init__.py").write_text("raise SystemExit('a module of the working folder')")
    return tmp_path


def start(folder: Path, *arguments: str) -> subprocess.Popen[bytes]:
    """`farmwatch` with these arguments in the folder; its output goes to the file `output`."""
    clean = {name: value for name, value in os.environ.items() if not name.startswith(("FARMWATCH_", "PYTHON"))}
    settings = [f"log.url=sqlite:{folder / 'log'}", "metrics.port=0", "crawl.contact=https://operator.example/"]
    flags = [part for setting in settings for part in ("--set", setting)] if arguments[0] in ("up", "crawl") else []
    with (folder / "output").open("wb") as output:
        return subprocess.Popen(
            [PROGRAM, *arguments, *flags], cwd=folder, env={**clean, "HOME": str(folder)}, stdout=output, stderr=output
        )


def test_roles_and_their_workers_start(trap: Path) -> None:
    """`up` starts its roles, and MEASURE its workers."""
    process = start(trap, "up", "--role", "measure,judge")
    try:
        output = trap / "output"
        wait_until(lambda: output.read_text().count("event=assigned") == 2, output.read_text, PATIENCE_S)
        process.terminate()
        assert process.wait(PATIENCE_S) == Exit.OK
    finally:
        process.kill()
        process.wait()
    assert "working folder" not in output.read_text()


@pytest.mark.parametrize(
    ("command", "lines"),
    [("crawl --until-done", []), ("lab measure --jobs 2 in.jsonl", [PAGE]), ("lab score --jobs 2 in.jsonl", TEXTS)],
)
def test_commands_and_their_processes_start(trap: Path, command: str, lines: list[object]) -> None:
    """A role in the command's own process, worker processes, and processes of the standard library's pool."""
    (trap / "in.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    process = start(trap, *command.split())
    assert process.wait(PATIENCE_S) == Exit.OK, (trap / "output").read_text()[-500:]
