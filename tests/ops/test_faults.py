"""Six faults in a running farm each raise their alert and no other."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest

from dashboards.pace import Durations
from farmwatch.demo.server import LoopbackWeb
from tests.ops.endless_web import EndlessWeb
from tests.ops.real_run import RealRun, canary_file, command, settings, watched
from tests.ops.servers import Alertmanager
from tests.support.kafka_broker import Broker
from tests.support.processes.farm import Farm
from tests.support.waiting import wait_until

pytestmark = [pytest.mark.chaos, pytest.mark.xdist_group("ops")]

PACE = Durations(faster=60)  # an hour becomes a minute
_ROLES = ("crawl", "measure", "judge", "score", "tally")
_PATIENCE_S = 180
_QUIET_S, _AFTER_S = 15, 30  # before the fault no alert fires; after its alert, no other one


class Scene:
    """A farm over an endless web, its Prometheus, and its Alertmanager."""

    def __init__(self, folder: Path, log: str, own: dict[str, str], held: ExitStack) -> None:
        self._folder, self._held = folder, held
        self.web = EndlessWeb()
        served = held.enter_context(LoopbackWeb(self.web.hosts))
        slow = {"crawl.delay_s": "0.7", "crawl.page_budget": "100000", "crawl.stop_when_decided": "false"}
        self.farm = held.enter_context(Farm(folder, log, served, {**settings(folder), **slow, **own}))
        self.alerts = held.enter_context(Alertmanager(folder))
        self.run: RealRun = held.enter_context(watched(self.farm, folder, PACE, self.alerts))

    def up(self, *roles: str, alone: bool = False, **by: Any) -> subprocess.Popen[bytes]:
        """`farmwatch up` of these roles; `alone`: one role without a supervisor. `by` as for `command`."""
        hits = self._folder / f"hits-{roles[0]}.jsonl"
        hits.write_text("".join(json.dumps(hit) + "\n" for hit in self.web.hits()))
        more = [word for role in roles for word in ("--role", role)]
        if "crawl" in roles:
            more += ["--hits", str(hits)]
        if alone:
            more.append("--in-process")
        return self._held.enter_context(command(self.farm, "up", *more, **by))

    def works(self, *but: str) -> None:
        """All roles work, and no alert of their start is left, except `but`."""
        for role in _ROLES:
            self.run.until(f'up{{role="{role}"}} == 1')
        self.run.until('rate(farmwatch_stage_records_total{stage="score"}[5s]) > 0')
        wait_until(
            lambda: self.alerts.raised() <= set(but), lambda: f"{self.alerts.raised()}", _PATIENCE_S, every_s=0.5
        )

    def is_quiet(self) -> None:
        """All roles work for a while, and no alert fires."""
        self.works()
        self._watch(set(), _QUIET_S)

    def raises(self, alert: str) -> None:
        """That alert fires soon, and no other one, then or later."""
        wait_until(
            lambda: alert in self._raised({alert}), lambda: f"{alert}\n{self.farm.tail()}", _PATIENCE_S, every_s=0.5
        )
        self._watch({alert}, _AFTER_S)

    def _watch(self, allowed: set[str], seconds: float) -> None:
        until_s = time.monotonic() + seconds
        while time.monotonic() < until_s:
            self._raised(allowed)
            time.sleep(0.5)

    def _raised(self, allowed: set[str]) -> set[str]:
        raised = self.alerts.raised()
        assert raised <= allowed, f"{raised - allowed} was raised\n{self.farm.tail()}"
        return raised


@contextmanager
def scene(folder: Path, log: str = "", **own: str) -> Iterator[Scene]:
    """A scene whose log is in memory, independent of other writers to this disk."""
    with ExitStack() as held:
        memory = Path("/dev/shm")
        home = Path(held.enter_context(TemporaryDirectory(dir=memory if memory.is_dir() else folder)))
        given = {name.replace("__", "."): value for name, value in own.items()}
        given.setdefault("crawl.warc_folder", str(home / "archive"))
        yield Scene(folder, log or f"sqlite:{home / 'log'}", given, held)


def test_a_broker_that_is_away(tmp_path: Path) -> None:
    """If the broker is unavailable, the heartbeat stops; the roles stay up and wait."""
    broker = Broker()
    try:
        broker.start()
        with scene(tmp_path, f"kafka:{broker.address}") as at:
            at.up(*_ROLES)
            at.is_quiet()
            broker.kill()
            at.raises("HeartbeatStale")
            broker.start()  # so that the roles can end
    finally:
        broker.close()


def test_a_role_that_is_killed_and_held_down(tmp_path: Path) -> None:
    """If JUDGE is down, resulting alerts are inhibited."""
    with scene(tmp_path) as at:
        at.up("crawl", "measure", "score", "tally")
        judge = at.up("judge", alone=True)
        at.is_quiet()
        os.kill(judge.pid, signal.SIGKILL)
        at.raises("RoleDown")


def test_a_disk_that_runs_full(tmp_path: Path) -> None:
    """The log fills its own small disk, and the alert fires."""
    small = tmp_path / "small"
    small.mkdir()
    mounted = ["unshare", "-rm", "sh", "-c", f'mount -t tmpfs -o size=400m tmpfs {small} && exec "$0" "$@"']
    if subprocess.run([*mounted, "true"], capture_output=True, check=False).returncode:
        pytest.skip("this user may not mount a disk in a namespace of its own")
    with scene(tmp_path, f"sqlite:{small / 'log'}", crawl__warc_folder="", crawl__pause_below_bytes="0") as at:
        up = at.up(*_ROLES, by=mounted)
        at.is_quiet()
        ballast = Path(f"/proc/{up.pid}/root{small}/ballast")
        with ballast.open("wb") as file:
            for _ in range(40):
                file.write(b"x" * 2_000_000)
                file.flush()
                time.sleep(0.25)
        at.raises("DiskForecast")


def test_hosts_that_refuse_all(tmp_path: Path) -> None:
    """If every host answers 403, hardly anything is measured, which is critical."""
    with scene(tmp_path) as at:
        at.up(*_ROLES)
        at.is_quiet()
        at.web.refuses = True
        at.raises("RejectedByHosts")
        critical = ("RejectedByHosts", "critical")
        wait_until(lambda: critical in at.alerts.graded(), lambda: f"{at.alerts.graded()}", _PATIENCE_S, every_s=0.5)


def test_a_device_that_is_lost(tmp_path: Path) -> None:
    """If SCORE's device is lost once, it loads its models again and continues."""
    from tests.e2e.test_side_by_side import World
    from tests.support.pairs import build_pair

    pair = World(build_pair(tmp_path / "pair", "gpt2"), tmp_path)
    thresholds = ", ".join(f'"{name}" = "{file}"' for name, file in pair.thresholds().items())
    own = {
        "score__detectors": "lite-ngram,binoculars",
        "score__pair__observer": str(pair.pair.observer),
        "score__pair__performer": str(pair.pair.performer),
        "score__pair__device": "cpu",
        "score__pair__batch_tokens": "2048",
        "score__thresholds": f"{{{thresholds}}}",
        "tally__detector": "lite-ngram",
    }
    with scene(tmp_path, **own) as at:
        at.up("score", alone=True, module="tests.ops.losing_score")
        at.run.until('farmwatch_log_rebalances_total{role="score"} > 0')  # waiting for its models would be an alert
        at.up("crawl", "measure", "judge", "tally")
        at.is_quiet()
        at.raises("ScorerDeviceErrors")


def test_canaries_that_are_judged_wrongly(tmp_path: Path) -> None:
    """Human canary sites have the texts of LLM ones, and the reverse."""
    with scene(tmp_path, canary__file=str(canary_file(tmp_path, swapped=True))) as at:
        at.up(*_ROLES)
        at.works("CanariesDegraded")
        at.raises("CanariesDegraded")
