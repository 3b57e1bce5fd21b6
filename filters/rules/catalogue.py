"""All rules by name: rules on articles here, rules of web-corpus builders in `filters.rules.published`.

A rule only measures; `filters.rules.judgement` compares. The value None means unknown: the outcome is n/a, and the
ruleset's policy decides.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import date
from typing import Any

from filters.articles.model import ArticleModel, Logits
from filters.perplexity.names import UNLIKELY, PerplexityMeasure
from filters.quality.names import LANGUAGES, LEAST_SEGMENT_WORDS, PAGE_MEASURES
from filters.rules.kinds import MOST, Facts, Rule, RuleKind, Value
from filters.rules.published import QUALITY_RULES
from filters.rules.url_patterns import OTHER
from filters.structure.names import MEASURES as STRUCTURE
from stream.schema.packed_features import structure_of
from stream.schema.records import Segments

RULES_VERSION = 4
"""Version of the rules' code; part of a ruleset's digest. Raise it with every change of the rules, of `judgement`, of
`c4.clean`, `punctuated_text`, `own_text` or `fluent_text` (JUDGE runs them for `scores`) that may change a verdict or
the scored text.
"""

_FLAT_PATHS = ("fallback", "plain")  # extraction paths of flat text, without lists and tables
_PERPLEXITY = "Fernández-Pichel et al. 2023"
_BLOCK_CHARS, _MODEL = frozenset({"block_chars"}), frozenset({"model"})


def _link_code_share(facts: Facts, _: Rule) -> Value:
    """The share of the main text. A flat fallback has lost it: that of the page counts."""
    known = facts.measures.get("link_code_share")
    if known is None and facts.features.extract_path == "fallback":
        page = dict(zip(STRUCTURE, structure_of(facts.features), strict=False))
        anchors = page.get("anchor_share")
        return None if anchors is None else min(anchors + (page.get("page_code_share") or 0.0), 1.0)
    return known


def _list_table_share(facts: Facts, rule: Rule) -> Value:
    return None if facts.features.extract_path in _FLAT_PATHS else facts.small_listed_share(rule.block_chars)


def _language(facts: Facts, rule: Rule) -> Value:
    probability = facts.measures.get("language_probability")
    if rule.min_probability and isinstance(probability, int | float) and probability < rule.min_probability:
        return None
    return facts.measures.get("language")


def _url_kind(facts: Facts, rule: Rule) -> Value:
    path = facts.measures.get("url_path")
    if not isinstance(path, str) or not path:
        return None
    if rule.any_pattern is not None and rule.any_pattern.find(path) is None:
        return OTHER
    return next((kind for kind, pattern in rule.patterns if pattern.find(path) is not None), OTHER)


def _by_model(tell: Callable[[ArticleModel, Logits], Value]) -> Callable[[Facts, Rule], Value]:
    """A measure that the rule's article model tells from the page's logits."""

    def measure(facts: Facts, rule: Rule) -> Value:
        logits = facts.logits(rule.model) if rule.model else None
        return tell(rule.model, logits) if rule.model and logits else None

    return measure


def _kind(of: str, op: str, what: str, measure: Callable[[Facts, Rule], Value] | None = None, **more: Any) -> RuleKind:
    """Define a rule; its measure is `features.measures[of]`. Raises ValueError if no page has that name."""
    if measure is None and of not in {*PAGE_MEASURES, *PerplexityMeasure}:
        raise ValueError(f"{of!r} is not in features.measures: give `measure`, or see filters/rules/published.py")
    return RuleKind(
        measure=measure or (lambda facts, _: facts.measures.get(of)),
        **{"of": of, "op": op, "what": what, "source": "users' notes", **more},
    )


def _segment_words(facts: Facts, _: Rule) -> Value:
    return None if facts.segments is None else float(sum(of_kind.words for of_kind in facts.segments))


def _large_segments(facts: Facts) -> list[Segments]:
    return [of_kind for of_kind in facts.segments or () if of_kind.words >= LEAST_SEGMENT_WORDS]


def _segment_language(facts: Facts, rule: Rule) -> Value:
    """The language of a kind that fails, if there is one, else of the largest."""
    known: list[str | None] = []
    for of_kind in _large_segments(facts):
        is_sure = (of_kind.language_probability or 0.0) >= rule.min_probability
        known.append(of_kind.language if is_sure else None)
    allowed = rule.threshold if isinstance(rule.threshold, list) else known
    return next((language for language in known if language and language not in allowed), next(iter(known), None))


def _segment_repetition(facts: Facts, _: Rule) -> Value:
    return max((of.repetition for of in _large_segments(facts) if of.repetition is not None), default=None)


def _published(facts: Facts, _: Rule) -> Value:
    dates = facts.features.dates
    return dates.trusted.isoformat() if dates and dates.trusted else None


RULES: dict[str, RuleKind] = {
    "extracted": _kind(
        "extracted",
        "==",
        "ok where a main text was found, else the reason why none was",
        lambda facts, _: facts.features.extract_error or "ok",
        threshold=str,
        source="",
    ),
    "no_page": _kind(
        "no_page",
        "==",
        "ok for a page, else the reason why the answer is none: a challenge, a login wall, …",
        threshold=str,
        source="",
    ),
    "min_tokens": _kind("tokens", ">=", "whitespace words", whole=True),
    "link_code_share": _kind(
        "link_code_share",
        "<=",
        "characters in links or code / characters; of a flat fallback, anchor_share + page_code_share",
        _link_code_share,
        high=1,
    ),
    "longest_block": _kind(
        "longest_block", ">", "characters of the longest block", lambda facts, _: facts.longest_block, whole=True
    ),
    "large_block_share": _kind(
        "large_block_share",
        ">=",
        "characters in blocks of at least block_chars / characters",
        lambda facts, rule: facts.large_block_share(rule.block_chars),
        high=1,
        fields=_BLOCK_CHARS,
    ),
    "list_table_share": _kind(
        "list_table_share",
        "<=",
        "characters in list items and table cells of at most block_chars / characters",
        _list_table_share,
        high=1,
        fields=_BLOCK_CHARS,
    ),
    "duplicate_share": _kind(
        "duplicate_share", "<=", "bytes in chunks that stand on earlier pages of the site / bytes", high=1
    ),
    "template_share": _kind(
        "template_share",
        "<=",
        "sequences of 5 words that stand on earlier pages of the site / such sequences",
        high=1,
        source="Broder 1997",
    ),
    "template_block_share": _kind(
        "template_block_share",
        "<=",
        "characters in lines that at least 2 earlier pages of the site have / characters",
        high=1,
        source="",
    ),
    "simhash_distance": _kind(
        "simhash_distance",
        ">=",
        "bits of 64 in which the page's simhash differs from the nearest of the site",
        high=64,
        whole=True,
        source="Manku et al. 2007",
    ),
    "language": _kind(
        "language",
        "in",
        "language of the text by an offline identifier, unknown below min_probability",
        _language,
        threshold=list,
        items=LANGUAGES,
        source="",
        fields=frozenset({"min_probability"}),
    ),
    "url_kind": _kind(
        "url_kind",
        "not in",
        "first of the patterns that is found in path and query of the URL, else other",
        _url_kind,
        threshold=list,
        fields=frozenset({"patterns"}),
        source="",
    ),
    "article_probability": _kind(
        "article_probability",
        ">=",
        "probability of an article by the article model",
        _by_model(ArticleModel.probability),
        high=1,
        fields=_MODEL,
        source="",
    ),
    "page_kind": _kind(
        "page_kind",
        "in",
        "kind of page by the article model",
        _by_model(ArticleModel.kind),
        threshold=list,
        fields=_MODEL,
        source="",
    ),
    **{
        f"max_{name}": _kind(name, "<=", what, high=high, source=_PERPLEXITY)
        for name, what, high in (
            (PerplexityMeasure.UNLIKELY_SHARE, f"sentences with a perplexity above {UNLIKELY:,.0f} / sentences", 1),
            (PerplexityMeasure.SURPRISAL_MEDIAN, "median of the sentences' mean bits a word", MOST),
        )
    },
    **{
        name: _kind("published", op, "trusted day of publication, else unknown", _published, threshold=date, source="")
        for name, op in (("published_before", "<"), ("published_after", ">="))
    },
    "segment_words": _kind(
        "segment_words", ">=", "whitespace words of the segments that count", _segment_words, whole=True, source=""
    ),
    "segment_language": _kind(
        "segment_language",
        "in",
        f"languages of the kinds that count and have {LEAST_SEGMENT_WORDS} words; unknown below min_probability",
        _segment_language,
        threshold=list,
        items=LANGUAGES,
        fields=frozenset({"min_probability"}),
        source="",
    ),
    "segment_repetition": _kind(
        "segment_repetition",
        "<=",
        "characters of sequences of 5 words that repeat an earlier one / characters, of each of these kinds; "
        "unknown of comments and lists",
        _segment_repetition,
        high=1,
        source="",
    ),
    **QUALITY_RULES,
}
"""Every rule by its name: those that tell an article from other pages, then those over quality measures."""
