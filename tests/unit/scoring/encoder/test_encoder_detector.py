"""The encoder as a detector: identity, warning, abstentions, faults, and its place beside a pair."""

from __future__ import annotations

import shutil
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from scoring.detectors.detector_set import DetectorSet
from scoring.detectors.registry import DETECTORS, detector_warnings, load_detectors, refuse_bad_identity
from scoring.detectors.settings import ScoreSettings
from scoring.encoder.detector import EncoderDetector, encoder_warning, load_encoder_engine
from scoring.encoder.model import load_encoder
from scoring.encoder.settings import EncoderSettings, encoder_identity
from scoring.errors import DeviceGone, DeviceLost, OutOfDeviceMemory, PoisonText
from scoring.interface import TextScore
from scoring.thresholds.threshold_set import Curve, ThresholdSet, write_thresholds
from tests.support.encoders import change_config, settings_of
from tests.support.pages.prose import PROSE
from tests.support.pairs import Pair
from tests.support.pairs import settings_of as pair_settings_of

pytestmark = [pytest.mark.slow, pytest.mark.xdist_group("torch")]


def test_identity_changes_with_each_part(encoders: dict[tuple[str, bool], Path], tmp_path: Path) -> None:
    """Another model, label, device, length, count of windows or text rule is another detector."""
    settings = settings_of(encoders["roberta", False])
    changes: list[dict[str, Any]] = [
        {"llm_label": "llm"},
        {"device": "cuda"},  # and so bfloat16
        {"max_tokens": 32},
        {"windows": 2},
        {"min_tokens": 3},
        {"english_only": True},
    ]
    others = {encoder_identity(settings_of(encoders["roberta", False], **change)) for change in changes}
    others |= {encoder_identity(settings_of(encoders["roberta", True])), encoder_identity(settings)}
    assert len(others) == len(changes) + 2
    moved = Path(shutil.copytree(encoders["roberta", False], tmp_path / "roberta-False"))
    assert encoder_identity(settings_of(moved)) == encoder_identity(settings)
    (moved / "spm.model").write_bytes(b"another tokenizer")
    assert encoder_identity(settings_of(moved)) != encoder_identity(settings)


def test_identity_is_known_without_torch_and_is_one(encoders: dict[tuple[str, bool], Path]) -> None:
    """encoder/NAME@8 digits/DTYPE/TOKENSxWINDOWS/THRESHOLDS, without loading torch."""
    code = (
        "import sys\n"
        "from scoring.encoder.detector import encoder_warning\n"
        "from scoring.encoder.settings import EncoderSettings, encoder_identity\n"
        "said = encoder_identity(EncoderSettings(model=sys.argv[1]))\n"
        "assert not {'torch', 'transformers'} & sys.modules.keys()\nprint(said)"
    )
    command = [sys.executable, "-c", code, str(encoders["modernbert", True])]
    said = subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()
    start, _, end = said.partition("@")
    assert start == "encoder/modernbert-True" and end[8:] == "/float32/512x1"
    refuse_bad_identity(f"{said}/uncalibrated")
    kind = DETECTORS["encoder"]
    assert (kind.compared, kind.llm_below, kind.divides_by_perplexity) == ("score", False, False)


def test_the_warning_says_what_is_unknown() -> None:
    """Without thresholds the warning says to calibrate; with some it says what they were measured on, if known."""
    base = "encoder/desklib@01234567/float32/768x"
    assert encoder_warning(f"{base}1/uncalibrated") == (
        "the sequence classifier desklib in float32, first 768 tokens; no threshold: its scores are not flags;"
        " thresholds published for a classifier fail on other pages than its own, so calibrate it on labelled ones"
    )
    assert encoder_warning(f"{base}2/mine-01234567") == (
        "the sequence classifier desklib in float32, first 2 windows of 768 tokens; threshold set mine-01234567 of the"
        " operator: error rates in the report of its calibration"
    )
    assert encoder_warning(f"{base}1/mine-01234567", "9 human and 9 LLM texts").endswith(
        "; threshold set mine-01234567, measured on 9 human and 9 LLM texts"
    )


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("", "empty"),
        ("a b " * 100_000, "too_long"),
        ("word \ud800 word " * 9, "bad_unicode"),
        ("12 34, 56.", "no_words"),
        ("Быстрая лиса прыгает через собаку. " * 9, "other_language"),
        ("The end.", "too_short"),
        ("Milk Bread Butter Sugar Flour Yeast " * 9 + "the of and to in " * 90, "few_function_words"),
    ],
)
def test_it_abstains_as_a_pair_does(encoders: dict[tuple[str, bool], Path], text: str, reason: str) -> None:
    """The reasons are those of a pair; English is judged by the windows that are read."""
    settings = EncoderSettings(model=str(encoders["roberta", False]), max_tokens=20, windows=2, min_tokens=10)
    (found,) = load_encoder_engine(settings).read([text])
    assert isinstance(found, TextScore) and found.abstain == reason


def test_special_tokens_in_a_text_are_plain_characters(encoders: dict[tuple[str, bool], Path]) -> None:
    """A page that contains <sep> or <pad> is read as these characters."""
    engine = load_encoder_engine(settings_of(encoders["roberta", False]))
    (plain,), (special,) = engine.read(["one sep two"]), engine.read(["one <sep><pad> two"])
    assert special[0].tokens > plain[0].tokens + 2  # type: ignore[index]  # both are read


def test_it_scores_beside_a_pair(
    encoders: dict[tuple[str, bool], Path], pairs: dict[str, Pair], tmp_path: Path
) -> None:
    """Each has its engine; the encoder's flag and p_llm are those of its threshold set: above it is an LLM's."""
    encoder = settings_of(encoders["deberta-v2", True])
    thresholds = tmp_path / "mine.json"
    base = encoder_identity(encoder)
    raw = load_encoder_engine(encoder).read([PROSE])[0][0].logit  # type: ignore[index]  # it is read
    chosen = ThresholdSet(name="mine", detector=base, threshold=raw - 0.1, llm_below=False, curve=Curve(1.0, 0.0))
    write_thresholds(thresholds, chosen)
    settings = ScoreSettings(
        detectors=["binoculars", "encoder", "fast-detectgpt"],
        pair=pair_settings_of(pairs["gpt2"]),
        encoder=encoder,
        thresholds={"encoder": str(thresholds)},
    )
    assert list(detector_warnings(settings))[1] == f"{base}/{chosen.tag}"
    assert settings.texts_at_once == 16
    detectors = DetectorSet(load_detectors(settings))
    detectors.warm_up()
    before = detectors.work().tokens
    ((_, own, _), (_, empty, _)) = detectors.score([PROSE, ""])
    assert isinstance(own, TextScore) and own.score == pytest.approx(raw, abs=1e-4)
    assert own.flag is True and own.p_llm is not None
    assert empty == TextScore(abstain="empty")
    assert detectors.work().tokens > before + own.tokens and detectors.loaded()
    detectors.close()


class FakeDevice:
    """Windows with the id `bad` lose the device or do not fit; those with `none` have no number."""

    def __init__(self, error: Exception, bad: int | None, none: int | None) -> None:
        self.error, self.bad, self.none = error, bad, none

    def launch(self, texts: Sequence[Sequence[int]]) -> Any:
        from scoring.encoder.engine import EncoderReading

        if any(self.bad in ids for ids in texts):
            raise self.error

        def land() -> list[Any]:
            return [
                TextScore(abstain="not_a_number", tokens=len(ids))
                if self.none in ids
                else EncoderReading(1.0, len(ids))
                for ids in texts
            ]

        return SimpleNamespace(land=land)

    def free(self) -> None:
        pass


@pytest.mark.parametrize("error", [OutOfDeviceMemory("full"), DeviceLost("fell off the bus")])
def test_a_text_fails_with_its_window(encoders: dict[tuple[str, bool], Path], error: Exception) -> None:
    """A window that never fits, or loses the device each time, makes its text PoisonText; others are scored."""
    from scoring.encoder.engine import EncoderEngine

    settings = settings_of(encoders["roberta", False], max_tokens=10, windows=4)
    model = load_encoder(settings)
    device: Any = FakeDevice(error, model.tokenizer.token_to_id("Q"), model.tokenizer.token_to_id("Z"))
    engine = EncoderEngine(model, settings, reload=lambda: model, device=lambda _: device)
    texts = ["Q a b c d e f g h i j", "a b c", "a Z"]
    for _ in range(5):
        try:
            found = engine.read(texts)
            break
        except DeviceLost:
            continue
    assert isinstance(found[0], PoisonText)
    assert isinstance(found[1], list)
    assert isinstance(found[2], TextScore) and found[2].abstain == "not_a_number"
    detector = EncoderDetector(engine, "encoder/x@01234567/float32/10x4")
    judged = DetectorSet([detector]).score(texts[1:2])
    tokens = sum(window.tokens for window in found[1])
    assert judged == [(TextScore(score=1.0, tokens=tokens, windows=len(found[1])),)]


def test_files_that_changed_are_not_loaded_again(copy: Path) -> None:
    """After a lost device, a changed folder ends the process, because the identity names the first one."""
    engine = load_encoder_engine(settings_of(copy))
    change_config(copy, another=1)
    engine._device = None  # as after a loss
    with pytest.raises(DeviceGone, match="changed"):
        engine.read([PROSE])
