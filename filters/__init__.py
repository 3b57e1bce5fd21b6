"""Page to features to verdict: extraction, blocks, chunks, rules, and the two stages that run them.

Names are loaded when they are first used: importing the package imports no extractor.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from filters.epoch import feature_epoch
    from filters.judge_stage import JudgeStage
    from filters.judging import explain_table, judge
    from filters.measure_stage import MeasureStage
    from filters.measurer import Measurer
    from filters.ruleset import Ruleset, load_ruleset, parse_ruleset, shipped_rulesets
    from filters.settings import JudgeSettings, MeasureSettings
    from filters.workers import ExtractionPool

__all__ = [
    "ExtractionPool",
    "JudgeSettings",
    "JudgeStage",
    "MeasureSettings",
    "MeasureStage",
    "Measurer",
    "Ruleset",
    "explain_table",
    "feature_epoch",
    "judge",
    "load_ruleset",
    "parse_ruleset",
    "shipped_rulesets",
]

_MODULES = {
    "ExtractionPool": "workers",
    "JudgeSettings": "settings",
    "JudgeStage": "judge_stage",
    "MeasureSettings": "settings",
    "MeasureStage": "measure_stage",
    "Measurer": "measurer",
    "Ruleset": "ruleset",
    "explain_table": "judging",
    "feature_epoch": "epoch",
    "judge": "judging",
    "load_ruleset": "ruleset",
    "parse_ruleset": "ruleset",
    "shipped_rulesets": "ruleset",
}


def __getattr__(name: str) -> Any:
    if name not in _MODULES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_MODULES[name]}"), name)
