"""The command line: which command is where. Commands import what they need when they run, so that help is quick."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

from cyclopts import App, Group

from farmwatch.commands.changing import calibrate as calibrating
from farmwatch.commands.changing import import_archives as import_command
from farmwatch.commands.changing import label as label_command
from farmwatch.commands.changing import search as search_command
from farmwatch.commands.changing import train_detector as changing
from farmwatch.commands.changing import train_sites as training_sites
from farmwatch.commands.checking import checking
from farmwatch.commands.checking import detectors as detector_commands
from farmwatch.commands.checking import robots as robots_command
from farmwatch.commands.daemon import crawl as crawl_command
from farmwatch.commands.daemon import running
from farmwatch.commands.pipes import piping
from farmwatch.commands.rulesets import evaluate as evaluating
from farmwatch.commands.rulesets import rulesets as ruleset_commands
from farmwatch.commands.runs import compare as compare_command
from farmwatch.commands.runs import cutover as cutover_command
from farmwatch.commands.runs import replay as replay_command
from farmwatch.commands.runs import runs as runs_command
from farmwatch.commands.watching import canaries as canary_command
from farmwatch.commands.watching import explain as explain_command
from farmwatch.commands.watching import frontier as frontier_command
from farmwatch.commands.watching import rate as rate_command
from farmwatch.commands.watching import watching

_DAEMON = Group.create_ordered("Daemon")
_WATCHING = Group.create_ordered("Watching")
_CHANGING = Group.create_ordered("Changing")
_RUNS = Group.create_ordered("Runs: replay, compare, cut over")
_CHECKING = Group.create_ordered("Checking")
_PIPES = Group.create_ordered("Pipes: one JSON object a line in and out, no log")


def program_version() -> str:
    """Version of the installed distribution."""
    from importlib.metadata import PackageNotFoundError, version

    try:
        return version("farmwatch")
    except PackageNotFoundError:
        return "unknown"


app = App(
    name="farmwatch",
    help="Measures, live, what share of the sites that search engines return is written by language models.",
    version=program_version,
    help_epilogue="Exit codes: 0 ok, 1 a problem was found, 2 usage or configuration, 3 something needed is not there.",
    version_flags=["--version"],
    suppress_keyboard_interrupt=False,  # `farmwatch.__main__` gives it its exit code
    help_format="plaintext",  # what rich needs for Markdown takes a sixth of the time of --help
)


def _add(to: App, command: Callable[..., int], **options: Any) -> None:
    """Make a command of a function; paragraphs of its docstring are wrapped anew, as wide as the terminal is."""
    paragraphs = (inspect.getdoc(command) or "").split("\n\n")
    to.command(command, help="\n\n".join(" ".join(paragraph.split()) for paragraph in paragraphs), **options)


_add(app, running.up, group=_DAEMON)
_add(app, crawl_command.crawl, group=_DAEMON)
_add(app, running.demo, group=_DAEMON)

_add(app, rate_command.rate, group=_WATCHING)
_add(app, watching.sites, group=_WATCHING)
_add(app, canary_command.canaries, group=_WATCHING)
_add(app, explain_command.explain, group=_WATCHING)
_add(app, frontier_command.frontier, group=_WATCHING)
_add(app, watching.topics, group=_WATCHING)

_add(app, search_command.search, group=_CHANGING)
_add(app, import_command.import_archives, name="import", group=_CHANGING)
_add(app, changing.train_detector, group=_CHANGING)
_add(app, training_sites.train_sites, group=_CHANGING)
_add(app, calibrating.calibrate, group=_CHANGING)
_add(app, label_command.label, group=_CHANGING)
_rulesets = App(name="rulesets", help="The rulesets that ship with farmwatch, and your own files.", group=_CHANGING)
_add(_rulesets, ruleset_commands.list_rulesets, name="list")
_add(_rulesets, ruleset_commands.show_ruleset, name="show")
_add(_rulesets, ruleset_commands.check_rulesets, name="check")
_add(_rulesets, ruleset_commands.diff_rulesets, name="diff")
_add(_rulesets, evaluating.evaluate_rulesets, name="evaluate")
app.command(_rulesets)

_add(app, replay_command.replay, group=_RUNS)
_add(app, compare_command.compare, group=_RUNS)
_add(app, cutover_command.cutover, group=_RUNS)
_runs = App(name="runs", help="The runs of the log: which there are, how far, which one is live.", group=_RUNS)
_runs.default(runs_command.list_runs)
_add(_runs, runs_command.show_run, name="show")
_add(_runs, runs_command.cancel_run, name="cancel")
_add(_runs, runs_command.remove_runs, name="rm")
app.command(_runs)

_add(app, checking.doctor, group=_CHECKING)
_add(app, checking.audit, group=_CHECKING)
_add(app, robots_command.robots, group=_CHECKING)
_add(app, detector_commands.detectors, group=_CHECKING)
_config = App(name="config", help="The configuration as it is in force.", group=_CHECKING)
_add(_config, checking.show_config, name="show")
app.command(_config)

for _pipe in (piping.measure, piping.judge, piping.score, piping.tally, piping.estimate, piping.chunk):
    _add(app, _pipe, group=_PIPES)
