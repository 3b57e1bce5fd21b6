"""A site's row as JSON, for `farmwatch sites` and the console."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec

from scoring.rates.terms import counted_at, is_too_old
from stream.schema.records import SiteState
from stream.schema.runs import shown_run


def site_fields(row: SiteState, likely: Mapping[str, float], now_ms: int) -> dict[str, Any]:
    """Its fields, the probability that it is an LLM site (`likely` has those that are known), and whether it counts."""
    fields = {name: value for name, value in msgspec.structs.asdict(row).items() if name not in ("v", "id")}
    values: dict[str, Any] = msgspec.to_builtins(fields)
    too_old = is_too_old(counted_at(row, now_ms))
    return {**values, "run": shown_run(row.run), "p_llm": likely.get(row.site), "too_old": too_old}
