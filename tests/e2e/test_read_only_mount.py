"""Read-only commands on a log in a read-only mount: at rest, with a running daemon, or after a kill."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from contextlib import closing
from pathlib import Path

import pytest

from farmwatch.__main__ import run
from stream.log.contract import Output
from stream.opening import open_log
from stream.schema.topics import DEAD_LETTERS
from stream.text.user_errors import Exit
from tests.support.front_door import URL, finished_log
from tests.support.paths import ROOT

LOOKING = [
    ["rate"],
    ["rate", "--by", "week"],
    ["rate", "--history"],
    ["sites"],
    ["log", "topics"],
    ["doctor", "audit"],
    ["page", URL],
    ["compare", "first", "first"],
    ["runs"],
    ["cutover"],
    ["crawl", "frontier"],
    ["review", "canaries"],
]
_MOUNTED = 'mount --bind "$0" "$0" && mount -o remount,bind,ro "$0" && ! touch "$0/new" 2>/dev/null && exec "$@"'
_RUN_ALL = """
import json, sys
from farmwatch.__main__ import run
for arguments in json.loads(sys.argv[1]):
    print("exit", run([*arguments, "--log", sys.argv[2]]), *arguments, file=sys.stderr)
"""


def on_read_only_mount(folder: Path, *command: str) -> subprocess.CompletedProcess[str]:
    """Run a command that sees `folder` mounted read-only; skips if this user cannot mount."""
    isolated = ["unshare", "--user", "--map-root-user", "--mount", "sh", "-c", _MOUNTED, str(folder)]
    if subprocess.run([*isolated, "true"], capture_output=True, check=False).returncode:
        pytest.skip("this machine allows no mounts in a user namespace")
    return subprocess.run([*isolated, *command], cwd=ROOT, capture_output=True, text=True, check=False)


def append_and_die(url: str) -> None:
    """Append a record in a process that ends as by kill -9, so that the commit stays in the WAL."""
    child = os.fork()
    if child == 0:
        open_log(url).append([Output(DEAD_LETTERS, 0, b"", b"x")])
        os._exit(0)
    os.waitpid(child, 0)


@pytest.mark.parametrize(
    ("state", "commands"), [("at rest", LOOKING[:1]), ("at work", LOOKING[:1]), ("killed", LOOKING)]
)
def test_commands_that_look_work_on_a_read_only_mount(tmp_path: Path, state: str, commands: list[list[str]]) -> None:
    """Each command has the same exit code as on the writable folder, and no message about permissions."""
    url = finished_log(tmp_path / "log")
    if state == "killed":
        append_and_die(url)
        assert (tmp_path / "log" / "log.sqlite-wal").stat().st_size
    command = [sys.executable, "-c", _RUN_ALL, json.dumps(commands), url]
    with closing(open_log(url, read_only=state != "at work")) as log:
        if state == "at work":
            log.append([Output(DEAD_LETTERS, 0, b"", b"x")])
        found = on_read_only_mount(tmp_path / "log", *command)
        usual = [f"exit {run([*arguments, '--log', url])} {' '.join(arguments)}" for arguments in commands]
    said = [line for line in found.stderr.splitlines() if line.startswith("exit ")]
    assert len(said) == len(commands), found.stderr
    assert said == usual
    assert not [line for line in said if line.startswith(f"exit {int(Exit.UNAVAILABLE)}")], found.stderr
