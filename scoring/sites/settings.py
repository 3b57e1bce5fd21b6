"""Settings of TALLY: how sites are judged."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import msgspec

from scoring.interface import MethodName
from scoring.sites.deciles import PAGES
from scoring.sites.sprt import SprtParams
from stream.text.ranges import PositiveCount, Seconds
from stream.text.times import DAY_MS


class TallySettings(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Settings of TALLY, in order of use."""

    detector: str = ""
    """Detector that decides site verdicts: a name in score.detectors, or a whole identity; "": the first name."""
    method: MethodName = "sprt"
    """The site method: sprt (flags) or deciles (scores of 15 pages or more): docs/explanation/sites.md"""
    sprt: SprtParams | None = None
    """Parameters of the sequential test: a table such as `{p0 = 0.3, p1 = 0.6}`, whose other keys have the defaults
    below; unset: those of the threshold set, else those that belong to the detector."""
    deciles: Path | None = None
    """File of decile numbers trained on labelled sites, instead of those that ship."""
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
    def close_after_ms(self) -> int:
        return round(self.close_after_s * 1000)

    @property
    def term_ms(self) -> int:
        return max(1, round(self.term_days * DAY_MS))

    @property
    def enough_if_mixed(self) -> int:
        return 2 * self.enough_articles if self.mixed_articles is None else self.mixed_articles
