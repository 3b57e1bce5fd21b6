"""The settings that runs need; the configuration of a process provides them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from filters.settings import JudgeSettings, MeasureSettings
    from scoring.detectors.settings import ScoreSettings
    from scoring.rates.settings import RateSettings
    from scoring.sites.settings import TallySettings
    from stream.processing.loop import LoopSettings


class ReplaySettings(Protocol):
    """Sections of the configuration: for the stages of a run, the loop, and the rate."""

    @property
    def measure(self) -> MeasureSettings: ...

    @property
    def judge(self) -> JudgeSettings: ...

    @property
    def score(self) -> ScoreSettings: ...

    @property
    def tally(self) -> TallySettings: ...

    @property
    def loop(self) -> LoopSettings: ...

    @property
    def rate(self) -> RateSettings: ...
