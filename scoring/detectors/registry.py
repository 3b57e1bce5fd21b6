"""The detectors, a row each; loaded by their names, or known by identity and warning without loading a model."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from functools import cache, partial
from typing import TYPE_CHECKING, Literal, NamedTuple

from scoring.encoder.detector import EncoderDetector, encoder_warning, load_encoder_engine
from scoring.encoder.settings import encoder_identity
from scoring.engine.detector import of_threshold_set
from scoring.errors import BadIdentity, BadThresholds, UnknownDetector
from scoring.interface import BUILT_IN, UNCALIBRATED, Detector, name_of
from scoring.pair.detector import STATED, PairDetector, load_pair_engine, pair_warning
from scoring.pair.settings import Measure, pair_identity
from stream.text.user_errors import FarmwatchError

if TYPE_CHECKING:
    from scoring.detectors.settings import ScoreSettings
    from scoring.lite_ngram.detector import LiteNgram
    from scoring.pair.engine import PairEngine
    from scoring.thresholds.threshold_set import ThresholdSet

Number = Literal["score", "p_llm"]


class DetectorKind(NamedTuple):
    """A detector of this farmwatch; its heavy libraries are imported by `describe` and `load`."""

    form: str  # of its identities
    describe: Callable[[ScoreSettings], tuple[str, str]]  # identity and warning, from small files
    load: Callable[[ScoreSettings, Callable[[], PairEngine]], Detector]  # the engine is shared by all pairs
    compared: Number = "score"  # number that is compared with a threshold
    llm_below: bool = False  # side of the threshold that is llm
    warning_of: Callable[[str], str] | None = None  # warning of an identity that is not configured
    divides_by_perplexity: bool = False


def _load_built_in(settings: ScoreSettings, _: object = None) -> LiteNgram:
    from scoring.lite_ngram.detector import LiteNgram  # numpy and the weights, only when needed

    detector = LiteNgram.load(settings.weights)
    thresholds = _thresholds(BUILT_IN, settings, base_of(detector.identity), detector.published)
    if thresholds is None:
        return detector
    warning = detector.warning
    if thresholds.measured_on:
        what, _, rest = warning.partition("; indicative only")
        warning = f"{what}; {of_threshold_set(thresholds.tag, thresholds.measured_on)}{rest}"
    return LiteNgram(detector.weights, warning, thresholds, detector.flags)


def _describe_built_in(settings: ScoreSettings) -> tuple[str, str]:
    detector = _load_built_in(settings)
    return detector.identity, detector.warning


def _pair(measure: Measure, *, llm_below: bool) -> DetectorKind:
    def describe(settings: ScoreSettings) -> tuple[str, str]:
        base = pair_identity(settings.pair, measure)
        thresholds = _thresholds(measure, settings, base)
        identity = f"{base}/{UNCALIBRATED if thresholds is None else thresholds.tag}"
        return identity, pair_warning(identity, thresholds.measured_on if thresholds else "")

    def load(settings: ScoreSettings, engine: Callable[[], PairEngine]) -> PairDetector:
        base = pair_identity(settings.pair, measure)
        return PairDetector(engine(), base, measure, _thresholds(measure, settings, base))

    form = f"{measure}/OBSERVER+PERFORMER@DIGITS/DTYPE/TOKENS/THRESHOLDS"
    return DetectorKind(form, describe, load, llm_below=llm_below, warning_of=pair_warning, divides_by_perplexity=True)


def _describe_encoder(settings: ScoreSettings) -> tuple[str, str]:
    base = encoder_identity(settings.encoder)
    thresholds = _thresholds("encoder", settings, base)
    identity = f"{base}/{UNCALIBRATED if thresholds is None else thresholds.tag}"
    return identity, encoder_warning(identity, thresholds.measured_on if thresholds else "")


def _load_encoder(settings: ScoreSettings, _: object = None) -> EncoderDetector:
    base = encoder_identity(settings.encoder)
    return EncoderDetector(load_encoder_engine(settings.encoder), base, _thresholds("encoder", settings, base))


DETECTORS: dict[str, DetectorKind] = {
    "binoculars": _pair("binoculars", llm_below=True),
    "fast-detectgpt": _pair("fast-detectgpt", llm_below=False),
    "encoder": DetectorKind(
        "encoder/NAME@DIGITS/DTYPE/TOKENSxWINDOWS/THRESHOLDS",
        _describe_encoder,
        _load_encoder,
        warning_of=encoder_warning,
    ),
    BUILT_IN: DetectorKind(f"{BUILT_IN}/WEIGHTS/THRESHOLDS", _describe_built_in, _load_built_in, compared="p_llm"),
}


def load_detectors(settings: ScoreSettings) -> list[Detector]:
    """Load the detectors of `settings`, in its order.

    Raises UnknownDetector, BadWeights, BadThresholds.
    """
    detector_warnings(settings)  # what small files show fails before minutes of loading
    engine = cache(partial(load_pair_engine, settings.pair))
    return [DETECTORS[name].load(settings, engine) for name in settings.detectors]


def detector_identities(settings: ScoreSettings) -> list[str]:
    """Identities of the detectors of `settings`, in its order: known from small files, without torch or weights.

    Raises as `load_detectors`.
    """
    return list(detector_warnings(settings))


def detector_warnings(settings: ScoreSettings) -> dict[str, str]:
    """Identity -> warning of the detectors of `settings`, without torch or the weights of language models.

    Raises as `load_detectors`.
    """
    for name in [*settings.detectors, *settings.thresholds]:
        if name not in DETECTORS:
            raise UnknownDetector(f"no detector is called {name!r}; there are {', '.join(sorted(DETECTORS))}")
    return dict(DETECTORS[name].describe(settings) for name in settings.detectors)


def threshold_set_of(settings: ScoreSettings, identity: str) -> ThresholdSet | None:
    """The set of `score.thresholds` for the detector `identity`; None if it has its own, or none.

    Raises BadThresholds if the set is not the one that the identity names.
    """
    base, name = base_of(identity), name_of(identity)
    own = _load_built_in(settings).published if name == BUILT_IN else ()
    chosen = _thresholds(name, settings, base, own)
    if chosen is not None and f"{base}/{chosen.tag}" != identity:
        raise BadThresholds(f"score.thresholds has {chosen.tag} for {name}, not the set of {identity}: set both alike")
    return chosen


def stated_flags(settings: ScoreSettings, identity: str) -> float | None:
    """The share of human pages that the card of the detector `identity` says it flags; None: it has none here.

    The card is the measurement in a threshold set, that of the published thresholds of a pair, or that in the training
    of the built-in detector, of the web collection of which it flags the most.
    """
    try:
        chosen = threshold_set_of(settings, identity)
        built_in = _load_built_in(settings) if name_of(identity) == BUILT_IN else None
    except FarmwatchError:  # of another threshold set, or its files are not here
        return None
    if chosen is not None and not chosen.published:
        return chosen.measured.flags if chosen.measured else None
    if built_in is not None:
        own = built_in.published[0]
        return built_in.flags if identity == f"{own.detector}/{own.tag}" else None
    return STATED.get(identity.rpartition("/")[2]) if "/" in identity else None


def _thresholds(name: str, settings: ScoreSettings, base: str, own: Sequence[ThresholdSet] = ()) -> ThresholdSet | None:
    chosen = settings.thresholds.get(name)
    if not chosen:
        return None
    from scoring.thresholds.threshold_set import load_thresholds

    return load_thresholds(chosen, base, own)


_IDENTITY = re.compile("[A-Za-z0-9_-]+(/[A-Za-z0-9._+@-]+)+")
_LONGEST_IDENTITY = 300


def base_of(identity: str) -> str:
    """The identity without its last part, the thresholds. Raises BadIdentity for an incomplete identity."""
    refuse_bad_identity(identity)
    return identity.rpartition("/")[0]


def refuse_bad_identity(identity: str) -> None:
    """Raises BadIdentity, in printable characters, for a string that is no detector's identity."""
    kind = DETECTORS.get(name_of(identity))
    form = kind.form if kind else "NAME/THRESHOLDS, with parts between them"
    fits = identity.count("/") == form.count("/") if kind else "/" in identity
    if not (fits and len(identity) <= _LONGEST_IDENTITY and _IDENTITY.fullmatch(identity)):
        raise BadIdentity(
            f"{identity[:_LONGEST_IDENTITY]!a} is no detector's identity: one is {form}, of letters, digits and"
            " . _ + @ -"
        )
