"""`farmwatch lab calibrate`: labels in three forms, its files, its output, and its refusals."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from xml.etree import ElementTree

import numpy as np
import pytest
import zstandard
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from farmwatch.labels.label_lines import LabelFile
from scoring.errors import PoisonText
from scoring.interface import TextScore
from scoring.thresholds.threshold_set import load_thresholds
from stream.text.user_errors import Exit, FarmwatchError
from tests.support.front_door import Ran, Runner
from tests.support.sizes import LONG

BASE = "binoculars/observer+performer@0a1b2c3d/float32/512"
IDENTITY = f"{BASE}/uncalibrated"


def rows(human: int = 400, llm: int = 200, *, sites: bool = True) -> list[dict[str, object]]:
    """Scores of a pair, drawn from two normal laws; LLM texts have lower scores."""
    rng = np.random.default_rng(11)
    return [
        {
            "label": label,
            "detector": IDENTITY,
            "score": round(float(rng.normal(0.8 if label == "llm" else 1.0, 0.06)), 4),
            "words": (100, 250, 500, 1000)[number % 4],
            "genre": ("news", "blog", "guide")[number % 3],
            **({"site": f"{label[0]}{number % 20}.example"} if sites else {}),
        }
        for number, label in enumerate(["human"] * human + ["llm"] * llm)
    ]


def jsonl(path: Path, lines: Sequence[object]) -> Path:
    """A file of JSON lines."""
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))
    return path


@pytest.fixture
def labels(tmp_path: Path) -> Path:
    """600 labelled scores."""
    return jsonl(tmp_path / "labels.jsonl", rows())


def run(farmwatch: Runner, labels: Path, *more: str | Path) -> Ran:
    """Run the command with a rate that these few labels support."""
    return farmwatch("lab", "calibrate", "--labels", labels, "--fpr", "0.05", *more)


def test_writes_a_set_that_scoring_takes(farmwatch: Runner, labels: Path, tmp_path: Path) -> None:
    """The set file loads for this detector, has the report's identity, and is named by the usage lines."""
    ran = run(farmwatch, labels, "--name", "mine", "--out", tmp_path / "made" / "here")
    made = load_thresholds(str(tmp_path / "made" / "here" / "mine.json"), BASE)
    report = json.loads((tmp_path / "made" / "here" / "mine.report.json").read_text())
    assert made.llm_below and 0.8 < made.threshold < 1.0 and made.site_test is not None
    assert report["identity"] == f"{BASE}/{made.tag}" and report["identity"] in ran.out
    assert report["thresholds"]["threshold"] == made.threshold
    assert f'binoculars = "{tmp_path}/made/here/mine.json"' in ran.out and "[tally.sprt]" not in ran.out


def test_a_set_without_a_site_test_asks_for_its_numbers(farmwatch: Runner, tmp_path: Path) -> None:
    """Without them TALLY refuses a pair's own threshold; a detector that has a test by default needs none."""
    for detector, asks in ((IDENTITY, True), ("other/1", False)):
        lines = [{**row, "detector": detector} for row in rows(sites=False)]
        ran = run(farmwatch, jsonl(tmp_path / "labels.jsonl", lines), "--name", "mine", "--force")
        assert (ran.code, "[tally.sprt]" in ran.out) == (0, asks)


def test_json_is_the_report(farmwatch: Runner, labels: Path) -> None:
    """--json prints one document: the report as in its file, and the paths of the files."""
    ran = run(farmwatch, labels, "--json")
    told = ran.json
    assert told.pop("files") == {form: f"calibrated.{form}" for form in ("json", "report.json", "svg")}
    assert told == json.loads(Path("calibrated.report.json").read_text())


def test_never_writes_over_a_file_unasked(farmwatch: Runner, labels: Path, tmp_path: Path) -> None:
    """A second run is refused before any work and names the files; --force overwrites them."""
    run(farmwatch, labels)
    before = (tmp_path / "calibrated.json").read_bytes()
    again = farmwatch("lab", "calibrate", "--labels", labels, "--fpr", "0.1")
    assert again.code == 2 and "calibrated.json" in again.err and "--force" in again.err
    assert (tmp_path / "calibrated.json").read_bytes() == before
    forced = farmwatch("lab", "calibrate", "--labels", labels, "--fpr", "0.1", "--force")
    assert forced.code == 0 and (tmp_path / "calibrated.json").read_bytes() != before


def test_csv_with_named_columns_is_the_same(farmwatch: Runner, labels: Path, tmp_path: Path) -> None:
    """A table with other column names, and 0 and 1 as labels, gives the same set."""
    lines = ["label,site,generated,words,genre,measured"]  # the column `label` is ignored
    lines += [
        f"human,{row['site']},{int(row['label'] == 'llm')},{row['words']},{row['genre']},{row['score']}"
        for row in rows()
    ]
    table = tmp_path / "scores.csv"
    table.write_text("\n".join(lines) + "\n")
    columns = ("--score-column", "measured", "--label-column", "generated")
    ran = run(farmwatch, table, "--detector", IDENTITY, "--name", "table", *columns)
    assert ran.code == 0, ran.err
    run(farmwatch, labels, "--name", "lines")
    one, other = (json.loads(Path(f"{name}.report.json").read_text()) for name in ("table", "lines"))
    for told in (one, other):
        told.pop("identity"), told["thresholds"].pop("name")
    assert one == other


@pytest.mark.parametrize(
    ("header", "code", "told"),
    [
        ("site,generated,binoculars", Exit.USAGE, ("'generated', 'binoculars'", "--label-column")),
        ("label,generated,binoculars", Exit.USAGE, ("'generated', 'binoculars'", "--score-column")),
        ("label,score,score", Exit.UNAVAILABLE, ("several columns 'score'",)),
    ],
)
def test_csv_columns_that_lack_or_stand_twice_are_told(
    farmwatch: Runner, tmp_path: Path, header: str, code: Exit, told: tuple[str, ...]
) -> None:
    """For a missing column, the message has the file's columns and the option that names one: that is wrong usage."""
    table = tmp_path / "scores.csv"
    table.write_text(f"{header}\nhuman,0,1.0\n")
    ran = run(farmwatch, table, "--detector", IDENTITY)
    assert ran.code == code and all(part in ran.err for part in told)


def test_bad_lines_are_told_and_skipped(farmwatch: Runner, tmp_path: Path) -> None:
    """Each bad line is reported with its number, the others count, and the exit code is 1."""
    bad = [
        ({"label": "robot", "score": 1.0, "detector": IDENTITY}, "label is human or llm, not 'robot'"),
        ({"label": "human"}, "neither a text nor a score"),
        ({"text": "no label"}, "label"),
        ({"label": "llm", "score": "0.8", "detector": IDENTITY}, "score"),
        ({"label": "llm", "p_llm": 7, "score": 1, "detector": IDENTITY}, "p_llm is 7"),
        ({"label": "llm", "score": 1e300, "detector": IDENTITY}, "score is 1e+300, not a number within"),
        ({"label": "llm", "score": -1000001, "detector": IDENTITY}, "score is -1e+06, not"),
        ({"label": "llm", "words": -5, "score": 1, "detector": IDENTITY}, "words is -5"),
    ]
    path = jsonl(tmp_path / "labels.jsonl", [*(line for line, _ in bad), *rows()])
    ran = run(farmwatch, path)
    assert ran.code == 1
    for number, (_, reason) in enumerate(bad, 1):
        (told,) = [line for line in ran.err.splitlines() if line.startswith(f"line {number}: ")]
        assert reason in told
    assert "400" in ran.out and Path("calibrated.json").exists()


def test_a_file_without_a_label_is_an_error(farmwatch: Runner, tmp_path: Path) -> None:
    """Without labels, the message names the kind of line, or `review label`; a few unlabelled lines are skipped."""
    texts = [{"text": f"text {number}"} for number in range(30)]
    ran = run(farmwatch, jsonl(tmp_path / "texts.jsonl", texts))
    assert ran.code == 3 and "texts.jsonl: no line has a label: a line is {label, text} or" in ran.err
    sample = jsonl(tmp_path / "flips.jsonl", [text | {"fetch_id": str(text)} for text in texts])
    assert f"`farmwatch review label {sample}` asks for those" in run(farmwatch, sample).err
    mixed = run(farmwatch, jsonl(tmp_path / "mixed.jsonl", [*texts, {"label": "llm", "text": "a"}, texts[0]]))
    lines = mixed.err.splitlines()
    assert lines[:20] == [f"line {number}: no label" for number in range(1, 21)]
    assert "11 more lines skipped like these: no label" in lines


def test_scores_without_an_owner_are_refused(farmwatch: Runner, tmp_path: Path) -> None:
    """Scores without a detector are refused, and the message names the option for it."""
    path = jsonl(tmp_path / "labels.jsonl", [{k: v for k, v in row.items() if k != "detector"} for row in rows()])
    ran = run(farmwatch, path)
    assert ran.code == 2 and "line 1" in ran.err and "--detector IDENTITY" in ran.err
    assert run(farmwatch, path, "--detector", IDENTITY).code == 0


@pytest.mark.parametrize(("option", "value"), [("--fpr", "0"), ("--fpr", "nan"), ("--name", "A B"), ("--name", "../x")])
def test_senseless_options_are_refused(farmwatch: Runner, labels: Path, option: str, value: str) -> None:
    """A rate out of range, or a name that is no part of an identity or leads out of the folder: exit code 2."""
    ran = farmwatch("lab", "calibrate", "--labels", labels, option, value)
    assert ran.code == 2 and option in ran.err


class _Words:
    """Scores a text, without a flag, by its first word; abstains from an empty one."""

    identity = IDENTITY
    warning = ""

    def score(self, texts: Sequence[str]) -> list[TextScore]:
        return [TextScore(score=float(text.split()[0])) if text else TextScore(abstain="empty") for text in texts]


@pytest.fixture
def words(monkeypatch: pytest.MonkeyPatch) -> None:
    """Replaces the configured detector."""
    monkeypatch.setattr("farmwatch.commands.lab.calibrate.load_detectors", lambda configured: [_Words()])
    monkeypatch.setattr("farmwatch.commands.lab.calibrate.detector_identities", lambda configured: [IDENTITY])


def test_texts_are_scored(farmwatch: Runner, words: None, tmp_path: Path) -> None:
    """Texts give the same set as their scores; the domain is the genre, words are counted, abstentions reported."""
    scored = rows(sites=False)
    texts: list[dict[str, object]] = [
        {"label": row["label"], "domain": row["genre"], "text": f"{row['score']} and {number}"}
        for number, row in enumerate(scored)
    ]
    texts += [{"label": label, "text": ""} for label in ("human", "human", "llm")]
    ran = run(farmwatch, jsonl(tmp_path / "texts.jsonl", texts), "--name", "texts")
    assert ran.code == 0, ran.err
    assert "2 human and 1 LLM texts on which the detector abstains" in ran.out
    assert "0-149 words\t400" in ran.out and "\nguide\t" in ran.out
    run(farmwatch, jsonl(tmp_path / "scores.jsonl", scored), "--name", "scores")
    one, other = (json.loads(Path(f"{name}.json").read_text()) for name in ("texts", "scores"))
    assert one["threshold"] == other["threshold"] and one["curve"] == other["curve"]


def test_a_text_that_the_detector_cannot_take_costs_itself_only(
    farmwatch: Runner, words: None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A text that fails on the device is reported and skipped; the others are scored once; exit code 1."""

    class Poisoned(_Words):
        def score(self, texts: Sequence[str]) -> list[TextScore]:
            if any("poison" in text for text in texts):
                raise PoisonText("a text that brings the device down")
            return super().score(texts)

    monkeypatch.setattr("farmwatch.commands.lab.calibrate.load_detectors", lambda configured: [Poisoned()])
    lines = [{"label": row["label"], "text": f"{row['score']} {number}"} for number, row in enumerate(rows())]
    lines[70] = {"label": "human", "text": "1.0 poison"}
    ran = run(farmwatch, jsonl(tmp_path / "texts.jsonl", lines), "--json")
    assert ran.code == 1 and "line 71: a text that brings the device down" in ran.err
    told = ran.json["all"]
    assert (told["false_positives"]["total"], told["sensitivity"]["total"]) == (399, 200)


def test_lite_ngram_lines_need_its_probability(farmwatch: Runner, tmp_path: Path) -> None:
    """lite-ngram's threshold is on p_llm: a line with only the margin is skipped, and its own curve is kept."""
    rng = np.random.default_rng(0)
    lines: list[dict[str, object]] = [
        {"label": label, "score": 1.0, "p_llm": float(rng.beta(*law))}
        for label, law in (("human", (1, 6)), ("llm", (6, 1)))
        for _ in range(200)
    ]
    lines += [{"label": "llm", "score": 3.0}, {"label": "llm", "score": None, "abstain": "too_short"}]
    lines = [{"detector": "lite-ngram/12345678/p0.95", **line} for line in lines]
    ran = run(farmwatch, jsonl(tmp_path / "labels.jsonl", lines), "--name", "mine")
    assert ran.code == 1 and "line 401: no p_llm" in ran.err and "0 human and 1 LLM texts on which" in ran.out
    made = json.loads(Path("mine.json").read_text())
    assert (made["number"], made["curve"], made["llm_below"]) == ("p_llm", None, False)
    assert made["detector"] == "lite-ngram/12345678"


def test_the_plot_has_the_groups(farmwatch: Runner, labels: Path) -> None:
    """The SVG is the same each time; it has a strip for each group, with its mean p_llm as a line."""
    drawn = []
    for _ in range(2):
        assert farmwatch("lab", "calibrate", "--labels", labels, "--fpr", "0.05", "--name", "one", "--force").code == 0
        drawn.append(Path("one.svg").read_bytes())
    assert drawn[0] == drawn[1]
    groups = json.loads(Path("one.report.json").read_text())["reliability"]["groups"]
    marks = [element for element in ElementTree.fromstring(drawn[0]).iter() if element.get("class") == "mark"]
    assert [mark.get("x1") for mark in marks] == [f"{100 * group['mean']:.2f}%" for group in groups]


@pytest.mark.parametrize(
    "name",
    ["binoculars/\x1b[31mx/float32/512/a", 'binoculars/a"]\n[crawl]/float32/512/a', "binoculars/x+y@1/float32/512"],
)
def test_hostile_identities_are_bad_lines(farmwatch: Runner, tmp_path: Path, name: str) -> None:
    """Escapes, quotes, line ends, formulas and markup in an identity are reported in plain characters."""
    path = jsonl(tmp_path / "labels.jsonl", [{"label": "llm", "score": 1.0, "detector": name}, *rows()])
    ran = run(farmwatch, path)
    assert ran.code == 1 and "line 1: detector: " in ran.err and "Traceback" not in ran.err
    assert all(character.isprintable() or character in "\n\t" for character in ran.out + ran.err)
    path = jsonl(tmp_path / "nobody.jsonl", [{"label": "llm", "score": 1.0}])
    said = run(farmwatch, path, "--detector", name, "--name", "other")
    assert said.code == 2 and "is no detector's identity" in said.err


def test_copies_of_a_score_are_told_by_their_id(farmwatch: Runner, labels: Path, tmp_path: Path) -> None:
    """Scores with an id count once per id, and those without an id each time; an id with two labels is bad."""
    twice = [{"id": f"t{number}", **row} for number, row in enumerate(rows())] * 2
    other = {**twice[0], "label": "llm"}
    ran = run(farmwatch, jsonl(tmp_path / "twice.jsonl", [*twice, other]), "--name", "twice")
    assert ran.code == 1 and "600 lines left out" in ran.err and "line 1201: the same text as line 1" in ran.err
    run(farmwatch, labels, "--name", "once")
    one, two = (json.loads(Path(f"{name}.report.json").read_text()) for name in ("once", "twice"))
    assert one["all"] == two["all"]


@settings(max_examples=150, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(body=st.binary(max_size=300) | st.text(alphabet='{}[]",:labelhumant01.\n', max_size=300).map(str.encode))
@pytest.mark.parametrize("suffix", ["jsonl", "csv"])
def test_any_bytes_are_read_or_told(tmp_path: Path, suffix: str, body: bytes) -> None:
    """Any bytes are used as labels or reported, never raised."""
    path = tmp_path / f"labels.{suffix}"
    path.write_bytes((b"label,text,score\n" if suffix == "csv" else b"") + body)
    file = LabelFile(path)
    try:
        found = list(file)
    except FarmwatchError:
        return
    assert all(isinstance(line.llm, bool) for line in found)
    assert file.end() in (Exit.OK, Exit.PROBLEM)


@pytest.mark.data
def test_labelled_texts_as_they_lie(farmwatch: Runner, shared: Path, tmp_path: Path) -> None:
    """The built-in detector on texts of a compressed file (every third): its threshold at 1% finds most LLM texts."""
    labels = shared / "data" / "texts" / "dev.jsonl.zst"
    if not LONG:
        packed = zstandard.ZstdDecompressor().decompressobj()
        lines = packed.decompress(labels.read_bytes()).splitlines(keepends=True)
        labels = tmp_path / "some.jsonl.zst"
        labels.write_bytes(zstandard.compress(b"".join(lines[::3])))
    ran = farmwatch("lab", "calibrate", "--labels", labels, "--json")
    told = ran.json
    assert ran.code == 0, ran.err
    assert 0.5 < told["thresholds"]["threshold"] < 1
    assert told["all"]["sensitivity"]["share"] > 0.6 and told["all"]["auroc"]["value"] > 0.97
    assert {part["name"] for part in told["genres"]} >= {"news", "story", "web"}


def test_scores_by_a_name_whose_models_are_elsewhere_want_the_identity(farmwatch: Runner, tmp_path: Path) -> None:
    """A column of scores has no identity: the detector's name gives one only if its models are here."""
    path = tmp_path / "labels.csv"
    path.write_text("label,binoculars\nhuman,1.0\nllm,0.7\n")
    setting = ["--set", "score.pair.observer=/nowhere/observer"]
    ran = run(farmwatch, path, "--score-column", "binoculars", "--detector", "binoculars", *setting)
    assert ran.code == 2 and "whole identity" in ran.err and "/nowhere/observer" in ran.err
