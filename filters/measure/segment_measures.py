"""The words, the language and the repetition of each kind of segments: of a page alone, and beside its site."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from filters.quality.language import identify
from filters.quality.names import LEAST_SEGMENT_WORDS
from filters.quality.ngrams import repeated_ngrams
from filters.quality.tokens import TOKENIZERS, Tokens
from filters.segments.names import OF_SITE, SegmentKind
from filters.segments.segments import Marks, own_segments, segment_text
from stream.schema.records import Segments

_MOST_OF_PAGE = 0.5  # of the main text: its measures stand for an article of as many words
_MOST_OF_OWN = 0.9  # likewise, of the article before lines of earlier pages were taken out


def measured_segments(text: str, segments: Sequence[Segments], whole: Segments, tokenizer: str) -> list[Segments]:
    """The segments with their measures; `whole` has those of the main text."""
    return [_measured(text, of_kind, tokenizer, whole, _MOST_OF_PAGE) for of_kind in segments]


def own_measured(
    text: str, segments: Sequence[Segments], main: Marks, records: Marks, tokenizer: str
) -> list[Segments]:
    """`own_segments`; where lines were taken out, the measures are of what is left."""
    before = {of_kind.kind: of_kind for of_kind in segments}
    return [
        kept if kept is before[kept.kind] else _measured(text, kept, tokenizer, before[kept.kind], _MOST_OF_OWN)
        for kept in own_segments(text, segments, main, records)
    ]


def _measured(text: str, of_kind: Segments, tokenizer: str, larger: Segments, most: float) -> Segments:
    """Measures an article by a larger one if it is most of that.

    Text of visitors repeats what it answers, so only the site's has a repetition.
    """
    if of_kind.kind == SegmentKind.ARTICLE and not of_kind.without:  # all of the main text, as `larger` is
        return larger
    joined = segment_text(text, of_kind)
    words = len(joined.split())
    language, probability, repetition = None, None, None
    if of_kind.kind == SegmentKind.ARTICLE and words >= most * larger.words:
        language, probability, repetition = larger.language, larger.language_probability, larger.repetition
    elif words >= LEAST_SEGMENT_WORDS:
        language, sure = identify(joined)
        probability = round(sure, 4)
        if of_kind.kind in OF_SITE:
            repeated = repeated_ngrams(Tokens.of(joined, TOKENIZERS[tokenizer])).walked_chars[0]
            repetition = round(repeated / len(joined), 4)
    return msgspec.structs.replace(
        of_kind, words=words, language=language, language_probability=probability, repetition=repetition
    )
