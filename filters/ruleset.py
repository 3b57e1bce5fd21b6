"""Rulesets: rules in an order, with thresholds, read from TOML and identified by a digest.

An unknown rule or field and a value of the wrong kind are errors, with file, line and the nearest right name. A rule
without a threshold is disabled; so is a rule that is not named, except `extracted`, which every ruleset begins with.
"""

from __future__ import annotations

import difflib
import re
import tomllib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property
from importlib import resources
from pathlib import Path
from typing import Any, NoReturn

import msgspec
import xxhash

from filters.blocks import Definition
from filters.errors import BadRuleset
from filters.rules import RULES, RULES_VERSION, Rule, RuleKind

_FIELDS = ("description", "blocks", "rules")
_COMMON = ("threshold", "on_unknown")


@dataclass(frozen=True)
class Ruleset:
    """Ordered rules under one definition of a block. `source` is the text it was read from."""

    name: str
    description: str
    blocks: Definition
    rules: tuple[Rule, ...]
    source: str = ""

    @cached_property
    def digest(self) -> str:
        """16 hex digits over what decides: rules in order, block definition, version of the rules' code; no names."""
        content = {
            "code": RULES_VERSION,
            "blocks": str(self.blocks),
            "rules": [
                [
                    rule.name,
                    float(rule.threshold) if isinstance(rule.threshold, int) else rule.threshold,
                    rule.drop_unknown,
                    rule.block_chars,
                    rule.min_probability,
                    [[kind, pattern.pattern] for kind, pattern in rule.patterns],
                ]
                for rule in self.rules
            ],
        }
        return xxhash.xxh3_64_hexdigest(msgspec.json.encode(content))


def shipped_rulesets() -> list[str]:
    """Names of the rulesets in the package."""
    files = resources.files("filters.rulesets").iterdir()
    return sorted(file.name.removesuffix(".toml") for file in files if file.name.endswith(".toml"))


def load_ruleset(name_or_path: str | Path) -> Ruleset:
    """A shipped ruleset by name, or any by the path of its file (".toml"). Raises BadRuleset."""
    text = str(name_or_path)
    if text.endswith(".toml") or "/" in text:
        path = Path(text)
        try:
            return parse_ruleset(path.read_text("utf-8"), path.stem, text)
        except (OSError, UnicodeDecodeError) as error:
            raise BadRuleset(f"{text}: the ruleset cannot be read: {error}") from error
    names = shipped_rulesets()
    if text not in names:
        raise BadRuleset(
            f"ruleset {text!r} is not shipped; known: {', '.join(names)}{_near(text, names)}; a path ends in .toml"
        )
    source = resources.files("filters.rulesets").joinpath(f"{text}.toml").read_text("utf-8")
    return parse_ruleset(source, text, f"{text}.toml")


def parse_ruleset(source: str, name: str, where: str = "") -> Ruleset:
    """Read a ruleset from TOML text; `where` names it in errors. Raises BadRuleset."""
    return _Parser(source, name, where or name).ruleset()


class _Parser:
    def __init__(self, source: str, name: str, where: str) -> None:
        self._source, self._name, self._where = source, name, where

    def ruleset(self) -> Ruleset:
        try:
            content = tomllib.loads(self._source)
        except tomllib.TOMLDecodeError as error:
            raise BadRuleset(f"{self._where}: not TOML: {error}") from error
        self._known(content, _FIELDS, "field", None)
        blocks = content.get("blocks", Definition.PARAGRAPH.value)
        if blocks not in list(Definition):
            self._fail(f"blocks is {blocks!r}, not one of {', '.join(Definition)}", None, "blocks")
        tables = content.get("rules", {})
        if not isinstance(tables, dict) or not all(isinstance(table, dict) for table in tables.values()):
            self._fail("rules have to be tables, [rules.NAME]", None, "rules")
        self._known(tables, RULES, "rule", None)
        if next(iter(tables), None) != "extracted":
            self._fail("the first rule has to be extracted: the others say nothing of a page without text", None, None)
        rules = tuple(self._rule(rule, table) for rule, table in tables.items())
        return Ruleset(self._name, str(content.get("description", "")), Definition(blocks), rules, self._source)

    def _rule(self, name: str, table: Mapping[str, Any]) -> Rule:
        kind = RULES[name]
        self._known(table, (*_COMMON, *sorted(kind.fields)), "field", name)
        policy = table.get("on_unknown", "pass")
        if policy not in ("pass", "drop"):
            self._fail(f"on_unknown is {policy!r}, not pass or drop", name, "on_unknown")
        return Rule(
            name=name,
            threshold=self._threshold(name, kind, table.get("threshold")),
            drop_unknown=policy == "drop",
            block_chars=self._number(name, table, "block_chars", int),
            min_probability=self._number(name, table, "min_probability", float),
            patterns=self._patterns(name, table),
        )

    def _threshold(self, name: str, kind: RuleKind, value: Any) -> Any:
        if value is None:
            return None
        if kind.threshold is list:
            if isinstance(value, list) and all(isinstance(item, str) for item in value):
                return value
            self._fail(f"threshold is {value!r}, not a list of texts", name, "threshold")
        if kind.threshold is str:
            if value == "ok":
                return value
            self._fail(f'threshold is {value!r}, not "ok"', name, "threshold")
        if isinstance(value, bool) or not isinstance(value, int | float):
            self._fail(f"threshold is {value!r}, not a number", name, "threshold")
        return value

    def _number(self, name: str, table: Mapping[str, Any], field: str, kind: type[Any]) -> Any:
        value = table.get(field)
        if value is None:
            if field in RULES[name].fields and field == "block_chars":
                self._fail("block_chars is missing", name, None)
            return kind(0)
        if isinstance(value, bool) or not isinstance(value, int | kind) or value < 0:
            self._fail(f"{field} is {value!r}, not a number >= 0", name, field)
        return value

    def _patterns(self, name: str, table: Mapping[str, Any]) -> tuple[tuple[str, re.Pattern[str]], ...]:
        patterns = table.get("patterns", {})
        if not isinstance(patterns, dict) or not all(isinstance(text, str) for text in patterns.values()):
            self._fail("patterns are kind = 'regular expression'", name, "patterns")
        kinds = table.get("threshold")
        for kind in kinds if "patterns" in RULES[name].fields and isinstance(kinds, list) else ():
            if kind not in patterns:
                self._fail(f"kind {kind!r} has no pattern{_near(str(kind), patterns)}", name, "threshold")
        compiled = []
        for kind, text in patterns.items():
            try:
                compiled.append((kind, re.compile(text, re.IGNORECASE)))
            except re.error as error:
                self._fail(f"pattern {kind!r} is no regular expression: {error}", f"{name}.patterns", kind)
        return tuple(compiled)

    def _known(self, table: Mapping[str, Any], known: Iterable[str], what: str, rule: str | None) -> None:
        names = list(known)
        for name in table:
            if name not in names:
                place = (name, None) if what == "rule" else (rule, name)
                self._fail(f"unknown {what} {name!r}; known: {', '.join(names)}{_near(name, names)}", *place)

    def _fail(self, message: str, rule: str | None, field: str | None) -> NoReturn:
        line = self._line(rule, field)
        at = f":{line}" if line else ""
        named = f"rule {rule}: " if rule and rule in RULES else ""
        raise BadRuleset(f"{self._where}{at}: {named}{message}")

    def _line(self, rule: str | None, field: str | None) -> int:
        """Line of a rule's table, or of a field in it; 0 where it is written in a way that this does not see."""
        lines = self._source.splitlines()
        start = 0
        if rule:
            header = re.compile(rf"\s*\[\s*rules\s*\.\s*[\"']?{re.escape(rule)}[\"']?\s*\]")
            start = next((number for number, line in enumerate(lines, 1) if header.match(line)), 0)
            if not field or not start:
                return start
        if not field:
            return 0
        assignment = re.compile(rf"\s*\[?\s*[\"']?{re.escape(field)}[\"']?\s*[=.\]]")
        return next((n for n, line in enumerate(lines[start:], start + 1) if assignment.match(line)), start)


def _near(name: str, names: Iterable[str]) -> str:
    near = difflib.get_close_matches(name, list(names), 1, 0.5)
    return f"; did you mean {near[0]!r}?" if near else ""
