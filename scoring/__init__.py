"""scoring: article → score → site → rate. Names are imported when they are first used, so that `--help` stays fast."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from scoring.calibration import calibrate
    from scoring.calibration_report import CalibrationReport
    from scoring.canary import is_canary, truth_of
    from scoring.detector import (
        BUILT_IN,
        Detector,
        TextScore,
        detector_identities,
        detector_names,
        load_detector,
        load_detectors,
    )
    from scoring.errors import (
        BadParameters,
        BadSiteNumbers,
        BadThresholds,
        BadTrainingData,
        BadWeights,
        CalibrationRefused,
        CannotScore,
        DeviceGone,
        DeviceLost,
        DifferentTokenizers,
        MissingExtra,
        MissingModel,
        NoDevice,
        NoSiteTest,
        OutOfDeviceMemory,
        PoisonText,
        PooledDetectors,
        ScoringError,
        TrainingRefused,
        Uncalibrated,
        UnknownDetector,
        UnsupportedModel,
    )
    from scoring.gaussian_test import GaussianParams
    from scoring.kept_method import method_of_text, text_of_method
    from scoring.labelled_scores import LabelledScores, ScoredLabel, gather
    from scoring.method_choice import chosen_method, site_method
    from scoring.pair_detector import PairDetector, load_pair_engine
    from scoring.pair_engine import PairEngine
    from scoring.pair_scores import PairReading
    from scoring.pair_settings import PairSettings
    from scoring.panel import Panel
    from scoring.pipes import (
        EstimateLine,
        FlagLine,
        ScoreLine,
        SiteLine,
        SiteVerdictLine,
        TextLine,
        estimate_sites,
        score_texts,
        tally_scores,
    )
    from scoring.published import load_thresholds, published_for
    from scoring.rate import ErrorCounts, Rate, estimate
    from scoring.score_stage import ScoreStage
    from scoring.settings import ScoreSettings, TallySettings
    from scoring.site_method import PageScore, SiteMethod, SiteVerdict
    from scoring.site_rates import SiteRate, by_query_group, by_rank_band, by_source, by_window, rates_by, site_rate
    from scoring.site_training import LabelledSite, train_sites
    from scoring.site_verdict import LITE_NGRAM_PARAMS, SiteTest, SprtParams, params_for
    from scoring.tally_stage import TallyStage
    from scoring.threshold_set import Curve, ThresholdSet
    from scoring.training import TrainingOptions, run_training

_HOMES = {
    "scoring.calibration": ("calibrate",),
    "scoring.calibration_report": ("CalibrationReport",),
    "scoring.canary": (
        "is_canary",
        "truth_of",
    ),
    "scoring.detector": (
        "BUILT_IN",
        "Detector",
        "TextScore",
        "detector_identities",
        "detector_names",
        "load_detector",
        "load_detectors",
    ),
    "scoring.errors": (
        "BadParameters",
        "BadSiteNumbers",
        "BadThresholds",
        "BadTrainingData",
        "BadWeights",
        "CalibrationRefused",
        "CannotScore",
        "DeviceGone",
        "DeviceLost",
        "DifferentTokenizers",
        "MissingExtra",
        "MissingModel",
        "NoDevice",
        "NoSiteTest",
        "OutOfDeviceMemory",
        "PoisonText",
        "PooledDetectors",
        "ScoringError",
        "TrainingRefused",
        "Uncalibrated",
        "UnknownDetector",
        "UnsupportedModel",
    ),
    "scoring.gaussian_test": ("GaussianParams",),
    "scoring.kept_method": (
        "method_of_text",
        "text_of_method",
    ),
    "scoring.labelled_scores": (
        "LabelledScores",
        "ScoredLabel",
        "gather",
    ),
    "scoring.method_choice": (
        "chosen_method",
        "site_method",
    ),
    "scoring.pair_detector": (
        "PairDetector",
        "load_pair_engine",
    ),
    "scoring.pair_engine": ("PairEngine",),
    "scoring.pair_scores": ("PairReading",),
    "scoring.pair_settings": ("PairSettings",),
    "scoring.panel": ("Panel",),
    "scoring.pipes": (
        "EstimateLine",
        "FlagLine",
        "ScoreLine",
        "SiteLine",
        "SiteVerdictLine",
        "TextLine",
        "estimate_sites",
        "score_texts",
        "tally_scores",
    ),
    "scoring.published": (
        "load_thresholds",
        "published_for",
    ),
    "scoring.rate": (
        "ErrorCounts",
        "Rate",
        "estimate",
    ),
    "scoring.score_stage": ("ScoreStage",),
    "scoring.settings": (
        "ScoreSettings",
        "TallySettings",
    ),
    "scoring.site_method": (
        "PageScore",
        "SiteMethod",
        "SiteVerdict",
    ),
    "scoring.site_rates": (
        "SiteRate",
        "by_query_group",
        "by_rank_band",
        "by_source",
        "by_window",
        "rates_by",
        "site_rate",
    ),
    "scoring.site_training": (
        "LabelledSite",
        "train_sites",
    ),
    "scoring.site_verdict": (
        "LITE_NGRAM_PARAMS",
        "SiteTest",
        "SprtParams",
        "params_for",
    ),
    "scoring.tally_stage": ("TallyStage",),
    "scoring.threshold_set": (
        "Curve",
        "ThresholdSet",
    ),
    "scoring.training": (
        "TrainingOptions",
        "run_training",
    ),
}
_HOME_OF = {name: home for home, names in _HOMES.items() for name in names}

__all__ = [
    "BUILT_IN",
    "LITE_NGRAM_PARAMS",
    "BadParameters",
    "BadSiteNumbers",
    "BadThresholds",
    "BadTrainingData",
    "BadWeights",
    "CalibrationRefused",
    "CalibrationReport",
    "CannotScore",
    "Curve",
    "Detector",
    "DeviceGone",
    "DeviceLost",
    "DifferentTokenizers",
    "ErrorCounts",
    "EstimateLine",
    "FlagLine",
    "GaussianParams",
    "LabelledScores",
    "LabelledSite",
    "MissingExtra",
    "MissingModel",
    "NoDevice",
    "NoSiteTest",
    "OutOfDeviceMemory",
    "PageScore",
    "PairDetector",
    "PairEngine",
    "PairReading",
    "PairSettings",
    "Panel",
    "PoisonText",
    "PooledDetectors",
    "Rate",
    "ScoreLine",
    "ScoreSettings",
    "ScoreStage",
    "ScoredLabel",
    "ScoringError",
    "SiteLine",
    "SiteMethod",
    "SiteRate",
    "SiteTest",
    "SiteVerdict",
    "SiteVerdictLine",
    "SprtParams",
    "TallySettings",
    "TallyStage",
    "TextLine",
    "TextScore",
    "ThresholdSet",
    "TrainingOptions",
    "TrainingRefused",
    "Uncalibrated",
    "UnknownDetector",
    "UnsupportedModel",
    "by_query_group",
    "by_rank_band",
    "by_source",
    "by_window",
    "calibrate",
    "chosen_method",
    "detector_identities",
    "detector_names",
    "estimate",
    "estimate_sites",
    "gather",
    "is_canary",
    "load_detector",
    "load_detectors",
    "load_pair_engine",
    "load_thresholds",
    "method_of_text",
    "params_for",
    "published_for",
    "rates_by",
    "run_training",
    "score_texts",
    "site_method",
    "site_rate",
    "tally_scores",
    "text_of_method",
    "train_sites",
    "truth_of",
]


def __getattr__(name: str) -> Any:
    home = _HOME_OF.get(name)
    if home is None:
        raise AttributeError(f"module 'scoring' has no attribute {name!r}")
    return getattr(import_module(home), name)
