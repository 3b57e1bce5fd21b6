"""If a restart cannot help, `up` ends in one line before any role starts."""

from __future__ import annotations

import os
import socket
from contextlib import closing
from pathlib import Path

import pytest

from farmwatch.config.member_names import claimed_name
from stream.log.contract import Output
from stream.log.errors import LogUnavailable
from stream.opening import open_log
from stream.schema.roles import Role
from stream.schema.topics import HITS, PAGES, VERDICTS, all_topics
from stream.text.user_errors import Exit
from tests.support.front_door import PARTITIONS, Runner


@pytest.fixture(autouse=True)
def starts(monkeypatch: pytest.MonkeyPatch) -> list[object]:
    """Records the starts of roles and starts none."""
    made: list[object] = []

    def start(*arguments: object) -> int:
        made.append(arguments)
        return Exit.OK

    monkeypatch.setattr("farmwatch.commands.start.running._supervise", start)
    monkeypatch.setattr("farmwatch.commands.start.running._run_one", start)
    monkeypatch.setattr("farmwatch.commands.crawl.crawl.run_role", lambda *given, **_: start(*given))
    monkeypatch.setenv("FARMWATCH_CRAWL_CONTACT", "https://operator.example/")
    monkeypatch.setenv("FARMWATCH_METRICS_PORT", "0")
    monkeypatch.setenv("FARMWATCH_CONSOLE_PORT", "0")
    return made


_OF_ANY_ROLE = [
    ("crawl.contact= ", "crawl.contact", Exit.USAGE),
    ("crawl.nameservers=foo", "crawl.nameservers has 'foo'", Exit.USAGE),
    ("crawl.warc_folder=/dev/null/warc", "crawl.warc_folder", Exit.UNAVAILABLE),
    ("metrics.host=203.0.113.9", "metrics.host", Exit.USAGE),
    ("log.url=nope:x", "nope:x", Exit.USAGE),
    ("log.url=kafka:localhost", "kafka:HOST:PORT", Exit.USAGE),
]
_OF_UP = [
    ("judge.ruleset=nope", "nope", Exit.USAGE),
    ("score.detectors=nope", "nope", Exit.USAGE),
    ("tally.detector=nope", "nope", Exit.USAGE),
    ("score.weights=/nowhere/weights", "/nowhere/weights", Exit.UNAVAILABLE),
    ("measure.extractor=nope", "nope", Exit.USAGE),
    *_OF_ANY_ROLE,
]


@pytest.mark.parametrize(
    ("command", "setting", "said", "code"),
    [
        *(("up", *case) for case in _OF_UP),
        *((command, *case) for command in ("up --role crawl --in-process", "crawl") for case in _OF_ANY_ROLE),
    ],
)
def test_a_setting_that_names_nothing_ends_up_at_once(
    farmwatch: Runner, tmp_path: Path, starts: list[object], command: str, setting: str, said: str, code: Exit
) -> None:
    """A wrong setting ends `up` with the exit code of other commands and one line; nothing is created on disk."""
    ran = farmwatch(*command.split(), "--set", setting)
    assert (ran.code, said in ran.err, len(ran.err.splitlines())) == (code, True, 1)
    assert (list(tmp_path.iterdir()), starts) == ([], [])


def test_another_number_of_partitions_ends_up_at_once(farmwatch: Runner, tmp_path: Path) -> None:
    """Topics with another log.partitions are reported before any role starts."""
    url = f"sqlite:{tmp_path / 'log'}"
    with closing(open_log(url)) as log:
        log.create(all_topics(PARTITIONS + 1, "e"))
    ran = farmwatch("up", "--log", url)
    assert (ran.code, "partitions" in ran.err) == (Exit.UNAVAILABLE, True)


def test_a_folder_that_cannot_be_written_ends_up_at_once(farmwatch: Runner, tmp_path: Path) -> None:
    """The line names the folder and the setting."""
    (tmp_path / "file").touch()
    ran = farmwatch("up", "--log", f"sqlite:{tmp_path / 'file' / 'log'}")
    assert (ran.code, "log.url" in ran.err) == (Exit.UNAVAILABLE, True)


@pytest.mark.parametrize("command", ["up", "rate", "doctor audit"])
def test_segments_without_their_database_end_every_command(farmwatch: Runner, tmp_path: Path, command: str) -> None:
    """If log.sqlite is missing beside segments: exit code 3, one line with the remedy, and no new log."""
    folder = tmp_path / "farmwatch-data"
    with closing(open_log(f"sqlite:{folder}")) as log:
        log.create(all_topics(PARTITIONS, "e"))
        log.append([Output(HITS, 0, b"k", b"x" * 5000)])
    (folder / "log.sqlite").unlink()
    ran = farmwatch(*command.split())
    assert (ran.code, "restore the log.sqlite" in ran.err) == (Exit.UNAVAILABLE, True)
    assert len(ran.err.splitlines()) == 1
    assert not (folder / "log.sqlite").exists()


@pytest.mark.parametrize(
    ("arguments", "code"), [((), Exit.UNAVAILABLE), (("--role", "score"), Exit.OK), (("--member", "two"), Exit.OK)]
)
def test_a_second_up_on_an_embedded_log_is_refused_at_once(
    farmwatch: Runner, tmp_path: Path, arguments: tuple[str, ...], code: Exit
) -> None:
    """While another `up` runs the same roles, one line names log and process. Other roles and named members may run."""
    folder = tmp_path / "farmwatch-data"
    with claimed_name(folder, [Role.CRAWL, Role.JUDGE]):
        ran = farmwatch("up", *arguments)
    assert ran.code == code
    if code != Exit.OK:
        (line,) = ran.err.splitlines()
        assert f"{folder.name}: the role crawl runs on this log already, in process {os.getpid()}" in line
        assert not (folder / "log.sqlite").exists()


def test_the_roles_start_where_nothing_is_wrong(farmwatch: Runner, tmp_path: Path) -> None:
    """A valid configuration passes, and the topics exist before the roles start."""
    assert farmwatch("up").code == Exit.OK
    with closing(open_log(f"sqlite:{tmp_path / 'farmwatch-data'}")) as log:
        assert log.topics()[HITS] == PARTITIONS


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        ([], ""),
        (["tally.sprt={p0=0.8, p1=0.98}"], "takes 34 pages at least to say llm, and a site is left at 20 usable ones"),
        (["tally.sprt={p0=0.8, p1=0.98}", "tally.enough_articles=34"], ""),
        (["tally.sprt={p0=0.02, p1=0.15}"], "to say human, and a site is left at 20 usable ones"),
        (["tally.enough_articles=7"], "9 pages at least to say llm and 8 pages at least to say human, and a site is"),
    ],
)
def test_a_site_test_that_can_never_decide_is_told(farmwatch: Runner, settings: list[str], said: str) -> None:
    """If a site test needs more pages than are read, `up` warns with the numbers, and starts."""
    ran = farmwatch("up", *(part for setting in settings for part in ("--set", setting)))
    assert ran.code == Exit.OK
    assert ("the site test (p0" in ran.err) == bool(said)
    assert said in ran.err


def test_a_typo_in_the_rules_does_not_stop_a_live_run(farmwatch: Runner, tmp_path: Path) -> None:
    """`up` reports the fault and the rules of the live run; a first start is refused."""
    rules = tmp_path / "mine.toml"
    rules.write_text("[rules.extracted\n")
    arguments = ("up", "--log", f"sqlite:{tmp_path / 'log'}", "--set", f"judge.ruleset={rules}")
    first = farmwatch(*arguments)
    assert (first.code, "mine.toml" in first.err, "warning" in first.err) == (Exit.USAGE, True, False)
    assert list(tmp_path.iterdir()) == [rules]
    rules.write_text('[rules.extracted]\nthreshold = "ok"\n')
    assert farmwatch(*arguments).code == Exit.OK
    rules.write_text("[rules.extracted\n")
    again = farmwatch(*arguments)
    assert again.code == Exit.OK, again.err
    warnings = [line for line in again.err.splitlines() if line.startswith("warning: judge.ruleset: ")]
    assert len(warnings) == 1 and "mine.toml" in warnings[0]
    assert "; the live run first continues with mine " in warnings[0]


def test_a_broker_that_is_away_is_waited_for(farmwatch: Runner, monkeypatch: pytest.MonkeyPatch) -> None:
    """If the broker is away, the roles wait for it, and one line reports that."""

    def away(_config: object) -> None:
        raise LogUnavailable("no broker answers")

    monkeypatch.setattr("farmwatch.doctor.checks.open_configured", away)
    ran = farmwatch("up", "--log", "kafka:broker.example:9092")
    assert (ran.code, "broker_away" in ran.err) == (Exit.OK, True)


def test_groups_that_start_over_are_told_before_a_role_starts(farmwatch: Runner, finished: str) -> None:
    """Each group that has worked and has no offsets has a line; `up` still starts. The doctor warns of them."""
    ran = farmwatch("up", "--log", finished)
    assert ran.code == Exit.OK
    told = [line for line in ran.err.splitlines() if line.startswith("warning: the group ")]
    assert [line.split()[3] for line in told] == ["measure", "judge", "tally"]
    assert "judge has no offsets, though verdicts has its output, so it reads features (2 records) again" in told[1]
    assert "; stop farmwatch now and run `farmwatch doctor --repair`" in told[1]
    assert "warning: the group" not in farmwatch("up", "--log", finished, "--role", "crawl").err
    assert farmwatch("doctor", "--log", finished).out.count("the group judge has no offsets") == 1


def test_topics_that_were_deleted_are_told(farmwatch: Runner, finished: str) -> None:
    """`up` creates missing topics again, empty, and names them; on a new log it prints nothing."""
    with closing(open_log(finished)) as log:
        log.remove(topics=[VERDICTS, PAGES, "state.tally"])
    ran = farmwatch("up", "--log", finished)
    assert ran.code == Exit.OK
    assert "warning: created missing topics: pages, state.tally, verdicts." in ran.err
    assert "missing topics" not in farmwatch("up", "--log", finished).err
    assert "missing topics" not in farmwatch("up", "--log", f"{finished}-other").err


@pytest.mark.parametrize("command", ["up", "up --role crawl --in-process", "crawl"])
def test_a_taken_port_is_said_before_a_role_starts(
    farmwatch: Runner, finished: str, starts: list[object], command: str
) -> None:
    """At once, with the setting, where another program uses the port of the first role; a later start may succeed."""
    with socket.create_server(("127.0.0.1", 0)) as holder:
        port = holder.getsockname()[1]
        ran = farmwatch(*command.split(), "--log", finished, "--set", f"metrics.port={port}")
    assert (ran.code, starts) == (Exit.UNAVAILABLE, [])
    (line,) = [line for line in ran.err.splitlines() if line.startswith("farmwatch: ")]
    assert line.startswith(
        f"farmwatch: 127.0.0.1:{port} is in use by another process: stop it, or set metrics.port to "
    )


@pytest.mark.parametrize("taken", ["by another program", "by the metrics of the console"])
def test_a_taken_port_of_the_console_is_said(
    farmwatch: Runner, finished: str, starts: list[object], taken: str
) -> None:
    """Also where two ports of the configuration are the same, which no later start mends."""
    with socket.create_server(("127.0.0.1", 0)) as holder:
        port = holder.getsockname()[1]
        settings = [f"console.port={port}"]
        if taken != "by another program":
            holder.close()
            settings.append(f"metrics.port={port - list(Role).index(Role.CONSOLE)}")
        ran = farmwatch("up", "--role", "console", "--log", finished, *(f"--set={setting}" for setting in settings))
    assert (ran.code, starts) == (Exit.UNAVAILABLE if taken == "by another program" else Exit.USAGE, [])
    assert f"127.0.0.1:{port} is in use by another process: stop it, or set console.port to " in ran.err
