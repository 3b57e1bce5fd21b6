"""An explanation as one JSON object, with the field names of the pipes."""

from __future__ import annotations

from typing import Any

import msgspec

from farmwatch.explain.explanation import PageExplanation
from farmwatch.explain.rules import contributions, fields_of, meaning_of, named_outcomes, url_match
from farmwatch.explain.segments import shown_segments
from farmwatch.pipes.lines import dates_line, structure_by_name, verdict_line
from filters.duplicates.lines import marked_lines
from filters.quality.names import MEASURES
from filters.rules.kinds import Rule
from stream.schema.records import Features

_SCORE = ("detector", "score", "p_llm", "flag", "abstain", "tokens", "windows", "windows_flagged", "windows_spread")


def as_json(page: PageExplanation) -> dict[str, Any]:
    """The whole explanation, with the fields of `judge`."""
    features, repeats = page.features, page.repeats
    verdict = msgspec.to_builtins(verdict_line(page.verdict))
    return {
        **verdict,
        "rules": [
            {**rule, "table": name.rpartition(".")[0], **_more_of(page, rule, page.rules.get(name))}
            for rule, (name, _) in zip(verdict["rules"], named_outcomes(page.verdict), strict=True)
        ],
        "source": page.source,
        "judged": page.judged,
        "extract": {"path": features.extract_path, "error": features.extract_error},
        "measures": features.measures,
        "quality": quality_by_name(features),
        "structure": structure_by_name(features.structure),
        "segments": None if features.segments is None else [of_kind._asdict() for of_kind in shown_segments(page)],
        "dates": msgspec.to_builtins(dates_line(features.dates)),
        "signals": features.signals,
        "sentences": [sentence._asdict() for sentence in page.sentences],
        "template_lines": marked_lines(features.template_lines),
        "feature_epoch": features.epoch,
        "fetched_at": features.fetched_at,
        "found_by": features.found_by,
        "reads": page.reads,
        "scored_text": {
            "name": page.scored,
            "chars": len(page.scored_text),
            "bytes": len(page.scored_text.encode("utf-8", "replace")),
            "digest": page.verdict.text_digest,
        },
        "repeats": [
            {"text": part.text, "bytes": part.size_bytes, "seen_on": list(part.seen_on), "pages": part.pages}
            for part in ([] if repeats is None else repeats.passages())
        ],
        "repeats_differ": page.differs,
        "earlier_pages": None if repeats is None else repeats.compared,
        "score": None if page.score is None else {name: getattr(page.score, name) for name in _SCORE},
    }


def quality_by_name(features: Features) -> dict[str, dict[str, float | None]]:
    """Text -> measure -> value. Measures newer than the record are None; {} for a record without quality measures."""
    return {
        text: dict(zip(MEASURES, (*values, *[None] * (len(MEASURES) - len(values))), strict=False))
        for text, values in features.quality.items()
    }


def _more_of(page: PageExplanation, outcome: dict[str, Any], rule: Rule | None) -> dict[str, Any]:
    """Whether a rule is in force, its other fields, its pattern found in the URL, the inputs of its model."""
    match = None if rule is None else url_match(page.features, rule)
    return {
        "in_force": outcome["threshold"] is not None,
        "fields": {} if rule is None else fields_of(rule),
        "matched": None if match is None else match._asdict(),
        "contributions": []
        if rule is None
        else [{**part._asdict(), "meaning": meaning_of(part)} for part in contributions(page.features, rule)],
    }
