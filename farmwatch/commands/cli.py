"""The command line: which command is where. Commands import what they need when they run, so that help is quick."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Annotated, Literal

from cyclopts import App, Group, Parameter

from farmwatch.commands.checks import audit, config, doctor, robots
from farmwatch.commands.daemon import crawl, running
from farmwatch.commands.detectors import calibrate, detectors, train_detector, train_sites
from farmwatch.commands.inputs import import_archives, label, search
from farmwatch.commands.pipes import pipes
from farmwatch.commands.results import canaries, explain, frontier, rate, sites, topics
from farmwatch.commands.rulesets import evaluate, rulesets
from farmwatch.commands.runs import compare, cutover, replay, runs
from farmwatch.terminal.messages import put
from stream.text.user_errors import Exit


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
    default_parameter=Parameter(show_default=lambda value: value or None),  # nothing for "", [] and False
)


def _summary(command: Callable[..., int]) -> str:
    """The docstring with each paragraph on one line: it is wrapped anew, to the width of the terminal."""
    return "\n\n".join(" ".join(paragraph.split()) for paragraph in (inspect.getdoc(command) or "").split("\n\n"))


def _add(title: str, **commands: Callable[..., int] | App) -> None:
    """A group of the help, and its commands by name, with `-` for `_`."""
    group = Group.create_ordered(title)
    for name, command in commands.items():
        if isinstance(command, App):
            command.group = group
            app.command(command)
        else:
            app.command(command, name=name.strip("_").replace("_", "-"), help=_summary(command), group=group)


def _family(name: str, about: str, default: Callable[..., int] | None = None, **commands: Callable[..., int]) -> App:
    """A command with subcommands."""
    family = App(name=name, help=about)
    if default is not None:
        family.default(default)
    for each, command in commands.items():
        family.command(command, name=each, help=_summary(command))
    return family


def show_help(*command: Annotated[str, Parameter(help="The command, with its subcommand.")]) -> int:
    """Show the help of a command, as `farmwatch COMMAND --help` does."""
    app.help_print(command)
    return Exit.OK


def completion(shell: Annotated[Literal["bash", "zsh", "fish"], Parameter(help="The shell.")], /) -> int:
    """Print a script that completes commands and options in a shell.

    For bash, for example: farmwatch completion bash > ~/.local/share/bash-completion/completions/farmwatch
    """
    put(app.generate_completion(shell=shell))
    return Exit.OK


_add("Daemon", up=running.up, crawl=crawl.crawl, demo=running.demo)
_add(
    "Results",
    rate=rate.rate,
    sites=sites.sites,
    explain=explain.explain,
    canaries=canaries.canaries,
    frontier=frontier.frontier,
    topics=topics.topics,
)
_add(
    "Hits, pages, rules and labels",
    search=search.search,
    import_=import_archives.import_archives,
    rulesets=_family(
        "rulesets",
        "The rulesets that ship with farmwatch, and your own files.",
        list=rulesets.list_rulesets,
        show=rulesets.show_ruleset,
        check=rulesets.check_rulesets,
        diff=rulesets.diff_rulesets,
        evaluate=evaluate.evaluate_rulesets,
    ),
    label=label.label,
)
_add(
    "Runs: replay, compare, cut over",
    replay=replay.replay,
    compare=compare.compare,
    cutover=cutover.cutover,
    runs=_family(
        "runs",
        "The runs of the log: their state, their progress, and which one is live.",
        runs.list_runs,
        show=runs.show_run,
        cancel=runs.cancel_run,
        rm=runs.remove_runs,
    ),
)
_add(
    "Detectors",
    detectors=detectors.detectors,
    calibrate=calibrate.calibrate,
    train_detector=train_detector.train_detector,
    train_sites=train_sites.train_sites,
)
_add(
    "Checks",
    doctor=doctor.doctor,
    audit=audit.audit,
    robots=robots.robots,
    config=_family("config", "The configuration in force.", show=config.show_config),
)
_add(
    "Pipes: one JSON object a line in and out, no log",
    measure=pipes.measure,
    judge=pipes.judge,
    score=pipes.score,
    tally=pipes.tally,
    estimate=pipes.estimate,
    chunk=pipes.chunk,
)
_add("Help", help=show_help, completion=completion)
