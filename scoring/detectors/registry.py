"""The detectors of a configuration: loaded, or their identities and warnings without loading them."""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

from scoring.errors import BadThresholds, UnknownDetector
from scoring.interface import BUILT_IN, MEASURES, UNCALIBRATED, Detector, Measure, base_of, name_of
from scoring.pair.settings import pair_identity

if TYPE_CHECKING:
    from scoring.detectors.settings import ScoreSettings
    from scoring.lite_ngram.detector import LiteNgram
    from scoring.thresholds.threshold_set import ThresholdSet


def load_detectors(settings: ScoreSettings) -> list[Detector]:
    """Load the detectors of `settings`, in its order.

    Raises UnknownDetector, BadWeights, BadThresholds.
    """
    _refuse_unknown(settings)
    loaded: dict[str, Detector] = {}
    if BUILT_IN in settings.detectors:
        loaded[BUILT_IN] = _load_built_in(settings)
    if settings.uses_pair:
        from scoring.pair.detector import PairDetector, load_pair_engine

        chosen = {name: _pair_thresholds(name, settings) for name in MEASURES if name in settings.detectors}
        engine = load_pair_engine(settings.pair)
        loaded |= {name: PairDetector(engine, base, name, found) for name, (base, found) in chosen.items()}
    return [loaded[name] for name in settings.detectors]


def detector_identities(settings: ScoreSettings) -> list[str]:
    """Identities of the detectors of `settings`, in its order: known from small files, without torch or weights.

    Raises as `load_detectors`.
    """
    return list(detector_warnings(settings))


def detector_warnings(settings: ScoreSettings) -> dict[str, str]:
    """Identity -> warning of the detectors of `settings`, without torch or the weights of language models.

    Raises as `load_detectors`.
    """
    from scoring.pair.detector import pair_warning

    _refuse_unknown(settings)
    warnings: dict[str, str] = {}
    for name in settings.detectors:
        if name == BUILT_IN:
            detector = _load_built_in(settings)
            warnings[detector.identity] = detector.warning
        else:
            base, thresholds = _pair_thresholds(cast("Measure", name), settings)
            identity = f"{base}/{UNCALIBRATED if thresholds is None else thresholds.tag}"
            warnings[identity] = pair_warning(identity)
    return warnings


def threshold_set_of(settings: ScoreSettings, identity: str) -> ThresholdSet | None:
    """The set of `score.thresholds` for the detector `identity`; None if it has its own, or none.

    Raises BadThresholds if the set is not the one that the identity names.
    """
    chosen = _thresholds(name_of(identity), settings, base_of(identity))
    if chosen is not None and f"{base_of(identity)}/{chosen.tag}" != identity:
        raise BadThresholds(
            f"score.thresholds has {chosen.tag} for {name_of(identity)}, not the set of {identity}: set both alike"
        )
    return chosen


def detector_names() -> list[str]:
    """The names of all detectors."""
    return sorted(_NAMES)


_WITH_THRESHOLDS = (BUILT_IN, *MEASURES)  # those that read score.thresholds
_NAMES = (*_WITH_THRESHOLDS,)


def _refuse_unknown(settings: ScoreSettings) -> None:
    for name in [*settings.detectors, *settings.thresholds]:
        if name not in _NAMES:
            raise UnknownDetector(f"no detector is called {name!r}; this farmwatch has: {', '.join(detector_names())}")
    for name in settings.thresholds:
        if name not in _WITH_THRESHOLDS:
            raise BadThresholds(f"{name} takes no thresholds: take it out of score.thresholds")


def _load_built_in(settings: ScoreSettings) -> LiteNgram:
    from scoring.lite_ngram.detector import LiteNgram  # numpy and the weights, only when needed

    detector = LiteNgram.load(settings.weights)
    thresholds = _thresholds(BUILT_IN, settings, base_of(detector.identity))
    return detector if thresholds is None else LiteNgram(detector.weights, detector.warning, thresholds)


def _pair_thresholds(name: Measure, settings: ScoreSettings) -> tuple[str, ThresholdSet | None]:
    """The identity without its threshold set, and that set."""
    base = pair_identity(settings.pair, name)
    return base, _thresholds(name, settings, base)


def _thresholds(name: str, settings: ScoreSettings, base: str) -> ThresholdSet | None:
    chosen = settings.thresholds.get(name)
    if not chosen:
        return None
    from scoring.thresholds.published import load_thresholds

    return load_thresholds(chosen, base)
