"""The verdict of a ruleset on a page's features; a pure function."""

from __future__ import annotations

from collections.abc import Sequence

import xxhash

from filters.extraction.blocks import PageBlocks, refuse_truncated
from filters.quality.names import TextName
from filters.rules.kinds import NOTHING, Facts, Prepared
from filters.rules.ruleset import Fluent, Ruleset
from filters.segments.names import OF_SITE
from filters.structure.names import MEASURES
from stream.schema.packed_features import segments_of, structure_of, text_of
from stream.schema.page_age import age_of
from stream.schema.records import Features, RuleOutcome, Verdict
from stream.schema.vocabulary import PageClass

PASS, FAIL, UNKNOWN = "pass", "fail", "n/a"
_SCRIPT_ONLY, _NEEDS_SCRIPT = MEASURES.index("script_only"), MEASURES.index("needs_script")


def judge(features: Features, ruleset: Ruleset, *, now_ms: int = 0, run: str = "live") -> Verdict:
    """Judge a page by all rules in order. An unknown measure is n/a; it fails if the rule's policy is "drop"."""
    return judge_and_text(features, ruleset, now_ms=now_ms, run=run)[0]


def prepare(pages: Sequence[Features], ruleset: Ruleset) -> list[Prepared | ValueError]:
    """What rules need of each page, found for all at once in a part of the time; for a damaged page, its error."""
    errors = dict[int, ValueError]()
    for place, page in enumerate(pages):
        try:
            refuse_truncated(page.blocks)
        except ValueError as error:
            errors[place] = error
    good = [page for place, page in enumerate(pages) if place not in errors]
    tables, definitions = [page.blocks for page in good], {table.blocks for table in ruleset.tables.values()}
    logits = {model.digest: model.logits_of(good) for model in ruleset.models}
    blocks = {definition: PageBlocks(tables, definition) for definition in definitions}
    found = (Prepared({name: of[place] for name, of in logits.items()}, blocks, place) for place in range(len(good)))
    return [errors.get(place) or next(found) for place in range(len(pages))]


def judge_and_text(
    features: Features, ruleset: Ruleset, *, now_ms: int = 0, run: str = "live", prepared: Prepared = NOTHING
) -> tuple[Verdict, str]:
    """Judge a page; also return the text to score ("" for a dropped page). `prepared`: of `prepare`.

    A page kept by its segments names the rules that it fails as an article.
    """
    outcomes, failed = _outcomes(features, ruleset, prepared)
    kept_by = None if failed else ruleset
    if failed and ruleset.otherwise:
        more, failed_too = _outcomes(features, ruleset.otherwise, prepared)
        outcomes += more
        kept_by = None if failed_too else ruleset.otherwise
        failed += [name for name in failed_too if name not in failed]
    if kept_by:
        text, digest = scored_text(features, kept_by.scores, kept_by.kinds, kept_by.fluent)
        kind = PageClass.SEGMENTS if kept_by.scores == TextName.SEGMENTS else PageClass.ARTICLE
    else:
        text, digest = "", features.text_digest if ruleset.scores == TextName.MAIN else ""
        kind = PageClass.DROPPED
    trusted = features.dates.trusted if features.dates else None
    verdict = Verdict(
        id=features.id,
        site=features.site,
        page_id=features.page_id,
        url=features.url,
        verdict=kind,
        first_failed=failed[0] if failed else "",
        failed=failed,
        rules=outcomes,
        ruleset=ruleset.name,
        digest=ruleset.digest,
        epoch=features.epoch,
        extract_path=features.extract_path,
        text_digest=digest,
        fetched_at=features.fetched_at,
        judged_at=now_ms,
        run=run,
        first_at=features.first_at,
        published=trusted.isoformat() if trusted else "",
        age=age_of(features.dates, features.fetched_at),
        dates=features.dates,
        signals=features.signals or [],
        needs_script=kind == PageClass.DROPPED and needs_script(features),
    )
    return verdict, text


def needs_script(features: Features) -> bool:
    """Whether a page asks for JavaScript, and has no main text or hardly any visible text without it."""
    of = structure_of(features)
    return len(of) > _NEEDS_SCRIPT and of[_NEEDS_SCRIPT] == 1 and (of[_SCRIPT_ONLY] == 1 or not text_of(features))


def _outcomes(features: Features, ruleset: Ruleset, prepared: Prepared) -> tuple[list[RuleOutcome], list[str]]:
    """The outcome of each rule, and the names of those that drop the page."""
    facts = Facts(features, ruleset.blocks, ruleset.reads, prepared, ruleset.kinds)
    outcomes: list[RuleOutcome] = []
    failed: list[str] = []
    for name, rule, measure, op, threshold, passes, drops_unknown in ruleset.checks:
        value = measure(facts, rule)
        if value is None or threshold is None:
            outcome, drops = UNKNOWN, drops_unknown
        elif passes(value, threshold):
            outcome, drops = PASS, False
        else:
            outcome, drops = FAIL, True
        outcomes.append(RuleOutcome(name, value, op, threshold, outcome))
        if drops:
            failed.append(name)
    return outcomes, failed


def scored_text(
    features: Features, scores: TextName, kinds: Sequence[str] = OF_SITE, fluent: Fluent | None = None
) -> tuple[str, str]:
    """A text of a page and its digest; of segments, those of these kinds. Unknown template lines count as its own."""
    if scores == TextName.SEGMENTS:
        from filters.segments.segments import segment_text  # rarely needed

        of_kinds = [of_kind for of_kind in segments_of(features) or () if of_kind.kind in kinds]
        text = "\n".join([segment_text(text_of(features), of_kind) for of_kind in of_kinds])
    elif scores == TextName.C4:
        from filters.quality.c4 import clean  # rarely needed

        text = clean(text_of(features)).text
    elif scores == TextName.NOPUNC:
        from filters.quality.lines import punctuated_text  # rarely needed

        text = punctuated_text(text_of(features))
    elif scores == TextName.FLUENT and fluent:
        from filters.perplexity.fluent import fluent_text  # rarely needed

        text = fluent_text(text_of(features), fluent.model, fluent.limit)
    elif scores == TextName.OWN and features.template_lines:
        from filters.duplicates.lines import own_text  # rarely needed

        text = own_text(text_of(features), features.template_lines)
    else:
        return text_of(features), features.text_digest
    return text, xxhash.xxh3_128_hexdigest(text.encode("utf-8", "replace"))
