"""Pair detectors: their identities, their warnings, and their scores from the engine's results."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import msgspec
import pytest

from scoring.detectors.registry import load_detectors
from scoring.detectors.settings import ScoreSettings
from scoring.errors import BadThresholds, DeviceGone, UnsupportedModel
from scoring.interface import TextScore
from scoring.pair.detector import PairDetector, load_pair_engine, pair_warning
from scoring.pair.scores import PairReading
from scoring.pair.settings import PairSettings, pair_identity
from scoring.thresholds.threshold_set import Curve, ThresholdSet, published_for
from tests.support.pages.prose import PROSE
from tests.support.pairs import Pair, settings_of

pytestmark = [pytest.mark.slow, pytest.mark.xdist_group("torch")]

READING = PairReading(0.85, 2.5, 2.0, 2.3, 300)
WINDOWS = ((0.8, 400), (1.0, 500), (1.0, 100))  # scores and tokens


class FakeEngine:
    """Gives the same results for any texts."""

    def __init__(self, *results: Any) -> None:
        self.results = [[result] if isinstance(result, PairReading) else result for result in results]

    def read(self, texts: Any) -> list[Any]:
        return self.results


def thresholds(base: str, **changes: Any) -> ThresholdSet:
    """A calibrated threshold set."""
    usual: dict[str, Any] = {"name": "mine", "detector": base, "threshold": 0.9, "llm_below": True}
    return ThresholdSet(**(usual | changes))


def detector(measure: Any, chosen: ThresholdSet | None, *results: Any) -> PairDetector:
    """A detector on a fake engine."""
    base = f"{measure}/falcon-7b+falcon-7b-instruct@01234567/bfloat16/512"
    return PairDetector(FakeEngine(*results), base, measure, chosen)  # type: ignore[arg-type]


def test_identity_changes_with_each_part(pairs: dict[str, Pair]) -> None:
    """Another model, dtype, device, length or text rule is another detector; another budget is not."""
    settings = settings_of(pairs["falcon"])
    changes: list[dict[str, Any]] = [
        {"observer": str(pairs["gpt2"].observer)},
        {"performer": settings.observer},
        {"dtype": "bfloat16"},
        {"device": "cuda"},  # and so bfloat16
        {"max_tokens": 256},
        {"windows": 4},
        {"min_tokens": 64},
        {"english_only": True},
    ]
    identities = {pair_identity(msgspec.structs.replace(settings, **change), "binoculars") for change in changes}
    assert pair_identity(settings, "binoculars") not in identities
    assert pair_identity(settings, "binoculars").endswith("/float32/512")  # as before there were windows
    assert len(identities) == len(changes) - 1  # dtype and device are equal
    for change in ({"batch_tokens": 128}, {"device": "cuda", "dtype": "float32"}):
        assert pair_identity(msgspec.structs.replace(settings, **change), "binoculars") == pair_identity(
            settings, "binoculars"
        )


def identity_of(pair: Pair) -> str:
    """The identity of a pair without thresholds."""
    return pair_identity(settings_of(pair), "binoculars")


@pytest.mark.parametrize("name", ["model.safetensors", "config.json", "tokenizer.json", "tokenizer_config.json"])
def test_identity_changes_with_each_file(pairs: dict[str, Pair], copy: Pair, name: str) -> None:
    """One changed byte in the weights, the configuration or the tokenizer of either model is another detector."""
    seen = {identity_of(copy)}
    assert seen == {identity_of(pairs["falcon"])}  # the folder does not matter
    for folder in copy:
        body = bytearray((folder / name).read_bytes())
        body[-3] ^= 1
        (folder / name).write_bytes(body)
        seen.add(identity_of(copy))
    assert len(seen) == 3


def test_the_index_decides_which_weights_are_named(copy: Pair) -> None:
    """Weights named by an index are part of the identity, also in subfolders; so is the index itself."""
    folder = copy.observer
    index = folder / "model.safetensors.index.json"
    (folder / "sub").mkdir()
    shutil.move(folder / "model.safetensors", folder / "sub" / "a.safetensors")
    shutil.copy(copy.performer / "model.safetensors", folder / "sub" / "b.safetensors")
    seen = set()
    for weight_map in ({"x": "sub/a.safetensors"}, {"x": "sub/b.safetensors"}, {"y": "sub/b.safetensors"}):
        index.write_bytes(msgspec.json.encode({"weight_map": weight_map}))
        seen.add(identity_of(copy))
    weights = folder / "sub" / "b.safetensors"
    weights.write_bytes(weights.read_bytes()[:-1] + b"!")
    seen.add(identity_of(copy))
    assert len(seen) == 4
    for elsewhere in ("../performer/model.safetensors", str(copy.performer / "model.safetensors")):
        index.write_bytes(msgspec.json.encode({"weight_map": {"x": elsewhere}}))
        with pytest.raises(UnsupportedModel, match="in the folder are read"):
            identity_of(copy)


def test_an_adapter_is_refused(copy: Pair) -> None:
    """An adapter beside the weights is refused: it would change the scores under the same identity."""
    (copy.observer / "adapter_config.json").write_text("{}")
    with pytest.raises(UnsupportedModel, match="adapter"):
        identity_of(copy)


def test_the_rules_for_texts_are_part_of_the_identity(pairs: dict[str, Pair]) -> None:
    """Scores of two versions of the rules for texts are not pooled."""
    settings = settings_of(pairs["falcon"])
    assert pair_identity(settings, "binoculars", "another version") != pair_identity(settings, "binoculars")


def test_large_weights_are_sampled(copy: Pair) -> None:
    """The digest of a large weight file samples blocks over its length; a new version differs in nearly all of them."""
    header = b'{"a":{"dtype":"U8","shape":[9000000],"data_offsets":[0,9000000]}}'
    seen = set()
    for numbers in (b"a" * 9_000_000, b"b" * 9_000_000, b"a" * 4_500_000 + b"b" * 4_500_000, b"a" * 8_999_999 + b"b"):
        (copy.observer / "model.safetensors").write_bytes(len(header).to_bytes(8, "little") + header + numbers)
        seen.add(identity_of(copy))
    assert len(seen) == 4


def test_identity_needs_no_torch(pairs: dict[str, Pair]) -> None:
    """Importing scoring and reading settings, identities and warnings loads neither torch nor transformers."""
    observer, performer = map(str, pairs["falcon"])
    code = (
        "import sys\nfrom scoring.detectors.settings import ScoreSettings\n"
        "from scoring.pair.detector import pair_warning\n"
        "from scoring.pair.settings import PairSettings, pair_identity\n"
        f"print(pair_identity(PairSettings(observer={observer!r}, performer={performer!r}), 'binoculars'))\n"
        "pair_warning('binoculars/a+b@01234567/bfloat16/512/uncalibrated')\n"
        "print([name for name in ('torch', 'transformers', 'tokenizers', 'triton') if name in sys.modules])\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.splitlines()[1] == "[]"


@pytest.mark.parametrize(
    "changes",
    [
        {"observer": " "},
        {"device": "gpu"},
        {"max_tokens": 1},
        {"max_tokens": 2049},
        {"min_tokens": 1},
        {"min_tokens": 600},
        {"batch_tokens": 63},
    ],
)
def test_settings_out_of_bounds_are_refused(changes: dict[str, Any]) -> None:
    """An invalid setting is refused when it is read, with its name."""
    with pytest.raises(msgspec.ValidationError, match=next(iter(changes))):
        msgspec.convert(changes, PairSettings)


def test_uncalibrated_detector_gives_scores_without_flags() -> None:
    """Without a threshold set there is a score, but no flag and no probability; identity and warning say so."""
    found = detector("binoculars", None, READING)
    assert found.identity.endswith("/512/uncalibrated")
    assert "no threshold" in found.warning
    assert found.score(["x"]) == [TextScore(score=0.85, tokens=300, windows=1)]


def test_thresholds_flag_in_their_direction() -> None:
    """Binoculars flags strictly below its threshold, Fast-DetectGPT strictly above; the tag ends the identity."""
    low = thresholds("b")
    found = detector("binoculars", low, READING, PairReading(0.9, 0, 1, 1, 9))
    assert [score.flag for score in found.score(["x", "y"])] == [True, False]
    assert found.identity.endswith(f"/512/{low.tag}")
    high = thresholds("b", threshold=2.5, llm_below=False)
    found = detector("fast-detectgpt", high, READING, PairReading(0.9, 2.6, 1, 1, 9))
    assert [(score.score, score.flag) for score in found.score(["x", "y"])] == [(2.5, False), (2.6, True)]


def test_windows_are_averaged_and_flagged_each() -> None:
    """A text's score is the mean of its windows', weighted by tokens; their flags are counted, their spread is kept."""
    found = detector("binoculars", thresholds("b"), [PairReading(score, 0, 1, 1, tokens) for score, tokens in WINDOWS])
    (said,) = found.score(["x"])
    assert said == TextScore(
        score=0.92, flag=False, tokens=1000, windows=3, windows_flagged=1, windows_spread=0.0979796
    )
    assert (said.windows, detector("binoculars", None, READING).score(["x"])[0].windows_flagged) == (3, None)
    warning = pair_warning(f"{found.identity.rpartition('/')[0]}x3/mine-01234567")
    assert "first 3 windows of 512 tokens" in warning


def test_published_thresholds_are_of_one_window() -> None:
    """They were measured on the openings of texts: with several windows a pair is uncalibrated."""
    base = "binoculars/falcon-7b+falcon-7b-instruct@01234567/bfloat16/512"
    assert len(published_for(base)) == 2 and published_for(f"{base}x4") == []


def test_curve_gives_the_probability() -> None:
    """p_llm comes from the set's curve. Without a curve there is no p_llm, and a threshold on p_llm is refused."""
    chosen = thresholds("b", curve=Curve(-20.0, 18.0))
    assert detector("binoculars", chosen, READING).score(["x"])[0].p_llm == pytest.approx(0.7310586)
    assert detector("binoculars", thresholds("b"), READING).score(["x"])[0].p_llm is None
    with pytest.raises(BadThresholds, match="mine"):
        detector("binoculars", thresholds("b", number="p_llm"))


@pytest.mark.data
def test_published_error_rates_are_those_of_the_data(shared: Path) -> None:
    """The figures of the warning are recomputed on the real page scores."""
    import csv

    with (shared / "data" / "scores" / "page_scores.csv").open() as file:
        pages = [(row["generated"] == "1", int(row["words"]), float(row["binoculars"])) for row in csv.DictReader(file)]
    base = "binoculars/falcon-7b+falcon-7b-instruct@01234567/bfloat16/512"
    for chosen in published_for(base):

        def flagged(llm: bool, short: bool, chosen: ThresholdSet = chosen) -> float:
            scores = [score for label, words, score in pages if label == llm and (words < 100) == short]
            return 100 * sum(map(chosen.flag, scores)) / len(scores)

        warning = pair_warning(f"{base}/{chosen.name}")
        assert "69 real sites" in warning and "for the original weights" in warning
        assert f"flags {flagged(False, False):.1f}% of the human" in warning
        assert f"finds {flagged(True, False):.0f}% of the LLM" in warning
        assert f"({flagged(False, True):.0f}% of shorter human" in warning


def test_both_detectors_of_a_pair_share_an_engine(pairs: dict[str, Pair]) -> None:
    """The models are loaded once; each measure is a detector with its own identity and number."""
    settings = settings_of(pairs["llama"])
    one, other = load_detectors(ScoreSettings(detectors=["fast-detectgpt", "binoculars"], pair=settings))
    assert isinstance(one, PairDetector) and isinstance(other, PairDetector) and one.engine is other.engine
    numbers = [found.score([PROSE])[0].score for found in (one, other)]
    assert None not in numbers and numbers[0] != numbers[1]
    base = pair_identity(settings, "binoculars")
    assert other.identity == f"{base}/uncalibrated"
    assert one.identity == other.identity.replace("binoculars", "fast-detectgpt")


def test_models_that_changed_on_disk_are_not_loaded_again(copy: Pair) -> None:
    """After a lost device, changed files are refused, because the identity names the first ones."""
    engine = load_pair_engine(settings_of(copy))
    assert isinstance(engine.read([PROSE])[0], list)
    configure = copy.observer / "config.json"
    configure.write_text(configure.read_text() + " ")
    engine._device = None  # as after a loss
    with pytest.raises(DeviceGone, match="changed") as caught:
        engine.read([PROSE])
    assert caught.value.fatal  # no record is dead-lettered, and the process ends
    configure.write_text(configure.read_text()[:-1])
    assert isinstance(engine.read([PROSE])[0], list)
