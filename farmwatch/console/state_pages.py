"""The console's pages on the state of farmwatch: the flow of pages through the roles, and its health."""

from __future__ import annotations

import platform
from collections.abc import Callable, Mapping
from importlib.metadata import version
from math import inf
from typing import Any

import msgspec

from farmwatch.config.config import Config
from farmwatch.console.jobs import DOCTOR, Jobs
from farmwatch.console.read_model import ReadModel
from farmwatch.crawl.orders import pause_in_words
from farmwatch.doctor.checks import examine
from farmwatch.doctor.status import DaemonStatus
from farmwatch.terminal.messages import program_version
from farmwatch.upkeep.disk_forecast import forecast_in_words, topic_growths
from replay.runs.run_rules import method_name
from stream.log.contract import Clock, Log
from stream.schema.control import Control


class StatePages:
    """Answers the requests for these pages."""

    def __init__(
        self,
        log: Log,
        config: Config,
        model: ReadModel,
        jobs: Jobs,
        read_status: Callable[[], DaemonStatus],
        clock: Clock,
    ) -> None:
        self._log, self._config, self._model, self._jobs, self._clock = log, config, model, jobs, clock
        self._read_status = read_status

    def flow(self, _: Mapping[str, str]) -> dict[str, Any]:
        """What `farmwatch status` says, the pages left after each stage, and what became of the others."""
        kinds: dict[str, list[dict[str, Any]]] = {}
        for kind, why, pages in self._model.outcomes():
            kinds.setdefault(kind, []).append({"why": why, "pages": pages})
        funnel = self._jobs.soon(("funnel",), self._model.funnel)
        return {
            "still_reads": self._model.rebuilding,
            "status": msgspec.to_builtins(self._read_status()),
            "pause": pause_in_words(self._log),
            "funnel": None if funnel is None else funnel._asdict(),
            "outcomes": kinds,
        }

    def health(self, query: Mapping[str, str]) -> dict[str, Any]:
        """What is wrong, as `farmwatch status` says it, versions, disk; with `doctor`, what `farmwatch doctor` says.

        The doctor runs once for each value of `doctor`, not at each renewal of the page. Raises Working.
        """
        status, examined = self._read_status(), None
        if asked := query.get("doctor", "")[:20]:
            examined = self._jobs.found(
                (DOCTOR, asked), "Running the doctor", lambda _: list(examine(self._config)), inf
            )
        return {
            "at": status.at,
            "log": status.log,
            "wrong": msgspec.to_builtins(status.wrong),
            "pause": pause_in_words(self._log),
            "behind": self._model.behind(self._log),
            "versions": self._versions(),
            "disk": self._jobs.soon(("disk",), self._forecast) or [],
            "doctor": None if examined is None else {"at": examined.at, "results": msgspec.to_builtins(examined.value)},
            "now": self._clock(),
        }

    def _versions(self) -> dict[str, str]:
        live = Control(self._log).live
        installed = {
            "farmwatch": program_version(),
            "python": platform.python_version(),
            "trafilatura": version("trafilatura"),
        }
        if live is None:
            return installed
        return installed | {
            "ruleset": f"{live.ruleset} {live.digest}",
            "detector": live.detector,
            "site method": method_name(live.site_method),
            "feature epoch": live.epoch,
        }

    def _forecast(self) -> list[str]:
        now_ms = self._clock()
        growths, age_days = topic_growths(self._log, now_ms)
        return forecast_in_words(self._config, growths, age_days, now_ms)
