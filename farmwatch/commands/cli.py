"""The table of commands. The module of a command is imported when it is called, so that help is quick."""

from __future__ import annotations

import inspect
from collections.abc import Sequence
from typing import Any

from cyclopts import App, CycloptsError, Group, Parameter, UnusedCliTokensError

from farmwatch.terminal.messages import program_version
from stream.text.user_errors import UsageError
from stream.text.wording import nearest

_Command = tuple[str, str] | dict[str, tuple[str, str]]
_COMMANDS: dict[
    str, dict[str, _Command]
] = {  # group of the help -> command -> its function below farmwatch.commands or lab, and its line in the list
    "Run": {
        "demo": ("start.running:demo", "Crawl a small web on loopback and show the rate. Takes under a minute."),
        "up": ("start.running:up", "Run the daemon: a process per role."),
        "status": ("start.status:status", "Is it well? Share, roles, lag, disk, and what is wrong, on one screen."),
        "console": ("start.console:console", "A web page that shows the share, and why each site and page counts."),
        "doctor": ("doctor.installation:doctor", "Check the installation; prove the log; the configuration in force."),
    },
    "Answers": {
        "rate": ("answers.rate:rate", "The share of LLM sites, with its interval and its denominators."),
        "sites": ("answers.sites:sites", "One row per site: its verdict, and the evidence for it."),
        "site": ("answers.site:site", "Why a site counts as it does."),
        "pages": ("answers.pages:pages", "One row per page: an article or not, why, and its score."),
        "page": ("answers.page:page", "Why a page was kept or dropped."),
    },
    "What if: another rule or detector": {
        "rulesets": ("runs.rulesets:rulesets", "The rulesets that ship with farmwatch, and your own files."),
        "replay": ("runs.replay:replay", "Judge stored records by another ruleset or for another detector."),
        "compare": ("runs.compare:compare", "Compare two runs: verdicts, rules, and the change of the rate."),
        "cutover": ("runs.cutover:cutover", "Make another run the live one."),
        "runs": ("runs.runs:runs", "The runs of the log: their state, their progress, and which one is live."),
    },
    "Input, truth and upkeep": {
        "hits": {
            "add": ("hits.add:add", "Append search results from files."),
            "search": ("hits.search:search", "Append search results by asking search engines."),
            "list": ("hits.listed:list_hits", "One row per search result in the log."),
            "imports": ("hits.imports:imports", "The files that were added."),
            "undo": ("hits.imports:undo", "Take back a file that the crawl has not read."),
        },
        "review": {
            "draw": ("review.draw:draw", "Draw sites at random for people to label; the share then rests on them."),
            "label": ("review.label:label", "Label the pages of a sample, each by a key and Enter."),
            "panel": ("review.panel:panel", "A fixed sample of sites, and how their verdicts change."),
            "controls": ("review.controls:controls", "Pages of before ChatGPT, and what the detector flags of them."),
            "canaries": ("review.canaries:canaries", "Pages of known truth, and the verdicts on them."),
        },
        "crawl": ("crawl.crawl:crawl", "Crawl in this process; what it knows, and orders to it."),
        "log": {
            "topics": ("log.topics:topics", "The topics of the log, and how far each group is behind."),
            "dead": ("log.dead:dead", "The records that a stage could not process; retry or drop them."),
            "export": ("log.export:export", "Write pages, verdicts, scores, sites or rates into a file."),
            "release": ("log.release:release", "Write a citable bundle: data, versions, and the numbers."),
            "import": ("log.import_archives:import_archives", "Append the pages of WARC files, as if crawled."),
            "backup": ("log.backup:backup", "Copy the embedded log into a folder, also while farmwatch runs."),
            "restore": ("log.backup:restore", "Copy a backup into the folder of the embedded log."),
            "copy": ("log.copy:copy", "Copy a log into an empty one, between the embedded log and Kafka."),
            "upgrade": ("log.upgrade:upgrade", "Check what an update changes; measure the stored pages again."),
        },
        "lab": {
            "detectors": ("lab.detectors:detectors", "List the detectors, and whether each is calibrated."),
            "calibrate": ("lab.calibrate:calibrate", "Choose a detector's threshold on labelled texts."),
            "train-detector": ("/lab.detector.training:train_detector", "Learn the numbers of the built-in detector."),
            "train-sites": ("/lab.sites.training:train_sites", "Learn how sites are told apart by page scores."),
            "train-articles": ("/lab.articles.command:train_articles", "Learn to tell articles from other pages."),
            "train-extractor": ("/lab.extractor.command:train_extractor", "Learn to tell main text from the rest."),
            "extractors": ("lab.extractors:extractors", "Compare extractors on labelled pages."),
            "lm": ("lab.lm:lm", "N-gram models: train one, choose its limit."),
            "clean": ("/lab.lm.cleaning:clean", "Drop the sentences of files that are too unlikely."),
            "templates": ("lab.templates:templates", "Split archived pages; list sites that share a template."),
            "measure": ("lab.pipes:measure", "Pipe: pages to features."),
            "judge": ("lab.pipes:judge", "Pipe: features to verdicts."),
            "score": ("lab.pipes:score", "Pipe: texts to scores."),
            "tally": ("lab.pipes:tally", "Pipe: page scores to site verdicts."),
            "estimate": ("lab.pipes:estimate", "Pipe: site verdicts to the rate."),
            "chunk": ("lab.pipes:chunk", "Pipe: the content-defined cuts of a file's bytes."),
        },
    },
}
_GROUPS = {  # command with commands -> its line in the list
    "hits": "Search results: add files, take one back, ask engines, list them.",
    "review": "Known truth: labels by people, a panel of sites, controls, canaries.",
    "log": "The topics, dead letters, backups, exports and releases.",
    "lab": "Detectors and models: list, calibrate, learn. Single stages as pipes: a JSON object a line.",
}
MOVED = {  # earlier name -> what to write now
    **{name: f"crawl {name}" for name in ("exclude", "forget", "frontier", "plan", "robots")},
    **{name: f"log {name}" for name in ("backup", "copy", "dead", "export", "import", "release", "restore")},
    **{name: f"log {name}" for name in ("topics", "upgrade")},
    **{name: f"review {name}" for name in ("canaries", "label", "panel")},
    **{name: f"lab {name}" for name in ("calibrate", "chunk", "detectors", "estimate", "judge", "measure", "score")},
    **{name: f"lab {name}" for name in ("tally", "templates", "train-articles", "train-detector", "train-extractor")},
    "train-sites": "lab train-sites",
    **{"audit": "doctor audit", "completion": "doctor completion", "config": "doctor config", "explain": "page"},
    **{"help": "COMMAND --help", "search": "hits add FILE` or `farmwatch hits search"},
}
OPTIONS_MOVED: dict[str, dict[str, str]] = {  # command -> earlier option -> what to write now; "": it is gone
    "rate": {"--since": "--from"},
    "sites": {"--verdict": "--where verdict=llm"},
    "page": {"--all": "--verbose"},
    "compare": {
        "--save": "--out",
        "--html": "`farmwatch console`",
        **dict.fromkeys(("--text", "--by", "--resamples"), ""),
    },
    "crawl": {"--site": "`farmwatch crawl frontier --site`"},
    "crawl robots": {"--stored": "`farmwatch crawl robots` alone"},
    "review label": {"--show-verdicts": ""},
    "lab calibrate": {"--plot": "`farmwatch lab calibrate` alone"},
    "lab score": {
        **{"--weights": "--set score.weights=FILE", "--observer": "--set score.pair.observer=MODEL"},
        "--performer": "--set score.pair.performer=MODEL",
    },
    "lab tally": {"--method": "--set tally.method=deciles", "--deciles": "--set tally.deciles=FILE"},
    "lab train-articles": {"--report": "", "--threshold": ""},
    "cutover": {"--by": "--operator", "--list": "`farmwatch cutover` alone"},
    "crawl exclude": {"--list": "`farmwatch crawl exclude` alone"},
    "crawl frontier": {f"--{state}": f"--where state={state}" for state in ("parked", "stopped")},
    "log dead": {
        **{"--stage": "--where stage=judge", "--reason": "--where reason=BadRecord"},
        "--each": "`farmwatch log dead list`",
    },
}

app = App(
    name="farmwatch",
    help="Measures, live, what share of the sites that search engines return is written by language models.",
    version=program_version,
    help_epilogue="Exit codes: 0 ok, 1 a problem was found, 2 usage or configuration, 3 something needed is not there.",
    version_flags=["--version"],
    suppress_keyboard_interrupt=False,  # `farmwatch.__main__` gives it its exit code
    help_format="plaintext",  # rich's imports for Markdown take a sixth of the time of --help
    default_parameter=Parameter(show_default=lambda value: value or None),  # no default is shown for "", [] and False
)


def run_command(arguments: Sequence[str]) -> Any:
    """Run the command; returns its exit code or None. Raises CycloptsError, UsageError, and the command's errors."""
    if arguments and (now := MOVED.get(arguments[0])):
        raise UsageError(f"`farmwatch {arguments[0]}` is now `farmwatch {now}`")
    line = f"{' '.join(arguments)} "
    command = max((name for name in OPTIONS_MOVED if line.startswith(f"{name} ")), key=len, default="")
    for argument in arguments if command else ():
        if (now := OPTIONS_MOVED[command].get(earlier := argument.partition("=")[0])) is not None:
            raise UsageError(f"`farmwatch {command}` has no {earlier}{f': write {now}' if now else ' any more'}")
    describe(arguments)
    return app(arguments, exit_on_error=False, print_error=False, result_action="return_value")


def in_words(error: CycloptsError) -> str:
    """What is wrong with a command line, and which help says what is right."""
    said = str(error).removesuffix(".")
    if isinstance(error, UnusedCliTokensError):
        words, here = error.unused_tokens or (), app
        for name in error.command_chain or ():
            here = here[name]
        near = nearest(" ".join(words), (name for name in here if not name.startswith("-")))
        said = f"{', '.join(words)}: not known here{f', did you mean {near}?' if near else ''}"
    command = " ".join(["farmwatch", *(error.command_chain or ()), "--help"])
    return f"{said}; see `{command}`"


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


def _add(to: App, name: str, command: tuple[str, str], group: Group | None = None) -> None:
    where, line = command
    where = where.removeprefix("/") if where.startswith("/") else f"farmwatch.commands.{where}"
    to.command(where, name=name, help=line, group=group)


for _title, _commands in _COMMANDS.items():
    _group = Group.create_ordered(_title)
    for _name, _command in _commands.items():
        if isinstance(_command, dict):
            _app = App(name=_name, help=_GROUPS[_name], group=_group, help_format="plaintext")
            for _sub, _of in _command.items():
                _add(_app, _sub, _of)
            app.command(_app)
        else:
            _add(app, _name, _command, _group)
