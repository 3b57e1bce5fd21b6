"""The subject of a check, and its result."""

from __future__ import annotations

import enum
from collections.abc import Collection, Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from farmwatch.config.config import Config
from stream.log.contract import Log
from stream.schema.roles import Role


class CheckState(enum.StrEnum):
    """How a check ended. WARN does not stop farmwatch; FAIL does, or makes its results wrong."""

    OK = "OK"
    WARN = "WARN"
    FAIL = "FAIL"


@dataclass(slots=True)
class Subject:
    """The configuration for these roles, and the log once it is open."""

    config: Config
    roles: Collection[Role] = tuple(Role)
    log: Log | None = None
    file: Path | None = None  # of the configuration


@dataclass(frozen=True, slots=True)
class CheckResult:
    """The result of a check, and the remedy; the list of checks fills in the name."""

    state: CheckState
    found: str
    mend: str = ""
    check: str = ""


Results = Iterator[CheckResult]  # of one check; an error that it raises is a FAIL with its message as the remedy


ok = partial(CheckResult, CheckState.OK)
warn = partial(CheckResult, CheckState.WARN)
fail = partial(CheckResult, CheckState.FAIL)
