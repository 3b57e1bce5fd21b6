"""Real servers for tests: a Prometheus that scrapes ports of this machine, and an Alertmanager."""

from __future__ import annotations

import json
import subprocess
import time
import urllib.parse
import urllib.request
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any, Self

import yaml

from tests.ops.promtool import tool
from tests.support.kafka_broker import free_ports
from tests.support.paths import ROOT
from tests.support.waiting import wait_until

SCRAPE_S = 1
_PATIENCE_S = 30


class Server:
    """A process that listens on its own port until the end of the block."""

    def __init__(self, folder: Path, program: str, *arguments: str, ready: str) -> None:
        (self.port,) = free_ports(1)
        self.output = folder / f"{program}.log"
        self._ready = ready
        listen = f"--web.listen-address=127.0.0.1:{self.port}"
        self._command = [str(tool(program)), listen, "--log.level=warn", *arguments]

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def get(self, path: str, **parameters: Any) -> Any:
        """The JSON at a path of its API."""
        query = urllib.parse.urlencode(parameters, doseq=True)
        with urllib.request.urlopen(f"{self.url}{path}?{query}", timeout=30) as answer:
            return json.load(answer)

    def _is_ready(self) -> bool:
        with suppress(OSError), urllib.request.urlopen(f"{self.url}{self._ready}", timeout=5) as answer:
            return bool(answer.status == 200)
        return False

    def __enter__(self) -> Self:
        with self.output.open("ab") as output:
            self._process = subprocess.Popen(self._command, stdout=output, stderr=output, cwd=ROOT)
        wait_until(self._is_ready, f"{self._command[0]}: {self.output}", _PATIENCE_S)
        return self

    def __exit__(self, *_: object) -> None:
        self._process.terminate()
        self._process.wait(30)


class Alertmanager(Server):
    """An Alertmanager with the inhibition rules of deploy/ and no receiver."""

    def __init__(self, folder: Path) -> None:
        settings = ROOT / "deploy" / "alertmanager" / "alertmanager.yml"
        own = (f"--config.file={settings}", f"--storage.path={folder / 'alerts'}", "--cluster.listen-address=")
        super().__init__(folder, "prometheus-alertmanager", *own, ready="/-/ready")

    def raised(self) -> set[str]:
        """The alerts that would be sent: those that are not inhibited."""
        return {name for name, _ in self.graded()}

    def graded(self) -> set[tuple[str, str]]:
        """The same with the severity of each."""
        told = self.get("/api/v2/alerts", active="true", inhibited="false")
        return {(alert["labels"]["alertname"], alert["labels"]["severity"]) for alert in told}


class Prometheus(Server):
    """Scrapes every second; `targets` are ports by role, in the job `farmwatch` except for replay and search."""

    def __init__(
        self, folder: Path, targets: Mapping[str, int], rules: str, alerts: Alertmanager | None = None
    ) -> None:
        (folder / "rules.yml").write_text(rules)
        jobs: dict[str, list[dict[str, Any]]] = {"farmwatch": [], "farmwatch-others": []}
        for role, port in targets.items():
            others = role in ("replay", "search")
            jobs["farmwatch-others" if others else "farmwatch"].append(
                {"targets": [f"127.0.0.1:{port}"], "labels": {} if others else {"role": role}}
            )
        settings = {
            "global": {"scrape_interval": f"{SCRAPE_S}s", "evaluation_interval": f"{SCRAPE_S}s"},
            "rule_files": ["rules.yml"],
            "scrape_configs": [
                {"job_name": job, "honor_labels": True, "static_configs": found} for job, found in jobs.items()
            ],
        }
        if alerts is not None:
            place = {"static_configs": [{"targets": [f"127.0.0.1:{alerts.port}"]}]}
            settings["alerting"] = {"alertmanagers": [place]}
        (folder / "prometheus.yml").write_text(yaml.safe_dump(settings))
        own = (f"--config.file={folder / 'prometheus.yml'}", f"--storage.tsdb.path={folder / 'tsdb'}")
        super().__init__(folder, "prometheus", *own, ready="/-/ready")
        self.started_s = time.time()

    def now(self, query: str) -> list[dict[str, Any]]:
        """The series of a query with their current values."""
        found: list[dict[str, Any]] = self.get("/api/v1/query", query=query)["data"]["result"]
        return found

    def history(self, query: str, until_s: float = 0) -> list[dict[str, Any]]:
        """The series of a query since the start, if they have numeric values."""
        between = {"start": self.started_s, "end": until_s or time.time(), "step": SCRAPE_S}
        found = self.get("/api/v1/query_range", query=query, **between)["data"]["result"]
        kept = [{**one, "values": [value for value in one["values"] if value[1] != "NaN"]} for one in found]
        return [one for one in kept if one["values"]]

    def series(self) -> list[dict[str, str]]:
        """All series since the start."""
        found: list[dict[str, str]] = self.get("/api/v1/series", **{"match[]": '{__name__=~".+"}'})["data"]
        return found
