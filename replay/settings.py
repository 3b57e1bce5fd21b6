"""The settings that runs take. The configuration of a process has them all."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from filters.settings import JudgeSettings, MeasureSettings
    from scoring.rates.settings import RateSettings
    from scoring.settings import ScoreSettings, TallySettings
    from stream.processing.loop import LoopSettings


class ReplaySettings(Protocol):
    """Sections of the configuration: of the stages that a run goes through, of the loop, and of the rate."""

    @property
    def measure(self) -> MeasureSettings:
        """Of MEASURE."""

    @property
    def judge(self) -> JudgeSettings:
        """Of JUDGE."""

    @property
    def score(self) -> ScoreSettings:
        """Of SCORE."""

    @property
    def tally(self) -> TallySettings:
        """Of TALLY."""

    @property
    def loop(self) -> LoopSettings:
        """Of the loop that runs a stage."""

    @property
    def rate(self) -> RateSettings:
        """Of the rate."""
