"""The list of checks. `doctor` runs all of them and prints what they find; `up` stops at the first failure.

`up` checks before any role starts, and lays out the log: the supervisor would restart a role at fault for ever.
"""

from __future__ import annotations

import tempfile
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import ExitStack, closing, suppress
from dataclasses import replace
from typing import NamedTuple

import structlog

from crawler.errors import CrawlError
from farmwatch.config.config import Config
from farmwatch.config.member_names import names_folder
from farmwatch.config.opening import check_log_url, create_topics, open_configured
from farmwatch.doctor import crawl_checks, log_checks, machine_checks, model_checks
from farmwatch.doctor.check_result import CheckResult, CheckState, Results, Subject, fail
from farmwatch.terminal.messages import message
from filters.errors import BadRuleset, FiltersError
from filters.rules.ruleset import Ruleset
from replay.live.live_run import ensure_live_run
from replay.runs.site_table import read_sites, ruleset_of, short_ruleset
from scoring.errors import ScoringError
from scoring.rates.canary import is_canary
from stream.log.contract import Log
from stream.log.errors import StreamError
from stream.log.private_folders import make_private
from stream.schema.records import SiteState
from stream.schema.roles import Role
from stream.schema.topics import site_memory
from stream.text.user_errors import FarmwatchError
from stream.text.wording import counted, one_line

_log = structlog.get_logger()
_OWN_ERRORS = (FarmwatchError, StreamError, CrawlError, FiltersError, ScoringError)  # their messages say what to do
_REMEDIES: dict[type[Exception], str] = {
    BadRuleset: "see `farmwatch rulesets check FILE`, or set judge.ruleset to one of `farmwatch rulesets list`",
    ScoringError: "do what it says, or take another detector in score.detectors (`farmwatch detectors`)",
}


class DoctorCheck(NamedTuple):
    """A check, and the roles that `up` does not start where it fails; without roles it is for `doctor` alone."""

    name: str
    run: Callable[[Subject], Results]
    roles: Collection[Role] = ()


BEFORE_THE_LOG = (
    DoctorCheck("python", machine_checks.python),
    DoctorCheck("imports", machine_checks.imports),
    DoctorCheck("trafilatura", machine_checks.trafilatura),
    DoctorCheck("extractor", model_checks.extractor, [Role.MEASURE]),
    DoctorCheck("ruleset", model_checks.ruleset, [Role.JUDGE, Role.TALLY]),
    DoctorCheck("detector", model_checks.detectors, [Role.SCORE]),
    DoctorCheck("pair", model_checks.pair, [Role.SCORE]),
    DoctorCheck("gpu", machine_checks.gpu),
    DoctorCheck("sites", model_checks.sites, [Role.TALLY]),
    DoctorCheck("canaries", model_checks.canaries, [Role.TALLY]),
    DoctorCheck("crawl", crawl_checks.crawl, [Role.CRAWL]),
    DoctorCheck("ports", machine_checks.ports, tuple(Role)),
    DoctorCheck("disk", machine_checks.disk),
)
ON_THE_LOG = (
    DoctorCheck("broker", log_checks.broker),
    DoctorCheck("segments", log_checks.segments),
    DoctorCheck("dead letters", log_checks.dead_letters),
    DoctorCheck("clock", machine_checks.clock),
    DoctorCheck("live run", log_checks.live_run, [Role.JUDGE, Role.TALLY]),
    DoctorCheck("groups", log_checks.groups, tuple(Role)),
    DoctorCheck("runs", log_checks.runs),
    DoctorCheck("search", crawl_checks.search),
)


def examine(config: Config) -> Iterator[CheckResult]:
    """Run every check in order. A check that breaks is a FAIL of its own, never the end of the examination."""
    with ExitStack() as held:
        subject = Subject(config)
        opening = DoctorCheck("log", lambda at: log_checks.log(at, held))
        for check in (*BEFORE_THE_LOG, opening, *ON_THE_LOG):
            try:
                for result in check.run(subject):
                    yield replace(result, check=check.name)
            except Exception as error:  # noqa: BLE001 - whatever breaks is what the doctor is there to tell
                yield replace(_failure(error), check=check.name)


def _failure(error: Exception) -> CheckResult:
    said = one_line(" ".join(str(error).split()))
    if not isinstance(error, _OWN_ERRORS):
        return fail(f"{type(error).__name__}: {said}", "this is a mistake in farmwatch: report it with this line")
    return fail(said, next((mend for kind, mend in _REMEDIES.items() if isinstance(error, kind)), ""))


def require_fit(config: Config, roles: Collection[Role], log: Log | None = None) -> None:
    """Raise the first failure among the checks that these roles need; print warnings.

    Without `log`: the checks of configuration and machine, which write nothing but the archive's folder. With it: those
    of the log. Raises FarmwatchError and the errors of the packages.
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


def prepare(config: Config, roles: Sequence[Role]) -> None:
    """Check that these roles can start, and lay out the log; the first JUDGE or TALLY ever begins the live run.

    A broker that is away is no fault of the configuration: the roles wait for it. Raises as `require_fit`, ConfigError,
    StreamError, and FarmwatchError for a folder that cannot be written.
    """
    check_log_url(config)
    require_fit(config, roles)
    _require_writable(config)
    try:
        with closing(open_configured(config)) as log:
            known = log.topics()
            create_topics(log, config)
            if known:
                _tell_missing(log.topics().keys() - known)
            live = ensure_live_run(log, config) if Role.JUDGE in roles or Role.TALLY in roles else None
            require_fit(config, roles, log)
            if live is not None:
                with suppress(StreamError):  # a line to read, which stops nothing
                    _tell_other_rulesets(read_sites(log), live.ruleset)
    except StreamError as error:
        if not (error.retriable and config.log.url.startswith("kafka:")):
            raise
        _log.warning("broker_away", url=config.log.url, error=str(error)[:300])


def _tell_missing(created: Collection[str]) -> None:
    """One line of topics that the log lacked. The memory of sites is left out: each feature epoch has its own."""
    missing = sorted(topic for topic in created if not topic.startswith(f"state.{site_memory('')}"))
    if missing:
        _log.warning("topics_were_missing", topics=missing)
        message(
            f"warning: the log had no {', '.join(missing)}: made anew, empty. Where it was deleted, the records that"
            " nobody had read are lost, and of a topic `state.…` all that a stage remembered; a log of an earlier"
            " version may not have had it yet"
        )


def _tell_other_rulesets(rows: Sequence[SiteState], find_rules: Ruleset) -> None:
    """One line of the sites whose rows are of another ruleset: they are not judged anew by themselves."""
    judged = (row for row in rows if row.ruleset and not is_canary(row.site))
    others = Counter(ruleset_of(row) for row in judged if row.digest != find_rules.digest)
    if not others:
        return
    sites = ", ".join(f"{counted(count, 'site')} by {ruleset}" for ruleset, count in others.most_common())
    message(
        one_line(
            f"judged before: {sites}; each keeps its row until a page of it is judged by"
            f" {short_ruleset(find_rules.name, find_rules.digest)}"
        )
    )


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
