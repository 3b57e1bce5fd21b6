"""The command line as a whole: quick help, exit codes, and where text goes."""

from __future__ import annotations

import errno
import itertools
import os
import re
import shlex
import socket
import subprocess
import sys
from pathlib import Path

import pytest
import structlog

from farmwatch.commands.cli import MOVED, OPTIONS_MOVED, app
from farmwatch.commands.start.running import parse_roles
from farmwatch.terminal.messages import start_logging
from stream.schema.roles import Role
from stream.text.user_errors import Exit
from tests.support.front_door import Runner
from tests.support.paths import ROOT
from tests.tools.reference import commands

_HEAVY = {"torch", "transformers", "trafilatura", "kafka", "numpy", "lxml", "aiohttp", "prometheus_client", "structlog"}
STEERING = "\x1b[31m\u202e"


def test_help_imports_nothing_heavy() -> None:
    """`farmwatch --help` loads none of the slow libraries."""
    code = (
        "import sys\n"
        "from farmwatch.__main__ import run\n"
        "assert run(['--help']) == 0\n"
        "print(' '.join(sorted({name.partition('.')[0] for name in sys.modules})), file=sys.stderr)\n"
    )
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True)
    assert "Answers" in done.stdout
    assert set(done.stderr.split()) & _HEAVY == set()


def test_status_imports_no_library_that_it_does_not_use() -> None:
    """`farmwatch status` starts without the HTTP client, the parser and numpy."""
    code = "import sys, farmwatch.commands.start.status; print(*sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True)
    assert not {"aiohttp", "lxml", "numpy"}.intersection(done.stdout.split())


@pytest.mark.parametrize(
    ("command", "code", "said"), [("--version 2>&-", Exit.OK, True), ("--version <&- >&- 2>&-", Exit.OK, False)]
)
def test_streams_that_take_nothing_change_no_exit_code(command: str, code: Exit, said: bool) -> None:
    """Closed streams do not change a command's exit code."""
    line = f"exec {shlex.quote(sys.executable)} -m farmwatch {command}"
    done = subprocess.run(["/bin/sh", "-c", line], cwd=ROOT, capture_output=True, text=True, check=False)
    assert (done.returncode, bool(done.stdout), done.stderr) == (code, said, "")


@pytest.mark.parametrize("command", sorted(commands(app)))
def test_every_command_has_help(farmwatch: Runner, command: str) -> None:
    """--help of each command succeeds and prints on stdout only."""
    ran = farmwatch(*command.split(), "--help")
    assert (ran.code, ran.err) == (Exit.OK, "")
    assert "Usage:" in ran.out


def test_at_most_twenty_words_stand_at_the_top(farmwatch: Runner) -> None:
    """A newcomer reads one screen of commands."""
    assert len([name for name in app if not name.startswith("-")]) <= 20


@pytest.mark.parametrize(
    ("old", "new"),
    [
        *((name, f"log {name}") for name in ("topics", "dead", "backup", "export", "release", "import", "upgrade")),
        *((name, f"crawl {name}") for name in ("frontier", "exclude", "forget", "robots", "plan")),
        *((name, f"lab {name}") for name in ("calibrate", "train-sites", "templates", "measure", "estimate")),
        *((name, f"review {name}") for name in ("label", "panel", "canaries")),
        ("explain", "page"),
        ("audit", "doctor audit"),
        ("config", "doctor config"),
        ("search", "hits search"),
    ],
)
def test_an_old_name_is_answered_with_the_new_one(farmwatch: Runner, old: str, new: str) -> None:
    """Exit 2 and one line, whatever follows; the new name has help."""
    ran = farmwatch(old, "--any", "thing")
    assert (ran.code, ran.out, len(ran.err.splitlines())) == (Exit.USAGE, "", 1)
    assert f"`farmwatch {new}`" in ran.err
    assert farmwatch(*new.split(), "--help").code == Exit.OK


def test_completion_knows_commands_and_options(farmwatch: Runner, tmp_path: Path) -> None:
    """Bash completes the names of commands, and of a command's options, by the printed script."""
    script = tmp_path / "completion"
    script.write_text(farmwatch("doctor", "completion", "bash").out)
    asked = 'COMP_WORDS=(farmwatch {}); COMP_CWORD=$((${{#COMP_WORDS[@]}} - 1)); _farmwatch; echo "${{COMPREPLY[@]}}"'
    for typed, expected in (("compa", "compare"), ("rate --hist", "--history")):
        line = f"compopt() {{ :; }}; source {script}; {asked.format(typed)}"
        done = subprocess.run(["bash", "-c", line], capture_output=True, text=True, check=True)
        assert expected in done.stdout.split()


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["up", "--role", "jugde"], "no such role: jugde; there are crawl, measure, judge"),
        (["up", "--in-process", "--role", "judge,score"], "--in-process runs one role"),
        (["doctor", "config", "--set", "crawl.delay_ms=1"], "farmwatch: crawl.delay_ms: unknown key"),
        (["rate", "--log", "sqlite:a", "--set", "log.url=sqlite:b"], "--log and --set log.url both name the log"),
        (["rate", "--by", "nonsense"], '"operator-size", "published", "published-year"; see'),
        (["rate", "--set", "log.partitions=2.5"], "log.partitions: expected int (from flag, the value is '2.5')"),
    ],
)
def test_a_near_miss_is_answered_with_the_cure(farmwatch: Runner, arguments: list[str], said: str) -> None:
    """Likely mistakes end with exit 2 and one line with the right form."""
    ran = farmwatch(*arguments)
    assert (ran.code, ran.out, len(ran.err.splitlines())) == (Exit.USAGE, "", 1)
    assert said in ran.err


@pytest.mark.parametrize("arguments", [["nonsense"], ["rate", "--nonsense"], ["rate", "--by", "colour"], ["page"]])
def test_a_wrong_command_line_is_exit_2(farmwatch: Runner, arguments: list[str]) -> None:
    """Unknown commands, options and values, and missing arguments: a message on stderr, nothing on stdout."""
    ran = farmwatch(*arguments)
    assert (ran.code, ran.out) == (Exit.USAGE, "")
    assert ran.err


@pytest.mark.parametrize(
    ("setting", "said"),
    [
        ("loop.drain_s=nan", "loop.drain_s: expected float >= 0.0 (from flag, the value is 'nan')"),
        ("crawl.max_in_flight=1000000000", "crawl.max_in_flight: expected int <= 10000 (from flag, the value is "),
        ("measure.workers=1000000000", "measure.workers: expected int <= 512 (from flag, the value is '1000000000')"),
        ("loop.drain_s=1e308", "loop.drain_s: expected float <= 315360000.0 (from flag, the value is '1e308')"),
        ("crawl.nameservers=" + "[" * 20_000, "crawl.nameservers: neither JSON nor TOML: "),
        ("crawl.contact=me", "crawl.contact is 'me': write an http(s) URL"),
        ("retention.days={hits=91}", "retention: days: hits are kept 90 days at most"),
    ],
)
@pytest.mark.parametrize("command", [("doctor", "config"), ("up", "--log", "sqlite:/dev/null/log")])
def test_config_show_refuses_what_up_refuses(
    farmwatch: Runner, command: tuple[str, ...], setting: str, said: str
) -> None:
    """Bad values and contradictory settings end `up` and `doctor config` with exit 2 and the same single line."""
    contact = () if setting.startswith("crawl.contact") else ("--set", "crawl.contact=owner@a.example")
    ran = farmwatch(*command, "--set", setting, *contact)
    assert (ran.code, ran.out, len(ran.err.splitlines())) == (Exit.USAGE, "", 1)
    assert said in ran.err


@pytest.mark.parametrize("command", ["lab measure -", "lab score -", "lab train-articles pages --out model.json"])
def test_an_absurd_number_of_processes_is_refused(farmwatch: Runner, command: str) -> None:
    """Before the first one starts."""
    ran = farmwatch(*command.split(), "--jobs", "1000000000")
    assert (ran.code, ran.out, "--jobs" in ran.err) == (Exit.USAGE, "", True)


@pytest.mark.parametrize(
    "error", [BlockingIOError(errno.EAGAIN, os.strerror(errno.EAGAIN)), RuntimeError("can't start new thread")]
)
def test_too_few_processes_are_one_line(farmwatch: Runner, monkeypatch: pytest.MonkeyPatch, error: Exception) -> None:
    """Where the system refuses another process or thread, the line names the limits; other errors have their trace."""

    def refused(_: object) -> None:
        raise error

    monkeypatch.setattr("farmwatch.commands.cli.run_command", refused)
    ran = farmwatch("rate")
    assert (ran.code, ran.out, len(ran.err.splitlines())) == (Exit.UNAVAILABLE, "", 1)
    assert "`ulimit -u`" in ran.err
    error = RuntimeError("another")
    with pytest.raises(RuntimeError, match="another"):
        farmwatch("rate")


@pytest.mark.parametrize("command", ["rate", "crawl frontier", "up", "doctor config"])
@pytest.mark.parametrize("url", ["postgres:x", "memory:", "sqlite:", "sqlite:file", "kafka::9092", "kafka:a:99999"])
def test_what_cannot_be_a_log_is_exit_2(farmwatch: Runner, tmp_path: Path, command: str, url: str) -> None:
    """A wrong URL form, a file in place of the folder, or a wrong address is one line that names the setting."""
    (tmp_path / "file").touch()
    contact = ("--set", "crawl.contact=owner@a.example") if command == "up" else ()
    ran = farmwatch(*command.split(), "--log", url, *contact)
    assert (ran.code, "log.url" in ran.err, len(ran.err.splitlines())) == (Exit.USAGE, True, 1)


def test_a_broker_that_is_away_is_told_at_once(farmwatch: Runner) -> None:
    """If the broker is unavailable, a command does not retry for long and does not claim to continue."""
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))  # bound and not listening: connections are refused
        ran = farmwatch("rate", "--log", f"kafka:127.0.0.1:{unused.getsockname()[1]}")
    assert (ran.code, "no broker answers" in ran.err, "again" in ran.err) == (Exit.UNAVAILABLE, True, False)


def test_data_and_messages_have_a_stream_each(farmwatch: Runner, monkeypatch: pytest.MonkeyPatch) -> None:
    """An unknown variable is a warning on stderr; the table on stdout is tab-separated, without escape codes."""
    monkeypatch.setenv("FARMWATCH_CRAWL_DELAYS", "1")
    ran = farmwatch("doctor", "config")
    assert (ran.code, "FARMWATCH_CRAWL_DELAYS" in ran.err, "DELAYS" in ran.out) == (Exit.OK, True, False)
    assert "\x1b" not in ran.out + ran.err
    assert "log.partitions\t2\tenv FARMWATCH_LOG_PARTITIONS" in ran.out.splitlines()


def test_roles_come_in_the_order_of_the_data() -> None:
    """Roles given with commas or repeats come in pipeline order; without any, all roles run."""
    assert parse_roles(["tally,judge", "judge"]) == [Role.JUDGE, Role.TALLY]
    assert parse_roles([]) == list(Role)


def test_training_without_the_extra_says_what_to_install(
    farmwatch: Runner, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Without scikit-learn, train-detector names the extra in place of a traceback."""
    monkeypatch.setitem(sys.modules, "sklearn", None)
    texts = tmp_path / "texts.jsonl"
    ran = farmwatch("lab", "train-detector", texts, "--dev", texts, "--out", tmp_path / "out")
    assert ran.code == Exit.UNAVAILABLE
    assert "`pip install '.[train]'` in the checkout" in ran.err
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize("command", ["up", "calibrate", "doctor"])
def test_help_is_wrapped_anew(farmwatch: Runner, command: str) -> None:
    """A paragraph of help is rewrapped to full lines, whatever the line breaks of its docstring."""
    ran = farmwatch(command, "--help")
    for paragraph in ran.out.partition("╭")[0].split("\n\n"):
        for line, following in itertools.pairwise(paragraph.rstrip().splitlines()):
            assert len(line.rstrip()) + 1 + len(following.split()[0]) >= 79, paragraph


@pytest.mark.parametrize(
    "arguments",
    [
        ["doctor", "config", "--set", f"cr{STEERING}awl.delay_s=5"],
        ["doctor", "config", "--set", f"crawl.contact=https://x{STEERING}"],
        ["doctor", "config", "--config", f"no{STEERING}.toml"],
        ["doctor", "config", "--config", "keys.toml"],
        ["sites", "--log", f"sqlite:no{STEERING}"],
        ["topics", "--create", "--log", f"sqlite:made{STEERING}"],
        [f"si{STEERING}tes"],
        ["sites", f"--no{STEERING}"],
        ["backup", f"{STEERING}", "--log", "sqlite:no"],
    ],
)
def test_nothing_that_was_typed_steers_the_terminal(farmwatch: Runner, tmp_path: Path, arguments: list[str]) -> None:
    """Control and bidi characters of options, paths and keys are shown as escapes."""
    (tmp_path / "keys.toml").write_text('[crawl]\n"de\\u001b[31m\\u202elay" = 3\n')
    ran = farmwatch(*arguments)
    assert all(character.isprintable() or character in "\n\t" for character in ran.out + ran.err)


def test_events_of_the_log_are_escaped(capsys: pytest.CaptureFixture[str]) -> None:
    """A crawled address in an event cannot steer the terminal that shows the log."""
    try:
        start_logging()
        structlog.get_logger().warning("site_given_up", site=f"x{STEERING}.example")
    finally:
        structlog.reset_defaults()
    said = capsys.readouterr().err
    assert "x\\x1b[31m\\u202e.example" in said.replace("\\\\", "\\")
    assert "\x1b" not in said


def test_no_text_names_a_command_that_moved() -> None:
    """Neither messages nor docs send a reader to an old name; the changelog does."""
    old = re.compile(
        rf"(?<!from )(?<!import )(?:farmwatch|\{{program\}}) ({'|'.join(set(MOVED) - {'review'})})(?![\w-])(?!`? is)"
    )
    folders = ("crawler", "dashboards", "deploy", "docs", "farmwatch", "filters", "lab", "replay", "scoring", "stream")
    files = [
        file for folder in folders for file in (ROOT / folder).rglob("*") if file.suffix in (".py", ".md", ".html")
    ]
    named = {
        f"{file}: {found[0]}"
        for file in [*files, ROOT / "README.md", ROOT / "CONTRIBUTING.md", ROOT / "Makefile"]
        for found in old.finditer(file.read_text(encoding="utf-8"))
    }
    assert named == set()


@pytest.mark.parametrize(("command", "earlier"), [(c, o) for c, moved in OPTIONS_MOVED.items() for o in moved])
def test_an_earlier_option_names_what_to_write_now(farmwatch: Runner, command: str, earlier: str) -> None:
    """It gets no guess: the message is from a table, and what it names exists."""
    now = OPTIONS_MOVED[command][earlier]
    ran = farmwatch(*command.split(), f"{earlier}=x")
    said = f": write {now}" if now else " any more"
    assert (ran.code, ran.err) == (Exit.USAGE, f"farmwatch: `farmwatch {command}` has no {earlier}{said}\n")
    if now.startswith("--"):
        listed = [*command.split(), *(["list"] if command == "log dead" else [])]
        assert f"{now.split()[0]} " in farmwatch(*listed, "--help").out


@pytest.mark.parametrize(
    "line",
    [
        *(
            "crawl --dry-run --site a.example",
            "crawl robots --stored",
            "log dead list --each",
            "log dead retry --reason=x",
        ),
        *("compare a b --resamples 9", "compare a b --html x", "lab tally --method x", "lab score --observer x"),
        *("review label --show-verdicts", "lab train-articles --report x", "lab calibrate --plot x"),
    ],
)
def test_an_option_that_was_taken_away_is_known_as_earlier(farmwatch: Runner, line: str) -> None:
    """Wherever it stands in the line, the answer says that the command has it no more."""
    ran = farmwatch(*line.split())
    assert ran.code == Exit.USAGE and ran.err.startswith("farmwatch: `farmwatch ") and "` has no --" in ran.err


def test_an_option_of_a_command_below_another_is_its_own(farmwatch: Runner) -> None:
    """`crawl` has lost --site, and `crawl frontier` has it."""
    assert "has no --site" not in farmwatch("crawl", "frontier", "--site", "a.example").err
