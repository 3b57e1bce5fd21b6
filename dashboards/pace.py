"""Durations in queries: written `@30m`, and as long as that, or shorter for a test that cannot wait.

`@30m seconds` is their number, for a comparison: 1800.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

_UNITS = {"d": 86_400, "h": 3600, "m": 60, "s": 1}
_DURATION = re.compile(r"@(\d+)([smhd])")
_NUMBER = re.compile(r"(@\d+[smhd]) seconds")
_LIVE = " and on (run) farmwatch_live_run_info"  # a run that is not live any more keeps its last values


@dataclass(frozen=True, slots=True)
class Durations:
    """`faster`: by how much all durations are divided; none becomes shorter than `least_s`, some scrapes."""

    faster: float = 1
    least_s: float = 5

    def seconds(self, text: str) -> int:
        """Seconds of `@30m`."""
        found = _DURATION.fullmatch(text)
        assert found is not None, text
        wanted_s = int(found[1]) * _UNITS[found[2]]
        return max(round(wanted_s / self.faster), round(min(self.least_s, wanted_s)))

    def threshold(self, than: float | str) -> float:
        """A number, or the seconds of a duration."""
        return self.seconds(than) if isinstance(than, str) else than

    def duration(self, text: str) -> str:
        """`@30m` as Prometheus writes it: 30m."""
        seconds = self.seconds(text)
        unit = next(unit for unit, size in _UNITS.items() if seconds % size == 0)
        return f"{seconds // _UNITS[unit]}{unit}"

    def query(self, text: str) -> str:
        """The query with its durations, and ` @live`: of the run that is live alone."""
        text = _NUMBER.sub(lambda found: str(self.seconds(found[1])), text.replace(" @live", _LIVE))
        return _DURATION.sub(lambda found: self.duration(found[0]), text)
