"""Names: of the quality measures, the texts that are measured, and the languages; importing them costs no numpy."""

from __future__ import annotations

TEXTS = ("main", "c4")
"""Texts that are measured: the main text, and what C4's line cleaning leaves of it."""

MEASURES: tuple[str, ...] = (
    # Gopher quality
    "words",  # tokens with a character that is no punctuation
    "mean_word_chars",  # of those
    "median_word_chars",  # of all tokens
    "hashes_per_word",
    "ellipses_per_word",
    "bullet_line_share",
    "ellipsis_line_share",
    "alpha_word_share",
    "stop_words",  # different ones
    # Gopher repetition
    "duplicate_paragraph_share",
    "duplicate_paragraph_char_share",
    "duplicate_line_share",
    "duplicate_line_char_share",
    "top_2gram_share",
    "top_3gram_share",
    "top_4gram_share",
    "duplicate_5gram_share",
    "duplicate_6gram_share",
    "duplicate_7gram_share",
    "duplicate_8gram_share",
    "duplicate_9gram_share",
    "duplicate_10gram_share",
    # C4, of the lines that its cleaning keeps
    "c4_lorem_ipsum_lines",
    "c4_curly_bracket_lines",
    "c4_sentences",
    # FineWeb
    "fineweb_punctuated_line_share",
    "fineweb_short_line_share",
    "fineweb_duplicate_line_char_share",
    "fineweb_newlines_per_word",
    # DOLMa, where its taggers count otherwise
    "dolma_words",
    "dolma_symbol_word_share",
    "dolma_required_words",  # occurrences
    "dolma_bullet_line_share",
    "dolma_ellipsis_line_share",
    "dolma_duplicate_line_share",
    "dolma_duplicate_line_char_share",
    "dolma_top_2gram_share",
    "dolma_top_3gram_share",
    "dolma_top_4gram_share",
    "dolma_duplicate_5gram_share",
    "dolma_duplicate_6gram_share",
    "dolma_duplicate_7gram_share",
    "dolma_duplicate_8gram_share",
    "dolma_duplicate_9gram_share",
    "dolma_duplicate_10gram_share",
    "dolma_unpunctuated_line_share",
    "dolma_repetitions",  # of the most repeated sequence of 1 to 13 tokens
)
"""Names of the measures, in the order of the values in a features record; appended, never reordered."""

_CODES = """
af am an ar as az ba be bg bn br bs ca cs cy da de dz el en eo es et eu fa fi fo fr fy ga gd gl gu ha he hi hr ht hu
hy id ig is it ja jv ka kk km kn ko ku ky la lb lg ln lo lt lv mg mk ml mn mr ms mt my ne nl nn no oc om or pa pl ps
pt qu ro ru rw sa se si sk sl sn so sq sr st sv sw ta te tg th tk tl tr tt ug uk ur uz vi vo wa xh yo zh zu ace ary
arz bcl crh ext fuv gcf gcr gom grc gug guw hbo kab kik lij ltg nso pcm sdh uzs vec wuu yue zxx
"""

LANGUAGES = frozenset(_CODES.split())
"""Codes of the language identifier, ISO 639: two letters where such a code exists; zxx is text in no language."""
