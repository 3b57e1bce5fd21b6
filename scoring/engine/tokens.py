"""Tokenises texts for language models, or gives the reason for abstaining; builds batches of texts.

The rules, in order; a change of them raises the version in `scoring.engine.settings.RULES`:

    empty               nothing but white space
    too_long            over 1,000,000 characters or 50,000 words: a book or a dump, as for the built-in detector
    bad_unicode         a lone surrogate, which no encoding of the text can hold
    no_words            no letter: only emoji, digits, punctuation
    other_language      most letters are not Latin ones (with english_only)
    one_token           fewer than two tokens: nothing predicts, or nothing is predicted
    too_short           fewer than min_tokens
    few_function_words  a list, a table, or another language in Latin letters (with english_only), by the part that is
                        read

A text is otherwise cut into windows of max_tokens, special tokens included, that do not overlap; the first `windows`
are read, without a last one of fewer than min_tokens, whose score would be noise. What looks like a special token in a
text ("<|endoftext|>") is read as plain characters: a page must not control the model.

Batches are filled by padded tokens, which the device computes and holds; texts of one length go together.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from itertools import islice
from typing import TYPE_CHECKING

from scoring.engine.settings import TextRules
from scoring.interface import TextScore
from scoring.lite_ngram.words import LONGEST_CHARS, LONGEST_WORDS, has_few_function_words
from scoring.lite_ngram.words import tokens as word_tokens
from stream.text.invisible import without_invisible

if TYPE_CHECKING:
    from tokenizers import Encoding, Tokenizer

_LOOKED_AT_CHARS = 4_000  # of a text, to find its script
_LITTLE_PADDING = 0.9  # at least this share of the longest text's length
_LARGE_ENOUGH = 0.25  # of the budget; products of matrices gain little from more rows
_WORD_BEFORE_SPACE = re.compile(r"\S(?= \S)")
_LETTER = re.compile(r"[^\W\d_]")
_LATIN = re.compile(r"[A-Za-z\u00c0-\u024f]")


def tokenise(texts: Sequence[str], tokenizer: Tokenizer, rules: TextRules) -> list[list[Sequence[int]] | TextScore]:
    """Token ids of each text, in windows, or the reason why it has none; on all of the machine's cores.

    `tokenizer` is one of `plain_tokenizer`. Characters that no reader sees are left out first.
    """
    texts = [without_invisible(text) for text in texts]
    read: list[list[Sequence[int]] | TextScore] = [TextScore(abstain=_refuse_text(text, rules)) for text in texts]
    kept = [index for index, refused in enumerate(read) if refused == TextScore()]
    heads = [head(texts[index], rules.max_tokens * rules.windows) for index in kept]
    # The fast way gives no offsets of tokens; with them it takes a tenth longer.
    encode = tokenizer.encode_batch if rules.english_only else tokenizer.encode_batch_fast
    for index, text, encoding in zip(kept, heads, encode(heads), strict=True):
        windows = _windows(encoding, rules)
        full = len(windows) == rules.windows and len(windows[-1]) == rules.max_tokens
        if not full and len(text) < len(texts[index]):  # a tokenizer whose tokens span words
            text = texts[index]
            windows = _windows(tokenizer.encode(text), rules)
        reason = _refuse_tokens(text, windows, rules)
        tokens = sum(map(len, windows))
        read[index] = TextScore(abstain=reason, tokens=tokens) if reason else [window.ids for window in windows]
    return read


def _windows(encoding: Encoding, rules: TextRules) -> list[Encoding]:
    windows = [encoding, *encoding.overflowing[: rules.windows - 1]]
    return windows[:-1] if len(windows) > 1 and len(windows[-1]) < rules.min_tokens else windows


def plain_tokenizer(tokenizer: Tokenizer, max_tokens: int) -> Tokenizer:
    """A copy that cuts at `max_tokens`, does not pad, and takes special tokens in a text for plain characters."""
    copy: Tokenizer = type(tokenizer).from_str(tokenizer.to_str())
    copy.no_padding()
    copy.enable_truncation(max_tokens)
    copy.encode_special_tokens = True
    return copy


def _refuse_text(text: str, rules: TextRules) -> str:
    """The reason for not tokenising `text`; "" = none."""
    if not text or text.isspace():
        return "empty"
    if len(text) > LONGEST_CHARS or (len(text) > LONGEST_WORDS and len(text.split()) > LONGEST_WORDS):
        return "too_long"
    try:
        text.encode()
    except UnicodeEncodeError:
        return "bad_unicode"
    if not _LETTER.search(text):
        return "no_words"
    start = text[:_LOOKED_AT_CHARS]
    if rules.english_only and not start.isascii() and len(_LATIN.findall(start)) * 2 < len(_LETTER.findall(start)):
        return "other_language"
    return ""


def _refuse_tokens(text: str, windows: Sequence[Encoding], rules: TextRules) -> str:
    """The reason for not scoring a text with these tokens; "" = none."""
    if len(windows[0]) < 2:
        return "one_token"
    if len(windows[0]) < rules.min_tokens:
        return "too_short"
    if rules.english_only:
        spans = (windows[-1].token_to_chars(index) for index in reversed(range(len(windows[-1]))))
        end = next((span[1] for span in spans if span and span[1]), 0)  # text after the last token is not read
        read = text[:end].lower().replace("’", "'")
        if has_few_function_words(word_tokens(read), len(read.split())):
            return "few_function_words"
    return ""


def head(text: str, max_tokens: int) -> str:
    """The beginning of `text` with the same first `max_tokens` tokens.

    A word is at least one token, and with nearly all tokenizers none spans the end of a word and the single space
    behind it: so it is safe to cut at such a place with `max_tokens` words before it. A text without them is not cut.
    """
    end = next(islice(_WORD_BEFORE_SPACE.finditer(text), max_tokens, None), None)
    return text[: end.end()] if end else text


def batches(lengths: Sequence[int], budget: int) -> list[list[int]]:
    """Indices of texts of these lengths in batches, the longest first, each of at most `budget` padded tokens.

    A batch that is large enough for the device to work at full speed is closed early, where the next text would bring
    more than a little padding. A text longer than the budget has a batch of its own.
    """
    filled: list[list[int]] = []
    width = 0
    for index in sorted(range(len(lengths)), key=lambda index: (-lengths[index], index)):
        cells = len(filled[-1]) * width if filled else 0
        much_shorter = lengths[index] < _LITTLE_PADDING * width
        if not filled or cells + width > budget or (much_shorter and cells >= _LARGE_ENOUGH * budget):
            filled.append([])
            width = lengths[index]
        filled[-1].append(index)
    return filled
