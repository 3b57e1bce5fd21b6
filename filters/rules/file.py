"""Strict reading of a ruleset's TOML text: every misspelt name, wrong type or impossible value gets its own message."""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, cast

from filters.errors import BadRuleset
from filters.extraction.blocks import Definition
from filters.quality.names import TEXTS
from filters.rules.catalogue import RULES
from filters.rules.kinds import MOST, Rule, RuleKind, number_refusal
from filters.rules.toml import BadToml, as_toml, read_toml
from filters.rules.url_patterns import OTHER, BadPattern, UrlPattern, any_of, compile_pattern

MOST_BYTES = 64 * 1024
"""Of a ruleset's file; the largest that ships has a twentieth of it."""

TOO_LARGE = f"not a ruleset: larger than {MOST_BYTES // 1024} KiB"

_FIELDS = ("description", "blocks", "reads", "scores", "rules")
_COMMON = ("threshold", "on_unknown")
_POLICIES = ("pass", "drop")
_FEW = 10  # names that a message can list
_LONG = 100  # characters: no name is longer
_MOST_SHOWN = 20
_EXTRACTED_FIRST = (
    "the first rule has to be extracted, because the others cannot judge a page without text: "
    'write [rules.extracted] and below it threshold = "ok"'
)


@dataclass(frozen=True, slots=True, kw_only=True)
class RulesetContent:
    """The content of a ruleset's file."""

    description: str
    blocks: Definition
    reads: str
    scores: str
    rules: tuple[Rule, ...]


def read_content(source: str, where: str) -> RulesetContent:
    """Read a ruleset's TOML text; `where` names it in errors. Raises BadRuleset with one line per mistake."""
    return _Reader(where).content(source)


class _Reader:
    """Reads a file to its end: notes each mistake and continues with the default in its place."""

    def __init__(self, where: str) -> None:
        self._where = where
        self._mistakes: list[str] = []

    def content(self, source: str) -> RulesetContent:
        file = self._parsed(source)
        self._known(file, _FIELDS, "field")
        content = RulesetContent(
            description=self._text(file, "description"),
            blocks=Definition(self._choice(file, "blocks", list(Definition), Definition.PARAGRAPH)),
            reads=self._choice(file, "reads", TEXTS, TEXTS[0]),
            scores=self._choice(file, "scores", TEXTS, TEXTS[0]),
            rules=self._rules(file),
        )
        if self._mistakes:
            more = len(self._mistakes) - _MOST_SHOWN
            lines = [*self._mistakes[:_MOST_SHOWN], *([f"and {more} more"] if more > 0 else [])]
            raise BadRuleset("\n".join(f"{self._where}: {line}" for line in lines))
        return content

    def _parsed(self, source: str) -> dict[str, Any]:
        try:
            return read_toml(source, MOST_BYTES)
        except BadToml as error:
            said = str(error) if str(error).startswith("not TOML") else f"not a ruleset: {error}"
            raise BadRuleset(f"{self._where}: {said}") from None

    def _rules(self, file: Mapping[str, Any]) -> tuple[Rule, ...]:
        tables = file.get("rules", {})
        if not isinstance(tables, dict):
            self._note("rules have to be tables, [rules.NAME]")
            return ()
        if tables or not any(name in RULES for name in file):
            self._first(tables)
        self._known(tables, RULES, "rule")
        rules = [self._rule(name, table) for name, table in tables.items() if name in RULES]
        self._possible_together(rules)
        return tuple(rules)

    def _first(self, tables: Mapping[str, Any]) -> None:
        first = next(iter(tables), "")
        if first in RULES and first != "extracted":
            self._note(_EXTRACTED_FIRST, first)
        elif not first:
            self._note(_EXTRACTED_FIRST)
        elif first == "extracted" and isinstance(tables[first], dict) and "threshold" not in tables[first]:
            self._note('extracted cannot be disabled: threshold = "ok"', first)

    def _rule(self, name: str, table: Any) -> Rule:
        kind = RULES[name]
        if not isinstance(table, dict):
            shown = as_toml(table)
            threshold = "…" if kind.refusal(table) else shown
            self._note(f"is {shown}, not a table: write [rules.{name}] and below it threshold = {threshold}", name)
            return Rule(name=name)
        self._known(table, (*_COMMON, *sorted(kind.fields)), "field", name)
        threshold = self._threshold(kind, table, name)
        if "block_chars" in kind.fields and "block_chars" not in table:
            self._note("block_chars is missing", name)
        patterns = self._patterns(table, threshold, name) if "patterns" in kind.fields else ()
        return Rule(
            name=name,
            threshold=threshold,
            drop_unknown=self._choice(table, "on_unknown", _POLICIES, _POLICIES[0], name) == "drop",
            block_chars=int(self._number(table, "block_chars", 1, MOST, name, whole=True)),
            min_probability=float(self._number(table, "min_probability", 0, 1, name)),
            patterns=patterns,
            any_pattern=any_of([pattern for _, pattern in patterns]),
        )

    def _threshold(self, kind: RuleKind, table: Mapping[str, Any], rule: str) -> Any:
        """The threshold, or None where there is none that is possible."""
        threshold = table.get("threshold")
        if threshold is None:
            return None
        if refusal := kind.refusal(threshold):
            self._note(f"threshold {refusal}", rule)
            return None
        for wrong in kind.wrong_items(threshold) if isinstance(threshold, list) else ():
            self._note(f"threshold {wrong}", rule)
        return threshold

    def _number(
        self, table: Mapping[str, Any], field: str, low: float, high: float, rule: str, *, whole: bool = False
    ) -> float:
        value: Any = table.get(field)
        if value is None:
            return 0
        if refusal := number_refusal(value, low, high, whole=whole):
            self._note(f"{field} {refusal}", rule)
            return 0
        return cast("float", value)

    def _text(self, table: Mapping[str, Any], field: str) -> str:
        value = table.get(field, "")
        if isinstance(value, str):
            return value
        self._note(f"{field} is {as_toml(value)}, not a text")
        return ""

    def _choice(self, table: Mapping[str, Any], field: str, known: Iterable[str], default: str, rule: str = "") -> str:
        value = table.get(field, default)
        names = [str(name) for name in known]
        if isinstance(value, str) and value in names:
            return value
        shown, one_of = as_toml(value), ", ".join(map(as_toml, names))
        meant = near(value if isinstance(value, str) else shown, names)
        self._note(f"{field} is {shown}, not one of {one_of}{meant}", rule)
        return default

    def _patterns(self, table: Mapping[str, Any], kinds: Any, rule: str) -> tuple[tuple[str, UrlPattern], ...]:
        patterns = table.get("patterns", {})
        if not isinstance(patterns, dict):
            self._note(f"patterns is {as_toml(patterns)}, not a table: write {{kind = 'pattern'}}", rule)
            return ()
        for kind in dict.fromkeys(kinds or ()):
            if kind not in patterns:
                meant = near(kind, patterns) if len(self._mistakes) < _MOST_SHOWN else ""
                self._note(f"kind {kind[:_LONG]!r} has no pattern{meant}", rule)
        compiled = []
        for kind, text in patterns.items():
            if kind == OTHER:
                self._note(f"pattern {kind!r}: {kind} is the kind of a URL without a pattern; use another name", rule)
            try:
                compiled.append((kind, _pattern(text)))
            except BadPattern as error:
                self._note(f"pattern {kind[:_LONG]!r} {error}", rule)
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
                    one, two = as_toml(rule.threshold), as_toml(other.threshold)
                    self._note(
                        f"threshold is {one}, and that of {other.name} is {two}: no page could pass both", rule.name
                    )
            earlier.append(rule)

    def _known(self, table: Mapping[str, Any], known: Iterable[str], what: str, rule: str = "") -> None:
        names = list(known)
        for name in table:
            if name in names:
                continue
            known_names = f"; known: {', '.join(names)}" if len(names) < _FEW else ""
            hint = known_names + (near(name, names) if len(self._mistakes) < _MOST_SHOWN else "")
            if what == "field" and not rule and name in RULES:
                hint = f"; a rule stands below rules: write [rules.{name}]"
            elif rule and name in _FIELDS:
                hint = f"; {name} stands above the first table of the file"
            self._note(f"unknown {what} {name[:_LONG]!r}{hint}", rule)

    def _note(self, message: str, rule: str = "") -> None:
        self._mistakes.append(f"rule {rule}: {message}" if rule else message)


def _pattern(text: object) -> UrlPattern:
    if not isinstance(text, str):
        raise BadPattern(f"is {as_toml(text)}, not a regular expression in quotes")
    return compile_pattern(text)


def near(name: str, names: Iterable[str]) -> str:
    """The nearest known name, as the end of a message; "" where none is near."""
    found = difflib.get_close_matches(name[:_LONG].lower(), list(names), 1, 0.5)
    return f"; did you mean {found[0]!r}?" if found else ""


def _exclude(one: Rule, other: Rule) -> bool:
    """Whether no value passes both rules, which are of one measure; where two meet, both bounds are inclusive."""
    low, high = sorted((one, other), key=lambda rule: RULES[rule.name].op, reverse=True)
    if (RULES[low.name].op, RULES[high.name].op) != (">=", "<="):
        return False  # both on one side
    return cast("float", low.threshold) > cast("float", high.threshold)
