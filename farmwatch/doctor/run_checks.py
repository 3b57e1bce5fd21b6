"""What the doctor says of runs: what the live stages go on by, from where, and what stopped in the midst."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress

from farmwatch.config.brokers import require_broker
from farmwatch.config.config import Config
from farmwatch.doctor.check_result import CheckResult, CheckState
from stream.log.contract import Log
from stream.log.errors import StreamError
from stream.schema.control import Control
from stream.schema.roles import Role
from stream.text.user_errors import FarmwatchError
from stream.text.wording import counted, one_line


def live_run(config: Config) -> list[CheckResult]:
    """By what the live stages go on, and what is configured otherwise; nothing while no live stage has ever begun."""
    from replay.live.fitness import LiveRunUnfit, require_live
    from replay.live.live_run import differences
    from replay.runs.run_rules import live_now, method_name

    with suppress(StreamError, FarmwatchError), opened_or_none(config) as log:
        if log is None:
            return []
        control = Control(log)
        live = live_now(control)
        if live is None:
            return []
        try:
            require_live(control, config, live, [Role.JUDGE, Role.TALLY])
        except LiveRunUnfit as error:
            return [CheckResult("live run", CheckState.FAIL, str(error), "do what it says")]
        run, ruleset = live.run, live.ruleset
        others = [
            CheckResult("live run", CheckState.WARN, one_line(said)) for said in differences(live, config, control)
        ]
        detector = f" and scores of {run.detector}" if run.detector else ""
        method = f", sites by {method_name(run.site_method)}" if run.site_method else ""
        said = f"{run.shown}: {ruleset.name} {ruleset.digest}{detector}{method}"
        return others or [CheckResult("live run", CheckState.OK, said)]
    return []


def runs(config: Config) -> list[CheckResult]:
    """Runs that nobody is at work on, though they are not through; nothing where there is but the live one."""
    from replay.runs.run_state import STOPPED, state_of

    with suppress(StreamError, FarmwatchError), opened_or_none(config) as log:
        if log is None:
            return []
        control = Control(log)
        others = [run for run in control.runs.values() if run.name != control.alias.run]
        findings = []
        for run in others:
            if state_of(log, control, run) != STOPPED:
                continue
            why = f", by an error: {run.error}" if run.error else ""
            remedy = f"`farmwatch replay --name {run.shown}` resumes it, `farmwatch runs cancel {run.shown}` ends it"
            findings.append(CheckResult("runs", CheckState.WARN, one_line(f"{run.shown} is stopped{why}"), remedy))
        if findings or not others:
            return findings
        return [
            CheckResult(
                "runs", CheckState.OK, f"{counted(len(others), 'run')} beside the live one, and none is stopped"
            )
        ]
    return []


def groups(config: Config) -> list[CheckResult]:
    """Live groups that would read a topic again; nothing where there is none."""
    from farmwatch.daemon.deleted_groups import groups_starting_over, remedy

    with suppress(StreamError, FarmwatchError), opened_or_none(config) as log:
        if log is None:
            return []
        prefix = config.log.prefix
        return [
            CheckResult("groups", CheckState.WARN, found.said, remedy(log, prefix, found))
            for found in groups_starting_over(log)
        ]
    return []


@contextmanager
def opened_or_none(config: Config) -> Iterator[Log | None]:
    """The log, where there is one; why it cannot be opened the line of the log has said."""
    from farmwatch.config.opening import log_exists, open_configured

    if not log_exists(config):
        yield None
        return
    require_broker(config)
    with closing(open_configured(config, read_only=True)) as log:
        yield log
