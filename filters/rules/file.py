"""A ruleset's TOML text, read strictly: what is misspelt, of a wrong type or impossible is told, each with its line."""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from operator import itemgetter
from typing import Any, NamedTuple, cast

from filters.errors import BadRuleset
from filters.extraction.blocks import Definition
from filters.quality.names import TEXTS
from filters.rules.catalogue import RULES
from filters.rules.kinds import MOST, Rule, RuleKind, number_refusal
from filters.rules.toml_lines import BadToml, line_of, line_of_item, read_toml
from filters.rules.toml_values import as_toml
from filters.rules.url_patterns import OTHER, BadPattern, UrlPattern, any_of, compile_pattern

MOST_BYTES = 64 * 1024
"""Of a ruleset's file; the largest that ships has a twentieth of it."""

TOO_LARGE = f"not a ruleset: larger than {MOST_BYTES // 1024} KiB"

_FIELDS = ("description", "blocks", "reads", "scores", "rules")
_COMMON = ("threshold", "on_unknown")
_POLICIES = ("pass", "drop")
_FEW = 10  # names that a message can list
_LONG = 100  # characters: no name is longer
_MOST_TOLD = 20
_EXTRACTED_FIRST = (
    "the first rule has to be extracted, for the others say nothing of a page without text: "
    'write [rules.extracted] and below it threshold = "ok"'
)


@dataclass(frozen=True, slots=True, kw_only=True)
class RulesetContent:
    """What a ruleset's file says."""

    description: str
    blocks: Definition
    reads: str
    scores: str
    rules: tuple[Rule, ...]


class _Mistake(NamedTuple):
    """What is wrong, with the key where it is, and the item of a list."""

    message: str
    path: tuple[str, ...]
    item: str


def read_content(source: str, where: str) -> RulesetContent:
    """Read a ruleset's TOML text; `where` names it in errors. Raises BadRuleset with all mistakes, a line for each."""
    return _Reader(source, where).content()


class _Reader:
    """Reads a file to its end: a mistake is noted, and reading goes on with the default in its place."""

    def __init__(self, source: str, where: str) -> None:
        self._source, self._where = source, where
        self._mistakes: list[_Mistake] = []

    def content(self) -> RulesetContent:
        file = self._parsed()
        self._known(file, _FIELDS, "field")
        content = RulesetContent(
            description=self._text(file, "description"),
            blocks=Definition(self._choice(file, "blocks", list(Definition), Definition.PARAGRAPH)),
            reads=self._choice(file, "reads", TEXTS, TEXTS[0]),
            scores=self._choice(file, "scores", TEXTS, TEXTS[0]),
            rules=self._rules(file.get("rules", {})),
        )
        if self._mistakes:
            raise BadRuleset("\n".join(self._told()))
        return content

    def _parsed(self) -> dict[str, Any]:
        try:
            return read_toml(self._source, MOST_BYTES)
        except BadToml as error:
            said = str(error) if str(error).startswith("not TOML") else f"not a ruleset: {error}"
            raise BadRuleset(self._at(error.line, said)) from None

    def _rules(self, tables: Any) -> tuple[Rule, ...]:
        if not isinstance(tables, dict):
            self._note("rules have to be tables, [rules.NAME]", "rules")
            return ()
        self._first(tables)
        self._known(tables, RULES, "rule", "rules")
        rules = [self._rule(name, table) for name, table in tables.items() if name in RULES]
        self._possible_together(rules)
        return tuple(rules)

    def _first(self, tables: Mapping[str, Any]) -> None:
        first = next(iter(tables), "")
        if first in RULES and first != "extracted":
            self._note(_EXTRACTED_FIRST, "rules", first)
        elif not first and not any(mistake.path[:1] and mistake.path[0] in RULES for mistake in self._mistakes):
            self._note(_EXTRACTED_FIRST)
        elif first == "extracted" and isinstance(tables[first], dict) and "threshold" not in tables[first]:
            self._note('extracted cannot be disabled: threshold = "ok"', "rules", first)

    def _rule(self, name: str, table: Any) -> Rule:
        kind = RULES[name]
        at = ("rules", name)
        if not isinstance(table, dict):
            shown = as_toml(table)
            threshold = "…" if kind.refusal(table) else shown
            self._note(f"is {shown}, not a table: write [rules.{name}] and below it threshold = {threshold}", *at)
            return Rule(name=name)
        self._known(table, (*_COMMON, *sorted(kind.fields)), "field", *at)
        threshold = self._threshold(kind, table, *at)
        if "block_chars" in kind.fields and "block_chars" not in table:
            self._note("block_chars is missing", *at)
        patterns = self._patterns(table, threshold, *at) if "patterns" in kind.fields else ()
        return Rule(
            name=name,
            threshold=threshold,
            drop_unknown=self._choice(table, "on_unknown", _POLICIES, _POLICIES[0], *at) == "drop",
            block_chars=int(self._number(table, "block_chars", 1, MOST, *at, whole=True)),
            min_probability=float(self._number(table, "min_probability", 0, 1, *at)),
            patterns=patterns,
            any_pattern=any_of([pattern for _, pattern in patterns]),
        )

    def _threshold(self, kind: RuleKind, table: Mapping[str, Any], *at: str) -> Any:
        """The threshold, or None where there is none that is possible."""
        threshold = table.get("threshold")
        if threshold is None:
            return None
        if refusal := kind.refusal(threshold):
            self._note(f"threshold {refusal}", *at, "threshold")
            return None
        for item, wrong in kind.wrong_items(threshold) if isinstance(threshold, list) else ():
            self._note(f"threshold {wrong}", *at, "threshold", item=item)
        return threshold

    def _number(
        self, table: Mapping[str, Any], field: str, low: float, high: float, *at: str, whole: bool = False
    ) -> float:
        value: Any = table.get(field)
        if value is None:
            return 0
        if refusal := number_refusal(value, low, high, whole=whole):
            self._note(f"{field} {refusal}", *at, field)
            return 0
        return cast("float", value)

    def _text(self, table: Mapping[str, Any], field: str) -> str:
        value = table.get(field, "")
        if isinstance(value, str):
            return value
        self._note(f"{field} is {as_toml(value)}, not a text", field)
        return ""

    def _choice(self, table: Mapping[str, Any], field: str, known: Iterable[str], default: str, *at: str) -> str:
        value = table.get(field, default)
        names = [str(name) for name in known]
        if isinstance(value, str) and value in names:
            return value
        shown, one_of = as_toml(value), ", ".join(map(as_toml, names))
        meant = near(value if isinstance(value, str) else shown, names)
        self._note(f"{field} is {shown}, not one of {one_of}{meant}", *at, field)
        return default

    def _patterns(self, table: Mapping[str, Any], kinds: Any, *at: str) -> tuple[tuple[str, UrlPattern], ...]:
        patterns = table.get("patterns", {})
        if not isinstance(patterns, dict):
            self._note(f"patterns is {as_toml(patterns)}, not a table: write {{kind = 'pattern'}}", *at, "patterns")
            return ()
        for kind in dict.fromkeys(kinds or ()):
            if kind not in patterns:
                meant = near(kind, patterns) if len(self._mistakes) < _MOST_TOLD else ""
                self._note(f"kind {kind[:_LONG]!r} has no pattern{meant}", *at, "threshold", item=kind)
        compiled = []
        for kind, text in patterns.items():
            if kind == OTHER:
                self._note(
                    f"pattern {kind!r}: {kind} is what no pattern finds; name the kind otherwise", *at, "patterns", kind
                )
            try:
                compiled.append((kind, _pattern(text)))
            except BadPattern as error:
                self._note(f"pattern {kind[:_LONG]!r} {error}", *at, "patterns", kind)
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
                        f"threshold is {one}, and that of {other.name} is {two}: no page could pass both",
                        *("rules", rule.name, "threshold"),
                    )
            earlier.append(rule)

    def _known(self, table: Mapping[str, Any], known: Iterable[str], what: str, *at: str) -> None:
        names = list(known)
        for name in table:
            if name in names:
                continue
            known_names = f"; known: {', '.join(names)}" if len(names) < _FEW else ""
            hint = known_names + (near(name, names) if len(self._mistakes) < _MOST_TOLD else "")
            if not at and name in RULES:
                hint = f"; a rule stands below rules: write [rules.{name}]"
            elif len(at) > 1 and name in _FIELDS:
                hint = f"; {name} stands above the first table of the file"
            self._note(f"unknown {what} {name[:_LONG]!r}{hint}", *at, name)

    def _note(self, message: str, *path: str, item: str = "") -> None:
        in_rule = len(path) > 1 and path[1] in RULES
        self._mistakes.append(_Mistake(f"rule {path[1]}: {message}" if in_rule else message, path, item))

    def _told(self) -> list[str]:
        """The mistakes in the order of their lines; those beyond _MOST_TOLD are only counted."""
        told = [(self._line(mistake), mistake.message) for mistake in self._mistakes[:_MOST_TOLD]]
        lines = [self._at(line, message) for line, message in sorted(told, key=itemgetter(0))]
        more = len(self._mistakes) - len(told)
        return [*lines, f"{self._where}: and {more} more"] if more else lines

    def _line(self, mistake: _Mistake) -> int:
        if not mistake.path:
            return 0
        if mistake.item:
            return line_of_item(self._source, mistake.path, mistake.item)
        return line_of(self._source, mistake.path)

    def _at(self, line: int, message: str) -> str:
        return f"{self._where}:{line}: {message}" if line else f"{self._where}: {message}"


def _pattern(text: object) -> UrlPattern:
    if not isinstance(text, str):
        raise BadPattern(f"is {as_toml(text)}, not a regular expression in quotes")
    return compile_pattern(text)


def near(name: str, names: Iterable[str]) -> str:
    """The nearest right name, as the end of a message; "" where none is near."""
    found = difflib.get_close_matches(name[:_LONG].lower(), list(names), 1, 0.5)
    return f"; did you mean {found[0]!r}?" if found else ""


def _exclude(one: Rule, other: Rule) -> bool:
    """Whether no value passes both rules, which are of one measure; where two meet, both bounds are inclusive."""
    low, high = sorted((one, other), key=lambda rule: RULES[rule.name].op, reverse=True)
    if (RULES[low.name].op, RULES[high.name].op) != (">=", "<="):
        return False  # both on one side
    return cast("float", low.threshold) > cast("float", high.threshold)
