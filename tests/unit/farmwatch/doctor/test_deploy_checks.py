"""`doctor --deploy` names the missing parts of a deployment, with remedies."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from farmwatch.config.config import load
from farmwatch.doctor import deploy_checks
from farmwatch.doctor.check_result import CheckResult, CheckState, Subject
from farmwatch.doctor.checks import OF_THE_DEPLOYMENT, examine
from tests.support.kafka_broker import free_ports

OK, WARN, FAIL = CheckState.OK, CheckState.WARN, CheckState.FAIL


def subject(folder: Path, *flags: str, file: Path | None = None) -> Subject:
    return Subject(load(None, [f"log.url=sqlite:{folder / 'log'}", *flags], {}).config, file=file)


def found(check: Any, at: Subject, **more: Any) -> dict[CheckState, list[CheckResult]]:
    by: dict[CheckState, list[CheckResult]] = {OK: [], WARN: [], FAIL: []}
    for result in check(at, **more):
        by[result.state].append(result)
    return by


def test_they_are_part_of_the_one_list(tmp_path: Path) -> None:
    """With --deploy, each of its checks has a line beside all others; without it, none has."""
    config = subject(tmp_path, "crawl.contact=https://x.example/").config
    extra = {check.name for check in OF_THE_DEPLOYMENT}
    assert extra & {result.check for result in examine(config)} == set()
    assert extra - {"brokers"} <= {result.check for result in examine(config, deploy=True)}


def test_folders_that_are_open_or_closed(tmp_path: Path) -> None:
    """A folder that others may read is a warning; a place that cannot be written is a failure."""
    (tmp_path / "log").mkdir(mode=0o755)
    (found_open,) = found(deploy_checks.folders, subject(tmp_path))[WARN]
    assert found_open.mend == f"chmod 700 {tmp_path / 'log'}"
    (tmp_path / "log").chmod(0o700)
    (tmp_path / "file").touch()
    assert (
        len(found(deploy_checks.folders, subject(tmp_path, f"crawl.warc_folder={tmp_path / 'file' / 'x'}"))[FAIL]) == 1
    )
    assert found(deploy_checks.folders, subject(tmp_path))[WARN] == []


@pytest.mark.parametrize("source", ["searxng", "brave"])
def test_secrets_that_everybody_may_read(tmp_path: Path, source: str) -> None:
    """A world-readable file is a warning if it has a password or key."""
    file, key = tmp_path / "farmwatch.toml", tmp_path / "key"
    file.write_text("")
    key.write_text("k")
    for place in (file, key):
        place.chmod(0o644)
    assert found(deploy_checks.secrets, subject(tmp_path, file=file))[WARN] == []
    secret = ('kafka.client={"sasl_plain_password": "p"}', f"search.{source}.key_file={key}")
    assert len(found(deploy_checks.secrets, subject(tmp_path, *secret, file=file))[WARN]) == 2
    key.unlink()
    assert len(found(deploy_checks.secrets, subject(tmp_path, *secret, file=file))[FAIL]) == 1


def test_each_broker_is_asked(tmp_path: Path) -> None:
    """One of two brokers that is unavailable is named, although the log can be opened by the other."""
    (port,) = free_ports(1)
    at = subject(tmp_path, f"log.url=kafka:127.0.0.1:{port}")
    (away,) = found(deploy_checks.brokers, at)[FAIL]
    assert str(port) in away.found


@pytest.mark.parametrize(
    ("flags", "state", "said"),
    [
        (["metrics.port=0"], WARN, "metrics.port is 0"),
        ([], WARN, "only this machine can scrape"),
        (["metrics.host=0.0.0.0"], OK, "0.0.0.0:9464"),
    ],
)
def test_metrics_that_can_be_scraped(tmp_path: Path, flags: list[str], state: CheckState, said: str) -> None:
    """A random port or a loopback address is a warning."""
    (result,) = found(deploy_checks.metrics, subject(tmp_path, *flags))[state]
    assert said in result.found


@pytest.mark.parametrize(
    ("environment", "state"), [({"KUBERNETES_SERVICE_HOST": "x"}, FAIL), ({"INVOCATION_ID": "x"}, OK)]
)
def test_a_container_keeps_its_log_on_a_volume(
    tmp_path: Path, environment: Mapping[str, str], state: CheckState, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In a pod, a folder outside a volume is lost with the pod; a systemd service has the machine's disk."""
    (tmp_path / "mounts").write_text("overlay / overlay rw 0 0\n")
    monkeypatch.setattr(deploy_checks, "_PROC", tmp_path)
    monkeypatch.setattr(deploy_checks, "_CONTAINER_MARKS", ())
    assert found(deploy_checks.service, subject(tmp_path), environment=environment)[state]
    (tmp_path / "mounts").write_text(f"tmpfs {tmp_path} tmpfs rw 0 0\n")
    assert found(deploy_checks.service, subject(tmp_path), environment=environment)[OK]
