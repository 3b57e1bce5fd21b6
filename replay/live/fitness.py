"""Checks that this process can carry on the live run."""

from __future__ import annotations

from collections.abc import Collection

from filters.errors import BadRuleset
from replay.runs.configured import site_method_of
from replay.runs.run_rules import RunRules
from replay.settings import ReplaySettings
from scoring.errors import BadSiteNumbers, BadThresholds, NoSiteTest
from stream.schema.control import Control
from stream.schema.roles import Role
from stream.schema.runs import Run
from stream.text.user_errors import FarmwatchError, NotFound, RunRefused
from stream.text.wording import one_line


class LiveRunUnfit(FarmwatchError):
    """This farmwatch cannot carry the live run on. The operator goes back, or does what the message says.

    A role that meets it at its start ends with it; one that goes over to the run stays with the run that it has.
    """


def require_site_method(config: ReplaySettings, run: Run) -> None:
    """Raises RunRefused where the site method that a run keeps cannot be read, or it keeps none and none is known."""
    try:
        site_method_of(config, run)
    except (BadSiteNumbers, BadThresholds, NoSiteTest) as error:
        if run.site_method:
            said = f"keeps {error}: another version of farmwatch began it. Use that, or replay it anew"
            raise RunRefused(one_line(f"the run {run.shown} {said}")) from error
        said = f"rests on scores of {run.detector}: {error}. Restore the setting, or set tally.sprt"
        raise RunRefused(one_line(f"the run {run.shown} {said}")) from error


def require_live(control: Control, config: ReplaySettings, live: RunRules, roles: Collection[Role]) -> None:
    """Raises LiveRunUnfit where one of the roles cannot carry the live run on; it names the way back."""
    try:
        if Role.JUDGE in roles or Role.TALLY in roles:
            _ = live.ruleset
        if Role.TALLY in roles:
            require_site_method(config, live.run)
    except (BadRuleset, NotFound, RunRefused) as error:
        before = control.alias.before
        back = f"; `farmwatch cutover --back` goes back to the run {before}" if before else ""
        raise LiveRunUnfit(one_line(f"the live run {live.run.shown} cannot be carried on: {error}{back}")) from error
