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
    def measure(self) -> MeasureSettings:
        """Settings of MEASURE."""

    @property
    def judge(self) -> JudgeSettings:
        """Settings of JUDGE."""

    @property
    def score(self) -> ScoreSettings:
        """Settings of SCORE."""

    @property
    def tally(self) -> TallySettings:
        """Settings of TALLY."""

    @property
    def loop(self) -> LoopSettings:
        """Settings of the loop that runs a stage."""

    @property
    def rate(self) -> RateSettings:
        """Settings of the rate."""
