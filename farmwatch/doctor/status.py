"""The state of a farmwatch at a glance: roles, crawl, share, disk, and the findings of the doctor. Read-only."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence

import msgspec

from crawler.frontier.report import frontier_now
from farmwatch.config.config import Config
from farmwatch.doctor import crawl_checks, log_checks, machine_checks
from farmwatch.doctor.check_result import CheckResult, CheckState, Results, Subject, fail, warn
from farmwatch.doctor.log_snapshot import LogSnapshot
from farmwatch.share.rate_cache import read_cached_rate
from farmwatch.share.review_labels import read_review
from farmwatch.terminal.remedies import in_full
from farmwatch.upkeep.disk_forecast import free_bytes
from replay.rows.site_table import read_rows
from replay.runs.lookup import names_of_live
from replay.runs.topology import Reads, inputs_of_live, lag_on, processed_by
from scoring.rates.split_rates import RateLine, RateQuery, rate_lines
from stream.log.contract import Clock, Log, wall_ms
from stream.schema.control import Control
from stream.schema.roles import STAGES
from stream.schema.runs import shown_run
from stream.schema.topics import HITS
from stream.text.user_errors import FarmwatchError
from stream.text.wording import one_line

ROLES = "roles"  # the finding that some have no process
_LOOKED_AT = 100  # offsets, of which some may be transaction markers
_SAMPLE_S = 0.25  # over which the first rates are measured
_MOST_EXPIRED = 0.1  # of the verdicts
_CHECK_EVERY_S = 15.0  # between two rounds of checks, which read more than offsets
_CHECKS: tuple[tuple[str, Callable[[Subject], Results]], ...] = (
    ("disk", machine_checks.disk),
    ("clock", machine_checks.dates),
    ("orders", crawl_checks.orders),
    ("segments", log_checks.segments),
    ("dead letters", log_checks.dead_letters),
    ("live run", log_checks.live_run),
    ("groups", log_checks.groups),
    ("topics", log_checks.topics),
    ("runs", log_checks.runs),
)


class RoleState(msgspec.Struct, frozen=True):
    """A role: its processes, and the offsets that it has not processed."""

    role: str
    members: list[str]
    lag: int
    per_s: float | None  # offsets processed per second since the last look
    eta_s: float | None  # until the lag is 0 at this rate; None = unknown
    age_s: float = 0.0  # of the oldest record that waits in the partition furthest behind


class CrawlState(msgspec.Struct, frozen=True):
    """The sums of the frontier."""

    sites: int
    active: int
    stopped: int
    queued: int
    fetched: int
    per_s: float | None = None  # pages fetched since the last look


class DaemonStatus(msgspec.Struct, frozen=True, kw_only=True):
    """Everything that `farmwatch status` shows."""

    at: int  # ms
    log: str
    run: str
    roles: list[RoleState]
    crawl: CrawlState | None  # None without topics
    share: RateLine | None  # None without a row
    log_bytes: int
    free_bytes: int
    wrong: list[CheckResult]  # those that need the operator


class StatusReader:
    """Reads the status of a log again and again; rates are those since the last look."""

    def __init__(
        self, log: Log, config: Config, clock: Clock = wall_ms, lines: Callable[[], list[RateLine]] | None = None
    ) -> None:
        """Measure the first rates against the offsets of now. `lines`: the share, where the caller knows it already."""
        self._log = log
        self._lines = lines
        self._config = config
        self._clock = clock
        self._first = LogSnapshot(log)
        self._before = _processed(self._first)
        self._looked_s = time.monotonic()
        self._checked_s = float("-inf")
        self._wrong: list[CheckResult] = []
        self._fetched: tuple[int, float] | None = None  # pages, and when (s)

    def wait(self) -> None:
        """Wait until rates can be measured; the checks are made meanwhile."""
        self._check(self._first)
        time.sleep(max(0.0, self._looked_s + _SAMPLE_S - time.monotonic()))

    def read(self) -> DaemonStatus:
        """The status of now. Raises LogUnavailable."""
        log, config, now_ms = LogSnapshot(self._log), self._config, self._clock()
        control = Control(log)
        roles = list(self._roles(log))
        if time.monotonic() - self._checked_s > _CHECK_EVERY_S:
            self._check(log)
        absent = [state.role for state in roles if not state.members]
        share, wrong = self._share(log, control, now_ms), list[CheckResult]()
        existing, crawl = log.topics(), None
        if HITS in existing:
            totals = frontier_now(log, existing[HITS])
            before, at_s = self._fetched or (0, 0.0)
            pace = (totals.fetched - before) / max(0.001, time.monotonic() - at_s) if self._fetched else None
            crawl = CrawlState(totals.sites, totals.active, totals.stopped, totals.queued, totals.fetched, pace)
            self._fetched = totals.fetched, time.monotonic()
            is_idle = any(log.end(HITS)) and not (totals.sites or lag_on(log, "crawl", HITS))
            if is_idle and not roles[0].members:  # all hits have pages of archives: see `pass_for_crawl`
                roles[0] = RoleState(roles[0].role, [], 0, None, 0.0)
                absent.remove(roles[0].role)
        if absent:
            down = f"not running: {', '.join(absent)} (`farmwatch up`)"
            wrong.append(warn(down, "`farmwatch up` starts them", ROLES))
        if share is not None and share.expired > _MOST_EXPIRED * share.sites:
            old = f"{share.expired} of {share.sites} verdicts are too old to count"
            wrong.append(warn(old, "`farmwatch crawl frontier` shows why the sites are not measured again", "verdicts"))
        return DaemonStatus(
            at=now_ms,
            log=config.log.url,
            run=shown_run(control.alias.run),
            roles=roles,
            crawl=crawl,
            share=share,
            log_bytes=sum(size.bytes for size in log.sizes(list(existing)).values()),
            free_bytes=free_bytes(config),
            wrong=[*wrong, *self._wrong],
        )

    def _roles(self, log: Log) -> Iterator[RoleState]:
        now, processed, existing = time.monotonic(), _processed(log), log.topics()
        spent_s = max(0.001, now - self._looked_s)
        for role, (group, topics) in zip(STAGES, _reads(log).items(), strict=True):
            there = [topic for topic in topics if topic in existing]
            lag = max(0, sum(sum(log.end(topic)) for topic in there) - processed[group])
            per_s = max(0, processed[group] - self._before.get(group, processed[group])) / spent_s
            eta_s = 0.0 if not lag else lag / per_s if per_s else None
            age_s = self._age_s(log, group, there) if lag else 0.0
            yield RoleState(role.value, log.members(group), lag, per_s, eta_s, age_s)
        self._before, self._looked_s = processed, now

    def _age_s(self, log: Log, group: str, topics: Sequence[str]) -> float:
        """How long the next record waits in the partition where the group is furthest behind."""
        places = [
            (end - (offset or first), topic, partition, offset or first)
            for topic in topics
            for partition, (first, offset, end) in enumerate(
                zip(log.beginning(topic), log.committed(group, topic), log.end(topic), strict=True)
            )
        ]
        behind, topic, partition, offset = max(places)
        waiting = log.read(topic, partition, offset, offset + min(behind, _LOOKED_AT))
        return next((max(0.0, (self._clock() - message.timestamp_ms) / 1000) for message in waiting), 0.0)

    def _share(self, log: Log, control: Control, now_ms: int) -> RateLine | None:
        topic = names_of_live(control).sites
        if topic not in log.topics():
            return None
        rate, lines = self._config.rate, list[RateLine]()
        if self._lines is not None:
            lines = self._lines()
        elif kept := read_cached_rate(log, topic, rate, now_ms):
            lines = kept.lines
        elif rows := read_rows(log, topic):
            lines = rate_lines(rows, RateQuery(settings=rate, now_ms=now_ms, review=read_review(rate, now_ms)))
        live = control.live
        of_live = [line for line in lines if live is None or line.digest == live.digest]
        return max(of_live or lines, key=lambda line: line.sites, default=None)

    def _check(self, log: Log) -> None:
        self._wrong, self._checked_s = list(self._troubles(log)), time.monotonic()

    def _troubles(self, log: Log) -> Iterator[CheckResult]:
        subject = Subject(self._config, log=log)
        for name, check in _CHECKS:
            try:
                for result in check(subject):
                    if result.state is not CheckState.OK:
                        yield CheckResult(result.state, one_line(result.found), one_line(result.mend), name)
            except FarmwatchError as error:
                yield fail(one_line(in_full(error)), check=name)


def _processed(log: Log) -> dict[str, int]:
    existing = log.topics()
    return {
        group: sum(sum(processed_by(log, group, topic)) for topic in topics if topic in existing)
        for group, topics in _reads(log).items()
    }


def _reads(log: Log) -> Reads:
    return inputs_of_live(names_of_live(Control(log)))
