"""Running a command in this process, and a log as a finished run leaves it."""

from __future__ import annotations

import shlex
from pathlib import Path

import pytest

from farmwatch.__main__ import run
from tests.support.front_door import PARTITIONS, Ran, Runner, StandInDetector, finished_log


@pytest.fixture
def farmwatch(capfd: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Runner:
    """Run a command in an empty working folder, without this machine's configuration."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("COLUMNS", "200")
    monkeypatch.delenv("XDG_CONFIG_HOME", raising=False)
    monkeypatch.setenv("FARMWATCH_LOG_PARTITIONS", str(PARTITIONS))

    def command(*arguments: str | Path) -> Ran:
        capfd.readouterr()
        code = run([str(argument) for argument in arguments])
        out, err = capfd.readouterr()
        return Ran(code, out, err, f"$ farmwatch {shlex.join(map(str, arguments))}\n")

    return command


@pytest.fixture
def finished(tmp_path: Path) -> str:
    """URL of the log of `finished_log`."""
    return finished_log(tmp_path / "finished")


@pytest.fixture
def no_weights(monkeypatch: pytest.MonkeyPatch) -> None:
    """For tests that read scores: which weights are shipped does not matter to them."""
    stand_in = StandInDetector()
    monkeypatch.setattr("farmwatch.commands.answers.page.load_configured_detector", lambda config: stand_in)
    for user in ("runs.configured", "live.live_run", "engine.plan"):
        monkeypatch.setattr(f"replay.{user}.tally_identity", lambda config: stand_in.identity)
    monkeypatch.setattr(
        "farmwatch.config.detector_config.configured_warnings", lambda config: {stand_in.identity: stand_in.warning}
    )


@pytest.fixture(scope="session")
def needs_torch() -> None:
    """Skip the test where the models' libraries are not installed."""
    for library in ("torch", "transformers"):
        pytest.importorskip(library)
