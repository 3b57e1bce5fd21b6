"""The table of commands. The module of a command is imported when it is called, so that help is quick."""

from __future__ import annotations

import difflib
import inspect
from collections.abc import Sequence
from typing import Annotated, Any, Literal

from cyclopts import App, CycloptsPanel, Group, Parameter

from farmwatch.terminal.messages import program_version, put
from stream.text.user_errors import Exit, UsageError
from stream.text.wording import escaped

_COMMANDS = {  # group of the help -> command -> its function below farmwatch.commands or lab, and its line in the list
    "Daemon": {
        "up": ("daemon.running:up", "Run the daemon: a process per role."),
        "console": ("daemon.console:console", "A web page that shows the share, and why each site and page counts."),
        "crawl": ("daemon.crawl:crawl", "Crawl in this process; say what a crawl would do; pause and resume."),
        "exclude": ("daemon.exclude:exclude", "Never visit a host, a domain or a pattern again."),
        "forget": ("daemon.forget:forget", "Remove all that the log and the archive have of a host."),
        "upgrade": ("daemon.upgrade:upgrade", "Check what an update changes; measure the stored pages again."),
        "demo": ("daemon.running:demo", "Crawl a small web on loopback and show the rate. Takes under a minute."),
    },
    "Results": {
        "status": ("results.status:status", "One screen: roles, lag, share, disk, and what is wrong."),
        "rate": ("results.rate:rate", "The share of LLM sites, with its interval and its denominators."),
        "sites": ("results.sites:sites", "One row per site: its verdict, and the evidence for it."),
        "pages": ("results.pages:pages", "One row per page: an article or not, why, and its score."),
        "explain": ("results.explain:explain", "Why a page was kept or dropped."),
        "panel": ("results.panel:panel", "A fixed sample of sites, and how their verdicts change."),
        "canaries": ("results.canaries:canaries", "Pages of known truth, and the verdicts on them."),
        "frontier": ("results.frontier:frontier", "The sites and URLs that the crawl knows, and what they wait for."),
        "topics": ("results.topics:topics", "The topics of the log, and how far each group is behind."),
    },
    "Hits, pages, rules and labels": {
        "search": ("inputs.search:search", "Append search results: from files, or by asking sources."),
        "import": ("inputs.import_archives:import_archives", "Append the pages of WARC files, as if crawled."),
        "plan": ("inputs.plan:plan", "What a measurement takes: sites, requests, days, disk, GPU hours."),
        "rulesets": ("inputs.rulesets:rulesets", "The rulesets that ship with farmwatch, and your own files."),
        "train-articles": (
            "lab.articles.command:train_articles",
            "Learn to tell articles from other pages, for a ruleset.",
        ),
        "train-extractor": (
            "lab.extractor.command:train_extractor",
            "Learn to tell main text from the rest of a page, for the extractor `blocks`.",
        ),
        "review": ("inputs.review:review", "Draw sites at random for people to label; the share then rests on them."),
        "label": ("inputs.label:label", "Label the pages of a sample, one key a page."),
    },
    "Runs: replay, compare, cut over": {
        "replay": ("runs.replay:replay", "Judge stored records by another ruleset or for another detector."),
        "compare": ("runs.compare:compare", "Compare two runs: verdicts, rules, and the change of the rate."),
        "cutover": ("runs.cutover:cutover", "Make another run the live one."),
        "runs": ("runs.runs:runs", "The runs of the log: their state, their progress, and which one is live."),
    },
    "Detectors": {
        "detectors": ("detectors.detectors:detectors", "List the detectors, and whether each is calibrated."),
        "calibrate": ("detectors.calibrate:calibrate", "Choose a detector's threshold on labelled texts."),
        "train-detector": ("lab.detector.training:train_detector", "Learn the numbers of the built-in detector."),
        "train-sites": ("lab.sites.training:train_sites", "Learn how sites are told apart by their page scores."),
    },
    "Checks": {
        "doctor": ("checks.installation:doctor", "Check the installation: OK, WARN or FAIL, and the remedy."),
        "audit": ("checks.audit:audit", "Prove from the log that nothing was lost or counted twice."),
        "dead": ("checks.dead:dead", "The records that a stage could not process; retry or drop them."),
        "robots": ("checks.robots:robots", "Whether the crawler may fetch a URL, and which line decides it."),
        "config": ("checks.installation:config", "The configuration in force."),
    },
    "Archive": {
        "backup": ("archive.backup:backup", "Copy the embedded log into a folder, also while farmwatch runs."),
        "restore": ("archive.backup:restore", "Copy a backup into the folder of the embedded log."),
        "copy": ("archive.copy:copy", "Copy a log into an empty one, between the embedded log and Kafka."),
        "export": ("archive.export:export", "Write pages, verdicts, scores, sites or rates into a file."),
        "release": ("archive.release:release", "Write a citable bundle: data, versions, and the numbers."),
        "templates": ("archive.templates:templates", "Split archived pages; list sites that share a template."),
    },
    "Pipes: one JSON object a line in and out, no log": {
        "measure": ("pipes.pipes:measure", "Pages to features."),
        "judge": ("pipes.pipes:judge", "Features to verdicts."),
        "score": ("pipes.pipes:score", "Texts to scores."),
        "tally": ("pipes.pipes:tally", "Page scores to site verdicts."),
        "estimate": ("pipes.pipes:estimate", "Site verdicts to the rate."),
        "chunk": ("pipes.pipes:chunk", "The content-defined cuts of a file's bytes."),
    },
    "Help": {
        "help": ("cli:show_help", "Show the help of a command, as `farmwatch COMMAND --help` does."),
        "completion": ("cli:completion", "Print a script that completes commands and options in a shell."),
    },
}


app = App(
    name="farmwatch",
    help="Measures, live, what share of the sites that search engines return is written by language models.",
    version=program_version,
    help_epilogue="Exit codes: 0 ok, 1 a problem was found, 2 usage or configuration, 3 something needed is not there.",
    version_flags=["--version"],
    suppress_keyboard_interrupt=False,  # `farmwatch.__main__` gives it its exit code
    error_formatter=lambda error: CycloptsPanel(escaped(str(error))),
    help_format="plaintext",  # rich's imports for Markdown take a sixth of the time of --help
    default_parameter=Parameter(show_default=lambda value: value or None),  # no default is shown for "", [] and False
)


def run_command(arguments: Sequence[str]) -> Any:
    """Run the command; returns its exit code or None. Raises CycloptsError, and the errors of the command."""
    describe(arguments)
    return app(arguments, exit_on_error=False, result_action="return_value")


def describe(arguments: Sequence[str]) -> None:
    """Use the docstring of the called command as its help, one line per paragraph, which the terminal wraps."""
    command = app
    for word in arguments:
        if word.startswith("-") or word not in command:
            return
        command = command[word]
        if command.default_command is not None:
            paragraphs = (inspect.getdoc(command.default_command) or "").split("\n\n")
            command.help = "\n\n".join(" ".join(paragraph.split()) for paragraph in paragraphs)


def show_help(*command: Annotated[str, Parameter(help="The command, with its subcommand.")]) -> int:
    """Show the help of a command, as `farmwatch COMMAND --help` does."""
    _, apps, unknown = app.parse_commands(command)
    if unknown:
        near = difflib.get_close_matches(unknown[0], list(apps[-1]), n=1)
        said = f"farmwatch {' '.join(['help', *command[: -len(unknown)], *near])}"
        raise UsageError(f"no command {' '.join(command)!r}: see `{said}`")
    describe(command)
    app.help_print(command)
    return Exit.OK


def completion(shell: Annotated[Literal["bash", "zsh", "fish"], Parameter(help="The shell.")], /) -> int:
    """Print a script that completes commands and options in a shell.

    For bash, for example: farmwatch completion bash > ~/.local/share/bash-completion/completions/farmwatch
    """
    put(app.generate_completion(shell=shell))
    return Exit.OK


for _title, _commands in _COMMANDS.items():
    _group = Group.create_ordered(_title)
    for _name, (_where, _help) in _commands.items():
        app.command(
            _where if _where.startswith("lab.") else f"farmwatch.commands.{_where}",
            name=_name,
            help=_help,
            group=_group,
        )
