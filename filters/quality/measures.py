"""The quality measures of web-corpus builders (Gopher, C4, FineWeb, DOLMa) of a text and of some of its lines.

Formulas are those of datatrove 0.10 (Gopher, C4, FineWeb) and DOLMa's toolkit 1.2 (`gopher_v1`, `c4_v2`,
`tokenizer_repetitions`); each module explains the differences. Rules and thresholds: `filters.rules.published`.

A text is tokenised once, into arrays. The other texts consist of lines of the text, so they reuse their tokens.
"""

from __future__ import annotations

from filters.quality.c4 import CleanedText, clean
from filters.quality.lines import line_measures, punctuated_lines, punctuated_text
from filters.quality.names import TextName
from filters.quality.ngrams import all_ngram_chars, most_repetitions, repeated_ngrams
from filters.quality.tokens import TOKENIZERS, Tokens
from filters.quality.words import word_measures

Values = list[float | None]
"""In the order of MEASURES; None if a measure does not apply."""


def measure_quality(text: str, tokenizer: str = "whitespace") -> dict[str, Values]:
    """The values of the main text, C4's and NoPunc; those with the same lines share them, all have C4's counts."""
    tokens = Tokens.of(text, TOKENIZERS[tokenizer])
    cleaned = clean(text)
    values = {text: measure_text(text, tokens, cleaned)}
    if cleaned.text not in values:
        if cleaned.kept is not None:
            kept = tokens.of_lines(cleaned.kept, cleaned.text)
        else:
            kept = Tokens.of(cleaned.text, tokens.tokenize)
        values[cleaned.text] = measure_text(cleaned.text, kept, cleaned)
    punctuated = punctuated_text(text)
    if punctuated not in values:
        kept = tokens.of_lines(punctuated_lines(text), punctuated)
        values[punctuated] = measure_text(punctuated, kept, clean(punctuated))
    return {TextName.MAIN: values[text], TextName.C4: values[cleaned.text], TextName.NOPUNC: values[punctuated]}


def measure_main(text: str, tokenizer: str = "whitespace") -> Values:
    """The values of one text."""
    return measure_text(text, Tokens.of(text, TOKENIZERS[tokenizer]), clean(text))


def measure_text(text: str, tokens: Tokens, cleaned: CleanedText) -> Values:
    """The measures of one text and its tokens, in the order of MEASURES; C4's counts come from `cleaned`."""
    gopher_words, dolma_words = word_measures(text, tokens)
    quality_lines, repetition_lines, fineweb, dolma_lines = line_measures(text, tokens, bool(gopher_words[4]))
    repeated = repeated_ngrams(tokens)
    chars, word_chars = len(text), tokens.chars
    top_shares: list[float | None] = [None, None, None]
    dolma_top_shares = top_shares.copy()
    for place, top in enumerate(repeated.top):
        if top:  # n words have n - 1 spaces between them
            top_shares[place] = (top[0] + place + 1) * top[1] / chars
            dolma_top_shares[place] = top[0] * top[1] / word_chars
    return [
        *gopher_words[:5],
        *quality_lines,
        *gopher_words[5:],
        *repetition_lines,
        *top_shares,
        *([walked / chars if chars else None for walked in repeated.walked_chars]),
        float(cleaned.lorem_ipsum_lines),
        float(cleaned.curly_bracket_lines),
        float(cleaned.sentences),
        *fineweb,
        *dolma_words,
        *dolma_lines[:4],
        *dolma_top_shares,
        *([some / every if every else None for some, every in zip(repeated.all_chars, all_ngram_chars(tokens))]),  # noqa: B905  # of one length
        dolma_lines[4],
        float(most_repetitions(tokens, repeated.longest)),
    ]
