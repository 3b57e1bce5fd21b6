"""`tally` by each method, and `train-sites`, which creates the numbers of one."""

from __future__ import annotations

import json
import random
from pathlib import Path
from typing import Any

import msgspec
import pytest

from scoring.sites.deciles import read_numbers
from stream.text.user_errors import Exit
from tests.support.front_door import Runner

FALCON = "binoculars/falcon-7b+falcon-7b-instruct@0a1b2c3d/bfloat16/512/accuracy"


def lines_of(*sites: tuple[str, float, str], pages: int = 16, **more: Any) -> list[dict[str, Any]]:
    """Page scores around each site's mean."""
    rng = random.Random(1)
    return [
        {"site": name, "label": label, "score": rng.gauss(mean, 0.03), "words": 200, **more}
        for name, mean, label in sites
        for _ in range(pages)
    ]


SITES = [(f"{label}-{number}", mean, label) for label, mean in (("human", 1.0), ("llm", 0.7)) for number in range(6)]


def write(file: Path, lines: list[dict[str, Any]]) -> Path:
    """JSON lines into a file."""
    file.write_text("".join(json.dumps(line) + "\n" for line in lines))
    return file


@pytest.mark.parametrize("method", ["sprt", "deciles"])
def test_each_method_judges_falcons_scores(farmwatch: Runner, tmp_path: Path, method: str) -> None:
    """Clear sites get their verdict by every method, with the same fields, including `mixed`."""
    rows = lines_of(("farm", 0.85, "llm"), ("paper", 1.0, "human"), detector=FALCON)
    for row in rows:
        row["flag"] = row["score"] < 0.9015
    ran = farmwatch("tally", "--method", method, write(tmp_path / "in.jsonl", rows))
    found = ran.lines
    assert ran.code == Exit.OK
    fields = ["site", "verdict", "pages_used", "pages", "evidence", "mixed", "scored", "flagged"]
    assert list(found[0]) == [*fields, "detector", "method", "method_digest"]
    assert {(row["method"], len(row["method_digest"])) for row in found} == {(method, 8)}
    assert [(row["verdict"], row["mixed"], row["pages"]) for row in found] == [("llm", False, 16), ("human", False, 16)]


@pytest.mark.parametrize(("method", "detector"), [("sprt", "fast-detectgpt"), ("deciles", "lite-ngram")])
def test_a_method_without_numbers_says_what_to_do(
    farmwatch: Runner, tmp_path: Path, method: str, detector: str
) -> None:
    """A method without numbers gives one line with the detector and the command or setting to use, and no verdicts."""
    file = write(tmp_path / "in.jsonl", [{"site": "a", "flag": True, "score": 1.0}])
    ran = farmwatch("tally", "--method", method, "--detector", detector, file)
    assert (ran.code == Exit.OK, ran.out) == (False, "")
    assert detector in ran.err and ("farmwatch train-sites" in ran.err or "farmwatch calibrate" in ran.err)


def test_the_configurations_numbers_hold_in_the_pipe(farmwatch: Runner, tmp_path: Path) -> None:
    """[tally] chooses method and parameters in the pipe, as in the daemon."""
    config = tmp_path / "farmwatch.toml"
    config.write_text("[tally.sprt]\np0 = 0.01\np1 = 0.9\nmin_articles = 2\n")
    rows = [{"site": "a", "flag": True, "score": 1.0, "detector": "fast-detectgpt/x"} for _ in range(5)]
    ran = farmwatch("tally", "--config", config, write(tmp_path / "in.jsonl", rows))
    assert ran.json["pages_used"] == 3


def test_train_sites_makes_numbers_that_tally_takes(farmwatch: Runner, tmp_path: Path) -> None:
    """Scores of labelled sites give a file for deciles, which then judge new sites."""
    pytest.importorskip("sklearn")
    out = tmp_path / "numbers.json"
    lines = lines_of(*SITES, detector="fake/w@1/x")
    lines += [{"site": "s", "label": "human", "score": 9.0, "words": 20, "detector": "fake/w@1/x"}] * 20
    ran = farmwatch("train-sites", write(tmp_path / "train.jsonl", lines), "--out", out)
    assert ran.code == Exit.OK
    assert "6 human and 6 llm sites, 192 scores of fake/w" in ran.out
    assert "0 of 6 human sites and 0 of 6 llm sites wrong" in ran.out
    assert read_numbers(out.read_bytes(), "numbers").detector == "fake/w"
    new = write(tmp_path / "new.jsonl", lines_of(("farm", 0.7, "llm"), ("paper", 1.0, "human"), detector="fake/w@1/x"))
    new.write_text(new.read_text().replace('"label"', '"flag": null, "label"'))
    judged = farmwatch("tally", "--method", "deciles", "--deciles", out, new)
    assert [json.loads(line)["verdict"] for line in judged.out.splitlines()] == ["llm", "human"]
    refused = farmwatch(
        "tally",
        "--method",
        "deciles",
        "--deciles",
        out,
        "--detector",
        FALCON,
        write(new, [{"site": "a", "flag": True, "score": 1.0}]),
    )
    assert "fake/w, not of binoculars" in refused.err


def test_train_sites_reads_csv_and_writes_over_nothing(farmwatch: Runner, tmp_path: Path) -> None:
    """CSV is read by column names; without --force an existing file stays; JSON has the file's numbers."""
    pytest.importorskip("sklearn")
    file, out = tmp_path / "scores.csv", tmp_path / "numbers.json"
    rows = [f"{line['site']},{int(line['label'] == 'llm')},{line['score']}" for line in lines_of(*SITES)]
    file.write_text("site,generated,number\n" + "\n".join(rows) + "\n")
    command = ["train-sites", file, "--out", out, "--score-column", "number", "--label-column", "generated"]
    assert farmwatch(*command).code == Exit.USAGE
    assert farmwatch(*command, "--detector", "fake/w").code == Exit.OK
    before = out.read_bytes()
    assert farmwatch(*command, "--detector", "other/w").code == Exit.USAGE
    assert out.read_bytes() == before
    ran = farmwatch(*command, "--detector", "other/w", "--force", "--json")
    found = ran.json
    assert ran.code == Exit.OK and found["deciles"] == msgspec.json.decode(out.read_bytes())
    assert found["deciles"]["detector"] == "other/w"


@pytest.mark.parametrize("named_first", [False, True])
def test_train_sites_pools_no_named_scores_with_unnamed_ones(
    farmwatch: Runner, tmp_path: Path, named_first: bool
) -> None:
    """Lines with and without a detector are not pooled, unless --detector names it."""
    pytest.importorskip("sklearn")
    out = tmp_path / "numbers.json"
    parts = [lines_of(*SITES), lines_of(*SITES, detector="fake/w")]
    first, second = reversed(parts) if named_first else parts
    command = ["train-sites", write(tmp_path / "train.jsonl", first + second), "--out", out]
    ran = farmwatch(*command)
    assert ran.code != Exit.OK and not out.exists()
    assert "fake/w" in ran.err and "a detector that is not named" in ran.err
    ran = farmwatch(*command, "--detector", "fake/v")
    assert ran.code != Exit.OK and "fake/w" in ran.err and "fake/v" in ran.err
    assert farmwatch(*command, "--detector", "fake/w").code == Exit.OK


def test_train_sites_wants_sites_enough(farmwatch: Runner, tmp_path: Path) -> None:
    """Too few sites, or lines without a site, are reported with numbers, and nothing is written."""
    pytest.importorskip("sklearn")
    out = tmp_path / "numbers.json"
    lines = [*lines_of(*SITES[4:8], detector="fake/w"), {"label": "llm", "score": 1.0, "detector": "fake/w"}]
    ran = farmwatch("train-sites", write(tmp_path / "train.jsonl", lines), "--out", out)
    assert ran.code == Exit.PROBLEM and not out.exists()
    assert "line 65: no site" in ran.err and "2 human and 2 llm sites" in ran.err
