"""Detectors and site methods: what is configured, and the pipes `score`, `tally` and `train-sites`."""

from __future__ import annotations

import json
import random
from pathlib import Path
from typing import Any

import msgspec
import pytest

from farmwatch.config.config import Config, load
from farmwatch.config.detector_config import caveats
from farmwatch.doctor.checks import require_fit
from replay.runs.configured import site_test_of, tallied_name, tally_identity
from scoring.detectors.registry import DETECTORS
from scoring.errors import BadThresholds, DeviceLost, MissingModel, PoisonText
from scoring.interface import TextScore
from scoring.lite_ngram.detector import LiteNgram
from scoring.pair.detector import PairDetector
from scoring.sites.deciles import read_numbers
from scoring.thresholds.threshold_set import ThresholdSet, write_thresholds
from stream.schema.roles import Role
from stream.text.user_errors import ConfigError, Exit
from tests.support.fake_detector import FakeDetector
from tests.support.front_door import Runner

WITHOUT_MODELS = ["--set", "score.pair.observer=/nowhere/observer"]


def test_all_are_listed_with_what_the_configuration_makes_of_them(farmwatch: Runner) -> None:
    """With code 0: identity, thresholds and warning of the built-in detector, and why others cannot be used."""
    ran = farmwatch("lab", "detectors", "--json", *WITHOUT_MODELS)
    rows = {row["name"]: row for row in ran.lines}
    assert sorted(rows) == sorted(DETECTORS)
    own = rows["lite-ngram"]
    assert (own["configured"], own["judges_sites"], own["calibrated"], own["problem"]) == (True, True, True, "")
    assert own["identity"].startswith("lite-ngram/")
    assert own["warning"]
    assert "/nowhere/observer" in rows["binoculars"]["problem"]
    assert not rows["binoculars"]["configured"]
    assert ran.code == Exit.OK
    table = farmwatch("lab", "detectors", *WITHOUT_MODELS)
    assert own["identity"] in table.out
    assert own["warning"] in table.err
    assert own["warning"] not in table.out


def test_a_configured_one_that_cannot_be_used_is_exit_1(farmwatch: Runner) -> None:
    """A configured detector that cannot be used is exit code 1, as `up` would refuse it."""
    ran = farmwatch("lab", "detectors", "--set", "score.detectors=lite-ngram,binoculars", *WITHOUT_MODELS)
    assert ran.code == Exit.PROBLEM
    assert "`farmwatch up` refuses this: there is no model folder /nowhere/observer" in ran.err


def test_one_that_cannot_judge_sites_is_exit_1(farmwatch: Runner, tmp_path: Path) -> None:
    """A detector without a site test is exit code 1, in the table and in JSON, as `up` would refuse it."""
    own = LiteNgram.load().identity
    chosen = ThresholdSet(name="mine", detector=own.rpartition("/")[0], threshold=0.5, llm_below=False)
    write_thresholds(tmp_path / "mine.json", chosen)
    setting = ["--set", 'score.thresholds={"lite-ngram" = "mine.json"}', *WITHOUT_MODELS]
    for ran in (farmwatch("lab", "detectors", *setting), farmwatch("lab", "detectors", "--json", *setting)):
        assert ran.code == Exit.PROBLEM
        assert "`farmwatch up` refuses this" in ran.err and "tally.sprt" in ran.err


def test_thresholds_of_ones_own_give_another_identity(farmwatch: Runner, tmp_path: Path) -> None:
    """A set in score.thresholds changes the identity, the site verdicts and the pipe."""
    own = LiteNgram.load().identity
    chosen = ThresholdSet(name="mine", detector=own.rpartition("/")[0], threshold=-100.0, llm_below=False)
    write_thresholds(tmp_path / "mine.json", chosen)
    setting = ["--set", 'score.thresholds={"lite-ngram" = "mine.json"}']
    (row, *_) = farmwatch("lab", "detectors", "--json", *WITHOUT_MODELS, *setting).lines
    assert row["identity"] == f"{chosen.detector}/{chosen.tag}" != own
    text = " ".join(f"On day {n} the river rose and the people of the village went to the hill." for n in range(20))
    (tmp_path / "texts.jsonl").write_text(json.dumps({"id": "1", "text": text}))
    scored = farmwatch("lab", "score", *setting, "texts.jsonl").json
    assert (scored["detector"], scored["flag"]) == (row["identity"], True)


@pytest.mark.parametrize(
    ("flags", "texts"),
    [
        ([], 256),
        (["score.detectors=binoculars"], 256),
        (["score.detectors=binoculars", "score.pair.device=cpu"], 16),
        (["score.pair.device=cpu"], 256),
    ],
)
def test_batches_are_small_where_they_are_slow(flags: list[str], texts: int) -> None:
    """A pair of models on a CPU gets batches that end within the drain."""
    assert load(None, flags, {"HOME": "/nowhere"}).config.score.texts_at_once == texts


def test_whose_scores_judge_sites() -> None:
    """The first detector judges sites by default, or the one that tally.detector names; unknown names are refused."""

    def config(chosen: str, detectors: str = "lite-ngram") -> Config:
        return load(None, [f"tally.detector={chosen}", f"score.detectors={detectors}"], {"HOME": "/nowhere"}).config

    own = LiteNgram.load().identity
    assert tally_identity(config("")) == tally_identity(config("lite-ngram", "binoculars,lite-ngram")) == own
    assert tally_identity(config("other/1/x")) == "other/1/x"
    assert tallied_name(config("other/1/x")) is None
    with pytest.raises(ConfigError, match="binoculars"):
        tallied_name(config("binoculars"))


@pytest.mark.parametrize("command", [["lab", "detectors"], ["lab", "score", "nothing.jsonl"]])
def test_a_set_that_nobody_published_is_a_wrong_name(farmwatch: Runner, command: list[str]) -> None:
    """An unknown threshold set is an error, as an unknown detector is; `detectors` still lists the others."""
    ran = farmwatch(*command, "--set", 'score.thresholds={"lite-ngram" = "accuracy"}', *WITHOUT_MODELS)
    assert ran.code == (Exit.PROBLEM if command == ["lab", "detectors"] else Exit.USAGE)
    assert "no threshold set 'accuracy'" in ran.err


class Engine:
    """Abstains from all texts but "bad", which fails on any device; the device is lost once."""

    def __init__(self) -> None:
        self.losses = 1

    def read(self, texts: list[str]) -> list[Any]:
        if self.losses:
            self.losses -= 1
            raise DeviceLost("the card fell off the bus")
        poison, abstains = PoisonText("it does not fit"), TextScore(abstain="too_short", tokens=1)
        return [poison if text == "bad" else abstains for text in texts]

    def close(self) -> None:
        """Do nothing."""


def test_several_detectors_print_a_line_each(
    farmwatch: Runner, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Lines follow the order of the options; a text that fails on any device is bad, and a lost device is retried."""

    def loaded(settings: object) -> list[Any]:
        assert msgspec.to_builtins(settings, enc_hook=str)["detectors"] == ["lite-ngram", "binoculars"]
        engine: Any = Engine()
        return [FakeDetector(), PairDetector(engine, "binoculars/a+b@1/float32/512", "binoculars")]

    monkeypatch.setattr("farmwatch.pipes.score_lines.load_detectors", loaded)
    texts = [{"id": str(n), "text": text} for n, text in enumerate(["x", "bad", "y"])]
    (tmp_path / "texts.jsonl").write_text("".join(json.dumps(text) + "\n" for text in texts))
    ran = farmwatch("lab", "score", "--detector", "lite-ngram", "--detector", "binoculars", "texts.jsonl")
    lines = ran.lines
    pair = "binoculars/a+b@1/float32/512/uncalibrated"
    both = [(number, name) for number in "02" for name in ("fake/1", pair)]
    assert [(line["id"], line["detector"]) for line in lines] == both
    assert list(lines[0]) == ["id", "detector", "score", "p_llm", "flag", "abstain", "tokens"]
    assert ran.code == Exit.PROBLEM
    assert "line 2: it does not fit" in ran.err
    assert "the card fell off the bus" in ran.err


PAIR_ELSEWHERE = "binoculars/falcon-7b+falcon-7b-instruct@12345678/bfloat16/512/accuracy"


def test_a_machine_without_the_models_can_watch_and_tally() -> None:
    """Only SCORE needs the models: TALLY takes the whole identity, and warnings follow from identities."""
    flags = [
        "score.detectors=lite-ngram,binoculars",
        "score.pair.observer=/nowhere/observer",
        "score.thresholds={binoculars = 'accuracy'}",
        f"tally.detector={PAIR_ELSEWHERE}",
    ]
    config = load(None, flags, {"HOME": "/nowhere"}).config
    require_fit(config, [Role.TALLY])
    assert site_test_of(config) is None
    own = LiteNgram.load()
    found = caveats(config, [own.identity, PAIR_ELSEWHERE, "binoculars/odd", "gone/1"])
    assert found[own.identity] == own.warning
    assert "published threshold accuracy" in found[PAIR_ELSEWHERE]
    assert found["gone/1"] == found["binoculars/odd"] != ""
    with pytest.raises(MissingModel):
        require_fit(config, [Role.SCORE])


def test_thresholds_other_than_those_of_the_identity_are_refused() -> None:
    """TALLY refuses thresholds other than the identity's, because each set has its own site test."""
    flags = ["score.thresholds={binoculars = 'low-fpr'}", f"tally.detector={PAIR_ELSEWHERE}"]
    with pytest.raises(BadThresholds, match="low-fpr"):
        site_test_of(load(None, flags, {"HOME": "/nowhere"}).config)


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
    ran = farmwatch("lab", "tally", "--set", f"tally.method={method}", write(tmp_path / "in.jsonl", rows))
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
    ran = farmwatch("lab", "tally", "--set", f"tally.method={method}", "--detector", detector, file)
    assert (ran.code == Exit.OK, ran.out) == (False, "")
    assert detector in ran.err and ("farmwatch lab train-sites" in ran.err or "farmwatch lab calibrate" in ran.err)


def test_the_configurations_numbers_hold_in_the_pipe(farmwatch: Runner, tmp_path: Path) -> None:
    """[tally] chooses method and parameters in the pipe, as in the daemon."""
    config = tmp_path / "farmwatch.toml"
    config.write_text("[tally.sprt]\np0 = 0.01\np1 = 0.9\nmin_articles = 2\n")
    rows = [{"site": "a", "flag": True, "score": 1.0, "detector": "fast-detectgpt/x"} for _ in range(5)]
    ran = farmwatch("lab", "tally", "--config", config, write(tmp_path / "in.jsonl", rows))
    assert ran.json["pages_used"] == 3


def test_train_sites_makes_numbers_that_tally_takes(farmwatch: Runner, tmp_path: Path) -> None:
    """Scores of labelled sites give a file for deciles, which then judge new sites."""
    pytest.importorskip("sklearn")
    out = tmp_path / "numbers.json"
    lines = lines_of(*SITES, detector="fake/w@1/x")
    lines += [{"site": "s", "label": "human", "score": 9.0, "words": 20, "detector": "fake/w@1/x"}] * 20
    ran = farmwatch("lab", "train-sites", write(tmp_path / "train.jsonl", lines), "--out", out)
    assert ran.code == Exit.OK
    assert "6 human and 6 llm sites, 192 scores of fake/w" in ran.out
    assert "0 of 6 human sites and 0 of 6 llm sites wrong" in ran.out
    assert read_numbers(out.read_bytes(), "numbers").detector == "fake/w"
    new = write(tmp_path / "new.jsonl", lines_of(("farm", 0.7, "llm"), ("paper", 1.0, "human"), detector="fake/w@1/x"))
    new.write_text(new.read_text().replace('"label"', '"flag": null, "label"'))
    numbers = ("--set", "tally.method=deciles", "--set", f"tally.deciles={out}")
    judged = farmwatch("lab", "tally", *numbers, new)
    assert [json.loads(line)["verdict"] for line in judged.out.splitlines()] == ["llm", "human"]
    flagged = write(new, [{"site": "a", "flag": True, "score": 1.0}])
    refused = farmwatch("lab", "tally", *numbers, "--detector", FALCON, flagged)
    assert "fake/w, not of binoculars" in refused.err


def test_train_sites_reads_csv_and_writes_over_nothing(farmwatch: Runner, tmp_path: Path) -> None:
    """CSV is read by column names; without --force an existing file stays; JSON has the file's numbers."""
    pytest.importorskip("sklearn")
    file, out = tmp_path / "scores.csv", tmp_path / "numbers.json"
    rows = [f"{line['site']},{int(line['label'] == 'llm')},{line['score']}" for line in lines_of(*SITES)]
    file.write_text("site,generated,number\n" + "\n".join(rows) + "\n")
    command = ["lab", "train-sites", file, "--out", out, "--score-column", "number", "--label-column", "generated"]
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
    command = ["lab", "train-sites", write(tmp_path / "train.jsonl", first + second), "--out", out]
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
    ran = farmwatch("lab", "train-sites", write(tmp_path / "train.jsonl", lines), "--out", out)
    assert ran.code == Exit.PROBLEM and not out.exists()
    assert "line 65: no site" in ran.err and "2 human and 2 llm sites" in ran.err
