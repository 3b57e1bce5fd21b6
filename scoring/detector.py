"""What a detector is, how those of a configuration are loaded, and what they are called without loading them."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Protocol, cast

import msgspec

from scoring.errors import BadIdentity, BadThresholds, Uncalibrated, UnknownDetector
from scoring.pair_settings import MEASURES, UNCALIBRATED, Measure, pair_identity

if TYPE_CHECKING:
    from scoring.settings import ScoreSettings
    from scoring.threshold_set import ThresholdSet

BUILT_IN = "lite-ngram"


class TextScore(msgspec.Struct, frozen=True, kw_only=True):
    """What a detector says of one text. Where it abstains, score, p_llm and flag are None and `abstain` says why."""

    score: float | None = None  # the detector's own scale
    p_llm: float | None = None  # calibrated probability, where the detector has one
    flag: bool | None = None  # True = looks like a language model's
    abstain: str = ""  # a word: too_short, too_long, few_function_words, …; "" = not abstained
    tokens: int = 0  # tokens that the detector read


class Detector(Protocol):
    """Scores texts. Pure: the same texts give the same scores, in any batch."""

    @property
    def identity(self) -> str:
        """Name, weights and threshold in one string. Scores of two identities are never pooled."""

    @property
    def warning(self) -> str:
        """What must be said wherever its scores show, with its measured error rates."""

    def score(self, texts: Sequence[str]) -> list[TextScore]:
        """One TextScore per text, in order. Takes any string; it abstains, with the reason, where it cannot judge."""


def load_detector(name: str = BUILT_IN, weights: Path | None = None) -> Detector:
    """Load one detector by its name; `weights` is a file in place of the one that ships with farmwatch.

    Raises as `load_detectors`.
    """
    from scoring.settings import ScoreSettings

    return load_detectors(ScoreSettings(detectors=[name], weights=weights))[0]


def load_detectors(settings: ScoreSettings) -> list[Detector]:
    """Load the detectors of `settings`, in its order.

    Raises UnknownDetector, BadWeights, BadThresholds.
    """
    _refuse_unknown(settings)
    pairs = [name for name in MEASURES if name in settings.detectors]
    loaded: dict[str, Detector] = {}
    if pairs:
        from scoring.pair_detector import load_pair_detectors

        chosen: dict[str, ThresholdSet | None] = {
            name: _thresholds(name, settings, pair_identity(settings.pair, name)) for name in pairs
        }
        loaded.update(load_pair_detectors(settings.pair, chosen))
    if BUILT_IN in settings.detectors:
        loaded[BUILT_IN] = _load_built_in(settings)
    return [loaded[name] for name in settings.detectors]


def detector_identities(settings: ScoreSettings) -> list[str]:
    """Identities of the detectors of `settings`, in its order: known from small files, without torch or weights.

    Raises as `load_detectors`.
    """
    _refuse_unknown(settings)
    return [_identity(name, settings) for name in settings.detectors]


def detector_warnings(settings: ScoreSettings) -> dict[str, str]:
    """Identity -> warning of the detectors of `settings`, without torch or the weights of language models.

    Raises as `load_detectors`.
    """
    warnings: dict[str, str] = {}
    for name, identity in zip(settings.detectors, detector_identities(settings), strict=True):
        warnings[identity] = _load_built_in(settings).warning if name == BUILT_IN else _pair_warning(identity)
    return warnings


def threshold_set_of(settings: ScoreSettings, identity: str) -> ThresholdSet | None:
    """The set of `score.thresholds` for the detector `identity`; None where it has its own, or none.

    Raises BadThresholds where the set is not the one that the identity names.
    """
    chosen = _thresholds(name_of(identity), settings, base_of(identity))
    if chosen is not None and f"{base_of(identity)}/{chosen.tag}" != identity:
        raise BadThresholds(
            f"score.thresholds has {chosen.tag} for {name_of(identity)}, not the set of {identity}: set both alike"
        )
    return chosen


def base_of(identity: str) -> str:
    """The identity without its last part, which names the thresholds.

    Raises BadIdentity for what is no whole identity: without its thresholds it would lose another part.
    """
    refuse_bad_identity(identity)
    return identity.rpartition("/")[0]


def refuse_bad_identity(identity: str) -> None:
    """Raises BadIdentity, in printable characters, for what no detector is called."""
    name = name_of(identity)
    form = _FORMS.get(name, "NAME/THRESHOLDS, with parts between them")
    fits = identity.count("/") == form.count("/") if name in _FORMS else "/" in identity
    if not (fits and len(identity) <= _LONGEST_IDENTITY and _IDENTITY.fullmatch(identity)):
        raise BadIdentity(
            f"{identity[:_LONGEST_IDENTITY]!a} is no detector's identity: one is {form}, of letters, digits and"
            " . _ + @ -, as `farmwatch detectors` and `farmwatch score` print it"
        )


def name_of(identity: str) -> str:
    """The detector's name, as `load_detector` takes it."""
    return identity.partition("/")[0]


def is_pair(identity: str) -> bool:
    """True for a detector, by name or identity, that reads with a pair of language models."""
    return name_of(identity) in MEASURES


def calibrated(identity: str) -> bool:
    """False for a detector that gives scores and no flags."""
    return identity.rpartition("/")[2] != UNCALIBRATED


def refuse_uncalibrated(identities: Sequence[str]) -> None:
    """Raises Uncalibrated where one of these detectors has no thresholds: site verdicts rest on flags."""
    for identity in identities:
        if not calibrated(identity):
            name = name_of(identity)
            raise Uncalibrated(
                f"{identity} has no thresholds: measure them by `farmwatch calibrate --detector {name}"
                f" --labels FILE` on labelled texts, and name the file that it writes in score.thresholds"
            )


def detector_names() -> list[str]:
    """The names that `load_detector` takes."""
    return sorted(_NAMES)


_NAMES = (BUILT_IN, *MEASURES)
_IDENTITY = re.compile("[A-Za-z0-9_-]+(/[A-Za-z0-9._+@-]+)+")
_LONGEST_IDENTITY = 300
_FORMS: dict[str, str] = {
    BUILT_IN: f"{BUILT_IN}/WEIGHTS/THRESHOLDS",
    **{str(name): f"{name}/OBSERVER+PERFORMER@DIGITS/DTYPE/TOKENS/THRESHOLDS" for name in MEASURES},
}


def _refuse_unknown(settings: ScoreSettings) -> None:
    for name in [*settings.detectors, *settings.thresholds]:
        if name not in _NAMES:
            raise UnknownDetector(f"no detector is called {name!r}; this farmwatch has: {', '.join(detector_names())}")


def _load_built_in(settings: ScoreSettings) -> Detector:
    from scoring.lite_ngram import LiteNgram  # numpy and the weights: not before they are wanted

    detector = LiteNgram.load(settings.weights)
    thresholds = _thresholds(BUILT_IN, settings, base_of(detector.identity))
    return detector if thresholds is None else LiteNgram(detector.weights, detector.warning, thresholds)


def _identity(name: str, settings: ScoreSettings) -> str:
    if name == BUILT_IN:
        return _load_built_in(settings).identity
    base = pair_identity(settings.pair, cast("Measure", name))
    thresholds = _thresholds(name, settings, base)
    return f"{base}/{UNCALIBRATED if thresholds is None else thresholds.tag}"


def _pair_warning(identity: str) -> str:
    from scoring.pair_detector import pair_warning

    return pair_warning(identity)


def _thresholds(name: str, settings: ScoreSettings, base: str) -> ThresholdSet | None:
    chosen = settings.thresholds.get(name)
    if not chosen:
        return None
    from scoring.published import load_thresholds

    return load_thresholds(chosen, base)
