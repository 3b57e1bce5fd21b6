"""The Python API: what commands print as values, errors as exceptions, and nothing loaded before it is used."""

from __future__ import annotations

import ast
import importlib
import json
import re
import subprocess
import sys
import warnings
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import msgspec
import pytest

import farmwatch as fw
from crawler.errors import UnusableUrl
from farmwatch.pipes.lines import BadFeatures
from filters.errors import BadRuleset
from scoring.errors import NoSiteTest, PooledDetectors
from stream.log.contract import Output
from stream.opening import open_log
from stream.schema.topics import VERDICTS
from stream.text.user_errors import MissingExtra, NotFound, UsageError
from tests.support.front_door import Runner, article_html
from tests.support.logs.tallied_log import LLM_SITES, SITES_MADE, tallied
from tests.support.pages.extraction_here import extract_here
from tests.support.paths import DOCS, ROOT
from tests.support.runs.cutover_world import DETECTOR, cutover_world

pytest.importorskip("pyarrow", reason="the extra parquet is not installed")

TALLY = f'[tally]\ndetector = "{DETECTOR}"\nsprt = {{p0 = 0.1, p1 = 0.6}}\n'
FLAG_OF_A = [{"site": "s", "flag": True, "detector": "a/1"}]


@pytest.fixture(scope="module")
def tallied_folder() -> Iterator[Path]:
    """The folder of a log with judged sites, which tests only read."""
    with TemporaryDirectory() as made, pytest.MonkeyPatch.context() as patch:
        with cutover_world("embedded", Path(made), patch) as world:
            tallied(world)
        yield Path(made) / "log"


@pytest.fixture
def here(farmwatch: Runner, tallied_folder: Path, tmp_path: Path) -> str:
    """URL of that log, from a working folder with its configuration."""
    (tmp_path / "farmwatch.toml").write_text(TALLY)
    return f"sqlite:{tallied_folder}"


def in_json(lines: object) -> Any:
    """Structs as a pipe writes them."""
    return json.loads(msgspec.json.encode(lines))


def rows_of(table: Any, like: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """The rows of a table; text that is JSON in `like` decoded."""
    rows = table.to_pylist()
    for row, other in zip(rows, like, strict=True):
        row |= {name: json.loads(row[name]) for name, cell in other.items() if isinstance(cell, list | dict)}
    return rows  # type: ignore[no-any-return]


@pytest.mark.filterwarnings("ignore::UserWarning")
@pytest.mark.parametrize(
    ("read", "command"),
    [
        (lambda log: log.share(), "rate --json"),
        (lambda log: log.share("source", of="domains"), "rate --by source --of domains --json"),
        (lambda log: log.share(by="day", run="first"), "rate --by day --run first --json"),
        (lambda log: log.sites(), "sites --json"),
        (lambda log: log.pages(), "pages --json"),
        (lambda log: log.pages("s1.example"), "pages s1.example --json"),
        (lambda log: log.verdicts(run="first"), "export --what verdicts --run first OUT"),
        (lambda log: log.scores(), "export --what scores OUT"),
        (lambda log: log.hits(), "export --what hits OUT"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_a_table_has_the_rows_of_the_command(
    farmwatch: Runner, here: str, tmp_path: Path, read: Callable[[fw.OpenLog], Any], command: str
) -> None:
    """Columns, their order and all values are those of the command; lists are JSON text, an unknown value is null."""
    file = tmp_path / "out.jsonl"
    ran = farmwatch(*[str(file) if word == "OUT" else word for word in command.split()], "--log", here)
    said = [json.loads(line) for line in (file.read_text() if "OUT" in command else ran.out).splitlines()]
    with fw.open_log(here) as log:
        table = read(log)
    assert table.num_rows > 0
    assert rows_of(table, said) == said
    assert table.column_names == list(said[0])


@pytest.mark.filterwarnings("ignore::UserWarning")
def test_each_function_gives_the_lines_of_its_pipe(
    farmwatch: Runner, here: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """From pages to the share, by functions and by pipes, values and names are equal."""
    extract_here(monkeypatch, "farmwatch.pipes.lines")
    pages = [{"url": f"https://s{n}.example/a", "html": article_html(300 + n)} for n in range(3)]

    def piped(*command: str, rows: list[Any]) -> list[dict[str, Any]]:
        (tmp_path / "in.jsonl").write_bytes(b"".join(msgspec.json.encode(row) + b"\n" for row in rows))
        return farmwatch(*command, tmp_path / "in.jsonl").lines

    features = [fw.measure(page["html"], page["url"]) for page in pages]
    assert in_json(features) == piped("measure", "-j", "1", rows=pages)

    verdicts = [fw.judge(page, "notes") for page in features]
    assert [verdict.verdict for verdict in verdicts] == ["article"] * 3
    articles = [verdict.article for verdict in verdicts if verdict.article]
    assert in_json(articles) == piped("judge", "--articles", "--ruleset", "notes", rows=features)
    for verdict in verdicts:
        verdict.article = None
    assert in_json(verdicts) == piped("judge", "--ruleset", "notes", rows=features)

    scores = fw.score(articles)
    assert in_json(scores) == piped("score", rows=articles)
    assert [line.p_llm for line in fw.score([article.text for article in articles])] == [line.p_llm for line in scores]

    flags = [{"site": f"s{n % 3}", "flag": n % 3 == 0, "score": 0.5, "detector": "lite-ngram/x"} for n in range(45)]
    sites = fw.tally(flags, settings=fw.TallySettings())
    assert [site.verdict for site in sites] == ["llm", "human", "human"]
    (tmp_path / "farmwatch.toml").unlink()
    assert in_json(sites) == piped("tally", rows=flags)

    share = fw.estimate(sites)
    (said,) = piped("estimate", rows=sites)
    assert {name: getattr(share, name) for name in said} == said


@pytest.mark.filterwarnings("ignore::UserWarning")
def test_rows_may_come_from_a_table(farmwatch: Runner, here: str, tmp_path: Path) -> None:
    """A table of Arrow or pandas, its dicts, and the lines of the command give the same share and the same verdicts."""
    pandas = pytest.importorskip("pandas", reason="pandas is not installed")
    (tmp_path / "sites.jsonl").write_text(farmwatch("sites", "--json", "--log", here).out)
    with fw.open_log(here) as log:
        sites, scores, settings = log.sites(), log.scores(), log.config.tally
    (said,) = farmwatch("estimate", tmp_path / "sites.jsonl").lines
    for rows in (sites, sites.to_pandas(), sites.to_pylist()):
        share = fw.estimate(rows)
        assert {name: getattr(share, name) for name in said} == said
    assert (said["sites"], said["llm"]) == (SITES_MADE, LLM_SITES)
    texts = ["too short", "too"]
    assert fw.score(pandas.Series(texts)) == fw.score(pandas.DataFrame({"id": ["0", "1"], "text": texts}))
    tallied_again = fw.tally(scores, DETECTOR, settings)
    assert tallied_again == fw.tally(scores.to_pandas(), settings=settings)
    assert {line.site: line.verdict for line in tallied_again} == {
        row["site"]: row["verdict"] for row in sites.to_pylist()
    }
    assert fw.estimate(sites, fw.ErrorCounts(llm_sites=90, llm_found=80, human_sites=90, human_cleared=89)).judged_text


def test_reading_leaves_no_trace(here: str, tallied_folder: Path) -> None:
    """No file of the log appears, disappears or changes, not even its time."""

    def files() -> dict[str, tuple[int, bytes]]:
        found = (path for path in sorted(tallied_folder.rglob("*")) if path.is_file())
        return {str(path): (path.stat().st_mtime_ns, path.read_bytes()) for path in found}

    before = files()
    with warnings.catch_warnings(action="ignore"), fw.open_log(here) as log:
        for read in (log.share, log.sites, log.pages, log.verdicts, log.scores, log.hits):
            assert read().num_rows
    assert files() == before


def test_what_is_missing_is_a_warning(finished: str, farmwatch: Runner) -> None:
    """Records that cannot be read, and those that retention removed, are warnings; the other rows are there."""
    with closing(open_log(finished)) as log:
        log.append([Output(VERDICTS, 0, b"a.example", b"no record")])
    with fw.open_log(finished) as opened:
        with pytest.warns(UserWarning, match="1 record of verdicts could not be read"):
            assert opened.verdicts().num_rows == 2
        with closing(open_log(finished)) as log:
            log.truncate(VERDICTS, log.end(VERDICTS))
        with pytest.warns(UserWarning, match="retention has removed verdicts"):
            assert opened.verdicts().num_rows == 0
        assert opened.hits().num_rows == 0
        with pytest.raises(NotFound):
            opened.sites(run="unknown")


def test_the_detectors_warning_stands_beside_its_scores(here: str) -> None:
    """A score's detector, and a share's, come with what they are worth."""
    with pytest.warns(UserWarning, match="lite-ngram: .*indicative only"):
        (line,) = fw.score(["too short"])
    assert (line.id, line.abstain) == ("0", "too_short")
    with fw.open_log(here) as log:
        assert log.share()["warning"].to_pylist() == [
            "not a detector configured here; what its scores are worth is not known here"
        ]


@pytest.mark.parametrize(
    ("url", "said"),
    [
        ("sqlite:nowhere", "there is no log yet"),
        ("sqlite:empty", "there is no log yet"),
        ("sqlite:a-file", "is a file"),
        ("sqlite:rubbish", "rubbish"),
        ("postgres:x", "give sqlite:FOLDER or kafka:HOST:PORT"),
        ("kafka:localhost:1", "no broker answers"),
        ("", "give sqlite:FOLDER or kafka:HOST:PORT"),
    ],
)
def test_a_log_that_is_none_is_refused(farmwatch: Runner, tmp_path: Path, url: str, said: str) -> None:
    """An absent, empty or damaged log raises an error of farmwatch, and no folder or file is made."""
    (tmp_path / "empty").mkdir()
    (tmp_path / "a-file").write_text("x")
    (tmp_path / "rubbish").mkdir()
    for name in ("log.sqlite", "log.db"):
        (tmp_path / "rubbish" / name).write_bytes(b"rubbish" * 1000)
    before = sorted(tmp_path.rglob("*"))
    with pytest.raises(fw.FarmwatchError, match=re.escape(said)):
        fw.open_log(url).sites()
    assert sorted(tmp_path.rglob("*")) == before


@pytest.mark.filterwarnings("ignore::UserWarning")
@pytest.mark.parametrize(
    ("call", "error", "said"),
    [
        (lambda: fw.measure("<p>x", "no url"), UnusableUrl, ""),
        (lambda: fw.judge(fw.measure("<p>x", "http://a.example/"), "unknown"), BadRuleset, "'unknown' is not shipped"),
        (lambda: fw.judge({"url": "u"}), UsageError, "row 0: .*site"),
        (lambda: fw.judge({"url": "u", "site": "s", "blocks": [[0, -1, 0, 0]]}), BadFeatures, "rows of four numbers"),
        (lambda: fw.score([{"id": 1, "text": "x"}, {"text": "x"}]), UsageError, "row 1: .*id"),
        (lambda: fw.score("one text"), UsageError, "a list of texts"),
        (lambda: fw.score(["x"], fw.ScoreSettings(detectors=["unknown"])), fw.FarmwatchError, "no detector is called"),
        (lambda: fw.tally([{"site": "s", "flag": float("nan")}]), UsageError, "row 0: .*flag"),
        (lambda: fw.tally([{"site": "s", "flag": True, "detector": d} for d in "ab"]), UsageError, "never pooled"),
        (lambda: fw.tally([*FLAG_OF_A, {"site": "s", "flag": True}]), UsageError, "row 1 names no detector"),
        (lambda: fw.tally(FLAG_OF_A, settings=fw.TallySettings(method="deciles")), NoSiteTest, ""),
        (lambda: fw.estimate([{"verdict": "maybe"}]), UsageError, "row 0: .*verdict"),
        (lambda: fw.estimate([{"verdict": "llm", "queries": "["}]), UsageError, "row 0: "),
        (lambda: fw.estimate([{"verdict": "llm", "detector": d} for d in "ab"]), PooledDetectors, ""),
    ],
)
def test_wrong_values_raise_errors_of_farmwatch(
    farmwatch: Runner, call: Callable[[], object], error: type[fw.FarmwatchError], said: str
) -> None:
    """What a pipe would refuse or skip raises the error of its kind, with the place of the row."""
    with pytest.raises(error, match=said) as raised:
        call()
    assert isinstance(raised.value, fw.FarmwatchError)


@pytest.mark.parametrize("wrong", [{"by": "weeks"}, {"of": "pages"}])
def test_an_unknown_split_is_refused(here: str, wrong: dict[str, str]) -> None:
    """The message has the known ones."""
    with fw.open_log(here) as log, pytest.raises(UsageError, match="there are"):
        log.share(**wrong)


def test_without_pyarrow_the_extra_is_named(here: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """A log is not opened for tables that cannot be made; functions on values need no pyarrow."""
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    with pytest.raises(MissingExtra) as raised:
        fw.open_log(here)
    assert raised.value.facts == {"extra": "parquet"}
    assert fw.estimate([{"verdict": "llm"}]).llm == 1


def test_importing_farmwatch_loads_nothing_of_it() -> None:
    """`import farmwatch` loads no other module; then each name is found, and listed."""
    code = (
        "import sys, importlib, typing; before = set(sys.modules); import farmwatch;"
        "print(sorted(set(sys.modules) - before));"
        "assert set(farmwatch.__all__) <= set(dir(farmwatch));"
        "assert all(getattr(farmwatch, name) for name in farmwatch.__all__)"
    )
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True)
    assert done.stdout == "['farmwatch']\n"
    with pytest.raises(AttributeError, match="has no attribute 'measures'"):
        importlib.import_module("farmwatch").measures  # noqa: B018


@pytest.mark.filterwarnings("ignore::UserWarning")
def test_the_page_of_the_docs_runs(
    here: str, tallied_folder: Path, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    """The code of docs/how-to/python.md runs from top to bottom, as in a notebook, and shows something."""
    pytest.importorskip("pandas", reason="pandas is not installed")
    (tmp_path / "farmwatch-data").symlink_to(tallied_folder)
    (tmp_path / "garden.html").write_text(article_html())
    names: dict[str, Any] = {}
    shown = []
    for block in re.findall(r"```python\n(.*?)```", (DOCS / "how-to" / "python.md").read_text(), re.DOTALL):
        tree = ast.parse(block)
        last = tree.body.pop() if isinstance(tree.body[-1], ast.Expr) else None
        exec(compile(tree, "python.md", "exec"), names)
        if last is not None:
            shown.append(eval(ast.unparse(last), names))
    said = capfd.readouterr().out
    assert said.count("of 24 sites with scored articles") == 2
    assert [len(table) for table in shown if table is not None] == [2, 16]
    assert (len(names["likely"]), names["verdict"].verdict, names["failed"]) == (LLM_SITES, "article", [])
    assert (len(names["scores"]), len(names["verdicts"])) == (1, SITES_MADE)
    names["log"].close()


def test_an_unknown_list_is_null(finished: str, farmwatch: Runner) -> None:
    """A page without a verdict has no list of failed rules, in an Arrow table as in JSON; an article's is empty."""
    with fw.open_log(finished) as log:
        failed = {row["result"]: row["failed"] for row in log.pages().to_pylist()}
    assert (failed["refused"], failed["article"], json.loads(failed["dropped"])[:1]) == (None, "[]", ["min_tokens"])
