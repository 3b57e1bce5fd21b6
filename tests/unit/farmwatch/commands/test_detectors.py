"""The list of detectors under each configuration: file, flags and environment."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import msgspec
import pytest

from farmwatch.config.config import Config, load
from farmwatch.config.detector_config import caveats
from farmwatch.doctor.checks import require_fit
from replay.runs.configured import site_test_of, tallied_name, tally_identity
from scoring.detectors import registry
from scoring.detectors.registry import DETECTORS
from scoring.detectors.settings import ScoreSettings
from scoring.detectors.testing import FakeDetector
from scoring.errors import BadThresholds, DeviceLost, MissingModel, PoisonText
from scoring.interface import TextScore
from scoring.lite_ngram.detector import LiteNgram
from scoring.pair.detector import PairDetector
from scoring.thresholds.threshold_set import ThresholdSet, write_thresholds
from stream.schema.roles import Role
from stream.text.user_errors import ConfigError, Exit
from tests.support.front_door import Runner

WITHOUT_MODELS = ["--set", "score.pair.observer=/nowhere/observer"]


def test_all_are_listed_with_what_the_configuration_makes_of_them(farmwatch: Runner) -> None:
    """With code 0: identity, thresholds and warning of the built-in detector, and why others cannot be used."""
    ran = farmwatch("detectors", "--json", *WITHOUT_MODELS)
    rows = {row["name"]: row for row in ran.json}
    assert sorted(rows) == sorted(DETECTORS)
    own = rows["lite-ngram"]
    assert (own["configured"], own["judges_sites"], own["calibrated"], own["problem"]) == (True, True, True, "")
    assert own["identity"].startswith("lite-ngram/")
    assert own["warning"]
    assert "/nowhere/observer" in rows["binoculars"]["problem"]
    assert not rows["binoculars"]["configured"]
    assert ran.code == Exit.OK
    table = farmwatch("detectors", *WITHOUT_MODELS)
    assert own["identity"] in table.out
    assert own["warning"] in table.err
    assert own["warning"] not in table.out


def test_a_configured_one_that_cannot_be_used_is_exit_1(farmwatch: Runner) -> None:
    """A configured detector that cannot be used is exit code 1, as `up` would refuse it."""
    ran = farmwatch("detectors", "--set", "score.detectors=lite-ngram,binoculars", *WITHOUT_MODELS)
    assert ran.code == Exit.PROBLEM
    assert "`farmwatch up` refuses this: there is no model folder /nowhere/observer" in ran.err


def test_one_that_cannot_judge_sites_is_exit_1(farmwatch: Runner, tmp_path: Path) -> None:
    """A detector without a site test is exit code 1, in the table and in JSON, as `up` would refuse it."""
    own = LiteNgram.load().identity
    chosen = ThresholdSet(name="mine", detector=own.rpartition("/")[0], threshold=0.5, llm_below=False)
    write_thresholds(tmp_path / "mine.json", chosen)
    setting = ["--set", 'score.thresholds={"lite-ngram" = "mine.json"}', *WITHOUT_MODELS]
    for ran in (farmwatch("detectors", *setting), farmwatch("detectors", "--json", *setting)):
        assert ran.code == Exit.PROBLEM
        assert "`farmwatch up` refuses this" in ran.err and "tally.sprt" in ran.err


def test_thresholds_of_ones_own_give_another_identity(farmwatch: Runner, tmp_path: Path) -> None:
    """A set in score.thresholds changes the identity, the site verdicts and the pipe."""
    own = LiteNgram.load().identity
    chosen = ThresholdSet(name="mine", detector=own.rpartition("/")[0], threshold=-100.0, llm_below=False)
    write_thresholds(tmp_path / "mine.json", chosen)
    setting = ["--set", 'score.thresholds={"lite-ngram" = "mine.json"}']
    (row, *_) = farmwatch("detectors", "--json", *WITHOUT_MODELS, *setting).json
    assert row["identity"] == f"{chosen.detector}/{chosen.tag}" != own
    text = " ".join(f"On day {n} the river rose and the people of the village went to the hill." for n in range(20))
    (tmp_path / "texts.jsonl").write_text(json.dumps({"id": "1", "text": text}))
    scored = farmwatch("score", *setting, "texts.jsonl").json
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


def test_thresholds_of_a_detector_that_takes_none_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    """Thresholds for a detector that takes none are refused; otherwise even a missing file would be ignored."""
    loud = DETECTORS["lite-ngram"]._replace(takes_thresholds=False)
    monkeypatch.setitem(DETECTORS, "loud", loud)
    with pytest.raises(BadThresholds, match="loud takes no thresholds"):
        registry.load_detectors(ScoreSettings(detectors=["loud"], thresholds={"loud": "mine.json"}))


@pytest.mark.parametrize("command", [["detectors"], ["score", "nothing.jsonl"]])
def test_a_set_that_nobody_published_is_a_wrong_name(farmwatch: Runner, command: list[str]) -> None:
    """An unknown threshold set is an error, as an unknown detector is; `detectors` still lists the others."""
    ran = farmwatch(*command, "--set", 'score.thresholds={"lite-ngram" = "accuracy"}', *WITHOUT_MODELS)
    assert ran.code == (Exit.PROBLEM if command == ["detectors"] else Exit.USAGE)
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
    ran = farmwatch("score", "--detector", "lite-ngram", "--detector", "binoculars", "texts.jsonl")
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
