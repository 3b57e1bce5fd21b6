"""Extraction and score of an explanation, in words."""

from __future__ import annotations

from collections.abc import Iterator

from farmwatch.explain.explanation import PageExplanation
from filters.settings import MeasureSettings
from stream.schema.records import Score
from stream.text.wording import counted

_FLAT = "which of it is links, lists or tables is unknown"
TEXTS = {"main": "main text", "c4": "main text cleaned as C4 does"}
"""Texts by their names."""

PATHS = {
    "recall": "the mode that takes in all that may be main text (recall)",
    "precision": "the mode that leaves out what is doubtful: too much of recall's text was links or code (precision)",
    "fallback": f"flat fallback: {_FLAT}",
    "plain": f"plain text: {_FLAT}",
    "none": "no main text",
}
"""Extraction paths in words."""

ERRORS = {
    "empty": "nothing but white space was sent",
    "not_html": "it is not HTML: without any element, or an image, an archive or another binary file",
    "too_large": "more bytes, of HTML or of main text, than the cap",
    "too_many_elements": "more elements than the cap",
    "too_many_attributes": "an element with more attributes than any real page has",
    "too_deep": "elements are nested deeper than the parser takes",
    "parser_stopped": "the parser gave up before its end, and an unknown part is lost",
    "no_text": "it was parsed, and no main text was found",
    "failed": "the extractor failed on it",
    "timeout": "extraction took longer than the time limit and was ended",
    "out_of_memory": "extraction needed more memory than its limit",
    "worker_died": "the process that extracted it died",
}
"""Extraction errors in words."""

_LIMITS = {
    "too_large": ("max_html_bytes", "max_text_bytes"),
    "too_many_elements": ("max_elements",),
    "timeout": ("time_limit_s",),
    "out_of_memory": ("memory_bytes",),
}
"""Extraction error -> the settings of MEASURE, one of which was the limit."""


def limits(error: str, settings: MeasureSettings) -> dict[str, float]:
    """Settings that an extraction error speaks of, by path, with the values configured here."""
    return {f"measure.{name}": getattr(settings, name) for name in _LIMITS.get(error, ())}


def extraction(path: str, error: str, settings: MeasureSettings) -> str:
    """How the main text was found, or why none was, and which setting is the limit."""
    words = PATHS.get(path, path)
    if not error:
        return words
    told = " or ".join(f"{name} is {value}" for name, value in limits(error, settings).items())
    return f"{words}: {ERRORS.get(error, error.replace('_', ' '))} ({error})" + (f"; here {told}" if told else "")


def text_line(found: PageExplanation) -> str:
    """The text that is scored, or would be."""
    text = found.scored_text if found.scored else found.features.text
    words = counted(len(text.split()), "word")
    size = f"{words}, {counted(len(text), 'character')}, {counted(len(text.encode('utf-8', 'replace')), 'byte')}"
    if found.verdict.verdict == "article":
        return f"scored text: {TEXTS[found.scored]}, {size}"
    if found.scored:
        return f"text: {TEXTS[found.scored]}, {size}; scored of articles only"
    return f"text: {TEXTS['main']}, {size}; this ruleset scores another, and of articles only"


def score_lines(found: PageExplanation) -> Iterator[str]:
    """The score of this verdict's text; where there is none, why, and what the log has instead."""
    other = found.other_score
    if found.score is not None:
        yield f"score: {_score(found, found.score)}"
    elif found.verdict.verdict != "article":
        yield "score: none, only articles are scored"
    elif other is None or found.judged == "live":
        yield "score: none yet"
    else:
        yield f"score: none yet of the {TEXTS[found.scored]}"
    if other is not None:
        ruleset, digest = other.kept_by
        by = f", as ruleset {ruleset} {digest} kept the page" if ruleset else ""
        yield f"  the log has one of the {TEXTS[other.text]}{by}: {_score(found, other.score)}"


def _score(found: PageExplanation, score: Score) -> str:
    whose = "" if score.page_id == found.features.page_id else " (the same text on another page of the site)"
    if score.abstain:
        return f"the detector abstains: {score.abstain}; {score.detector}{whose}"
    number = "" if score.score is None else f"{score.score:.3f}, "
    p = "" if score.p_llm is None else f"p(llm) {score.p_llm:.3f}{flagged_above(score.detector)}, "
    flag = "no threshold, so no flag" if score.flag is None else "flagged" if score.flag else "not flagged"
    return f"{number}{p}{flag}; {score.detector}{whose}"


def flagged_above(identity: str) -> str:
    """The threshold of the detector that scored: the last part of its identity, as in lite-ngram/1a2b3c4d/p0.95."""
    last = identity.rpartition("/")[2]
    is_threshold = last.startswith("p") and last[1:].replace(".", "", 1).isdigit()
    return f" (flagged above {last[1:]})" if is_threshold else ""
