"""Reference pages made from the code they describe: configuration.md, metrics.md, cli.md, and a section of rules.md.

`python -m farmwatch.commands.reference docs` writes them anew; a test fails when a page and the code differ.
"""

from __future__ import annotations

import ast
import inspect
import io
import json
import sys
import textwrap
import tokenize
from collections.abc import Iterator, Sequence
from pathlib import Path
from types import UnionType
from typing import Annotated, Any, Union, get_args, get_origin

import msgspec
from cyclopts import App, Argument
from prometheus_client import CollectorRegistry

from farmwatch.config.config import Config
from farmwatch.config.layers import allowed_values, encode, settings_of, shown_value
from farmwatch.daemon.exposition import ROLE, Exposition
from farmwatch.terminal.generated import renewed
from filters.rules.catalogue import RULES
from filters.rules.kinds import MOST, RuleKind
from stream.processing.metrics import SPECS
from stream.text import ranges
from stream.text.user_errors import Exit

COMMAND = "python -m farmwatch.commands.reference docs"
_MADE = f"<!-- Made by `{COMMAND}`; change the code, not this page. -->\n"
_CONDITIONS = {
    "==": "equal to",
    ">=": "at least",
    "<=": "at most",
    ">": "more than",
    "<": "less than",
    "in": "in the list",
    "not in": "not in the list",
}
_WIDEST = (ranges.TEN_YEARS_S, ranges.MOST, ranges.MOST_BYTES)  # bounds of all numbers, said once for the page
_UNITS = {"s": "seconds", "ms": "milliseconds", "bytes": "bytes"}
_EXITS = {
    Exit.OK: "done, nothing wrong",
    Exit.PROBLEM: "a problem was found: audit broken, a doctor's FAIL, lines skipped, nothing found, too few labels",
    Exit.USAGE: "usage or configuration; nothing was done",
    Exit.UNAVAILABLE: "the log, a file or a model is not there or cannot be used",
    Exit.INTERRUPTED: "Ctrl-C",
}


def configuration_page() -> str:
    """Every setting: path, default, what it means, environment variable."""
    lines = [
        _MADE,
        "# Configuration\n",
        "One TOML file: `--config FILE`, else `./farmwatch.toml`, else `$XDG_CONFIG_HOME/farmwatch/farmwatch.toml`.",
        "Precedence: flag (`--set PATH=VALUE`) > environment > file > default; `farmwatch config show` prints each",
        "value with where it came from. An unknown key or a wrong type is an error that names the path; an unknown",
        "`FARMWATCH_` variable is a warning. A number has to be finite and in the range beside it; where that has no",
        f"upper end, seconds end at {ranges.TEN_YEARS_S:,} (ten years), bytes at {ranges.MOST_BYTES:,}, counts at",
        f"{ranges.MOST:,}. In variables and `--set`, a list is written `a,b`, and lists and tables as JSON or TOML",
        "have them. A relative path, wherever it is set (`score.thresholds`, `score.weights`,",
        "`tally.deciles`, `canary.file`, models, the folders of the log), is taken from the folder in which farmwatch",
        "runs, not from that of the configuration file.\n",
    ]
    sections = {field.name: field.type for field in msgspec.structs.fields(Config)}
    for name, kind in sections.items():
        lines += [f"## [{name}]\n", f"{_first_line(kind)}\n"]
        lines += ["| setting | default | meaning | environment |", "|---|---|---|---|"]
        for path, setting in settings_of(kind, f"{name}.").items():
            meaning = meaning_of(setting.owner, path.rpartition(".")[2]) + _one_of(allowed_values(setting.type))
            bounds = bounds_of(setting.type)
            if bounds:
                meaning += f" {bounds.capitalize()}." if meaning.endswith(".") else f"; {bounds}"
            lines.append(f"| `{path}` | `{_default(setting.default)}` | {_cell(meaning)} | `{setting.env}` |")
            lines += _rows_within(path, setting.type)
        lines.append("")
    return "\n".join(lines)


def _rows_within(path: str, kind: Any) -> Iterator[str]:
    """A row for each key of a setting that is a table or nothing."""
    within = get_args(kind) if get_origin(kind) in (Union, UnionType) else ()
    for table in (one for one in within if isinstance(one, type) and issubclass(one, msgspec.Struct)):
        for field in msgspec.structs.fields(table):
            default = "required" if field.required else f"`{_default(field.default)}`"
            yield f"| `{path}`: key `{field.name}` | {default} | {_cell(meaning_of(table, field.name))} | |"


def metrics_page() -> str:
    """Every metric: name as exposed, kind, labels, meaning."""
    lines = [
        _MADE,
        "# Metrics\n",
        "Served on `/metrics` by the process of each role: `metrics.port` is that of the first, and the others follow",
        "in the order crawl, measure, judge, score, tally. `/healthz` answers 200 while the loop ticks and makes",
        "progress, `/readyz` while it holds partitions, their state is restored and its model is loaded. What belongs",
        "to a batch is counted when the batch is committed. Labels are bounded: never a URL or a site. The label `run`",
        "is bounded by the number of runs; until it ends, a process keeps the series of each run that it has counted",
        "for (SCORE: of all that asked for scores). Every series has the label `role`: crawl, measure, judge, score,",
        "tally, replay (`farmwatch replay`) or search (`farmwatch search`). The last metrics of the table are those of",
        "the process and its Python.\n",
        "| metric | kind | labels | meaning |",
        "|---|---|---|---|",
    ]
    for spec in SPECS:
        total = "_total" if spec.kind == "counter" else ""
        labels = ", ".join(f"`{label}`" for label in spec.labels)
        lines.append(f"| `farmwatch_{spec.name}{total}` | {spec.kind} | {labels} | {_cell(spec.help)} |")
    for family in Exposition(CollectorRegistry(), "").collect():
        total = "_total" if family.type == "counter" else ""
        own = sorted({label for sample in family.samples for label in sample.labels} - {ROLE})
        labels = ", ".join(f"`{label}`" for label in own)
        lines.append(f"| `{family.name}{total}` | {family.type} | {labels} | {_cell(family.documentation)} |")
    return "\n".join(lines) + "\n"


def commands_page() -> str:
    """Every command with its arguments, options and exit codes."""
    from farmwatch.commands.cli import app

    lines = [
        _MADE,
        "# Commands\n",
        "Data on stdout, messages on stderr; tables become tab-separated off a terminal; `--json` where a command",
        "prints data; NO_COLOR is obeyed, and there are no progress bars off a terminal. Each command answers",
        "`--help`.\n",
        "| exit code | meaning |",
        "|---|---|",
        *(f"| {int(code)} | {meaning} |" for code, meaning in _EXITS.items()),
        "",
        *(line for name, command in commands(app).items() for line in _command_lines(name, command)),
    ]
    return "\n".join(lines)


def rules_table() -> str:
    """Every rule: what it measures, when a page passes, which thresholds are possible, where it comes from."""
    lines = ["| rule | what is measured | a page passes when it is | threshold | source |", "|---|---|---|---|---|"]
    for name, kind in RULES.items():
        fields = "".join(f", `{field}`" for field in sorted(kind.fields))
        condition = _CONDITIONS[kind.op]
        lines.append(f"| `{name}` | {_cell(kind.what)} | {condition} | {_thresholds(kind)}{fields} | {kind.source} |")
    return "\n".join(lines)


def commands(app: App, prefix: str = "") -> dict[str, App]:
    """Full name -> command, those of groups included."""
    found: dict[str, App] = {}
    for name in app:
        if name.startswith("-"):
            continue
        command = app[name]
        full = f"{prefix}{name}"
        if command.default_command is not None:
            found[full] = command
        found.update(commands(command, f"{full} "))
    return found


def meaning_of(owner: type[msgspec.Struct], name: str) -> str:
    """What the source says of a field: the comment on its line, the comment above, or else its name in words."""
    source = textwrap.dedent(inspect.getsource(owner))
    comments = {
        token.start[0]: token.string.lstrip("# ").strip()
        for token in tokenize.generate_tokens(io.StringIO(source).readline)
        if token.type == tokenize.COMMENT
    }
    body = ast.parse(source).body[0]
    assert isinstance(body, ast.ClassDef)
    text = source.splitlines()
    for statement, following in zip(body.body, [*body.body[1:], None], strict=True):
        if (
            isinstance(statement, ast.AnnAssign)
            and isinstance(statement.target, ast.Name)
            and statement.target.id == name
        ):
            beside = [comments[n] for n in range(statement.lineno, (statement.end_lineno or 0) + 1) if n in comments]
            if beside:
                return " ".join(beside)
            if isinstance(following, ast.Expr) and isinstance(following.value, ast.Constant):
                return str(following.value.value)
            above: list[str] = []
            line = statement.lineno - 1
            while line in comments and text[line - 1].lstrip().startswith("#"):
                above.insert(0, comments[line])
                line -= 1
            if above and len(above[-1].split()) > 3:  # shorter ones are headings of a part
                return " ".join(above)
    words = name.split("_")
    unit = _UNITS.get(words[-1])
    return f"{' '.join(words[:-1])}, {unit}" if unit else " ".join(words)


def bounds_of(kind: Any) -> str:
    """The least and the most that a number may be, in words; "" where its type sets no bound."""
    if get_origin(kind) is not Annotated:
        return "".join(bounds_of(part) for part in get_args(kind)) if get_origin(kind) in (Union, UnionType) else ""
    for meta in kind.__metadata__:
        if not isinstance(meta, msgspec.Meta):
            continue
        words = (("at least", meta.ge), ("more than", meta.gt), ("at most", meta.le), ("less than", meta.lt))
        said = " and ".join(f"{word} {bound:,}" for word, bound in words if bound not in (None, *_WIDEST))
        if said:
            return said
    return ""


def pages() -> dict[str, str]:
    """File name -> content of every page made here."""
    return {"configuration.md": configuration_page(), "metrics.md": metrics_page(), "cli.md": commands_page()}


def sections() -> dict[str, str]:
    """File name -> content of the section made here on a page that is written by hand."""
    return {"rules.md": rules_table()}


def _thresholds(kind: RuleKind) -> str:
    if kind.threshold is str:
        return "`ok`"
    if kind.threshold is list:
        return "a list"
    number = "whole number" if kind.whole else "number"
    return f"{number} from {kind.low:g}" + (f" to {kind.high:g}" if kind.high < MOST else "")


def _command_lines(name: str, command: App) -> list[str]:
    doc = inspect.getdoc(command.default_command) or ""
    options = []
    usage = [f"farmwatch {name}"]
    for argument in command.assemble_argument_collection(parse_docstring=True):
        if argument.parameter.show is False or not argument.names or argument.names == ("*",):
            continue
        if argument.index is not None:
            usage.append(_positional(argument))
        names = ", ".join(f"`{option}`" for option in argument.names)
        help_text = argument.parameter.help or ""
        options.append(f"| {names} | {_cell(help_text)} |")
    lines = [f"## farmwatch {name}\n", f"Usage: `{' '.join([*usage, '[options]'])}`\n", doc, ""]
    if options:
        lines += ["| argument or option | meaning |", "|---|---|", *options, ""]
    return lines


def _positional(argument: Argument) -> str:
    """A positional argument as usage lines have it: NAME, [NAME], [NAME...]."""
    name = argument.name.lstrip("-").upper()
    if argument.required:
        return name
    return f"[{name}...]" if name.endswith("S") else f"[{name}]"


def _first_line(kind: type) -> str:
    return (inspect.getdoc(kind) or "").splitlines()[0]


def _one_of(values: Sequence[str]) -> str:
    """What may be set, where only a few values may."""
    return f" One of {', '.join(f'`{shown_value(value)}`' for value in values)}." if values else ""


def _default(value: object) -> str:
    return json.dumps(encode(value), ensure_ascii=False)


def _cell(text: str) -> str:
    return " ".join(text.split()).replace("|", "\\|")


if __name__ == "__main__":
    folder = Path(sys.argv[1] if len(sys.argv) > 1 else "docs")
    for file_name, content in pages().items():
        (folder / file_name).write_text(content, encoding="utf-8")
    for file_name, content in sections().items():
        page = (folder / file_name).read_text(encoding="utf-8")
        (folder / file_name).write_text(renewed(page, COMMAND, content), encoding="utf-8")
