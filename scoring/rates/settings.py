"""Settings of the rate: confidence, corrections, groups, and the series that is kept."""

from __future__ import annotations

from typing import Annotated

import msgspec

from scoring.rates.groups import OTHER
from stream.text.ranges import TEN_YEARS_S

_RESERVED_GROUPS = (OTHER, "unknown")


class RateSettings(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """How the rate is estimated, split and kept."""

    confidence: Annotated[float, msgspec.Meta(gt=0, lt=1)] = 0.95
    """Confidence of the interval."""
    canary_days: Annotated[float, msgspec.Meta(gt=0, le=3650)] = 30.0
    """Days for which a canary site counts."""
    review: str = ""
    """File of people's labels of a sample of sites, or folder of such files; with 20 sites or more the share uses
    them."""
    review_days: Annotated[float, msgspec.Meta(gt=0, le=3650)] = 180.0
    """Days after the draw of its sample for which a label counts."""
    groups: dict[str, list[str]] = {}
    """Groups of queries, as a table of name -> patterns of query ids, such as health = ["health-*"]; the first group
    that matches counts, and other queries are in the group `other`."""
    series_s: Annotated[int, msgspec.Meta(ge=60, le=TEN_YEARS_S)] = 3600
    """Seconds between two points of the stored series."""

    def __post_init__(self) -> None:
        for name in self.groups:
            if not name.strip() or name in _RESERVED_GROUPS:
                raise ValueError(f"groups: a group cannot be called {name!r}: that is what sites without one are in")
