"""A ruleset's TOML text, read strictly: what is misspelt, of a wrong type or impossible is refused with its line."""

from __future__ import annotations

import difflib
import re
import tomllib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, NoReturn, cast

from filters.blocks import Definition
from filters.errors import BadRuleset
from filters.quality_names import TEXTS
from filters.rule_kinds import MOST, Rule, number_refusal
from filters.rules import RULES
from filters.toml_lines import line_of, line_of_error

_FIELDS = ("description", "blocks", "reads", "scores", "rules")
_COMMON = ("threshold", "on_unknown")
_POLICIES = ("pass", "drop")
_FEW = 10  # names that a message can list
_LONG = 100  # characters: no name is longer


@dataclass(frozen=True, slots=True, kw_only=True)
class Content:
    """What a ruleset's file says."""

    description: str
    blocks: Definition
    reads: str
    scores: str
    rules: tuple[Rule, ...]


def read_content(source: str, where: str) -> Content:
    """Read a ruleset's TOML text; `where` names it in errors. Raises BadRuleset for the first mistake."""
    return _Reader(source, where).content()


class _Reader:
    def __init__(self, source: str, where: str) -> None:
        self._source, self._where = source, where

    def content(self) -> Content:
        try:
            file = tomllib.loads(self._source)
        except tomllib.TOMLDecodeError as error:
            self._refuse(f"not TOML: {error}", line_of_error(error, self._source))
        except ValueError:  # of Python's integers
            self._refuse("not TOML: a number has thousands of digits", 0)
        except RecursionError:
            self._refuse("not a ruleset: lists or tables are nested too deep", 0)
        self._known(file, _FIELDS, "field")
        description = file.get("description", "")
        if not isinstance(description, str):
            self._fail(f"description is {description!r}, not a text", "description")
        return Content(
            description=description,
            blocks=Definition(self._choice(file, "blocks", list(Definition), Definition.PARAGRAPH)),
            reads=self._choice(file, "reads", TEXTS, TEXTS[0]),
            scores=self._choice(file, "scores", TEXTS, TEXTS[0]),
            rules=self._rules(file.get("rules", {})),
        )

    def _rules(self, tables: Any) -> tuple[Rule, ...]:
        if not isinstance(tables, dict):
            self._fail("rules have to be tables, [rules.NAME]", "rules")
        self._known(tables, RULES, "rule", "rules")
        for name, table in tables.items():
            if not isinstance(table, dict):
                self._fail(f"is {table!r}, not a table: [rules.{name}], with threshold = ...", "rules", name)
        first = next(iter(tables), None)
        if first != "extracted":
            path = ("rules", first) if first else ()
            self._fail("the first rule has to be extracted: the others say nothing of a page without text", *path)
        rules = tuple(self._rule(name, table) for name, table in tables.items())
        if rules[0].threshold is None:
            self._fail('extracted cannot be disabled: threshold = "ok"', "rules", first)
        self._possible_together(rules)
        return rules

    def _rule(self, name: str, table: Mapping[str, Any]) -> Rule:
        kind = RULES[name]
        at = ("rules", name)
        self._known(table, (*_COMMON, *sorted(kind.fields)), "field", *at)
        threshold = table.get("threshold")
        if threshold is not None and (refusal := kind.refusal(threshold)):
            self._fail(f"threshold {refusal}", *at, "threshold")
        if "block_chars" in kind.fields and "block_chars" not in table:
            self._fail("block_chars is missing", *at)
        return Rule(
            name=name,
            threshold=threshold,
            drop_unknown=self._choice(table, "on_unknown", _POLICIES, _POLICIES[0], *at) == "drop",
            block_chars=self._number(table, "block_chars", MOST, *at, whole=True),
            min_probability=self._number(table, "min_probability", 1, *at),
            patterns=self._patterns(name, table),
        )

    def _number(self, table: Mapping[str, Any], field: str, high: float, *at: str, whole: bool = False) -> Any:
        value = table.get(field, 0)
        if refusal := number_refusal(value, 0, high, whole=whole):
            self._fail(f"{field} {refusal}", *at, field)
        return int(value) if whole else float(value)

    def _choice(self, table: Mapping[str, Any], field: str, known: Iterable[str], default: str, *at: str) -> str:
        value = table.get(field, default)
        names = [str(name) for name in known]
        if not isinstance(value, str) or value not in names:
            self._fail(f"{field} is {value!r}, not one of {', '.join(names)}{near(value, names)}", *at, field)
        return value

    def _patterns(self, name: str, table: Mapping[str, Any]) -> tuple[tuple[str, re.Pattern[str]], ...]:
        at = ("rules", name, "patterns")
        patterns = table.get("patterns", {})
        if not isinstance(patterns, dict):
            self._fail("patterns are kind = 'regular expression'", *at)
        for kind in table.get("threshold", ()) if "patterns" in RULES[name].fields else ():
            if kind not in patterns:
                self._fail(f"kind {kind!r} has no pattern{near(kind, patterns)}", "rules", name, "threshold")
        compiled = []
        for kind, text in patterns.items():
            if not isinstance(text, str):
                self._fail(f"pattern {kind!r} is {text!r}, not a regular expression in quotes", *at, kind)
            try:
                compiled.append((kind, re.compile(text, re.IGNORECASE)))
            except (re.error, RecursionError, OverflowError) as error:
                self._fail(f"pattern {kind!r} is no regular expression: {error}", *at, kind)
        return tuple(compiled)

    def _possible_together(self, rules: Iterable[Rule]) -> None:
        """Refuse two rules that bound one measure from both sides with nothing left between."""
        bounds: dict[str, list[Rule]] = {}
        for rule in rules:
            if rule.threshold is None or RULES[rule.name].threshold is not float:
                continue
            earlier = bounds.setdefault(RULES[rule.name].of, [])
            for other in earlier:
                if _exclude(rule, other):
                    self._fail(
                        f"threshold is {rule.threshold!r}, and that of {other.name} is {other.threshold!r}: "
                        "no page could pass both",
                        "rules",
                        rule.name,
                        "threshold",
                    )
            earlier.append(rule)

    def _known(self, table: Mapping[str, Any], known: Iterable[str], what: str, *at: str) -> None:
        names = list(known)
        for name in table:
            if name not in names:
                known_names = f"; known: {', '.join(names)}" if len(names) < _FEW else ""
                self._fail(f"unknown {what} {name!r}{known_names}{near(name, names)}", *at, name)

    def _fail(self, message: str, *path: str) -> NoReturn:
        in_rule = len(path) > 1 and path[1] in RULES
        self._refuse(f"rule {path[1]}: {message}" if in_rule else message, line_of(self._source, path) if path else 0)

    def _refuse(self, message: str, line: int) -> NoReturn:
        raise BadRuleset(f"{self._where}:{line}: {message}" if line else f"{self._where}: {message}")


def near(name: object, names: Iterable[str]) -> str:
    """The nearest right name, as the end of a message; "" where none is near."""
    found = difflib.get_close_matches(str(name)[:_LONG].lower(), list(names), 1, 0.5)
    return f"; did you mean {found[0]!r}?" if found else ""


def _exclude(one: Rule, other: Rule) -> bool:
    """Whether no value passes both rules, which are of one measure; where two meet, both bounds are inclusive."""
    low, high = sorted((one, other), key=lambda rule: RULES[rule.name].op, reverse=True)
    if (RULES[low.name].op, RULES[high.name].op) != (">=", "<="):
        return False  # both on one side
    return cast("float", low.threshold) > cast("float", high.threshold)
