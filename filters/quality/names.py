"""The names of the quality measures, of the texts of a page, and of the languages. Does not import numpy."""

from __future__ import annotations

from enum import StrEnum


class TextName(StrEnum):
    """A text of a page that a detector may score: the main text, some of its lines, or segments."""

    MAIN = "main"
    C4 = "c4"  # after C4's line cleaning
    NOPUNC = "nopunc"  # without the lines that end without punctuation
    OWN = "own"  # without template lines
    SEGMENTS = "segments"  # of the kinds that the ruleset counts
    FLUENT = "fluent"  # without the sentences that an n-gram model finds too unlikely


TEXTS = (TextName.MAIN, TextName.C4, TextName.NOPUNC, TextName.OWN)
"""Those that rules may read."""

PAGE_MEASURES = frozenset(
    ["tokens", "chars", "link_code_share", "language", "language_probability", "url_path", "simhash", "no_page"]
) | {"duplicate_share", "template_share", "simhash_distance", "template_block_share", "template_id"}
"""Names in `features.measures`. A new one raises `MEASURES_VERSION`, as a new one of `MEANINGS` does."""

MEANINGS: dict[str, str] = {
    # Gopher quality
    "words": "words that are not all punctuation",
    "mean_word_chars": "mean characters of words that are not all punctuation",
    "median_word_chars": "median characters of all words",
    "hashes_per_word": "number of # / words",
    "ellipses_per_word": "number of ... and … / words",
    "bullet_line_share": "lines that begin with • or - / lines",
    "ellipsis_line_share": "lines that end in ... or … / lines",
    "alpha_word_share": "words with a letter / words",
    "stop_words": "how many of: the be to of and that have with",
    # Gopher repetition
    "duplicate_paragraph_share": "paragraphs that repeat an earlier one / paragraphs",
    "duplicate_paragraph_char_share": "characters of paragraphs that repeat an earlier one / characters",
    "duplicate_line_share": "lines that repeat an earlier one / lines",
    "duplicate_line_char_share": "characters of lines that repeat an earlier one / characters",
    **{
        f"top_{n}gram_share": f"times x characters of the most frequent sequence of {n} words / characters"
        for n in (2, 3, 4)
    },
    **{
        f"duplicate_{n}gram_share": f"characters of sequences of {n} words that repeat an earlier one, "
        "none counted twice / characters"
        for n in range(5, 11)
    },
    # C4
    "c4_lorem_ipsum_lines": "kept lines with the words lorem ipsum",
    "c4_curly_bracket_lines": "kept lines with an opening curly bracket",
    "c4_sentences": "sentences of the kept lines",
    # FineWeb
    "fineweb_punctuated_line_share": "lines that end in terminal punctuation / lines that are not empty",
    "fineweb_short_line_share": "lines of at most 30 characters / lines that are not empty",
    "fineweb_duplicate_line_char_share": "characters of lines that repeat an earlier one / characters",
    "fineweb_newlines_per_word": "line breaks / words",
    # DOLMa, where its taggers count differently
    "dolma_words": "words",
    "dolma_symbol_word_share": "words with # or … / words",
    "dolma_required_words": "how often the be to of and that have with occur",
    "dolma_bullet_line_share": "lines that begin with * or - / lines",
    "dolma_ellipsis_line_share": "lines that end in … / lines",
    "dolma_duplicate_line_share": "lines that occur more than once, the first among them / lines",
    "dolma_duplicate_line_char_share": "characters of lines that occur more than once / characters of words",
    **{
        f"dolma_top_{n}gram_share": f"times x characters of the most frequent sequence of {n} words "
        "/ characters of words"
        for n in (2, 3, 4)
    },
    **{
        f"dolma_duplicate_{n}gram_share": f"characters of sequences of {n} words that occur more than once "
        f"/ characters of all of {n} words"
        for n in range(5, 11)
    },
    "dolma_unpunctuated_line_share": 'lines that do not end in . ? ! or " / lines',
    "dolma_repetitions": "times that the most repeated sequence of 1 to 13 words follows itself",
}
MEASURES = tuple(MEANINGS)
"""Names of the measures, in the order of a features record; append only, never reorder."""

_CODES = """
af am an ar as az ba be bg bn br bs ca cs cy da de dz el en eo es et eu fa fi fo fr fy ga gd gl gu ha he hi hr ht hu
hy id ig is it ja jv ka kk km kn ko ku ky la lb lg ln lo lt lv mg mk ml mn mr ms mt my ne nl nn no oc om or pa pl ps
pt qu ro ru rw sa se si sk sl sn so sq sr st sv sw ta te tg th tk tl tr tt ug uk ur uz vi vo wa xh yo zh zu ace ary
arz bcl crh ext fuv gcf gcr gom grc gug guw hbo kab kik lij ltg nso pcm sdh uzs vec wuu yue zxx
"""

LANGUAGES = frozenset(_CODES.split())
"""Codes of the language identifier, ISO 639: two letters if there is such a code; zxx = text in no language."""

LEAST_SEGMENT_WORDS = 50  # of a kind of segments whose language and repetition count
