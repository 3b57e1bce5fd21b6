"""All runs of a log as they stand: for `farmwatch runs`, from `control`, offsets and rows alone."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from farmwatch.runs.lag import lag_by_group
from farmwatch.runs.named import ever_live
from farmwatch.runs.phases import Progress, groups_of, progress_of
from farmwatch.site_table import SiteTable
from scoring.canary import is_canary
from stream.control import Control
from stream.log import Log
from stream.records import SiteState
from stream.runs import Run, State

BROKEN_OFF, LIVE_NOW, WAS_LIVE = "broken off", "live", "was live"


@dataclass(frozen=True, slots=True)
class Counts:
    """What the rows of a run come to; canary sites are left out."""

    sites: int = 0
    pages: int = 0
    articles: int = 0
    unscored: int = 0  # articles without a score, and on which the detector did not abstain


@dataclass(frozen=True, slots=True)
class RunState:
    """A run as it stands. Times in ms; a rate in records a second."""

    run: Run
    state: str  # of its row; or live, was live, broken off
    progress: Progress
    rate: float | None  # since the process at work on it began
    eta_s: float | None
    lag: int
    members: Sequence[str]
    counts: Counts

    @property
    def is_live(self) -> bool:
        """Whether the live stages carry it on."""
        return self.state == LIVE_NOW

    @property
    def resume(self) -> str:
        """The command that goes on with it; "" where nothing is to be gone on with."""
        return f"farmwatch replay --name {self.run.name}" if self.state == BROKEN_OFF else ""


def run_states(log: Log, control: Control, now_ms: int) -> list[RunState]:
    """Every run, the live one first, then by the time of their begin. Raises LogUnavailable."""
    runs = sorted(control.runs.values(), key=lambda run: (run.name != control.alias.run, run.created_at, run.name))
    return [run_state(log, control, run, now_ms) for run in runs]


def run_state(log: Log, control: Control, run: Run, now_ms: int) -> RunState:
    """One run as it stands."""
    if run.state == State.REMOVED or run.names().sites not in log.topics():
        return RunState(run, run.state, Progress([]), None, None, 0, [], Counts())
    members = sorted({member for group in groups_of(run) for member in log.members(group)})
    state = _state(run, run.name == control.alias.run, run.name in ever_live(control), bool(members))
    progress = progress_of(log, run)
    rate = eta_s = None
    if state == State.RUNNING:
        passed_s = (now_ms - run.began_at) / 1000
        done = progress.done - run.began_done
        rate = done / passed_s if passed_s > 0 and done > 0 else None
        spent = progress.effort - run.began_effort
        eta_s = progress.effort_left * passed_s / spent if passed_s > 0 and spent > 0 else None
    lag = sum(lag_by_group(log, control, run).values())
    return RunState(run, state, progress, rate, eta_s, lag, members, counts_of(rows_of(log, run.names().sites)))


def rows_of(log: Log, topic: str) -> list[SiteState]:
    """The newest row of each site on a topic of rows, by name of the site."""
    if topic not in log.topics():
        return []
    table = SiteTable(log, topic)
    table.refresh()
    return table.rows()


def counts_of(rows: Iterable[SiteState]) -> Counts:
    """Sums over rows."""
    kept = [row for row in rows if not is_canary(row.site)]
    return Counts(
        len(kept),
        sum(row.pages for row in kept),
        sum(row.articles for row in kept),
        sum(row.articles - row.scored - row.abstained for row in kept),
    )


def _state(run: Run, is_live: bool, was_live: bool, has_members: bool) -> str:
    if is_live:
        return LIVE_NOW
    if run.state in (State.RUNNING, State.DONE) and was_live:
        return WAS_LIVE
    if run.state == State.RUNNING and not has_members:
        return BROKEN_OFF
    return run.state
