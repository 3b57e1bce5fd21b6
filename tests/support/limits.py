"""Settings with other values of their constants, which no configuration can set."""

from __future__ import annotations

from typing import Any, TypeVar

import msgspec
from msgspec.structs import asdict

S = TypeVar("S", bound=msgspec.Struct)


def with_limits(base: S, **changes: Any) -> S:
    """`base` with changes, also of the limits that are constants of its class."""
    limits = {name: value for name, value in changes.items() if name not in base.__struct_fields__}
    assert all(hasattr(base, name) for name in limits), limits
    options = {"frozen": True, "forbid_unknown_fields": True, "kw_only": True}
    kind: type[S] = type("LimitedSettings", (type(base),), limits, **options) if limits else type(base)
    return kind(**asdict(base) | {name: value for name, value in changes.items() if name not in limits})
