"""Page to features to verdict: extraction, blocks, chunks, rules, and the two stages that run them.

Names are loaded when they are first used: importing the package imports no extractor.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from filters.epoch import feature_epoch
    from filters.judge_stage import JudgeStage
    from filters.judging import judge, judge_and_text, scored_text
    from filters.known_scores import KnownScores
    from filters.measure_stage import MeasureStage
    from filters.measurer import Measurer
    from filters.ruleset import Ruleset, load_ruleset, parse_ruleset, read_ruleset, shipped_rulesets
    from filters.ruleset_diff import Difference, differences
    from filters.settings import JudgeSettings, MeasureSettings
    from filters.workers import ExtractionPool

__all__ = [
    "Difference",
    "ExtractionPool",
    "JudgeSettings",
    "JudgeStage",
    "KnownScores",
    "MeasureSettings",
    "MeasureStage",
    "Measurer",
    "Ruleset",
    "differences",
    "feature_epoch",
    "judge",
    "judge_and_text",
    "load_ruleset",
    "parse_ruleset",
    "read_ruleset",
    "scored_text",
    "shipped_rulesets",
]

_MODULES = {
    "Difference": "ruleset_diff",
    "ExtractionPool": "workers",
    "JudgeSettings": "settings",
    "JudgeStage": "judge_stage",
    "KnownScores": "known_scores",
    "MeasureSettings": "settings",
    "MeasureStage": "measure_stage",
    "Measurer": "measurer",
    "Ruleset": "ruleset",
    "differences": "ruleset_diff",
    "feature_epoch": "epoch",
    "judge": "judging",
    "judge_and_text": "judging",
    "load_ruleset": "ruleset",
    "parse_ruleset": "ruleset",
    "read_ruleset": "ruleset",
    "scored_text": "judging",
    "shipped_rulesets": "ruleset",
}


def __getattr__(name: str) -> Any:
    if name not in _MODULES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_MODULES[name]}"), name)
