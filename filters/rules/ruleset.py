"""Rulesets: ordered rules with thresholds, read from TOML and identified by a digest.

A rule without a threshold is disabled, and so is an unnamed rule. Every ruleset begins with the rule `extracted`.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property
from importlib import resources
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal, NamedTuple, TypeVar

import msgspec
import xxhash
from msgspec import UNSET, Meta, UnsetType

from filters.articles.model import SHIPPED, ArticleModel, load_model, read_model
from filters.errors import BadModel, BadRuleset
from filters.extraction.blocks import Definition
from filters.perplexity.names import SHIPPED as SHIPPED_NGRAMS
from filters.perplexity.names import UNLIKELY
from filters.quality.names import TEXTS, TextName
from filters.rules.catalogue import RULES, RULES_VERSION
from filters.rules.kinds import MOST, Check, Rule
from filters.rules.url_patterns import OTHER, BadPattern, any_of, compile_pattern
from filters.segments.names import OF_SITE, SegmentKind
from stream.text.toml import as_toml, printable, quoted, read_toml
from stream.text.wording import nearest

if TYPE_CHECKING:  # it imports numpy
    from filters.perplexity.model import NgramModel

MOST_BYTES = 1024 * 1024  # of a ruleset's file, with its article models
_MODELS = "\n[models]  # stored with the ruleset\n"
_MOST_SHOWN = 20  # mistakes listed per file
_LONG = 100  # characters of a name in a message

T = TypeVar("T")


class Fluent(NamedTuple):
    """Which sentences of the scored text stay, and whether a detector that divides by perplexity may read it."""

    model: NgramModel
    limit: float  # perplexity
    allow_perplexity: bool
    name: str  # of the model in the file
    path: Path | None  # None = the model that ships


@dataclass(frozen=True)
class Ruleset:
    """Ordered rules; `reads` = the text whose quality rules without a text judge, `scores` = the text to score.

    `kinds`: of segments that count, in a ruleset that scores segments. `otherwise` judges the pages that this drops.
    """

    name: str
    description: str
    blocks: Definition
    rules: tuple[Rule, ...]
    kinds: tuple[SegmentKind, ...] = ()
    reads: TextName = TextName.MAIN
    scores: TextName = TextName.MAIN
    source: str = ""
    own_models: tuple[tuple[str, ArticleModel], ...] = ()  # with their names in `source`
    otherwise: Ruleset | None = None
    fluent: Fluent | None = None

    @property
    def stored(self) -> str:
        """The text that a run keeps: complete but for an n-gram model, whose path it has."""
        models = {name: msgspec.json.encode(model).decode() for name, model in self.own_models}
        if self.fluent and self.fluent.path:
            models[self.fluent.name] = str(self.fluent.path)
        if not models:
            return self.source
        return self.source + _MODELS + "".join(f"{quoted(name)} = {quoted(text)}\n" for name, text in models.items())

    @property
    def tables(self) -> dict[str, Ruleset]:
        """Itself with the prefix of its rules' names, "", and `otherwise` with its."""
        return {"": self, "otherwise.": self.otherwise} if self.otherwise else {"": self}

    @property
    def in_force(self) -> int:
        return sum(rule.threshold is not None for table in self.tables.values() for rule in table.rules)

    @cached_property
    def checks(self) -> tuple[Check, ...]:
        return tuple(RULES[rule.name].check(rule) for rule in self.rules)

    @cached_property
    def models(self) -> tuple[ArticleModel, ...]:
        """The article models that its rules ask, and those of `otherwise`."""
        models = (rule.model for table in self.tables.values() for rule in table.rules)
        return tuple({model.digest: model for model in models if model}.values())

    @cached_property
    def fields(self) -> Mapping[str, str]:
        fields = {"blocks": self.blocks.value, "reads": self.reads.value, "scores": self.scores.value}
        if self.kinds:
            fields["kinds"] = ", ".join(sorted(self.kinds))
        if self.fluent:
            fields["fluent"] = f"perplexity <= {self.fluent.limit:.15g} by {self.fluent.model.digest}"
        return fields

    @cached_property
    def digest(self) -> str:
        """16 hex digits over everything that affects verdicts: fields, rules in order, code version; no names."""
        content = {"code": RULES_VERSION, **self.fields, "rules": [[r.name, rule_fields(r)] for r in self.rules]}
        if self.otherwise:
            content["otherwise"] = self.otherwise.digest
        return xxhash.xxh3_64_hexdigest(msgspec.json.encode(content))


def without_paths(stored: str) -> str:
    """A stored ruleset for other machines: an n-gram model is looked for beside its file."""
    source, head, models = stored.partition(_MODELS)
    kept = [line for line in models.splitlines(keepends=True) if not line.endswith('.ngrams"\n')]
    return "".join([source, head, *kept] if kept else [source])


def rule_fields(rule: Rule) -> dict[str, Any]:
    """A rule in normal form: 1 is 1.0, -0.0 is 0.0, lists are sorted; of patterns, the first match wins."""
    fields: dict[str, Any] = {"threshold": rule.threshold, "on_unknown": "drop" if rule.drop_unknown else "pass"}
    if isinstance(rule.threshold, list):
        fields["threshold"] = sorted(set(rule.threshold))
    elif isinstance(rule.threshold, int | float):
        fields["threshold"] = rule.threshold + 0.0  # -0.0 + 0.0 is 0.0
    for field in sorted(RULES[rule.name].fields - {"patterns", "model", "text"}):
        fields[field] = getattr(rule, field) + 0
    if "patterns" in RULES[rule.name].fields:
        fields["patterns"] = {kind: pattern.text for kind, pattern in rule.patterns}
    if rule.model is not None:
        fields["model"] = rule.model.digest
    if rule.text is not None:
        fields["text"] = rule.text.value
    return fields


def shipped_rulesets() -> list[str]:
    """Names of the rulesets in the package."""
    files = resources.files("filters.rulesets").iterdir()
    return sorted(file.name.removesuffix(".toml") for file in files if file.name.endswith(".toml"))


def load_ruleset(name_or_path: str | Path) -> Ruleset:
    """Load a shipped ruleset by name, or a file by its path (".toml"), whose name it has. Raises BadRuleset."""
    text = str(name_or_path)
    if text.endswith(".toml") or "/" in text:
        return _read(Path(text))
    names = shipped_rulesets()
    if text not in names:
        raise BadRuleset(
            f"ruleset {text!r} is not shipped; known: {', '.join(names)}{_near(text, names)}; a path ends in .toml"
        )
    source = resources.files("filters.rulesets").joinpath(f"{text}.toml").read_text("utf-8")
    return parse_ruleset(source, text, f"{text}.toml")


def _read(path: Path) -> Ruleset:
    try:
        with path.open("rb") as file:
            data = file.read(MOST_BYTES + 1)
        if len(data) > MOST_BYTES:
            raise BadRuleset(f"{path}: larger than {MOST_BYTES // 1024} KiB")
        source = data.decode("utf-8-sig")  # Windows editors write a byte-order mark
    except OSError as error:
        raise BadRuleset(f"{path}: the ruleset cannot be read: {error.strerror or error}") from error
    except UnicodeDecodeError as error:
        raise BadRuleset(f"{path}: the ruleset is not UTF-8 (byte {error.start + 1}): save it as UTF-8") from error
    return parse_ruleset(source.replace("\r\n", "\n").replace("\r", "\n"), path.stem, str(path), path.parent)


_WORDS = {
    **dict.fromkeys(("text", "reads"), TEXTS),
    "scores": tuple(TextName),
    "kinds": tuple(SegmentKind),
    "blocks": tuple(Definition),
    "on_unknown": ("pass", "drop"),
}


class _RuleTable(msgspec.Struct):
    """A rule in a file."""

    threshold: Any = None
    on_unknown: Literal["pass", "drop"] = "pass"
    block_chars: Annotated[int, Meta(ge=1, le=MOST)] = 0
    min_probability: Annotated[float, Meta(ge=0, le=1)] = 0.0
    patterns: dict[str, str] = {}
    model: str = SHIPPED
    text: TextName | None = None


class _FluentTable(msgspec.Struct):
    limit: Annotated[float, Meta(gt=1, le=MOST)] = UNLIKELY
    model: str = SHIPPED_NGRAMS
    allow_perplexity: bool = False


class _File(msgspec.Struct):
    """A ruleset's file, or its table `otherwise`; the rules are read one by one."""

    description: str = ""
    blocks: Definition = Definition.PARAGRAPH
    reads: TextName = TextName.MAIN
    scores: TextName = TextName.MAIN
    kinds: list[SegmentKind] | UnsetType = UNSET
    rules: dict[str, Any] = {}
    otherwise: dict[str, Any] = {}
    fluent: dict[str, Any] | UnsetType = UNSET
    models: dict[str, str] = {}  # of a stored ruleset


_COMMENTS = "kinds: comments are the text of visitors; count them in a ruleset of their own"
_NO_TEXT = (
    'scores = "segments" needs the rule segment_words with a threshold of at least 1 and on_unknown = "drop", or pages'
    " without such segments are kept"
)
_OTHERWISE = ("blocks", "reads", "scores", "kinds", "rules")


def parse_ruleset(source: str, name: str, where: str = "", folder: Path | None = None) -> Ruleset:
    """Read a ruleset from TOML; `where` names it in errors. Raises BadRuleset with a line per bad rule."""
    where = where or name
    try:
        file = _converted(read_toml(source, MOST_BYTES), _File, _File.__struct_fields__)
        other = _converted(file.otherwise, _File, _OTHERWISE) if file.otherwise else None
    except ValueError as error:
        raise BadRuleset(f"{where}: {error}") from None
    own: dict[str, ArticleModel] = {}

    def model_of(of: str) -> ArticleModel:
        if of == SHIPPED:
            return load_model(of)
        if of not in own:
            stored = file.models.get(of)
            own[of] = load_model(of, folder or Path()) if stored is None else read_model(stored.encode(), of)
        return own[of]

    mistakes: list[str] = []
    rules, kinds = _rules(file, model_of, mistakes)
    otherwise, fluent = None, None
    if file.scores == TextName.FLUENT:
        try:
            fluent = _fluent(file.fluent or {}, file.models, folder or Path())
        except (ValueError, BadModel) as error:
            mistakes.append(f"fluent: {error}")
    elif file.fluent is not UNSET:
        mistakes.append('the table fluent needs scores = "fluent"')
    if other is not None:
        theirs: list[str] = []
        otherwise = Ruleset(name, "", other.blocks, *_rules(other, model_of, theirs), other.reads, other.scores)
        if other.scores != TextName.SEGMENTS:
            theirs.append('scores has to be "segments"')
        if file.scores == TextName.SEGMENTS:
            theirs.append('the rules above it score segments already: leave out one of the two scores = "segments"')
        if SegmentKind.COMMENT in (other.kinds or ()):
            theirs.append(_COMMENTS)
        mistakes += [f"otherwise: {mistake}" for mistake in dict.fromkeys(theirs)]
    if mistakes:
        raise BadRuleset("\n".join(f"{where}: {mistake}" for mistake in mistakes[:_MOST_SHOWN]))
    text, models = source.partition(_MODELS)[0], tuple(own.items())
    return Ruleset(
        *(name, file.description, file.blocks, rules, kinds, file.reads, file.scores, text, models, otherwise, fluent)
    )


def _fluent(fields: dict[str, Any], stored: Mapping[str, str], folder: Path) -> Fluent:
    """Read the table and its model. Raises ValueError, BadModel."""
    from filters.perplexity.model import load_model as load_ngrams  # numpy, rarely needed

    table = _converted(fields, _FluentTable, _FluentTable.__struct_fields__)
    if table.model == SHIPPED_NGRAMS:
        return Fluent(load_ngrams(table.model), table.limit, table.allow_perplexity, table.model, None)
    path = (folder / stored.get(table.model, table.model)).absolute()
    return Fluent(load_ngrams(str(path)), table.limit, table.allow_perplexity, table.model, path)


def _rules(
    file: _File, model_of: Callable[[str], ArticleModel], mistakes: list[str]
) -> tuple[tuple[Rule, ...], tuple[SegmentKind, ...]]:
    """The rules of a table, and the kinds of segments that it counts; adds to the mistakes."""
    rules: list[Rule] = []
    scores_segments = file.scores == TextName.SEGMENTS
    for rule, table in file.rules.items():
        try:
            rules.append(_rule(rule, table, model_of))
            if rule.startswith("segment_") and not scores_segments:
                raise ValueError('a rule on segments needs scores = "segments"')
        except (ValueError, BadModel) as error:
            mistakes.append(f"rule {rule}: {error}" if rule in RULES else str(error))
    if not mistakes and (not rules or rules[0].name != "extracted" or rules[0].threshold is None):
        mistakes.append('the first rule has to be [rules.extracted] with threshold = "ok"')
    if file.reads not in TEXTS:
        mistakes.append(f"reads: {file.reads.value} is not read by rules; known: {', '.join(TEXTS)}")
    if file.kinds == []:
        mistakes.append("kinds is empty: name kinds, or leave it out")
    elif file.kinds and not scores_segments:
        mistakes.append('kinds needs scores = "segments"')
    words = next((rule for rule in rules if rule.name == "segment_words"), None)
    if scores_segments and not mistakes and not (words and words.threshold and words.drop_unknown):
        mistakes.append(_NO_TEXT)
    named = tuple(dict.fromkeys(file.kinds or ()))
    if SegmentKind.COMMENT in named and len(named) > 1:
        mistakes.append(_COMMENTS)
    kinds = named or OF_SITE if scores_segments else ()
    mistakes += _impossible(rules)
    return tuple(rules), kinds


def _rule(name: str, table: Any, model_of: Callable[[str], ArticleModel]) -> Rule:
    if name not in RULES:
        raise ValueError(f"unknown rule {printable(name, _LONG)!r}{_near(name, RULES)}")
    kind = RULES[name]
    read = _converted(table, _RuleTable, ("threshold", "on_unknown", *kind.fields))
    if read.text is not None and read.text not in TEXTS:
        raise ValueError(f"text: {read.text.value} is not read by rules; known: {', '.join(TEXTS)}")
    if read.threshold is not None and (refusal := kind.refusal(read.threshold)):
        raise ValueError(f"threshold {refusal}")
    if "block_chars" in kind.fields and not read.block_chars:
        raise ValueError("block_chars is missing")
    if "patterns" in kind.fields and (without := set(read.threshold or ()) - set(read.patterns)):
        raise ValueError(f"no pattern for {printable(', '.join(sorted(without)), _LONG)}")
    if OTHER in read.patterns:
        raise ValueError(f"{OTHER} is the kind of a URL without a pattern; use another name")
    model = model_of(read.model) if "model" in kind.fields else None
    if model and isinstance(read.threshold, list) and (unknown := sorted(set(read.threshold) - set(model.kinds))):
        raise ValueError(f"the model has no kind {as_toml(unknown[0])}; its kinds are {', '.join(model.kinds)}")
    patterns = []
    for url_kind, text in read.patterns.items():
        try:
            patterns.append((url_kind, compile_pattern(text)))
        except BadPattern as error:
            raise ValueError(f"pattern {printable(url_kind, _LONG)} {error}") from None
    return Rule(
        name=name,
        threshold=read.threshold,
        drop_unknown=read.on_unknown == "drop",
        block_chars=read.block_chars,
        min_probability=read.min_probability,
        patterns=tuple(patterns),
        any_pattern=any_of([pattern for _, pattern in patterns]),
        model=model,
        text=read.text,
    )


def _converted(table: Any, kind: type[T], known: Collection[str]) -> T:
    for name in table if isinstance(table, dict) else ():
        if name not in known:
            hint = f"; known: {', '.join(sorted(known))}{_near(name, known)}"
            raise ValueError(f"unknown field {printable(name, _LONG)}{hint}")
    try:
        return msgspec.convert(table, kind)
    except msgspec.ValidationError as error:
        said, _, path = str(error).partition(" - at `$.")
        field = path.rstrip("`")
        words = _WORDS.get(field.partition("[")[0])
        known = f"; known: {', '.join(words)}" if words and "enum" in said else ""
        raise ValueError(f"{field}: {printable(said, _LONG)}{known}" if path else said) from None


def _impossible(rules: Iterable[Rule]) -> list[str]:
    """Messages about pairs of rules that exclude every value of their measure."""
    lows: dict[str, Rule] = {}
    highs: dict[str, Rule] = {}
    for rule in rules:
        bounds = {">=": lows, "<=": highs}.get(RULES[rule.name].op)
        if bounds is not None and isinstance(rule.threshold, int | float):
            bounds[rule.name] = rule
    return [
        f"no page can pass both {low.name} and {high.name}"
        for low in lows.values()
        for high in highs.values()
        if RULES[low.name].of == RULES[high.name].of and low.threshold > high.threshold  # type: ignore[operator]
    ]


def _near(name: str, names: Iterable[str]) -> str:
    return f"; did you mean {meant!r}?" if (meant := nearest(name.lower(), names, 0.5)) else ""
