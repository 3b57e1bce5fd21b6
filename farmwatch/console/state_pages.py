"""The console's pages on the state of farmwatch: the flow of pages through the roles, its health, its dead letters."""

from __future__ import annotations

import platform
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from importlib.metadata import version
from math import inf
from typing import Any

import msgspec

from farmwatch.config.config import Config
from farmwatch.console.jobs import DOCTOR, Jobs
from farmwatch.console.read_model import JUDGED, ReadModel
from farmwatch.console.site_filter import DECIDED, SiteFilter, SiteSums
from farmwatch.console.site_lists import number_in
from farmwatch.crawl.orders import pause_in_words
from farmwatch.doctor.checks import examine
from farmwatch.doctor.status import DaemonStatus
from farmwatch.terminal.messages import program_version
from farmwatch.upkeep.disk_forecast import forecast_in_words, topic_growths
from farmwatch.upkeep.letter_fields import existing_letter, letter_content
from replay.rows.dead_letters import NEWEST, LetterState, letter_groups, older_letters, read_letters
from replay.runs.run_rules import method_name
from stream.log.contract import Clock, Log
from stream.schema.control import Control
from stream.schema.runs import shown_run
from stream.schema.topics import DEAD_LETTERS, RETRIES

_LETTERS_S = 2.0  # for which they are shown again


@dataclass(frozen=True, slots=True)
class StatePages:
    """Answers the requests for these pages."""

    _log: Log
    _config: Config
    _model: ReadModel
    _jobs: Jobs
    _read_status: Callable[[], DaemonStatus]
    _clock: Clock

    def flow(self, _: Mapping[str, str]) -> dict[str, Any]:
        """What `farmwatch status` says, the pages left after each stage, and what became of the others."""
        kinds: dict[str, list[dict[str, Any]]] = {}
        for kind, why, pages in self._model.outcomes():
            kinds.setdefault(kind, []).append({"why": why, "pages": pages})
        sums = self._jobs.soon(("sums", SiteFilter()), partial(self._model.site_sums, SiteFilter()))
        return {
            "still_reads": self._model.rebuilding,
            "status": msgspec.to_builtins(self._read_status()),
            "pause": pause_in_words(self._log),
            "funnel": [] if sums is None else _stages(sums),
            "outcomes": kinds,
        }

    def health(self, query: Mapping[str, str]) -> dict[str, Any]:
        """What is wrong, as `farmwatch status` says it, versions, disk; with `doctor`, what `farmwatch doctor` says.

        The doctor runs once for each value of `doctor`, not at each renewal of the page. Raises Working.
        """
        status, examined = self._read_status(), None
        if asked := query.get("doctor", "")[:20]:
            examined = self._jobs.found((DOCTOR, asked), "Running the doctor", lambda: list(examine(self._config)), inf)
        versions = {
            "farmwatch": program_version(),
            "python": platform.python_version(),
            "trafilatura": version("trafilatura"),
        }
        if live := Control(self._log).live:
            versions |= {
                "ruleset": f"{live.ruleset} {live.digest}",
                "detector": live.detector,
                "site method": method_name(live.site_method),
                "feature epoch": live.epoch,
            }
        return {
            "at": status.at,
            "log": status.log,
            "wrong": msgspec.to_builtins(status.wrong),
            "pause": pause_in_words(self._log),
            "behind": self._model.behind(self._log),
            "versions": versions,
            "disk": self._jobs.soon(("disk",), self._forecast) or [],
            "doctor": None if examined is None else {"at": examined.at, "results": msgspec.to_builtins(examined.value)},
            "now": self._clock(),
        }

    def _forecast(self) -> list[str]:
        now_ms = self._clock()
        growths, age_days = topic_growths(self._log, now_ms)
        return forecast_in_words(self._config, growths, age_days, now_ms)

    def letters(self, query: Mapping[str, str]) -> dict[str, Any]:
        """The newest dead letters by stage and reason, as `farmwatch log dead list` says them. Raises Working."""
        topics = self._log.topics()
        ends = [tuple(self._log.end(topic)) for topic in (DEAD_LETTERS, RETRIES) if topic in topics]
        groups = self._jobs.result(
            ("letters", *ends),
            "Reading the dead letters",
            lambda: letter_groups(read_letters(self._log, newest=True)),
            _LETTERS_S,
        )
        done = {name: number_in(query, name) for name in ("settled", "refused")}
        return {
            "letters": [
                {
                    "stage": group.stage,
                    "run": shown_run(group.run),
                    "reason": group.reason,
                    "open": group.states[LetterState.OPEN],
                    "settled": group.settled,
                    "newest": group.newest.id,
                    "at": group.newest.message.timestamp_ms,
                    "error": group.newest.letter.error,
                }
                for group in groups
            ],
            "newest": NEWEST,
            "older": older_letters(self._log),
            "done": {} if None in done.values() else done,
        }

    def letter(self, query: Mapping[str, str]) -> dict[str, Any]:
        """A dead letter, as `farmwatch log dead show` shows it. Raises NotFound, UsageError."""
        return letter_content(existing_letter(self._log, query.get("id", "")))


def _stages(sums: Sequence[SiteSums]) -> list[dict[str, Any]]:
    """The stages of the funnel, each with its count and the address of a list."""
    places = (
        ("hits", sum(of.hits for of in sums), "/sites?sort=hits"),
        ("sites", sum(of.sites for of in sums), "/sites"),
        ("pages", sum(of.pages for of in sums), f"/pages?kind={JUDGED}"),
        ("articles", sum(of.articles for of in sums), "/pages?kind=article"),
        ("scored articles", sum(of.scored for of in sums), "/sites?sort=scored"),
        ("sites decided", sum(of.sites for of in sums if of.is_decided), f"/sites?verdict={DECIDED}"),
    )
    return [dict(zip(("stage", "count", "list"), place, strict=True)) for place in places]
