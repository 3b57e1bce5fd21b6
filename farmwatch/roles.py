"""The composition root of a process: from a role and a configuration to a stage that runs on a log."""

from __future__ import annotations

import threading
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec
import structlog

from farmwatch.brokers import broker_addresses
from farmwatch.config import Config
from farmwatch.endpoints import Endpoints
from farmwatch.errors import ConfigError
from farmwatch.role_names import Role, metrics_port
from farmwatch.upkeep import Upkeep
from farmwatch.zeros import export_zeros
from filters.epoch import feature_epoch
from stream.log import Log, Member
from stream.loop import StageLoop
from stream.metrics import Metrics
from stream.opening import open_log
from stream.stage import Stage
from stream.topics import all_topics
from stream.watching import Health

if TYPE_CHECKING:
    from filters.ruleset import Ruleset
    from scoring.detector import Detector
    from scoring.site_method import SiteMethod
    from scoring.site_verdict import SprtParams

_log = structlog.get_logger()
_PORT_MARGIN_S = 5.0  # beyond the drain of roles whose supervisor was killed: they hold their ports so long
_UPKEEP_END_S = 5.0  # seconds that the last round of upkeep may hold up the end of a process


def open_configured(config: Config) -> Log:
    """The configured log. Raises StreamError, ConfigError for a URL of no known form, LogUnavailable."""
    options: dict[str, Any] = {}
    check_log_url(config)
    broker_addresses(config.log.url)  # the client would fail at a wrong one with an error of Python's
    if config.log.url.startswith("kafka:"):
        options["state_folder"] = Path(config.log.state_folder)
        options["settings"] = config.kafka
    return open_log(config.log.url, prefix=config.log.prefix, **options)


def log_exists(config: Config) -> bool:
    """False for an embedded log that was never made; a broker is asked when it is opened."""
    check_log_url(config)
    scheme, _, place = config.log.url.partition(":")
    return scheme != "sqlite" or Path(place).expanduser().is_dir()


def check_log_url(config: Config) -> None:
    """Raises ConfigError for a URL that cannot be a log's, and for an embedded log where a file stands."""
    scheme, _, place = config.log.url.partition(":")
    if scheme not in ("sqlite", "kafka") or not place:
        raise ConfigError(f"log.url is {config.log.url!r}: give sqlite:FOLDER or kafka:HOST:PORT")
    if scheme == "sqlite" and (folder := Path(place).expanduser()).exists() and not folder.is_dir():
        raise ConfigError(f"log.url is {config.log.url!r}: {folder} is a file; an embedded log is a folder")


def create_topics(log: Log, config: Config) -> None:
    """Create the topics that are missing. Raises TopicMismatch where log.partitions was another one."""
    log.create(all_topics(config.log.partitions, feature_epoch(config.measure)))


def tallied_name(config: Config) -> str | None:
    """Name of the detector whose scores make the site verdicts; None where tally.detector is a whole identity.

    Raises ConfigError for a name that is not among score.detectors.
    """
    chosen, names = config.tally.detector, config.score.detectors
    if "/" in chosen:
        return None
    if chosen and chosen not in names:
        raise ConfigError(
            f"tally.detector: {chosen!r} is not among score.detectors ({', '.join(names)}), nor a whole identity"
        )
    return chosen or names[0]


def tally_identity(config: Config) -> str:
    """Identity of the detector whose scores make the site verdicts. Raises ConfigError, and as `load_detectors`."""
    from scoring.detector import detector_identities

    name = tallied_name(config)
    if name is None:
        return config.tally.detector
    return detector_identities(msgspec.structs.replace(config.score, detectors=[name]))[0]


def site_test_of(config: Config) -> SprtParams | None:
    """The site test of the threshold set behind `tally_identity`, where it has one; no models need be there for it.

    Raises BadThresholds where the configured set is not the one that the identity names, and as `tally_identity`.
    """
    from scoring.detector import threshold_set_of

    chosen = threshold_set_of(config.score, tally_identity(config))
    return None if chosen is None else chosen.site_test


def configured_site_method(config: Config) -> SiteMethod:
    """The site method of [tally], with its numbers. Raises NoSiteTest, BadSiteNumbers, and as `site_test_of`."""
    from scoring.method_choice import site_method

    return site_method(config.tally, tally_identity(config), site_test_of(config))


def configured_warnings(config: Config) -> dict[str, str]:
    """Identity -> warning of the detectors of [score] that are on this machine, without loading a language model.

    Raises UnknownDetector, BadWeights, BadThresholds.
    """
    from scoring.detector import detector_warnings
    from scoring.errors import MissingExtra, MissingModel, UnsupportedModel

    found: dict[str, str] = {}
    for name in config.score.detectors:
        with suppress(MissingExtra, MissingModel, UnsupportedModel):  # they may be where SCORE runs
            found |= detector_warnings(msgspec.structs.replace(config.score, detectors=[name]))
    return found


def load_configured_detector(config: Config) -> Detector:
    """The detector whose scores make the site verdicts; the first of [score] where that is named by its identity only.

    Raises ConfigError, and as `load_detectors`.
    """
    from scoring.detector import load_detectors

    name = tallied_name(config) or config.score.detectors[0]
    return load_detectors(msgspec.structs.replace(config.score, detectors=[name]))[0]


def load_configured_ruleset(config: Config) -> Ruleset:
    """The ruleset of [judge]. Raises BadRuleset."""
    from filters.ruleset import load_ruleset

    return load_ruleset(config.judge.ruleset)


def build_stage(role: Role, config: Config, metrics: Metrics) -> Stage:
    """The stage of a role; what it starts (threads, processes) ends with its `close`. Raises as its settings do."""
    if role is Role.CRAWL:
        from crawler.crawl_stage import CrawlStage

        return CrawlStage(config.crawl, metrics, partitions=config.log.partitions)
    if role is Role.MEASURE:
        from filters.measure_stage import MeasureStage

        return MeasureStage(config.measure, metrics=metrics)
    if role is Role.JUDGE:
        from filters.judge_stage import JudgeStage

        stage = JudgeStage(load_configured_ruleset(config))
        metrics.set("ruleset_info", 1, ruleset=stage.ruleset.name, digest=stage.ruleset.digest)
        return stage
    if role is Role.SCORE:
        from scoring.detector import detector_identities, load_detectors, refuse_uncalibrated
        from scoring.score_stage import ScoreStage

        refuse_uncalibrated(detector_identities(config.score))
        return ScoreStage(
            partial(load_detectors, config.score),
            batch_texts=config.score.texts_at_once,
            remembered_texts=config.score.remembered_texts,
            metrics=metrics,
        )
    from farmwatch.canaries import canary_sender
    from scoring.tally_stage import TallyStage

    identity = tally_identity(config)
    return TallyStage(identity, config.tally, site_test=site_test_of(config), canaries=canary_sender(config))


def run_role(
    role: Role,
    config: Config,
    member: str,
    stop: threading.Event,
    *,
    metrics: Metrics | None = None,
    watched: Callable[[Member], Member] = lambda joined: joined,
) -> None:
    """Run one role in this process until `stop`, then drain. `member` is its name in the group of the role.

    `metrics` are those to count in; `watched` may put something in front of the member, to look on.
    Raises StreamError when the log cannot be opened or laid out, ConfigError when the metrics port is taken, and what
    the stage's settings raise.
    """
    metrics = metrics or Metrics()
    metrics.set("build_info", 1, version=_version())
    starting = Health(True, False, "starting")
    loop: StageLoop | None = None
    endpoints = Endpoints(
        metrics.registry,
        lambda: loop.health() if loop is not None else starting,
        config.metrics.host,
        metrics_port(config.metrics.port, role),
    )
    endpoints.start(config.up.drain_s + _PORT_MARGIN_S, stop)
    try:
        log = open_configured(config)
        try:
            create_topics(log, config)
            stage = build_stage(role, config, metrics)
            export_zeros(stage, metrics)
            names = list(stage.inputs)
            joined = log.join(stage.name, names, member=member, store=stage.store, background=stage.background)
            loop = StageLoop(stage, watched(joined), metrics=metrics, settings=config.loop)
            if role is Role.TALLY:
                _run_with_upkeep(loop, log, config, metrics, stop)
            else:
                loop.run(stop)
        finally:
            log.close()
    finally:
        endpoints.close()
    _log.info("role_ended", member=member)


def _run_with_upkeep(loop: StageLoop, log: Log, config: Config, metrics: Metrics, stop: threading.Event) -> None:
    ended = threading.Event()
    method = configured_site_method(config)
    upkeep = Upkeep(log, config, metrics, tally_identity(config), (method.name, method.digest))
    thread = threading.Thread(target=upkeep.run, args=(ended,), name="upkeep", daemon=True)
    thread.start()
    try:
        loop.run(stop)
    finally:
        ended.set()
        thread.join(_UPKEEP_END_S)


def _version() -> str:
    try:
        return version("farmwatch")
    except PackageNotFoundError:
        return "unknown"
