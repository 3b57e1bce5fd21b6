"""The working folder has modules with names of ours, and of the standard library: none of them is imported."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from stream.text.user_errors import Exit
from tests.support.waiting import PATIENCE_S, wait_until

pytestmark = pytest.mark.slow

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
    [("crawl --until-done", []), ("measure --jobs 2 in.jsonl", [PAGE]), ("score --jobs 2 in.jsonl", TEXTS)],
)
def test_commands_and_their_processes_start(trap: Path, command: str, lines: list[object]) -> None:
    """A role in the command's own process, worker processes, and processes of the standard library's pool."""
    (trap / "in.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    process = start(trap, *command.split())
    assert process.wait(PATIENCE_S) == Exit.OK, (trap / "output").read_text()[-500:]
