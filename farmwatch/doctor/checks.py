"""The list of checks. `doctor` runs all of them and prints the results; `up` stops at the first failure.

`up` checks before any role starts, and lays out the log: the supervisor would restart a broken role for ever.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import ExitStack, closing
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

import structlog

from farmwatch.config.config import Config
from farmwatch.config.member_names import names_folder
from farmwatch.config.opening import check_log_url, open_configured
from farmwatch.config.topic_limits import create_topics
from farmwatch.daemon.endpoints import require_free_ports
from farmwatch.doctor import crawl_checks, deploy_checks, log_checks, machine_checks, model_checks
from farmwatch.doctor.check_result import CheckResult, CheckState, Results, Subject, fail
from farmwatch.terminal.messages import message
from farmwatch.terminal.remedies import remedy_of
from replay.live.live_run import ensure_live_run
from stream.log.contract import Log
from stream.log.errors import StreamError
from stream.log.private_folders import make_private
from stream.schema.roles import STAGES, Role
from stream.schema.topics import RETRIES, site_memory
from stream.text.user_errors import FarmwatchError
from stream.text.wording import one_line

_log = structlog.get_logger()


class DoctorCheck(NamedTuple):
    """A check, and the roles that `up` does not start if it fails; a check without roles is run by `doctor` only."""

    name: str
    run: Callable[[Subject], Results]
    roles: Collection[Role] = ()


BEFORE_THE_LOG = (
    DoctorCheck("imports", machine_checks.imports),
    DoctorCheck("extractor", model_checks.extractor, [Role.MEASURE]),
    DoctorCheck("ruleset", model_checks.ruleset, [Role.JUDGE, Role.TALLY]),
    DoctorCheck("detector", model_checks.detectors, [Role.SCORE]),
    DoctorCheck("models", model_checks.models, [Role.SCORE]),
    DoctorCheck("sites", model_checks.sites, [Role.TALLY]),
    DoctorCheck("canaries", model_checks.canaries, [Role.TALLY]),
    DoctorCheck("crawl", crawl_checks.crawl, [Role.CRAWL]),
    DoctorCheck("proxy", crawl_checks.proxy),
    DoctorCheck("ports", machine_checks.ports),
    DoctorCheck("disk", machine_checks.disk),
)
ON_THE_LOG = (
    DoctorCheck("broker", log_checks.broker),
    DoctorCheck("database", log_checks.database),
    DoctorCheck("segments", log_checks.segments),
    DoctorCheck("dead letters", log_checks.dead_letters),
    DoctorCheck("clock", machine_checks.clock),
    DoctorCheck("live run", log_checks.live_run, [Role.MEASURE, Role.JUDGE, Role.SCORE, Role.TALLY]),
    DoctorCheck("groups", log_checks.groups, STAGES),
    DoctorCheck("topics", log_checks.topics),
    DoctorCheck("runs", log_checks.runs),
    DoctorCheck("search", crawl_checks.search),
    DoctorCheck("orders", crawl_checks.orders),
)
# For `doctor --deploy`
OF_THE_DEPLOYMENT = (
    DoctorCheck("user", deploy_checks.user),
    DoctorCheck("folders", deploy_checks.folders),
    DoctorCheck("secrets", deploy_checks.secrets),
    DoctorCheck("brokers", deploy_checks.brokers),
    DoctorCheck("metrics", deploy_checks.metrics),
    DoctorCheck("service", deploy_checks.service),
)


def examine(config: Config, file: Path | None = None, *, deploy: bool = False) -> Iterator[CheckResult]:
    """Run every check in order. A check that raises is a FAIL, and the others still run.

    `file` is that of the configuration; `deploy`: also the checks of a deployment.
    """
    with ExitStack() as held:
        subject = Subject(config, file=file)
        opening = DoctorCheck("log", lambda at: log_checks.log(at, held))
        for check in (*BEFORE_THE_LOG, *(OF_THE_DEPLOYMENT if deploy else ()), opening, *ON_THE_LOG):
            try:
                for result in check.run(subject):
                    yield replace(result, check=check.name)
            except Exception as error:  # noqa: BLE001 - the doctor reports whatever breaks
                said = one_line(" ".join(str(error).split()))
                if isinstance(error, FarmwatchError):
                    yield fail(said, remedy_of(error), check.name)
                else:
                    mend = "this is a bug of farmwatch: report it with this line"
                    yield fail(f"{type(error).__name__}: {said}", mend, check.name)


def require_fit(config: Config, roles: Collection[Role], log: Log | None = None) -> None:
    """Raise the first failure among the checks that these roles need; print warnings.

    Without `log`: the checks of configuration, machine and ports, which write only the archive's folder. With it: those
    of the log. Raises FarmwatchError.
    """
    subject = Subject(config, roles, log)
    for check in BEFORE_THE_LOG if log is None else ON_THE_LOG:
        if not set(check.roles) & set(roles):
            continue
        for result in check.run(subject):
            said = "; ".join(part for part in (result.found, result.mend) if part)
            if result.state is CheckState.FAIL:
                raise FarmwatchError(f"{check.name}: {said}")
            if result.state is CheckState.WARN:
                message(f"warning: {said}")
    if log is None:
        require_free_ports(config, roles)


def prepare(config: Config, roles: Sequence[Role]) -> None:
    """Check that these roles can start, and lay out the log; the very first JUDGE or TALLY begins the live run.

    The roles wait for an unavailable broker. Raises FarmwatchError.
    """
    check_log_url(config)
    require_fit(config, roles)
    _require_writable(config)
    try:
        with closing(open_configured(config)) as log:
            known = log.topics()
            create_topics(log, config)
            # each feature epoch has a memory of sites of its own, and older logs lack retries
            created = log.topics().keys() - known if known else set[str]()
            missing = sorted(t for t in created if not t.startswith(f"state.{site_memory('')}") and t != RETRIES)
            if missing:
                _log.warning("topics_were_missing", topics=missing)
                message(
                    f"warning: created missing topics: {', '.join(missing)}. If they were deleted, their unread records"
                    " are lost, and with a topic `state.…` the memory of its stage"
                )
            if Role.JUDGE in roles or Role.TALLY in roles:
                ensure_live_run(log, config)
            require_fit(config, roles, log)
    except StreamError as error:
        if not (error.retriable and config.log.url.startswith("kafka:")):
            raise
        _log.warning("broker_away", url=config.log.url, error=str(error)[:300])


def _require_writable(config: Config) -> None:
    folder = names_folder(config)
    try:
        make_private(folder)
        tempfile.NamedTemporaryFile(prefix=".writable-", dir=folder).close()
    except OSError as error:
        setting = "log.url" if config.log.url.startswith("sqlite:") else "log.state_folder"
        raise FarmwatchError(
            f"{folder}: cannot be written: {error.strerror}; change its owner, or set another folder ({setting})"
        ) from error
