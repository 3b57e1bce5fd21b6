"""A comparison as JSON, and its sample as the lines of a sample file for labels."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import msgspec

from filters.rules.ruleset import load_ruleset, shipped_rulesets
from replay.compare.comparison import Comparison, Side
from replay.compare.verdict_join import fetch_key
from scoring.estimate.remarks import Remark


def as_json(found: Comparison, text_of: Callable[[Iterable[Remark]], str]) -> dict[str, Any]:
    """The fields of the comparison, with their sums; changes and remarks as text."""
    answer: dict[str, Any] = msgspec.to_builtins(found)
    answer["a"]["classifiable"], answer["b"]["classifiable"] = found.a.classifiable, found.b.classifiable
    for name, side in (("a", found.a), ("b", found.b)):
        for part, remarks in (("estimate", side.estimate.remarks), ("judged", side.judged.remarks)):
            del answer[name][part]["remarks"]
            answer[name][part]["text"] = text_of(remarks)
    answer["pages"]["common"] = found.pages.common
    answer["sites"]["llm_table"] = found.sites.llm_table
    changes = [found.changes, *(group.changes for group in found.groups)]
    for described, of in zip([answer, *answer["groups"]], changes, strict=True):
        described["changes"] = [{**msgspec.to_builtins(change), "text": change.text} for change in of]
    return answer


def label_lines(found: Comparison, log: str) -> str:
    """The sample as JSON lines, in random order: an order by kind or rank would reveal the verdicts."""
    sample = {"seed": found.seed, "size": found.sample_size}
    rulesets = {"ruleset_a": _ruleset_argument(found.a), "ruleset_b": _ruleset_argument(found.b)}
    strata = {(one.kind, one.rule): {"flips": one.flips, "sampled": one.sampled} for one in found.strata}
    lines = (
        {
            **msgspec.to_builtins(flip),
            "run_a": found.a.run,
            "run_b": found.b.run,
            **rulesets,
            "log": log,
            "sample": sample,
            "stratum": strata[flip.kind, flip.rule],
        }
        for flip in sorted(found.sample, key=lambda flip: fetch_key(f"label {flip.fetch_id}", found.seed))
    )
    return "".join(msgspec.json.encode(line).decode() + "\n" for line in lines)


def _ruleset_argument(side: Side) -> str:
    """The ruleset of a run as a command argument: the name of a shipped one, otherwise a file to be written."""
    if side.ruleset in shipped_rulesets() and load_ruleset(side.ruleset).digest == side.digest:
        return side.ruleset
    return f"{side.run}.toml"
