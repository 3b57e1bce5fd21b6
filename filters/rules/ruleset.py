"""Rulesets: rules in an order, with thresholds, read from TOML and identified by a digest.

An unknown rule or field, a value of the wrong kind and an impossible threshold are errors that name the file, the
setting and the nearest right name (`filters.rules.file`). A rule without a threshold is disabled; so is a rule that is
not named, except `extracted`, which every ruleset begins with.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from importlib import resources
from pathlib import Path
from typing import Any

import msgspec
import xxhash

from filters.errors import BadRuleset
from filters.extraction.blocks import Definition
from filters.rules.catalogue import RULES, RULES_VERSION
from filters.rules.file import MOST_BYTES, TOO_LARGE, near, read_content
from filters.rules.kinds import Check, Rule


@dataclass(frozen=True)
class Ruleset:
    """Ordered rules under one definition of a block. `source` is the text it was read from.

    `reads` names the text whose quality measures are judged, `scores` the text that is scored: "main", or "c4", which
    is what C4's line cleaning leaves of it.
    """

    name: str
    description: str
    blocks: Definition
    rules: tuple[Rule, ...]
    reads: str = "main"
    scores: str = "main"
    source: str = ""

    @property
    def in_force(self) -> int:
        """Rules with a threshold."""
        return sum(rule.threshold is not None for rule in self.rules)

    @cached_property
    def checks(self) -> tuple[Check, ...]:
        """The rules, made ready to be run on page after page."""
        return tuple(RULES[rule.name].check(rule) for rule in self.rules)

    @cached_property
    def fields(self) -> Mapping[str, str]:
        """What a ruleset decides beside its rules."""
        return {"blocks": self.blocks.value, "reads": self.reads, "scores": self.scores}

    @cached_property
    def digest(self) -> str:
        """16 hex digits over what decides: fields, rules in order, version of the rules' code; no names."""
        content = {"code": RULES_VERSION, **self.fields, "rules": [[r.name, rule_fields(r)] for r in self.rules]}
        return xxhash.xxh3_64_hexdigest(msgspec.json.encode(content))


def rule_fields(rule: Rule) -> dict[str, Any]:
    """A rule as it decides, by the names of its fields in a file: what decides the same is equal, and written alike.

    So 1 is 1.0, -0.0 is 0.0 and a list has its items in order. Patterns keep theirs: the first found names the kind.
    """
    found: dict[str, Any] = {"threshold": rule.threshold, "on_unknown": "drop" if rule.drop_unknown else "pass"}
    if isinstance(rule.threshold, list):
        found["threshold"] = sorted(set(rule.threshold))
    elif isinstance(rule.threshold, int | float):
        found["threshold"] = rule.threshold + 0.0  # -0.0 + 0.0 is 0.0
    for field in sorted(RULES[rule.name].fields - {"patterns"}):
        found[field] = getattr(rule, field) + 0
    if "patterns" in RULES[rule.name].fields:
        found["patterns"] = {kind: pattern.text for kind, pattern in rule.patterns}
    return found


def shipped_rulesets() -> list[str]:
    """Names of the rulesets in the package."""
    files = resources.files("filters.rulesets").iterdir()
    return sorted(file.name.removesuffix(".toml") for file in files if file.name.endswith(".toml"))


def load_ruleset(name_or_path: str | Path) -> Ruleset:
    """A shipped ruleset by name, or any by the path of its file (".toml"). Raises BadRuleset."""
    text = str(name_or_path)
    if text.endswith(".toml") or "/" in text:
        return read_ruleset(Path(text))
    names = shipped_rulesets()
    if text not in names:
        raise BadRuleset(
            f"ruleset {text!r} is not shipped; known: {', '.join(names)}{near(text, names)}; a path ends in .toml"
        )
    source = resources.files("filters.rulesets").joinpath(f"{text}.toml").read_text("utf-8")
    return parse_ruleset(source, text, f"{text}.toml")


def read_ruleset(path: Path) -> Ruleset:
    """A ruleset from its file; it is named as the file is. Raises BadRuleset."""
    try:
        with path.open("rb") as file:
            data = file.read(MOST_BYTES + 1)
        if len(data) > MOST_BYTES:
            raise BadRuleset(f"{path}: {TOO_LARGE}")
        source = data.decode("utf-8-sig")  # editors of Windows begin a file with a mark
    except OSError as error:
        raise BadRuleset(f"{path}: the ruleset cannot be read: {error.strerror or error}") from error
    except UnicodeDecodeError as error:
        raise BadRuleset(f"{path}: the ruleset is not UTF-8, from its byte {error.start + 1} on: save it so") from error
    return parse_ruleset(source.replace("\r\n", "\n").replace("\r", "\n"), path.stem, str(path))


def parse_ruleset(source: str, name: str, where: str = "") -> Ruleset:
    """Read a ruleset from TOML text; `where` names it in errors. Raises BadRuleset."""
    content = read_content(source, where or name)
    return Ruleset(
        name, content.description, content.blocks, content.rules, content.reads, content.scores, source=source
    )
