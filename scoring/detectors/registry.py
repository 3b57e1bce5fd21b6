"""What a detector is, how those of a configuration are loaded, and what they are called without loading them."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, cast

from scoring.errors import BadThresholds, UnknownDetector
from scoring.interface import BUILT_IN, MEASURES, UNCALIBRATED, Detector, Measure, base_of, name_of
from scoring.pair.settings import pair_identity

if TYPE_CHECKING:
    from scoring.settings import ScoreSettings
    from scoring.thresholds.threshold_set import ThresholdSet


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
        from scoring.pair.detector import load_pair_detectors

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


def detector_names() -> list[str]:
    """The names that `load_detector` takes."""
    return sorted(_NAMES)


_NAMES = (BUILT_IN, *MEASURES)


def _refuse_unknown(settings: ScoreSettings) -> None:
    for name in [*settings.detectors, *settings.thresholds]:
        if name not in _NAMES:
            raise UnknownDetector(f"no detector is called {name!r}; this farmwatch has: {', '.join(detector_names())}")


def _load_built_in(settings: ScoreSettings) -> Detector:
    from scoring.lite_ngram.detector import LiteNgram  # numpy and the weights: not before they are wanted

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
    from scoring.pair.detector import pair_warning

    return pair_warning(identity)


def _thresholds(name: str, settings: ScoreSettings, base: str) -> ThresholdSet | None:
    chosen = settings.thresholds.get(name)
    if not chosen:
        return None
    from scoring.thresholds.published import load_thresholds

    return load_thresholds(chosen, base)
