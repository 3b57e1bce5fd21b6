"""Types of bounded numbers for settings.

msgspec checks them when a configuration is read, and docs/reference/configuration.md shows them.
"""

from __future__ import annotations

from typing import Annotated

from msgspec import Meta

TEN_YEARS_S = 315_360_000
MOST = 1_000_000_000  # of anything counted
MOST_BYTES = 2**40
MOST_PROCESSES = 512  # of one command or stage: each takes about 100 MiB

Seconds = Annotated[float, Meta(ge=0, le=TEN_YEARS_S)]
PositiveSeconds = Annotated[float, Meta(gt=0, le=TEN_YEARS_S)]
Count = Annotated[int, Meta(ge=0, le=MOST)]
PositiveCount = Annotated[int, Meta(ge=1, le=MOST)]
SizeBytes = Annotated[int, Meta(ge=0, le=MOST_BYTES)]
PositiveBytes = Annotated[int, Meta(ge=1, le=MOST_BYTES)]
