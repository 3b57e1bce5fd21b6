"""farmwatch as a library: docs/how-to/python.md. Names are loaded at their first use, so that commands start fast."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from farmwatch.api import OpenLog, estimate, judge, measure, open_log, score, tally
    from filters.settings import MeasureSettings
    from scoring.detectors.settings import ScoreSettings
    from scoring.estimate.error_counts import ErrorCounts
    from scoring.sites.settings import TallySettings
    from stream.text.user_errors import FarmwatchError

__all__ = [
    "ErrorCounts",
    "FarmwatchError",
    "MeasureSettings",
    "OpenLog",
    "ScoreSettings",
    "TallySettings",
    "estimate",
    "judge",
    "measure",
    "open_log",
    "score",
    "tally",
]
_ELSEWHERE = {
    "ErrorCounts": "scoring.estimate.error_counts",
    "FarmwatchError": "stream.text.user_errors",
    "MeasureSettings": "filters.settings",
    "ScoreSettings": "scoring.detectors.settings",
    "TallySettings": "scoring.sites.settings",
}


def __getattr__(name: str) -> Any:
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(_ELSEWHERE.get(name, "farmwatch.api")), name)


def __dir__() -> list[str]:
    return [*globals(), *__all__]
