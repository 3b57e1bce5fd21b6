"""The list of checks. `doctor` runs all of them and prints what they find; `up` stops at the first failure."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator
from contextlib import ExitStack
from dataclasses import replace
from typing import NamedTuple

from crawler.errors import CrawlError
from farmwatch.config.config import Config
from farmwatch.doctor import crawl_checks, log_checks, machine_checks, model_checks
from farmwatch.doctor.check_result import CheckResult, CheckState, Results, Subject, fail
from farmwatch.terminal.messages import message
from filters.errors import BadRuleset, FiltersError
from scoring.errors import ScoringError
from stream.log.contract import Log
from stream.log.errors import StreamError
from stream.schema.roles import Role
from stream.text.user_errors import FarmwatchError
from stream.text.wording import one_line

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
