"""A run with its ruleset, both read from `control`."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

from filters.rules.ruleset import Ruleset, parse_ruleset
from stream.schema.control import Control
from stream.schema.runs import Run, RunNames
from stream.text.user_errors import NotFound


@dataclass(frozen=True)
class RunRules:
    """A run and the text of its ruleset."""

    run: Run
    text: str = ""  # "" = not in the log

    @cached_property
    def ruleset(self) -> Ruleset:
        """The parsed ruleset. Raises BadRuleset, NotFound."""
        run = self.run
        if not self.text:
            raise NotFound(f"run {run.shown}: its ruleset {run.ruleset} {run.digest} is not in the log")
        return parse_ruleset(self.text, run.ruleset, f"the ruleset of the run {run.shown}")

    @property
    def names(self) -> RunNames:
        return self.run.names(is_live=True)


def rules_of(control: Control, run: Run) -> RunRules:
    """A run of `control` with its ruleset."""
    return RunRules(run, control.ruleset_text(run))


def method_name(text: str) -> str:
    """Name and digest of a site method that is stored as text; "" for none."""
    from scoring.errors import BadSiteNumbers
    from scoring.sites.registry import method_of_text

    if not text:
        return ""
    try:
        method = method_of_text(text)
    except BadSiteNumbers:
        return "of another version of farmwatch"
    return f"{method.name} {method.digest}"


def live_now(control: Control) -> RunRules | None:
    """The live run; None before the first live stage."""
    return None if control.live is None else rules_of(control, control.live)
