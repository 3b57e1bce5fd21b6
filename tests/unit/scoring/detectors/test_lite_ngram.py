"""The built-in detector with the shipped weights: it abstains instead of failing, and does not flag human prose."""

from __future__ import annotations

import re
from pathlib import Path

import msgspec
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from scoring.detectors.registry import DETECTORS, detector_warnings, load_detectors, stated_flags
from scoring.detectors.settings import ScoreSettings
from scoring.errors import BadWeights, UnknownDetector
from scoring.lite_ngram.detector import LiteNgram, prepare
from scoring.thresholds.threshold_set import ThresholdSet, write_thresholds
from tests.support.pages.prose import PROSE
from tests.support.paths import ROOT

_PAGE_WORDS = 300
_MIN_PARAGRAPH_WORDS = 12


def reference_pages() -> list[str]:
    """The prose of Python's language reference in pages of 300 words; empty if Python lacks it."""
    try:
        from pydoc_data.topics import topics
    except ImportError:
        return []
    words = [word for topic in topics.values() for word in _prose(topic)]
    return [
        " ".join(words[start : start + _PAGE_WORDS]) for start in range(0, len(words) - _PAGE_WORDS + 1, _PAGE_WORDS)
    ]


def _prose(document: str) -> list[str]:
    """Words of the paragraphs at the left margin, without code, tables and headings."""
    words: list[str] = []
    for paragraph in re.split(r"\n\s*\n", document):
        first = paragraph.lstrip("\n")[:1]
        if first.isalpha() and len(paragraph.split()) >= _MIN_PARAGRAPH_WORDS and "::=" not in paragraph:
            words += paragraph.split()
    return words


DETECTOR = LiteNgram.load()

PINNED = ("bb896305", -3.636021, 0.004544, 272)  # weights, margin, p(llm), tokens
GERMAN = (
    "Als wir am Abend in den Hafen kamen, war es schon dunkel, und der Mann, der uns hinüber bringen wollte, war "
    "nirgends zu sehen. Mein Bruder sagte, dass er in der Kneipe fragen will, und so setzte ich mich. "
)
FRENCH = (
    "Quand nous sommes arrivés au port, il faisait déjà nuit, et l'homme qui devait nous faire traverser n'était nulle "
    "part. Mon frère a dit qu'il irait demander au bar, alors je me suis assis sur les valises et on a attendu. "
)
SPANISH = (
    "Cuando llegamos al puerto ya era de noche, y el hombre que nos iba a llevar al otro lado no estaba en ninguna "
    "parte. Mi hermano dijo que iba a preguntar en el bar, así que me senté en las maletas a esperar. Nadie vino. "
)
DUTCH = (
    "Toen we in de haven kwamen was het al donker, en de man die ons over de rivier zou brengen was nergens te zien. "
    "Mijn broer zei dat hij in het café zou vragen, dus ging ik op de koffers zitten en wachtte. Er kwam niemand. "
)


def test_identity_names_weights_and_threshold() -> None:
    """The identity contains the digest of the weights and the threshold; the warning has its kind and its errors."""
    assert re.fullmatch(r"lite-ngram/[0-9a-f]{8}/p0\.95", DETECTOR.identity)
    assert DETECTOR.warning.startswith("style classifier, not Binoculars; indicative only")
    assert len(re.findall(r"\d%", DETECTOR.warning)) >= 4


def test_with_thresholds_measured_elsewhere_the_warning_names_their_error(tmp_path: Path) -> None:
    """A set that names its texts stands in place of `indicative only`; what the card measured stays."""
    base, _, _ = DETECTOR.identity.rpartition("/")
    measured_on = "600 human and 120 LLM texts of 42 sites, controls of the log: flags 4.67%"
    chosen = ThresholdSet(name="mine", detector=base, number="p_llm", threshold=0.8, llm_below=False)
    chosen = chosen.with_errors(0.0467, measured_on)
    write_thresholds(tmp_path / "mine.json", chosen)
    settings = ScoreSettings(detectors=["lite-ngram"], thresholds={"lite-ngram": str(tmp_path / "mine.json")})
    ((identity, warning),) = detector_warnings(settings).items()
    assert identity == f"{base}/{chosen.tag}"
    instead = f"threshold set {chosen.tag}, measured on {measured_on}"
    assert warning.startswith(f"style classifier, not Binoculars; {instead}")
    assert "indicative only" not in warning and warning.endswith(DETECTOR.warning.partition(". ")[2])
    assert stated_flags(settings, identity) == 0.0467


def test_an_edited_threshold_has_no_measured_errors(tmp_path: Path) -> None:
    """What was measured of another threshold is neither said nor compared with controls; its identity is as before."""
    base, _, _ = DETECTOR.identity.rpartition("/")
    made = ThresholdSet(name="mine", detector=base, number="p_llm", threshold=0.8, llm_below=False)
    edited = msgspec.structs.replace(made.with_errors(0.0467, "600 human texts"), threshold=0.7)
    write_thresholds(tmp_path / "mine.json", edited)
    settings = ScoreSettings(detectors=["lite-ngram"], thresholds={"lite-ngram": str(tmp_path / "mine.json")})
    ((identity, warning),) = detector_warnings(settings).items()
    assert identity == f"{base}/{edited.tag}" and "600 human texts" not in warning
    assert stated_flags(settings, identity) is None


def test_the_card_states_what_it_flags_of_the_worst_web_collection() -> None:
    """That of the weights that ship, at their own threshold; a detector that is not here states nothing."""
    stated = stated_flags(ScoreSettings(), DETECTOR.identity)
    assert stated is not None and f"up to {stated:.1%} of one" in DETECTOR.warning
    assert stated_flags(ScoreSettings(), DETECTOR.identity.replace("p0.95", "careful")) is None
    assert stated_flags(ScoreSettings(), "lite-ngram/00000000/p0.95") is None
    assert stated_flags(ScoreSettings(), "binoculars/a+b@0a1b2c3d/bfloat16/512/accuracy") == 0.021


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        pytest.param("", "too_short", id="empty"),
        pytest.param("one" * 200_000, "too_short", id="one long token"),
        pytest.param("😀🎉 " * 400, "few_function_words", id="emoji"),
        pytest.param(GERMAN * 8, "few_function_words", id="german"),
        pytest.param(FRENCH * 8, "few_function_words", id="french"),
        pytest.param(SPANISH * 8, "few_function_words", id="spanish"),
        pytest.param(DUTCH * 8, "few_function_words", id="dutch"),
        pytest.param("敏捷的棕色狐狸跳过了懒狗。" * 100, "too_short", id="chinese"),
        pytest.param("Milk. Eggs. Bread. Butter. Flour. Sugar. Salt. " * 40, "few_function_words", id="list"),
        pytest.param("\ud800 \udfff " * 500, "too_short", id="surrogates"),
        pytest.param("and the " * 200_000, "too_long", id="characters"),
        pytest.param("a " * 200_000, "too_long", id="words"),
    ],
)
def test_what_it_cannot_judge_it_abstains_from(text: str, reason: str) -> None:
    """The detector abstains: no score, no flag, and a named reason."""
    (found,) = DETECTOR.score([text])
    assert (found.score, found.p_llm, found.flag, found.abstain) == (None, None, None, reason)


@pytest.mark.parametrize("unseen", ["\u200b", "\u200e", "\u034f", "\u180e", "\u2062", "\ufe0f", "\U000e0061", "&shy;"])
def test_what_no_reader_sees_is_no_style(unseen: str) -> None:
    """A text with an invisible character in each word has the score of the text without them."""
    hidden = " ".join(f"{word[:1]}{unseen}{word[1:]}" for word in (PROSE * 4).split())
    assert DETECTOR.score([hidden]) == DETECTOR.score([PROSE * 4])


def test_weights_and_reading_belong_together() -> None:
    """This text's margin is pinned for the shipped weights: a change of the reading needs a new training."""
    marked = (
        "# Title\n\n- one — two -- three - four\n2) “quoted” https://example.org/x *it's* [a link](https://b.example)\n"
    )
    (found,) = DETECTOR.score([(marked + PROSE) * 4])
    assert (DETECTOR.weights.digest[:8], found.score, found.p_llm, found.tokens) == PINNED


def test_only_the_first_1000_words_are_read() -> None:
    """Text after the calibrated length has no effect."""
    first, second = DETECTOR.score([PROSE * 24, PROSE * 24 + "Delve into the vibrant tapestry. " * 100])
    assert first == second


@settings(max_examples=100)
@given(st.lists(st.text() | st.sampled_from([PROSE * 4, PROSE * 9, PROSE.upper() * 5]), max_size=6))
def test_any_texts_in_any_batch(texts: list[str]) -> None:
    """In any batch, each text gets the same score as alone."""
    together = DETECTOR.score(texts)
    assert together == [DETECTOR.score([text])[0] for text in texts]


@settings(max_examples=40)
@given(st.text(alphabet=st.characters(), min_size=1, max_size=30), st.integers(150, 2000))
def test_repeated_rubbish_is_taken(piece: str, times: int) -> None:
    """Long garbage, with surrogates and control characters, gets a score or an abstention, never an exception."""
    (found,) = DETECTOR.score([f"{piece} the " * times])
    assert (found.flag is None) == bool(found.abstain)


@pytest.mark.parametrize(
    "piece", ["[", "](", "* ", "- ", "-", "\n" + " " * 30, "sure, ", "'", " n ' ", "#>*", "http://", "1. ", "\n-- "]
)
def test_reading_is_linear(piece: str) -> None:
    """900,000 characters of markup that provokes backtracking are read in linear time."""
    assert prepare(piece * (900_000 // len(piece))).abstain


def test_documentation_prose_is_never_flagged() -> None:
    """No 300-word page of Python's own documentation is flagged."""
    pages = reference_pages()
    scores = DETECTOR.score(pages)
    assert len(pages) >= 40
    assert not any(found.flag for found in scores)
    assert np.median([found.p_llm for found in scores if found.p_llm is not None]) < 0.5


def test_unknown_detector_names_the_known_ones() -> None:
    """The error for a wrong name lists the known names."""
    with pytest.raises(UnknownDetector) as refused:
        load_detectors(ScoreSettings(detectors=["gptzero"]))
    assert all(name in str(refused.value) for name in DETECTORS)
    assert load_detectors(ScoreSettings())[0].identity == DETECTOR.identity


def test_weights_from_a_file_need_their_own_numbers(tmp_path: Path) -> None:
    """A missing file is refused, and so are numbers that are missing, broken or of other weights.

    Complete pairs load.
    """
    shipped = ROOT / "scoring" / "data"
    weights, numbers = tmp_path / "mine.weights", tmp_path / "mine.json"
    with pytest.raises(BadWeights, match=r"mine\.weights"):
        LiteNgram.load(weights)
    weights.write_bytes((shipped / "lite-ngram.weights").read_bytes())
    with pytest.raises(BadWeights):
        LiteNgram.load(weights)
    numbers.write_bytes((shipped / "lite-ngram.json").read_bytes())
    assert LiteNgram.load(weights).identity == DETECTOR.identity
    numbers.write_text('{"digest": "other", "warning": "w"}')
    with pytest.raises(BadWeights, match="other weights"):
        LiteNgram.load(weights)
    for broken in (b'{"more": ' + b"[" * 50_000, b'{"digest": "\xff"}'):
        numbers.write_bytes(broken)
        with pytest.raises(BadWeights, match="cannot be read"):
            LiteNgram.load(weights)
