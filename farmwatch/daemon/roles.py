"""The composition root of a process: builds the stage of a role from the configuration, and runs it on the log."""

from __future__ import annotations

import math
import os
import threading
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import structlog

from crawler.stages.orders import free_bytes
from farmwatch.config.config import Config
from farmwatch.config.member_names import names_folder
from farmwatch.config.opening import open_configured
from farmwatch.config.topic_limits import create_topics
from farmwatch.daemon.endpoints import Endpoints, Exposition
from farmwatch.metrics import ALL, BUILD_INFO, DISK_FREE_BYTES, ROLE_RESTARTS, RULESET_INFO
from farmwatch.terminal.messages import program_version
from farmwatch.terminal.remedies import in_full
from replay.runs.configured import site_method_of, tally_identity
from stream.log.contract import CleanupPolicy, Clock, Log, Member, Topic, wall_ms
from stream.processing.health import Health
from stream.processing.loop import StageLoop
from stream.processing.metrics import LOG_LAG_RECORDS, LOG_LAG_SECONDS, Metrics
from stream.processing.stage import Stage
from stream.processing.steady_clock import SteadyClock
from stream.schema.control import Control
from stream.schema.roles import Role
from stream.schema.topics import RETRIES

if TYPE_CHECKING:
    from replay.runs.run_rules import RunRules

_log = structlog.get_logger()
_CUTOVER_CHECK_S = 1.0
_TRACES_END_S = 3.0  # the last spans may delay the end of a role this long
_TRACE_ENDPOINTS = ("OTEL_EXPORTER_OTLP_ENDPOINT", "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT")
_MAINTENANCE_END_S = 5.0  # the last job of maintenance may delay the end of a process this long


def build_stage(
    role: Role,
    config: Config,
    metrics: Metrics,
    live: RunRules | None = None,
    log: Log | None = None,
    clock: Clock = wall_ms,
) -> Stage:
    """The stage of a role; its `close` ends the threads and processes that it starts. Raises as its settings do.

    MEASURE, JUDGE and TALLY work for the run `live`, which they need. JUDGE and TALLY read the results of earlier runs
    from `log`, SCORE announces its detectors there; TALLY needs it.
    """
    if role is Role.CRAWL:
        from crawler.stages.crawl import CrawlStage
        from crawler.stages.orders import CrawlOrders
        from farmwatch.daemon import page_inspector

        orders = None if log is None else CrawlOrders(log, disks_of(config), config.crawl.pause_below_bytes)
        return CrawlStage(
            config.crawl,
            metrics,
            partitions=config.log.partitions,
            orders=orders,
            inspector=page_inspector,
            clock=lambda: clock() / 1000,
        )
    if role is Role.SCORE:
        from replay.rows.scores import announce_detectors
        from scoring.detectors.registry import detector_identities, load_detectors
        from scoring.interface import refuse_uncalibrated
        from scoring.stages.score import ScoreStage

        score = config.score
        detectors = detector_identities(score)
        refuse_uncalibrated(detectors)
        if log is not None:
            announce_detectors(log, detectors)
        return ScoreStage(partial(load_detectors, score), batch_texts=score.texts_at_once, metrics=metrics)
    assert live is not None
    run, names = live.run.name, live.names
    if role is Role.MEASURE:
        from filters.stages.measure import MeasureStage
        from replay.runs.lookup import measuring_run

        return MeasureStage(config.measure, run=measuring_run(names.features), names=names, metrics=metrics)
    if role is Role.JUDGE:
        from filters.stages.judge import JudgeStage
        from replay.rows.scores import backlog, scores_of_backlog

        if log is None or not live.run.detector:
            return JudgeStage(live.ruleset, run=run, names=names)
        is_behind, known = backlog(log, names), scores_of_backlog(log, names, live.run.detector)
        return JudgeStage(live.ruleset, run=run, names=names, known=known, is_behind=is_behind)
    assert log is not None
    from farmwatch.canaries.file import canary_sender
    from replay.live.live_run import canaries_sent_before
    from scoring.stages.tally import TallyStage
    from stream.schema.panel import read_panels

    identity = live.run.detector or tally_identity(config)
    method = site_method_of(config, live.run)
    sent_before = partial(canaries_sent_before, log, run)
    canaries = canary_sender(config.canary, config.rate.canary_days, config.log.partitions, names.sites, sent_before)
    followed = {site for panel in read_panels(log).values() if panel.follow_turns for site in panel.sites}
    return TallyStage(
        identity,
        config.tally,
        run,
        method=method,
        canaries=canaries,
        names=names,
        follows=lambda site: config.crawl.follow_turns or site in followed,
    )


def run_role(
    role: Role,
    config: Config,
    member: str,
    stop: threading.Event,
    *,
    metrics: Metrics | None = None,
    restarts: int = 0,
    observe: Callable[[Stage, Member], Member] = lambda _, joined: joined,
    cutover_check_s: float = _CUTOVER_CHECK_S,
) -> None:
    """Run one role in this process until `stop`, then drain. `member` is its name in the group of the role.

    MEASURE, JUDGE and TALLY work for the live run, and check every `cutover_check_s` for another one. `restarts` counts
    earlier starts of the role. `observe` gets the stage and the member, and may wrap the member. Raises StreamError if
    the log cannot be opened or laid out, PortTaken if the metrics port is taken, and as the settings of the stage do.
    """
    metrics = metrics or Metrics(ALL)
    for name, folder in disks_of(config).items():
        if name == "log" or role is Role.CRAWL:
            metrics.watch(DISK_FREE_BYTES, partial(_free_bytes, folder), folder=name)
    with tracing(config.log.url) as trace:
        process = _RoleProcess(role, config, member, metrics, observe, cutover_check_s, trace, SteadyClock(metrics))
        with exposed(role, config, metrics, process.health, restarts), closing(open_configured(config)) as log:
            create_topics(log, config)
            process.run(log, stop)
    _log.info("role_ended", member=member)


Trace = Callable[[Stage, Member, str], Member]  # a stage, its member and its group -> the member, traced


@contextmanager
def tracing(log_url: str) -> Iterator[Trace]:
    """Trace the members of a role until the end of the block, if the standard variables name a collector."""

    def untraced(_stage: Stage, member: Member, _group: str) -> Member:
        return member

    is_disabled = os.environ.get("OTEL_SDK_DISABLED", "").strip().lower() == "true"
    if is_disabled or not any(os.environ.get(name) for name in _TRACE_ENDPOINTS):
        yield untraced
        return
    try:
        from farmwatch.daemon.spans import Spans
    except ImportError as error:
        _log.warning("no_traces", error=str(error), mend="pip install '.[otel]' in the checkout")
        yield untraced
        return
    spans = Spans(log_url.partition(":")[0], program_version())
    try:
        yield spans.traced
    finally:
        ending = threading.Thread(target=spans.close, name="traces-end", daemon=True)
        ending.start()
        ending.join(_TRACES_END_S)


@contextmanager
def exposed(
    role: Role, config: Config, metrics: Metrics, health: Callable[[], Health], restarts: int
) -> Iterator[None]:
    """Serve metrics and health of a role until the end of the block. Raises PortTaken, ConfigError."""
    metrics.set(BUILD_INFO, 1, version=program_version())
    metrics.count(ROLE_RESTARTS, restarts)
    shown, port = Exposition(metrics.registry, role.value), config.metrics.port_of(role)
    with Endpoints(shown, health, config.metrics.host, port):
        yield


def disks_of(config: Config) -> dict[str, Path]:
    """The folders whose disks a process fills: that of the log (on Kafka of local state), and that of the archive."""
    archive = {"archive": Path(config.crawl.warc_folder)} if config.crawl.warc_folder else {}
    return {"log": names_folder(config), **archive}


def _free_bytes(folder: Path) -> float:
    free = free_bytes(folder)
    return math.nan if free is None else free


@dataclass(slots=True)
class _RoleProcess:
    """A role on a log: one stage until the end, or one stage for each run that becomes live."""

    role: Role
    config: Config
    member: str
    metrics: Metrics
    observe: Callable[[Stage, Member], Member]
    cutover_check_s: float
    trace: Trace
    clock: SteadyClock
    loop: StageLoop | None = None

    def health(self) -> Health:
        """The health of the current loop."""
        return Health(True, False, "starting") if self.loop is None else self.loop.health()

    def run(self, log: Log, stop: threading.Event) -> None:
        """Work until `stop`."""
        role, config, metrics = self.role, self.config, self.metrics
        if role in (Role.CRAWL, Role.SCORE):
            stage = build_stage(role, config, metrics, log=log, clock=self.clock)
            self._begin(log, stage, stage.name, Control(log).alias.run).run(stop)
            return
        from replay.live.handover import follow, require_live
        from replay.live.live_run import first_rules

        def fit(control: Control, live: RunRules) -> None:
            require_live(control, config, live, [role])

        live, work = first_rules(role, log, config), partial(self._work_for, log)
        follow(role, log, live, metrics, stop, work, fit, check_s=self.cutover_check_s, in_words=in_full)

    def _work_for(self, log: Log, live: RunRules, ended: threading.Event) -> None:
        self.loop = None  # not ready until the loop of this run starts
        for gauge in (LOG_LAG_RECORDS, LOG_LAG_SECONDS, RULESET_INFO):
            self.metrics.clear(gauge)  # of the run before
        stage, names = build_stage(self.role, self.config, self.metrics, live, log), live.names
        if self.role is Role.MEASURE and stage.store is not None:  # may be missing if its epoch is not that of the run
            log.create([Topic(f"state.{stage.store}", self.config.log.partitions, CleanupPolicy.COMPACT)])
        if self.role is Role.JUDGE:
            self.metrics.set(RULESET_INFO, 1, ruleset=live.ruleset.name, digest=live.ruleset.digest)
        groups = {Role.MEASURE: names.measure_group, Role.JUDGE: names.judge_group, Role.TALLY: names.tally_group}
        loop = self._begin(log, stage, groups[self.role], live.run.name)
        if self.role is not Role.TALLY:
            loop.run(ended)
            return
        from farmwatch.daemon.maintenance import Maintenance, jobs_of_tally
        from scoring.detectors.registry import stated_flags

        over, method = threading.Event(), site_method_of(self.config, live.run)
        of_method = method.name, method.digest
        stated = stated_flags(self.config.score, live.run.detector)
        jobs = jobs_of_tally(log, self.config.rate, self.metrics, live, of_method, self.clock, stated=stated)
        thread = threading.Thread(target=Maintenance(jobs).run, args=(over,), name="maintenance", daemon=True)
        thread.start()
        try:
            loop.run(ended)
        finally:
            over.set()
            thread.join(_MAINTENANCE_END_S)

    def _begin(self, log: Log, stage: Stage, group: str, live: str) -> StageLoop:
        for metric, labels in stage.metric_series(stage.run or live):
            self.metrics.touch(metric, **labels)
        inputs = [*stage.inputs, RETRIES]
        joined = log.join(group, inputs, member=self.member, store=stage.store, background=stage.background)
        member = self.trace(stage, self.observe(stage, joined), group)
        self.loop = StageLoop(stage, member, metrics=self.metrics, settings=self.config.loop, clock=self.clock)
        return self.loop
