"""Threshold sets: published ones for one pair only; files are read strictly, or refused."""

from __future__ import annotations

import math
from pathlib import Path

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from scoring.detectors.registry import load_detectors, threshold_set_of
from scoring.detectors.settings import ScoreSettings
from scoring.errors import BadThresholds, UnknownThresholds
from scoring.lite_ngram.detector import LiteNgram
from scoring.sites.sprt import SprtParams, fewest_pages
from scoring.thresholds.threshold_set import (
    Curve,
    ThresholdSet,
    load_thresholds,
    published_for,
    read_thresholds,
    write_thresholds,
)
from tests.support.pages.prose import PROSE
from tests.support.paths import DOCS

FALCON = "binoculars/falcon-7b+falcon-7b-instruct@0a1b2c3d/bfloat16/512"
LITE = "lite-ngram/3929d2d2"


def one(**changed: object) -> ThresholdSet:
    """A set with all fields."""
    plain = ThresholdSet(
        name="mine",
        detector=FALCON,
        threshold=0.9,
        llm_below=True,
        curve=Curve(slope=-40.0, offset=36.0),
        site_test=SprtParams(p0=0.1, p1=0.7),
    )
    return msgspec.structs.replace(plain, **changed)


def test_the_published_thresholds_are_the_authors() -> None:
    """Both numbers equal the authors' to the last digit; strictly below is llm; the tag is the name alone."""
    low, accuracy = load_thresholds("low-fpr", FALCON), load_thresholds("accuracy", FALCON)
    assert (low.threshold, accuracy.threshold) == (0.8536432310785527, 0.9015310749276843)
    assert low.flag(math.nextafter(low.threshold, 0)) and not low.flag(low.threshold)
    assert (low.tag, accuracy.tag) == ("low-fpr", "accuracy")
    assert {found.name for found in published_for(FALCON)} == {"low-fpr", "accuracy"}


@pytest.mark.parametrize(
    "base",
    [
        FALCON.replace("bfloat16", "float32"),
        FALCON.replace("/512", "/256"),
        FALCON.replace("binoculars", "fast-detectgpt"),
        FALCON.replace("falcon-7b+", "falcon-40b+"),
        "binoculars/gpt2+gpt2@0a1b2c3d/bfloat16/512",
        LITE,
    ],
)
def test_nothing_is_published_for_another_detector(base: str) -> None:
    """The name is refused for another pair, precision or measure; the message has the detector."""
    assert published_for(base) == []
    with pytest.raises(UnknownThresholds) as refused:
        load_thresholds("accuracy", base)
    assert base in str(refused.value)


@given(st.floats(allow_nan=False, allow_infinity=False), st.booleans(), st.floats(-1e6, 1e6), st.booleans())
def test_any_set_comes_back(threshold: float, below: bool, slope: float, with_curve: bool) -> None:
    """For any finite numbers, a set reads back unchanged, with the same tag."""
    made = one(threshold=threshold, llm_below=below, curve=Curve(slope=slope, offset=0.0) if with_curve else None)
    again = msgspec.json.decode(msgspec.json.encode(made), type=ThresholdSet)
    assert again == made and again.tag == made.tag


def test_a_set_that_was_written_with_more_digits_keeps_its_digest(tmp_path: Path) -> None:
    """An older file with 17 digits is read unchanged, so its identity stays the same."""
    path = tmp_path / "mine.json"
    path.write_text(
        '{"curve": {"offset": 49.11250016177809, "slope": -54.720800269803526}, "detector": "binoculars/observer+'
        'performer@0a1b2c3d/float32/512", "llm_below": true, "name": "mine", "number": "score", "published": false,'
        ' "site_test": {"alpha": 0.001, "beta": 0.02, "clip": 3.0, "min_articles": 2, "min_pages": 1, "p0": 0.1,'
        ' "p1": 0.9}, "threshold": 0.9056}'
    )
    assert read_thresholds(path).tag == "mine-87cd1519"


def test_a_file_is_written_for_people_and_not_over_another(tmp_path: Path) -> None:
    """The file has one field a line and is exact to the last bit; an existing set is kept unless forced."""
    path = tmp_path / "mine.json"
    write_thresholds(path, one(threshold=0.1 + 0.2))
    assert load_thresholds(str(path), FALCON) == one(threshold=0.1 + 0.2)
    assert '  "threshold": 0.30000000000000004' in path.read_text()
    with pytest.raises(FileExistsError):
        write_thresholds(path, one(threshold=0.5))
    assert read_thresholds(path).threshold == 0.1 + 0.2
    write_thresholds(path, one(threshold=0.5), force=True)
    assert read_thresholds(path).threshold == 0.5
    assert [file.name for file in tmp_path.iterdir()] == ["mine.json"]


BROKEN = {
    "empty": (b"", "truncated"),
    "cut short": (msgspec.json.encode(one())[:-9], "truncated"),
    "nested": (b"[" * 100_000, ""),
    "unknown field": (msgspec.json.encode(one())[:-1] + b', "treshold": 1}', "treshold"),
    "missing field": (b'{"name": "mine", "threshold": 1, "llm_below": true}', "detector"),
    "NaN": (msgspec.json.encode(one()).replace(b"0.9", b"NaN"), ""),
    "text for a number": (msgspec.json.encode(one()).replace(b"0.9", b'"0.9"'), "threshold"),
    "a name with a slash": (msgspec.json.encode(one()).replace(b'"mine"', b'"a/b"'), "name"),
    "impossible site test": (msgspec.json.encode(one()).replace(b'"p0":0.1', b'"p0":0.9'), "p0"),
    "curve with p_llm": (msgspec.json.encode(one()).replace(b'"score"', b'"p_llm"'), "curve"),
    "says it is published": (
        msgspec.json.encode(one()).replace(b'"published":false', b'"published":true'),
        "published",
    ),
}


@pytest.mark.parametrize("case", BROKEN)
def test_a_broken_file_is_refused_with_its_name(case: str, tmp_path: Path) -> None:
    """Every error names the file and the fault; a broken file is never used in part."""
    path = tmp_path / "thresholds.json"
    body, word = BROKEN[case]
    path.write_bytes(body)
    with pytest.raises(BadThresholds) as refused:
        load_thresholds(str(path), FALCON)
    assert str(path) in str(refused.value) and word in str(refused.value)


def test_a_missing_or_huge_file_is_refused(tmp_path: Path) -> None:
    """A missing path, a folder and a model's weights are refused."""
    huge = tmp_path / "huge.json"
    huge.write_bytes(b" " * (2 << 20))
    for path in (tmp_path / "none.json", tmp_path, huge):
        with pytest.raises(BadThresholds, match=path.name):
            load_thresholds(f"{path.parent}/{path.name}", FALCON)


def test_a_set_of_another_detector_is_refused_with_both_names(tmp_path: Path) -> None:
    """A threshold set is refused for another pair, and for the same pair in another precision."""
    path = tmp_path / "mine.json"
    write_thresholds(path, one())
    other = FALCON.replace("bfloat16", "float32")
    with pytest.raises(BadThresholds) as refused:
        load_thresholds(str(path), other)
    assert FALCON in str(refused.value) and other in str(refused.value)


def test_the_tag_tells_every_change() -> None:
    """Threshold, curve, side and site test are in the digest, so that flags of two sets are never confused."""
    changes: list[dict[str, object]] = [
        {},
        {"threshold": math.nextafter(0.9, 1)},
        {"llm_below": False},
        {"curve": None},
        {"curve": Curve(slope=-40.0, offset=36.1)},
        {"site_test": SprtParams(p0=0.1, p1=0.71)},
        {"detector": LITE},
    ]
    tags = {one(**changed).tag for changed in changes}
    assert len(tags) == len(changes)
    assert all(tag.startswith("mine-") and len(tag) == len("mine-") + 8 for tag in tags)


def test_lite_ngram_keeps_its_identity_and_takes_another_set() -> None:
    """lite-ngram's own threshold is p0.95; a calibrated one changes flags and identity, but not score or p_llm."""
    own = LiteNgram.load()
    base = own.identity.rpartition("/")[0]
    assert own.identity == f"{base}/p0.95" and own.thresholds.number == "p_llm"
    (plain,) = own.score([PROSE * 6])
    assert plain.p_llm is not None and plain.flag is (plain.p_llm > 0.95)
    strict = ThresholdSet(name="strict", detector=base, number="p_llm", threshold=plain.p_llm / 2, llm_below=False)
    other = LiteNgram(own.weights, own.warning, strict)
    (flagged,) = other.score([PROSE * 6])
    assert other.identity == f"{base}/{strict.tag}" != own.identity
    assert flagged == msgspec.structs.replace(plain, flag=True)


def test_lite_ngram_has_a_careful_set() -> None:
    """`careful` comes with the weights: the same scores, fewer flags, another identity; a name it lacks is refused."""
    own = LiteNgram.load()
    (careful,) = load_detectors(ScoreSettings(thresholds={"lite-ngram": "careful"}))
    assert isinstance(careful, LiteNgram)
    assert careful.identity == own.identity.replace("/p0.95", "/careful")
    assert careful.thresholds.threshold > own.thresholds.threshold
    (named,) = load_detectors(ScoreSettings(thresholds={"lite-ngram": "p0.95"}))
    assert named.identity == own.identity
    settings = ScoreSettings(thresholds={"lite-ngram": "careful"})
    assert threshold_set_of(settings, careful.identity) == careful.thresholds
    with pytest.raises(UnknownThresholds, match=r"published are p0\.95, careful"):
        load_detectors(ScoreSettings(thresholds={"lite-ngram": "low-fpr"}))
    with pytest.raises(UnknownThresholds):  # scores of other weights have no such set here
        threshold_set_of(settings, "lite-ngram/00000000/careful")


def test_words_about_a_set_change_neither_its_digest_nor_an_older_one() -> None:
    """`measured_on` is for people: with any of it the digest is the one that sets had before the field existed."""
    assert one().digest == one(measured_on="4 texts").digest == "e7c42015"


@pytest.mark.parametrize(
    ("file", "base"),
    [
        ("fast-detectgpt-falcon.json", "fast-detectgpt/falcon-7b+falcon-7b-instruct@0a1b2c3d/bfloat16/512"),
        ("desklib-v1.01.json", "encoder/ai-text-detector-v1.01@0a1b2c3d/float32/768x1"),
    ],
)
def test_the_sets_in_the_docs_hold_for_one_model_that_the_operator_names(tmp_path: Path, file: str, base: str) -> None:
    """A set in docs/thresholds is refused for every model until its detector is one; then it judges sites."""
    path = DOCS / "thresholds" / file
    with pytest.raises(BadThresholds, match="not of"):
        load_thresholds(str(path), base)
    mine = tmp_path / file
    write_thresholds(mine, msgspec.structs.replace(read_thresholds(path), detector=base))
    chosen = load_thresholds(str(mine), base)
    assert chosen.site_test is not None and max(fewest_pages(chosen.site_test)) <= 20
    assert "1,944 human and 438 LLM texts of 69 sites" in chosen.measured_on
    with pytest.raises(BadThresholds, match="not of"):
        load_thresholds(str(mine), base.replace("0a1b2c3d", "0a1b2c3e"))
