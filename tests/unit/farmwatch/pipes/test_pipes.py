"""The stages as pipes: stable names, the same order, and bad lines reported by number."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from farmwatch.pipes.lines import FeaturesLine, features_of, structure_by_name
from filters.perplexity.names import DANGER
from filters.quality.names import MEASURES
from filters.structure import names as structure_names
from stream.text.user_errors import Exit
from tests.support.front_door import Runner, article_html
from tests.support.pages.extraction_here import extract_here
from tests.support.paths import ROOT

pytestmark = pytest.mark.slow

_SHORT = "<html><body><article><h1>Title here</h1><p>One two three four five.</p></article></body></html>"


@pytest.fixture
def here(monkeypatch: pytest.MonkeyPatch) -> None:
    """Pages are measured in this process. With worker processes: the test of the order."""
    extract_here(monkeypatch, "farmwatch.pipes.lines")


def _write(folder: Path, *lines: Any) -> Path:
    path = folder / "in.jsonl"
    path.write_text("".join((line if isinstance(line, str) else json.dumps(line)) + "\n" for line in lines))
    return path


def _page(path: str, html: str | None = None, **more: Any) -> dict[str, Any]:
    return {"url": f"https://a.example{path}", "html": article_html() if html is None else html, **more}


@pytest.mark.usefixtures("here")
def test_measure_has_the_names_of_the_spec(farmwatch: Runner, tmp_path: Path) -> None:
    """A line has url, site, page_id, text, extract, measures, quality and so on, and values."""
    (line,) = farmwatch("lab", "measure", "-j", "1", _write(tmp_path, _page("/x?b=1", _SHORT))).lines
    names = (
        "url site page_id text extract measures quality structure blocks template_lines segments dates signals"
        " feature_epoch"
    )
    assert list(line) == names.split()
    assert list(line["structure"]) == [*structure_names.MEASURES]
    assert (line["structure"]["h1_words"], line["structure"]["path_depth"]) == (2, 1)
    assert line["text"] == "Title here\nOne two three four five."
    assert line["extract"] == {"path": "recall", "error": ""}
    assert line["site"] == "a.example"
    assert line["blocks"] == [[1, 10, 0, 0], [0, 24, 0, 0]]
    assert [(of["kind"], of["words"], of["without"]) for of in line["segments"]] == [("article", 7, [])]
    assert line["measures"]["tokens"] == 7
    assert line["measures"]["url_path"] == "/x?b=1"
    assert line["measures"]["duplicate_share"] == 0.0
    quality = {text: list(measures) for text, measures in line["quality"].items()}
    assert quality == {text: [*MEASURES] for text in ("main", "c4", "nopunc")}


def test_measure_keeps_the_order_and_the_memory_of_a_site(farmwatch: Runner, tmp_path: Path) -> None:
    """With two processes, lines keep their order, and a copy of an earlier page of the site counts as a copy."""
    pages = [_page(f"/{n}", site=f"s{n % 2}.example") for n in range(6)]
    lines = farmwatch("lab", "measure", "-j", "2", _write(tmp_path, *pages)).lines
    assert [line["url"] for line in lines] == [page["url"] for page in pages]
    for name in ("duplicate_share", "template_share"):
        assert [line["measures"][name] for line in lines] == [0, 0, 1, 1, 1, 1]
    assert [line["measures"]["simhash_distance"] for line in lines] == [None, None, 0, 0, 0, 0]
    assert {line["measures"]["simhash"] for line in lines} == {lines[0]["measures"]["simhash"]}


@pytest.mark.usefixtures("here")
def test_bad_lines_are_numbered_and_skipped(farmwatch: Runner, tmp_path: Path) -> None:
    """Broken JSON, a missing field, a wrong type and unusable URLs give five messages, two pages and exit 1."""
    no_html, no_text = {"url": "https://a.example/"}, {"url": 3, "html": ""}
    file = _write(
        tmp_path,
        _page("/1", ""),
        "{",
        no_html,
        no_text,
        "",
        {"url": "x", "html": ""},
        _page("/2", ""),
        {"url": "http://a.1../", "html": ""},
    )
    ran = farmwatch("lab", "measure", "-j", "1", file)
    assert ran.code == Exit.PROBLEM
    assert len(ran.lines) == 2
    places = sorted(message.partition(":")[0] for message in ran.err.splitlines())
    assert places == ["line 2", "line 3", "line 4", "line 6", "line 8"]


@pytest.mark.usefixtures("here")
def test_judge_reads_what_measure_writes(farmwatch: Runner, tmp_path: Path) -> None:
    """A page that all rules keep and one that is too short have every rule in their verdicts; a danger is named."""
    measured = farmwatch("lab", "measure", "-j", "1", _write(tmp_path, _page("/story"), _page("/2", _SHORT))).out
    file = tmp_path / "features.jsonl"
    file.write_text(measured)
    kept, dropped = farmwatch("lab", "judge", "--ruleset", "notes", file).lines
    assert list(kept) == ["url", "site", "verdict", "first_failed", "failed", "rules", "ruleset", "digest"]
    assert (kept["verdict"], kept["failed"], kept["ruleset"]) == ("article", [], "notes")
    assert (dropped["verdict"], dropped["first_failed"]) == ("dropped", "min_tokens")
    assert list(kept["rules"][0]) == ["name", "value", "op", "threshold", "outcome"]
    assert [rule["name"] for rule in kept["rules"]] == [rule["name"] for rule in dropped["rules"]]
    (article,) = farmwatch("lab", "judge", "--articles", file).lines
    assert (article["url"], article["site"]) == ("https://a.example/story", "a.example")
    assert article["text"].startswith("A garden")
    ruleset = tmp_path / "fluent.toml"
    ruleset.write_text('scores = "fluent"\n[rules.extracted]\nthreshold = "ok"\n')
    assert DANGER in farmwatch("lab", "judge", "--ruleset", ruleset, file).err


@pytest.mark.usefixtures("here")
def test_template_lines_are_numbers_and_the_own_text_is_without_them(farmwatch: Runner, tmp_path: Path) -> None:
    """The third page of a site has template lines, by number; with scores = "own" they are not in its article text."""
    rules = tmp_path / "own.toml"
    rules.write_text('scores = "own"\n[rules.extracted]\nthreshold = "ok"\n')
    pages = [_page(f"/{n}", _SHORT.replace("here", "here" if n < 2 else "there")) for n in range(3)]
    lines = farmwatch("lab", "measure", "-j", "1", _write(tmp_path, *pages)).lines
    assert [line["template_lines"] for line in lines] == [[], [], [1]]
    assert lines[2]["measures"]["template_block_share"] == pytest.approx(24 / 35)
    assert [line["quality"].get("own", {}).get("words") for line in lines] == [None, None, 2]
    articles = farmwatch("lab", "judge", "--ruleset", rules, "--articles", _write(tmp_path, *lines)).lines
    assert [article["text"] for article in articles] == [lines[0]["text"], lines[1]["text"], "Title there"]


def test_quality_goes_by_name_and_comes_back_in_order() -> None:
    """Quality measures of a line may have any order and are stored in the order of MEASURES; absent means unknown."""
    last, first = MEASURES[-1], MEASURES[0]
    record = features_of(FeaturesLine(url="u", site="s", quality={"c4": {last: 2.0, first: None, MEASURES[1]: 1.0}}))
    assert record.quality == {"c4": [None, 1.0, *[None] * (len(MEASURES) - 3), 2.0]}


def test_structure_goes_by_name_and_comes_back_in_order() -> None:
    """Structure measures of a line may have any order; absent means unknown, and a line without any has none."""
    names = structure_names.MEASURES
    record = features_of(FeaturesLine(url="u", site="s", structure={names[-1]: 2.0, names[0]: 1.0}))
    assert record.structure == [1.0, *[None] * (len(names) - 2), 2.0]
    assert structure_by_name(record.structure[:2]) == {**dict.fromkeys(names), names[0]: 1.0}  # of an older version
    older = features_of(FeaturesLine(url="u", site="s"))
    assert (older.structure, structure_by_name(older.structure)) == ([], {})


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        ({"measures": {"tokens": "many"}}, 'measures: tokens is "many", not a number'),
        ({"blocks": [[0, -1, 0, 0]]}, "blocks are rows of four numbers from 0"),
        ({"blocks": [[0, 1]]}, "blocks"),
        ({"template_lines": [1]}, "template_lines are numbers from 0 to 0, the last line of the text"),
        ({"template_lines": [-1]}, "template_lines are numbers from 0 to 0"),
        ({"measures": []}, "measures"),
        ({"quality": {"main": {"wrods": 1}}}, "'wrods' does not exist"),
        ({"quality": {"mian": {"words": 1}}}, "'mian' does not exist"),
        ({"quality": {"main": {"words": "many"}}}, "quality"),
        ({"structure": {"lniks": 1}}, "structure: 'lniks' does not exist"),
        ({"structure": {"links": "many"}}, "structure"),
    ],
)
def test_features_that_cannot_be_judged_are_skipped(
    farmwatch: Runner, tmp_path: Path, wrong: dict[str, Any], said: str
) -> None:
    """Features of a wrong form are a bad line, not a traceback or a verdict."""
    file = _write(tmp_path, {"url": "u", "site": "s", **wrong})
    ran = farmwatch("lab", "judge", file, file)
    assert (ran.code, ran.out) == (Exit.PROBLEM, "")
    assert [line.startswith(f"{file}: line 1: ") and said in line for line in ran.err.splitlines()] == [True, True]


@pytest.mark.parametrize("text", [{}, {"text": ""}, {"text": " \n"}])
def test_features_without_a_text_are_no_article(farmwatch: Runner, tmp_path: Path, text: dict[str, str]) -> None:
    """A line without a text and an error counts as a page without main text, and is not passed on."""
    file = _write(tmp_path, {"url": "u", "site": "s", "measures": {"url_path": "/"}, **text})
    (verdict,) = farmwatch("lab", "judge", "--ruleset", "notes", file).lines
    assert (verdict["verdict"], verdict["failed"]) == ("dropped", ["extracted"])
    assert verdict["rules"][0]["value"] == "no_text"
    assert farmwatch("lab", "judge", "--articles", "--ruleset", "notes", file).out == ""


def test_tally_and_estimate_end_in_a_rate(farmwatch: Runner, tmp_path: Path) -> None:
    """Flags in page order become site verdicts in the order of sites, and those the judged share."""
    flags = [{"site": "farm", "flag": True, "score": 1.0, "detector": "lite-ngram/x"} for _ in range(12)]
    flags += [{"site": "paper", "flag": False, "score": 0.1, "detector": "lite-ngram/x"} for _ in range(9)]
    flags += [{"site": "few", "flag": None, "score": None, "detector": "lite-ngram/x"}]
    ran = farmwatch("lab", "tally", _write(tmp_path, *flags))
    sites = ran.lines
    assert [(site["site"], site["verdict"], site["pages"]) for site in sites] == [
        ("farm", "llm", 12),
        ("paper", "human", 9),
        ("few", "unclassifiable", 1),
    ]
    assert {"site", "verdict", "pages_used", "pages", "evidence"} <= set(sites[0])
    rate = farmwatch("lab", "estimate", _write(tmp_path, *sites)).json
    counts = {"llm": 1, "classifiable": 2, "unclassifiable": 1, "sites": 3}
    assert rate["judged_share"] == 0.5 and rate.items() >= counts.items()


def test_score_keeps_the_order_and_passes_the_site_through(farmwatch: Runner, tmp_path: Path) -> None:
    """A text that is too short has null and the reason; site and url are unchanged; the warning is printed."""
    text = " ".join(["The two of them walked slowly along the wall of the old garden that morning."] * 30)
    lines = [
        {"id": "1", "text": "too short", "site": "a"},
        {"id": "2", "text": text, "site": "b", "url": "https://b.example/", "other": 1},
        {"id": "3"},
    ]
    ran = farmwatch("lab", "score", _write(tmp_path, *lines))
    short, scored = ran.lines
    assert list(short) == ["id", "detector", "score", "p_llm", "flag", "abstain", "tokens", "site"]
    assert (short["id"], short["flag"], short["abstain"] != "", short["site"]) == ("1", None, True, "a")
    assert (scored["id"], scored["url"], scored["abstain"]) == ("2", "https://b.example/", "")
    assert scored["flag"] == (scored["p_llm"] > 0.95)
    assert scored["detector"].startswith("lite-ngram/")
    assert "indicative only" in ran.err
    assert "line 3: " in ran.err
    assert ran.code == Exit.PROBLEM


def test_ids_may_be_whole_numbers(farmwatch: Runner, tmp_path: Path) -> None:
    """An id is read as text, even if written as a number; fractions, booleans and null are bad lines."""
    lines = [{"id": value, "text": "x"} for value in (17, "17", 2**64, 1.5, True, None)]
    ran = farmwatch("lab", "score", _write(tmp_path, *lines))
    assert [json.loads(line)["id"] for line in ran.out.splitlines()] == ["17", "17", str(2**64)]
    places = [line.split(":")[0] for line in ran.err.splitlines() if line.startswith("line")]
    assert (ran.code, places) == (Exit.PROBLEM, ["line 4", "line 5", "line 6"])


def test_score_is_the_same_in_several_processes(farmwatch: Runner, tmp_path: Path) -> None:
    """With several processes, order, output and line numbers of bad lines equal those of one process."""
    texts = ["word " * (n % 3 * 150) + "The two of them walked along the wall of the garden. " * 20 for n in range(7)]
    lines = [{"id": str(n), "text": texts[n % 7], "site": f"s{n % 5}"} for n in range(600)]
    file = _write(tmp_path, *lines[:300], {"id": "no text"}, *lines[300:])
    one, two = (farmwatch("lab", "score", "-j", jobs, file) for jobs in ("1", "2"))
    assert [line["id"] for line in two.lines] == [line["id"] for line in lines]
    assert two == one
    assert "line 301: " in two.err
    assert farmwatch("lab", "score", "-j", "-1", file).code == Exit.USAGE


def _flags(*detectors: str) -> list[dict[str, Any]]:
    """A line per detector ("" = none named); each site has its detector's name."""
    named = [{"site": name.partition("/")[0], "flag": True, "score": 1, "detector": name} for name in detectors]
    return [line if line["detector"] else {"site": "", "flag": True, "score": 1} for line in named]


@pytest.mark.parametrize(
    ("detectors", "chosen", "said"),
    [
        (["x/1", "y/1", "x/1"], "", ["scores of x/1 and y/1", "--detector"]),
        (["x/1", "x/2"], "x", ["x/1", "x/2"]),
        (["x/1", "x/2"], "z", ["x/1", "x/2"]),
    ],
)
def test_scores_of_two_detectors_are_never_pooled(
    farmwatch: Runner, tmp_path: Path, detectors: list[str], chosen: str, said: list[str]
) -> None:
    """Two threshold sets are two detectors: one error names them, and there is no verdict."""
    ran = farmwatch("lab", "tally", "--detector", chosen, _write(tmp_path, *_flags(*detectors)))
    assert (ran.code, ran.out, len(ran.err.splitlines())) == (Exit.USAGE, "", 1)
    assert all(part in ran.err for part in said)


@pytest.mark.parametrize(
    ("detectors", "chosen", "of", "pages", "said"),
    [
        (["y/1", "x/1", "y/1", "x/1", "x/1"], "x", "x/1", 3, "2 scores of other detectors than x/1 passed over\n"),
        (["y/1", "x/1", "y/1", "x/1", "x/1"], "x/1", "x/1", 3, "2 scores of other detectors than x/1 passed over\n"),
        (["", ""], "m/w", "m/w", 2, ""),
        (["", "m/w", "x/1", ""], "m/w", "m/w", 3, "1 score of other detectors than m/w passed over\n"),
        ([""], "", "lite-ngram", 1, ""),
        (["", "x/1", "x/1"], "", "x/1", 2, "line 1: score of a detector that is not named, not of x/1\n"),
    ],
)
def test_one_of_several_detectors_is_chosen(
    farmwatch: Runner, tmp_path: Path, detectors: list[str], chosen: str, of: str, pages: int, said: str
) -> None:
    """--detector selects lines by name or identity, and lines without a detector; others are only counted.

    Without it, the only named detector is meant, and lines without one are bad.
    """
    ran = farmwatch("lab", "tally", "--detector", chosen, _write(tmp_path, *_flags(*detectors)))
    assert (ran.code, ran.err) == (Exit.PROBLEM if said.startswith("line") else Exit.OK, said)
    assert {site["detector"] for site in ran.lines} == {of}
    assert sum(site["pages"] for site in ran.lines) == pages


def test_error_counts_of_estimate_come_together(farmwatch: Runner, tmp_path: Path) -> None:
    """Three of four counts are a usage error; all four correct the rate; without counts it is marked as uncorrected."""
    file = _write(tmp_path, {"verdict": "llm"}, {"verdict": "human"})
    counts = ["--llm-sites", "50", "--llm-found", "49", "--human-sites", "50", "--human-cleared", "50"]
    assert farmwatch("lab", "estimate", file, *counts[:6]).code == Exit.USAGE
    assert farmwatch("lab", "estimate", file, *counts).json["judged_method"] == "corrected"
    assert "uncorrected" in farmwatch("lab", "estimate", file).err


@pytest.mark.parametrize("kind", ["page", "verdict"])
def test_lines_of_another_pipe_are_not_judged(farmwatch: Runner, tmp_path: Path, kind: str) -> None:
    """A line with neither measures nor the error of an extraction is skipped: a page, a verdict."""
    failed = {"url": "https://a.example/e", "site": "a.example", "extract": {"path": "none", "error": "no_text"}}
    (verdict,) = farmwatch("lab", "judge", _write(tmp_path, failed)).lines
    assert verdict["failed"] == ["extracted"]
    judged = farmwatch("lab", "judge", _write(tmp_path, _page("/x", site="a.example") if kind == "page" else verdict))
    assert (judged.code, judged.out) == (Exit.PROBLEM, "")
    assert "line 1: features that cannot be judged: no measures" in judged.err and "lab measure" in judged.err


def test_chunk_prints_the_cuts(farmwatch: Runner, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The lengths sum to the file's bytes, none above the maximum; without a file, standard input is read."""
    data = bytes(range(256)) * 20
    (tmp_path / "data").write_bytes(data)
    lengths = farmwatch("lab", "chunk", "data").json["lengths"]
    assert sum(lengths) == len(data)
    assert max(lengths) <= 1024
    with (tmp_path / "data").open() as stdin:
        monkeypatch.setattr("sys.stdin", stdin)
        assert farmwatch("lab", "chunk").json == {"lengths": lengths}


def test_pipes_read_standard_input_and_mind_a_closed_reader(tmp_path: Path) -> None:
    """`-` is standard input, and a closed reader ends the pipe quietly."""
    environment = {**os.environ, "HOME": str(tmp_path), "PYTHONPATH": str(ROOT)}
    line = json.dumps({"url": "https://a.example/x", "site": "a.example", "measures": {"tokens": 7}}) + "\n"
    done = subprocess.run(
        ["bash", "-c", f"set -o pipefail; {sys.executable} -m farmwatch lab judge - | head -n 1"],
        input=line * 3000, cwd=tmp_path, env=environment, capture_output=True, text=True,
    )  # fmt: skip
    assert (done.returncode, done.stderr) == (0, "")
    assert json.loads(done.stdout)["site"] == "a.example"


@pytest.mark.parametrize(
    ("arguments", "code", "said"),
    [
        (["lab", "judge", "absent.jsonl"], Exit.UNAVAILABLE, "absent.jsonl: No such file or directory"),
        (
            ["lab", "judge", "--ruleset", "defualt", "in.jsonl"],
            Exit.USAGE,
            "known: c4, default, dolma, fineweb, gopher, notes, notes-run, whole-web; did you mean 'default'",
        ),
        (["lab", "score", "--detector", "falcon", "in.jsonl"], Exit.USAGE, "lite-ngram"),
    ],
)
def test_what_is_not_there_is_told_before_the_first_line(
    farmwatch: Runner, tmp_path: Path, arguments: list[str], code: Exit, said: str
) -> None:
    """A missing file is exit 3; an unknown ruleset or detector is a usage error that lists the known ones."""
    _write(tmp_path)
    ran = farmwatch(*arguments)
    assert (ran.code, said in ran.err) == (code, True), ran.err
