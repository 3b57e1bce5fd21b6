"""Commands with subcommands. Loaded when one of them is called."""

from __future__ import annotations

from collections.abc import Callable

from cyclopts import App

from farmwatch.commands.checks.config import show_config
from farmwatch.commands.rulesets import rulesets as on_rulesets
from farmwatch.commands.rulesets.evaluate import evaluate_rulesets
from farmwatch.commands.runs import runs as on_runs


def _family(name: str, default: Callable[..., int] | None = None, **commands: Callable[..., int]) -> App:
    family = App(name=name)
    if default is not None:
        family.default(default)
    for each, command in commands.items():
        family.command(command, name=each)
    return family


rulesets = _family(
    "rulesets",
    list=on_rulesets.list_rulesets,
    show=on_rulesets.show_ruleset,
    check=on_rulesets.check_rulesets,
    diff=on_rulesets.diff_rulesets,
    evaluate=evaluate_rulesets,
)
runs = _family("runs", on_runs.list_runs, show=on_runs.show_run, cancel=on_runs.cancel_run, rm=on_runs.remove_runs)
config = _family("config", show=show_config)
