"""The console's pages on runs and rulesets: progress, comparisons, differences."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec

from farmwatch.config.config import Config
from farmwatch.config.detector_config import caveats
from farmwatch.console.jobs import COMPARE, Jobs
from farmwatch.console.label_pages import LabelPages
from farmwatch.console.replays import Replays
from farmwatch.runs.comparison_words import as_json
from farmwatch.share.review_labels import read_review
from filters.rules.diff import differences, shown
from filters.rules.ruleset import Ruleset, load_ruleset, shipped_rulesets
from replay.compare.comparer import ComparisonRequest, compare
from replay.compare.comparison import Comparison
from replay.runs.lookup import find_run
from replay.runs.overview import STOPPED, run_states
from replay.runs.run_rules import rules_of
from stream.log.contract import Clock, Log
from stream.schema.control import Control
from stream.schema.runs import shown_run
from stream.text.user_errors import NotFound

SAMPLE = 100  # flips
STARTING = "starting"  # the state of a run whose process does not work yet
_REQUEST = ComparisonRequest(SAMPLE, seed=0)
_COMPARED_S = 60.0  # for which a comparison is shown again
_CUTOVERS = 20
_OF_RUN = ("ruleset", "digest", "detector", "created_at", "created_by", "why", "error")


class RunPages:
    """Answers the requests for these pages."""

    def __init__(self, log: Log, config: Config, jobs: Jobs, replays: Replays, clock: Clock) -> None:
        self._log, self._config, self._jobs, self._replays, self._clock = log, config, jobs, replays, clock
        self.labels = LabelPages(log, config, lambda query: self._compared(query, float("inf")), clock)

    def runs(self, query: Mapping[str, str]) -> dict[str, Any]:
        """The runs of the log, as `farmwatch runs` lists them, and the cutovers."""
        control = Control(self._log)
        states = run_states(self._log, control, self._clock())
        return {
            "runs": [
                {
                    "run": state.run.shown,
                    "state": STARTING if state.state == STOPPED and self._replays.has(state.run.shown) else state.state,
                    **{name: getattr(state, name) for name in ("done", "eta_s", "window", "lag")},
                    **{name: getattr(state.run, name) for name in _OF_RUN},
                }
                for state in states
            ],
            "cutovers": [
                {**msgspec.structs.asdict(move), "from_run": shown_run(move.from_run), "to_run": shown_run(move.to_run)}
                for move in control.cutovers[-_CUTOVERS:][::-1]
            ],
            "before": shown_run(control.alias.before) if control.alias.before else "",
            "number": control.alias.number,
            "rulesets": shipped_rulesets(),
            "already": bool(query.get("already")),
        }

    def compare(self, query: Mapping[str, str]) -> dict[str, Any]:
        """Two runs, as `farmwatch compare` says it. Raises NotFound, Working."""
        comparison = self._compared(query, _COMPARED_S)
        warnings = caveats(self._config, dict.fromkeys((comparison.a.detector, comparison.b.detector)))
        return {**as_json(comparison), "warnings": warnings}

    def rulesets(self, query: Mapping[str, str]) -> dict[str, Any]:
        """The rulesets that ship and those of runs; the text of one, and its differences from another.

        Raises NotFound, BadRuleset.
        """
        control, names = Control(self._log), self.ruleset_names()
        a = query.get("a", "") or (f"run {control.live.shown}" if control.live else names[0])
        b = query.get("b", "") or a
        one, other = self.ruleset(a), self.ruleset(b)
        fields = ("rule", "field", "a", "b")
        return {
            "names": names,
            "a": {"name": a, "digest": one.digest, "rules_in_force": one.in_force},
            "b": {"name": b, "digest": other.digest, "rules_in_force": other.in_force, "text": other.source},
            "differences": [dict(zip(fields, shown(each), strict=True)) for each in differences(one, other)],
        }

    def ruleset_names(self) -> list[str]:
        """The rulesets that ship, and `run NAME` for that of each run."""
        control = Control(self._log)
        of_runs = [f"run {run.shown}" for run in control.runs.values() if control.ruleset_text(run)]
        return [*shipped_rulesets(), *of_runs]

    def ruleset(self, name: str) -> Ruleset:
        """One of them by its name. Raises NotFound."""
        names = self.ruleset_names()
        if name not in names:
            raise NotFound(f"{name[:80]!r}: no such ruleset; there are {', '.join(names)}")
        if name.startswith("run "):
            control = Control(self._log)
            return rules_of(control, find_run(control, name.removeprefix("run "))).ruleset
        return load_ruleset(name)

    def _compared(self, query: Mapping[str, str], keep_s: float) -> Comparison:
        control = Control(self._log)
        sides = (("a", "live"), ("b", "before"))
        a, b = (find_run(control, query.get(side, "")[:60] or default).shown for side, default in sides)

        def work() -> Comparison:
            now_ms = self._clock()
            review = read_review(self._config.rate, now_ms)
            return compare(self._log, a, b, _REQUEST, self._config.rate, now_ms, review)

        return self._jobs.result((COMPARE, a, b), f"Comparing {a} and {b}", work, keep_s)
