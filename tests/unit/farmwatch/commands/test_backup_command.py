"""`backup` and `restore` as commands: what they print, what they refuse, and the tables of the restored log."""

from __future__ import annotations

from pathlib import Path

import pytest

from stream.text.user_errors import Exit
from tests.support.front_door import Runner
from tests.support.logs.tallied_log import tallied
from tests.support.runs.cutover_world import cutover_world


@pytest.mark.slow
def test_the_restored_log_has_the_same_tables_and_a_clean_audit(
    farmwatch: Runner, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """While the log is open for writing: `sites`, `rate` and `audit` of the restored log print the same."""
    with cutover_world("embedded", tmp_path, monkeypatch) as world:
        tallied(world)
        url = world.config.log.url
        assert farmwatch("backup", "kept", "--log", url).code == Exit.OK
        ran = farmwatch("restore", "kept", "--log", "sqlite:new")
        assert (ran.code, ran.err) == (
            Exit.OK,
            "restored into sqlite:new; `farmwatch audit --log sqlite:new` proves it\n",
        )
        for command in (["sites"], ["rate", "--json"], ["topics"], ["audit"]):
            expected = farmwatch(*command, "--log", url)
            found = farmwatch(*command, "--log", "sqlite:new")
            assert (found.code, found.out, found.err) == (expected.code, expected.out, expected.err), command
        assert farmwatch("audit", "--log", "sqlite:new").err.endswith("audit: clean\n")


@pytest.mark.parametrize("command", ["backup", "restore"])
def test_a_log_on_kafka_is_refused_with_the_tools_for_it(farmwatch: Runner, tmp_path: Path, command: str) -> None:
    """Nothing is asked of the broker; replication, mirroring and `copy` are named."""
    (tmp_path / "folder").mkdir()
    ran = farmwatch(command, "folder", "--log", "kafka:127.0.0.1:9")
    assert (ran.code, "replication and mirroring; `farmwatch copy`" in ran.err) == (Exit.USAGE, True)


def test_a_missing_log_or_backup_is_named(farmwatch: Runner, tmp_path: Path) -> None:
    """No empty backup is made of a wrong folder."""
    ran = farmwatch("backup", "kept", "--log", "sqlite:nowhere")
    assert (ran.code, "sqlite:nowhere: there is no log to back up" in ran.err) == (Exit.UNAVAILABLE, True)
    ran = farmwatch("restore", "kept", "--log", "sqlite:new")
    assert (ran.code, ran.err) == (Exit.USAGE, "farmwatch: kept: no such folder\n")
    assert list(tmp_path.iterdir()) == []
