"""The command `compare`: output, files and refusals."""

from __future__ import annotations

import itertools
import json
import re
from collections.abc import Mapping
from contextlib import closing
from pathlib import Path
from typing import Any

import msgspec
import pytest

from farmwatch.commands.runs.compare_report import show
from farmwatch.labels.judgements import LabelSample
from farmwatch.runs.comparison_words import as_json
from farmwatch.share.words import text_of
from filters.rules.ruleset import load_ruleset, parse_ruleset
from replay.compare.comparison import Disagreement, TextFlags
from stream.opening import open_log
from stream.schema.records import Features
from tests.support.front_door import DETECTOR, Runner
from tests.support.runs.comparisons import made
from tests.support.runs.two_runs import RULESETS, A, B, begin, page, put_features, put_run

EVIL = "Steer \x1b[31mthe\x07 terminal.\n<script>alert(1)</script>\u202e"
PAGES = [page(n, 70 if n % 3 == 0 else 500, site=f"s{n % 20}.example", text=f"{EVIL} {n}") for n in range(60)]
SiteKinds = Mapping[str, str] | tuple[()]
SITES = {f"s{n}.example": "llm" if n < 5 else "human" for n in range(20)}


def log_with(folder: Path, pages: list[Features], a: SiteKinds = (), b: SiteKinds = (), **row: Any) -> str:
    """URL of a log with the two runs over these pages."""
    url = f"sqlite:{folder / 'log'}"
    with closing(open_log(url)) as log:
        begin(log)
        put_features(log, pages)
        put_run(log, A, RULESETS[A], pages, a, **row)
        put_run(log, B, RULESETS[B], pages, b, **row)
    return url


@pytest.fixture
def two_runs(tmp_path: Path, no_weights: None) -> str:
    return log_with(tmp_path, PAGES, SITES, {**SITES, "s7.example": "llm"}, detector=DETECTOR)


def test_the_tables_show_the_changes(farmwatch: Runner, two_runs: str) -> None:
    """Shares, counts, pages, sites, rules and the sample, on stdout, with exit code 0."""
    ran = farmwatch("compare", A, B, "--log", two_runs, "--sample", "2")
    assert ran.code == 0
    assert "LLM sites of classifiable ones\t25.0%\t30.0%\t+5.0\t" in ran.out
    assert "kept in A\t40\t20" in ran.out
    assert "human\t1\t14\t0\t0\t0" in ran.out
    assert "1 site with another verdict\n  s7.example: human -> llm, articles 3 -> 2\n" in ran.out
    assert "min_tokens\t>= 50\t>= 100\t0 (0)\t20 (20)" in ran.out
    assert "in force in A and not in B: language" in ran.out
    assert "language\t" not in ran.out and "duplicate_share\t" not in ran.out
    assert "2 other rules differ and flip nothing" in ran.out
    assert "2 of 20 flips, seed 0" in ran.out
    assert "B: dropped: min_tokens 70, needs >= 100" in ran.out
    assert "Steer" not in ran.out  # texts are printed only on request


def test_differences_of_different_windows_are_marked(capsys: pytest.CaptureFixture[str]) -> None:
    """If one run judged pages that the other did not, each difference has a star, with a line that explains it."""
    show(msgspec.structs.replace(made(), other_windows=True))
    shown = capsys.readouterr().out
    assert re.search(r"^share of LLM sites\t.*\t[-+]\d+\.\d \*\t", shown, re.MULTILINE), shown
    assert shown.count("* of different windows: not caused by the rules alone") == 1
    show(made())
    shown = capsys.readouterr().out
    assert "*" not in shown
    said_as_by_rate = {f"{name}: {text_of(side.estimate.remarks)}" for name, side in (("A", made().a), ("B", made().b))}
    assert said_as_by_rate <= set(shown.splitlines())


def test_pages_on_which_detectors_disagree_are_shown(capsys: pytest.CaptureFixture[str]) -> None:
    """Five pages with both scores, escaped, and the counts; of runs with one detector nothing."""
    page = Disagreement(
        url="https://a.example/\x1b[31m",
        site="a.example",
        page_id="p",
        fetch_id="f",
        text_digest="d",
        score_a=0.8125,
        score_b=-2.5,
        flagged_by="A",
    )
    compared = msgspec.structs.replace(
        made(), flags=TextFlags(both=40, a_only=9, b_only=1, neither=950, apart=[page] * 7)
    )
    show(compared)
    shown = capsys.readouterr().out
    counts = (
        "1,000 texts scored by both detectors: they agree on 990 (40 flagged, 950 not) and disagree on 10 (9 flagged"
    )
    assert f"{counts} in A only, 1 in B only)" in " ".join(shown.split())
    assert shown.count("flagged in A only, scores 0.8125 and -2.5") == 5 and "\x1b" not in shown
    assert "the 5 most decisive disagreements (--json has more)" in shown
    found = as_json(compared)["flags"]
    assert (found["agreeing"], found["disagreeing"], len(found["apart"])) == (990, 10, 7)
    show(made())
    assert "scored by both detectors" not in capsys.readouterr().out


def test_rules_that_neither_ruleset_has_in_force_are_not_shown(farmwatch: Runner, two_runs: str) -> None:
    """A rule that is disabled in one ruleset and absent in the other is not shown."""
    idle = parse_ruleset(f"{RULESETS[A].source}[rules.longest_block]\n", "idle")
    with closing(open_log(two_runs)) as log:
        put_run(log, "idle", idle, PAGES, SITES, detector=DETECTOR)
    ran = farmwatch("compare", "idle", B, "--log", two_runs)
    assert "longest_block" not in ran.out
    assert "in force in A and not in B: language" in ran.out


def test_a_sample_of_0_lists_no_strata(farmwatch: Runner, two_runs: str) -> None:
    """With --sample 0 the counts of each kind are omitted."""
    ran = farmwatch("compare", A, B, "--log", two_runs, "--sample", "0")
    assert "shown" not in ran.out and "0 of 20 flips" not in ran.out
    one = farmwatch("compare", A, B, "--log", two_runs, "--sample", "1").out
    assert "  20 were thrown out, first failed min_tokens: 1 shown" in one


def test_a_terminal_of_80_columns_is_enough(farmwatch: Runner, two_runs: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """No line is longer than 80 columns, except URLs and paths."""
    for name, value in (("COLUMNS", "80"), ("NO_COLOR", "1"), ("TERM", "xterm")):
        monkeypatch.setenv(name, value)
    monkeypatch.setattr("sys.stdout.isatty", lambda: True)
    ran = farmwatch("compare", A, B, "--log", two_runs)
    assert ran.code == 0 and "\x1b[31m" not in ran.out
    lines = re.sub(r"\x1b\[[0-9;]*m", "", ran.out).splitlines()
    assert any("LLM sites of classifiable" in line for line in lines)
    assert [line for line in lines if len(line) > 80] == []


def test_json_has_everything(farmwatch: Runner, two_runs: str) -> None:
    """One object: both runs, all tables, the sample with its texts, and the changes as text."""
    ran = farmwatch("compare", A, B, "--log", two_runs, "--json", "--sample", "3", "--seed", "4")
    found = ran.json
    assert (found["a"]["run"], found["b"]["run"], found["seed"]) == (A, B, 4)
    assert (found["a"]["classifiable"], found["b"]["llm"]) == (20, 6)
    assert found["pages"]["a_only_article"] == 20
    assert found["pages"]["common"] == 60
    assert found["sites"]["llm_table"] == [[5, 0], [1, 14]]
    assert found["changes"][1]["text"].startswith("LLM sites of classifiable ones: 25.0% to 30.0%, +5.0 points")
    assert [flip["text"].startswith("Steer \x1b[31m") for flip in found["sample"]] == [True] * 3
    assert "\x1b" not in ran.out
    assert found["warnings"][DETECTOR]
    again = farmwatch("compare", A, B, "--log", two_runs, "--json", "--sample", "3", "--seed", "4")
    assert again.out.split('"a"', 1)[1] == ran.out.split('"a"', 1)[1]


def test_label_reads_the_saved_sample(farmwatch: Runner, two_runs: str, tmp_path: Path) -> None:
    """--out writes a line for each flip, with its text and its stratum; `label` reads them."""
    saved = tmp_path / "flips.jsonl"
    ran = farmwatch("compare", A, B, "--log", two_runs, "--out", saved, "--sample", "5", "--seed", "3")
    assert f"{saved}: 5 flips" in ran.err
    lines = [json.loads(line) for line in saved.read_text().splitlines()]
    assert len(lines) == 5
    assert all(line["sample"] == {"seed": 3, "size": 5} for line in lines)
    assert all(line["stratum"] == {"flips": 20, "sampled": 5} for line in lines)
    assert all((line["run_a"], line["run_b"], line["verdict_a"]) == (A, B, "article") for line in lines)
    sample = LabelSample(saved)
    assert sample.exit == 0
    (tmp_path / "keys").write_text("a" * 5)
    out = tmp_path / "labels.jsonl"
    judged = farmwatch("review", "label", saved, "--out", out, "--answers", tmp_path / "keys").out
    steps = [line.partition("farmwatch ")[2] for line in judged.splitlines() if line.startswith("next: ")]
    assert steps == [
        *(f"runs show {run} --ruleset-text --log {two_runs} > {run}.toml" for run in (A, B)),
        f"rulesets evaluate {A}.toml {B}.toml --labels {out} --log {two_runs}",
    ]
    assert [page.fetch_id for page in sample.pages] == [line["fetch_id"] for line in lines]
    assert all(page.text is not None and page.text.startswith(EVIL) for page in sample.pages)


def test_a_saved_sample_names_a_shipped_ruleset_by_its_name(farmwatch: Runner, two_runs: str, tmp_path: Path) -> None:
    """A ruleset that `rulesets evaluate` finds by name is named; another text under that name is not."""
    with closing(open_log(two_runs)) as log:
        put_run(log, "shipped", load_ruleset("notes"), PAGES, SITES, detector=DETECTOR)
        put_run(log, "own", parse_ruleset(RULESETS[A].source, "notes"), PAGES, SITES, detector=DETECTOR)
    saved = tmp_path / "flips.jsonl"
    farmwatch("compare", "own", "shipped", "--log", two_runs, "--out", saved)
    line = json.loads(saved.read_text().partition("\n")[0])
    assert (line["ruleset_a"], line["ruleset_b"], line["log"]) == ("own.toml", "notes", two_runs)


def test_the_order_of_a_saved_sample_reveals_no_verdict(farmwatch: Runner, tmp_path: Path, no_weights: None) -> None:
    """Kinds of flips do not take turns, nor do frequent kinds come first; a larger sample keeps the order."""
    pages = [page(n, 70, site=f"s{n % 9}.example") for n in range(600)]
    pages += [page(1000 + n, language="de", site=f"s{n % 9}.example") for n in range(30)]
    url = log_with(tmp_path, pages)

    def saved(sample: int) -> list[dict[str, str]]:
        file = tmp_path / f"{sample}.jsonl"
        assert farmwatch("compare", A, B, "--log", url, "--out", file, "--sample", str(sample)).code == 0
        return [json.loads(line) for line in file.read_text().splitlines()]

    small, large = saved(40), saved(60)
    kinds = [line["kind"] for line in large]
    assert kinds.count("in") == kinds.count("out") == 30
    assert 20 <= sum(one != other for one, other in itertools.pairwise(kinds)) <= 40  # 59 in turns, 29.5 expected
    assert 9 <= kinds[:30].count("in") <= 21  # 15 expected
    names = [line["fetch_id"] for line in small]
    assert [line["fetch_id"] for line in large if line["fetch_id"] in names] == names


@pytest.mark.parametrize(
    ("more", "said"), [(["--sample", "1001"], "--sample. Must be <= 1000"), (["--seed", "-1"], "--seed. Must be >= 0")]
)
def test_numbers_out_of_range_are_refused(farmwatch: Runner, two_runs: str, more: list[str], said: str) -> None:
    """The message has the option and its bound; exit code 2."""
    ran = farmwatch("compare", A, B, "--log", two_runs, *more)
    assert (ran.code, said in ran.err) == (2, True)


def test_missing_things_are_reported(farmwatch: Runner, two_runs: str, tmp_path: Path) -> None:
    """An unknown run is a problem (1), a missing log or folder is 3; a file that exists is not overwritten (2)."""
    unknown = farmwatch("compare", A, "nobody", "--log", two_runs)
    assert (unknown.code, "there is no run 'nobody'" in unknown.err) == (1, True)
    (tmp_path / "mine").write_text("mine")
    for file, code, said in (("mine", 2, "exists: name another file"), ("no/file.jsonl", 3, "there is no folder")):
        ran = farmwatch("compare", A, B, "--log", "sqlite:/no/such/log", "--out", tmp_path / file)
        assert (ran.code, said in ran.err) == (code, True)  # before the log is read
    assert (tmp_path / "mine").read_text() == "mine"
    assert farmwatch("compare", A, B, "--log", f"sqlite:{tmp_path / 'nothing'}").code == 3
