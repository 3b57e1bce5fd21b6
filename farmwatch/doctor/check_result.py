"""What the doctor finds: one line a check."""

from __future__ import annotations

import enum
from dataclasses import dataclass


class CheckState(enum.StrEnum):
    """How a check ended. WARN does not stop farmwatch; FAIL does, or makes its results wrong."""

    OK = "OK"
    WARN = "WARN"
    FAIL = "FAIL"


@dataclass(frozen=True, slots=True)
class CheckResult:
    """One line of the doctor: what was looked at, what was found, and how to mend it."""

    check: str
    state: CheckState
    found: str
    mend: str = ""
