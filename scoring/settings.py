"""Settings of the SCORE and TALLY stages."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import msgspec

from scoring.interface import MEASURES, MethodName
from scoring.pair.settings import PairSettings
from scoring.sites.deciles import PAGES
from scoring.sites.gaussian import GaussianParams
from scoring.sites.sprt import SprtParams
from stream.text.ranges import Count, PositiveCount, Seconds
from stream.text.times import DAY_MS


class ScoreSettings(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Settings of SCORE, in order of use."""

    detectors: list[str] = msgspec.field(default_factory=lambda: ["lite-ngram"])
    """Names of the detectors, each with its own identity; `farmwatch detectors` lists them."""
    weights: Path | None = None
    """Weights file of lite-ngram instead of the shipped one; its numbers are next to it as .json."""
    thresholds: dict[str, str] = {}
    """Detector's name -> a threshold set: the name of a published one, or a file of `farmwatch calibrate`."""
    batch_texts: Annotated[int, msgspec.Meta(ge=0, le=100_000)] = 0
    """Texts per batch; 0: 256, or 16 if a pair of models reads on a cpu. Two batches are in flight, and a live text
    waits for at most these while replays are scored."""
    remembered_texts: Count = 20_000
    """Texts whose scores are kept in memory; 0 = none."""
    pair: PairSettings = PairSettings()

    def __post_init__(self) -> None:
        if not self.detectors:
            raise ValueError("score.detectors is empty: name at least one, such as lite-ngram")
        twice = sorted({name for name in self.detectors if self.detectors.count(name) > 1})
        if twice:
            raise ValueError(f"score.detectors names {', '.join(twice)} twice")

    @property
    def texts_at_once(self) -> int:
        """Texts per batch: as set, or else by the device; a stop may repeat a batch."""
        return self.batch_texts or (16 if self.uses_pair and self.pair.device == "cpu" else 256)

    @property
    def uses_pair(self) -> bool:
        return any(name in MEASURES for name in self.detectors)


class TallySettings(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Settings of TALLY, in order of use."""

    detector: str = ""
    """Detector that decides site verdicts: a name in score.detectors, or a whole identity; "": the first name."""
    method: MethodName = "sprt"
    """The site method: sprt (flags), gaussian (scores) or deciles (15 pages or more): docs/explanation/sites.md"""
    sprt: SprtParams | None = None
    """Parameters of the sequential test: a table such as `{p0 = 0.3, p1 = 0.6}`, whose other keys have the defaults
    below; unset: those of the threshold set, else those that belong to the detector."""
    gaussian: GaussianParams | None = None
    """Parameters of the method gaussian: a table, whose other keys have the defaults below; unset: those that belong to
    the detector, where there are any."""
    deciles: Path | None = None
    """File of `farmwatch train-sites` instead of the decile numbers that ship with farmwatch."""
    enough_articles: PositiveCount = 20
    """Usable scores (articles of different text, not abstained) after which crawling stops without a verdict."""
    mixed_articles: PositiveCount | None = None
    """The same for a mixed site, decided or not; unset: twice enough_articles."""
    close_after_s: Seconds = 86_400.0
    """Seconds after the deciding page in which later pages may still correct a site's verdict; 0 = none may."""
    term_days: Annotated[float, msgspec.Meta(gt=0, le=3650)] = 90.0
    """Days for which a verdict holds, counted from the site's first page; then the site is measured again."""

    def __post_init__(self) -> None:
        if self.method == "deciles" and self.enough_articles < PAGES:
            raise ValueError(f"enough_articles must be at least {PAGES}: the method deciles judges no site by fewer")
        if self.mixed_articles is not None and self.mixed_articles < self.enough_articles:
            raise ValueError("mixed_articles must be at least enough_articles")

    @property
    def term_ms(self) -> int:
        return max(1, round(self.term_days * DAY_MS))

    @property
    def enough_if_mixed(self) -> int:
        return 2 * self.enough_articles if self.mixed_articles is None else self.mixed_articles
