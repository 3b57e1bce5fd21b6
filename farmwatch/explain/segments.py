"""The segments of a page: which of them count under a ruleset, and why the others do not."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

from farmwatch.explain.explanation import PageExplanation
from farmwatch.explain.rules import dropping
from filters.segments.names import SegmentKind
from stream.schema.vocabulary import PageClass

_KINDS = {SegmentKind.COMMENT: "text of visitors", SegmentKind.LIST: "a list of links"}
_RULES = {
    "segment_words": "too few words",
    "segment_language": "in another language",
    "segment_repetition": "too repetitive",
}


class ShownSegments(NamedTuple):
    """The segments of a kind. `why` they do not count: "" if they do."""

    kind: str
    path: str
    records: int  # 0 = the main text outside records
    words: int
    language: str | None
    repetition: float | None
    counts: bool
    why: str


def shown_segments(page: PageExplanation) -> Iterator[ShownSegments]:
    """The segments of each kind; none if the record is older than segments."""
    for of_kind in page.features.segments or ():
        why = _why_not(page, of_kind.kind)
        yield ShownSegments(
            *(of_kind.kind, of_kind.path, len(of_kind.texts), of_kind.words, of_kind.language, of_kind.repetition),
            counts=not why,
            why=why,
        )


def is_outlined(segments: Sequence[ShownSegments]) -> bool:
    """Whether there is more to show than a main text that is scored, or dropped, as a whole."""
    return any(of_kind.records or of_kind.counts for of_kind in segments)


def outline(pages: Sequence[PageExplanation]) -> list[dict[str, Any]]:
    """The segments of a page, most words first, with their texts and why each ruleset does not count them."""
    found = [list(shown_segments(page)) for page in pages]
    if not any(map(is_outlined, found)):
        return []
    texts = {of_kind.kind: of_kind.texts for of_kind in pages[0].features.segments or ()}
    parts = [{**part._asdict(), "texts": texts[part.kind], "why": []} for part in found[0]]
    for page, segments in zip(pages, found, strict=True):
        for part, of_kind in zip(parts, segments, strict=True):
            part["counts"] = part["counts"] or of_kind.counts
            part["why"].append({"ruleset": page.verdict.ruleset, "why": of_kind.why})
    return sorted(parts, key=lambda part: -int(part["words"]))


def _why_not(page: PageExplanation, kind: str) -> str:
    verdict = page.verdict
    if kind not in page.counted and kind in _KINDS:
        return _KINDS[SegmentKind(kind)]
    if verdict.verdict == PageClass.ARTICLE:
        return "the main text is scored instead"
    if not page.counted:
        return "the ruleset scores no segments" if page.rules else "the ruleset is not at hand"
    if kind not in page.counted:
        return "the ruleset leaves this kind out"
    if verdict.verdict == PageClass.SEGMENTS:
        return ""
    names = [name.removeprefix("otherwise.") for name in dropping(page)]
    return ", ".join(_RULES[name] for name in names if name in _RULES) or f"the page fails {names[-1]}"


def page_verdict(verdict: str, first_failed: str) -> str:
    """The verdict on a page, with the first rule that it failed as an article."""
    first = f", first by {first_failed}" if first_failed else ""
    if verdict == PageClass.SEGMENTS:
        return f"counts through its segments{first and f': no article{first}'}"
    return f"{verdict}{first}"
