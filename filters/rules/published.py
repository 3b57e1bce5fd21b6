"""The rules that web-corpus builders have published, each over one quality measure; as tables, with their sources.

- Gopher: Rae et al. 2021, arXiv:2112.11446, appendix A.1. The limits of the mean are the paper's; those of the median
  are the variant of the users' notes, and DOLMa's.
- C4: Raffel et al. 2020, JMLR 21:140, section 2.2, with the lines that its cleaning keeps.
- FineWeb: Penedo et al. 2024, arXiv:2406.17557, section 3.6.
- DOLMa: Soldaini et al. 2024, arXiv:2402.00159, with the counting of its published taggers.

How each measure is computed stands in `filters.quality.measures`; the published thresholds stand in the rulesets.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from filters.quality.names import MEASURES
from filters.rules.kinds import MOST, Facts, Rule, RuleKind, Value


class _Unit(NamedTuple):
    high: float
    whole: bool = False
    low: float = 0


_COUNT = _Unit(MOST, whole=True)
_CHARS = _Unit(MOST)  # a mean or a median
_RATE = _Unit(MOST)  # may exceed 1
_SHARE = _Unit(1)

_TABLE: tuple[tuple[str, str, str, _Unit, str], ...] = (
    # rule, measure, operator, unit, what is measured
    ("gopher_min_words", "words", ">=", _COUNT, "words that are not all punctuation"),
    ("gopher_max_words", "words", "<=", _COUNT, "words that are not all punctuation"),
    (
        "gopher_min_mean_word_chars",
        "mean_word_chars",
        ">=",
        _CHARS,
        "mean characters of words that are not all punctuation",
    ),
    (
        "gopher_max_mean_word_chars",
        "mean_word_chars",
        "<=",
        _CHARS,
        "mean characters of words that are not all punctuation",
    ),
    ("gopher_min_median_word_chars", "median_word_chars", ">=", _CHARS, "median characters of all words"),
    ("gopher_max_median_word_chars", "median_word_chars", "<=", _CHARS, "median characters of all words"),
    ("gopher_max_hashes_per_word", "hashes_per_word", "<=", _RATE, "number of # / words"),
    ("gopher_max_ellipses_per_word", "ellipses_per_word", "<=", _RATE, "number of ... and … / words"),
    ("gopher_max_bullet_line_share", "bullet_line_share", "<=", _SHARE, "lines that begin with • or - / lines"),
    ("gopher_max_ellipsis_line_share", "ellipsis_line_share", "<=", _SHARE, "lines that end in ... or … / lines"),
    ("gopher_min_alpha_word_share", "alpha_word_share", ">=", _SHARE, "words with a letter / words"),
    ("gopher_min_stop_words", "stop_words", ">=", _Unit(8, whole=True), "how many of: the be to of and that have with"),
    *(
        (f"gopher_max_duplicate_{piece}_{share}", f"duplicate_{piece}_{share}", "<=", _SHARE, doc)
        for piece in ("paragraph", "line")
        for share, doc in (
            ("share", f"{piece}s that repeat an earlier one / {piece}s"),
            ("char_share", f"characters of {piece}s that repeat an earlier one / characters"),
        )
    ),
    *(
        (
            f"gopher_max_top_{n}gram_share",
            f"top_{n}gram_share",
            "<=",
            _RATE,  # occurrences may overlap: "a a a a" has twice its characters in pairs
            f"times x characters of the most frequent sequence of {n} words / characters",
        )
        for n in (2, 3, 4)
    ),
    *(
        (
            f"gopher_max_duplicate_{n}gram_share",
            f"duplicate_{n}gram_share",
            "<=",
            _SHARE,
            f"characters of sequences of {n} words that repeat an earlier one, none counted twice / characters",
        )
        for n in range(5, 11)
    ),
    ("c4_lorem_ipsum", "c4_lorem_ipsum_lines", "<=", _COUNT, "kept lines with the words lorem ipsum"),
    ("c4_curly_bracket", "c4_curly_bracket_lines", "<=", _COUNT, "kept lines with an opening curly bracket"),
    ("c4_min_sentences", "c4_sentences", ">=", _COUNT, "sentences of the kept lines"),
    (
        "fineweb_min_punctuated_line_share",
        "fineweb_punctuated_line_share",
        ">=",
        _SHARE,
        "lines that end in terminal punctuation / lines that are not empty",
    ),
    (
        "fineweb_max_short_line_share",
        "fineweb_short_line_share",
        "<=",
        _SHARE,
        "lines of at most 30 characters / lines that are not empty",
    ),
    (
        "fineweb_max_duplicate_line_char_share",
        "fineweb_duplicate_line_char_share",
        "<=",
        _SHARE,
        "characters of lines that repeat an earlier one / characters",
    ),
    ("fineweb_max_newlines_per_word", "fineweb_newlines_per_word", "<=", _RATE, "line breaks / words"),
    ("dolma_min_words", "dolma_words", ">=", _COUNT, "words"),
    ("dolma_max_words", "dolma_words", "<=", _COUNT, "words"),
    ("dolma_min_median_word_chars", "median_word_chars", ">=", _CHARS, "median characters of all words"),
    ("dolma_max_median_word_chars", "median_word_chars", "<=", _CHARS, "median characters of all words"),
    ("dolma_max_symbol_word_share", "dolma_symbol_word_share", "<=", _SHARE, "words with # or … / words"),
    ("dolma_min_alpha_word_share", "alpha_word_share", ">=", _SHARE, "words with a letter / words"),
    (
        "dolma_min_required_words",
        "dolma_required_words",
        ">=",
        _COUNT,
        "how often the be to of and that have with occur",
    ),
    ("dolma_max_bullet_line_share", "dolma_bullet_line_share", "<=", _SHARE, "lines that begin with * or - / lines"),
    ("dolma_max_ellipsis_line_share", "dolma_ellipsis_line_share", "<=", _SHARE, "lines that end in … / lines"),
    (
        "dolma_max_duplicate_line_share",
        "dolma_duplicate_line_share",
        "<=",
        _SHARE,
        "lines that occur more than once, the first among them / lines",
    ),
    (
        "dolma_max_duplicate_line_char_share",
        "dolma_duplicate_line_char_share",
        "<=",
        _SHARE,
        "characters of lines that occur more than once / characters of words",
    ),
    *(
        (
            f"dolma_max_top_{n}gram_share",
            f"dolma_top_{n}gram_share",
            "<=",
            _RATE,
            f"times x characters of the most frequent sequence of {n} words / characters of words",
        )
        for n in (2, 3, 4)
    ),
    *(
        (
            f"dolma_max_duplicate_{n}gram_share",
            f"dolma_duplicate_{n}gram_share",
            "<=",
            _SHARE,
            f"characters of sequences of {n} words that occur more than once / characters of all of {n} words",
        )
        for n in range(5, 11)
    ),
    (
        "dolma_max_unpunctuated_line_share",
        "dolma_unpunctuated_line_share",
        "<=",
        _SHARE,
        'lines that do not end in . ? ! or " / lines',
    ),
    (
        "dolma_max_repetitions",
        "dolma_repetitions",
        "<",
        _Unit(MOST, whole=True, low=1),
        "times that the most repeated sequence of 1 to 13 words follows itself",
    ),
)

_SOURCES = {
    "gopher": "Gopher, arXiv:2112.11446",
    "c4": "C4, JMLR 21:140",
    "fineweb": "FineWeb, arXiv:2406.17557",
    "dolma": "DOLMa, arXiv:2402.00159",
}


def _reader(measure: str) -> Callable[[Facts, Rule], Value]:
    position = MEASURES.index(measure)  # found once, not for each page
    return lambda facts, _: facts.quality[position]


QUALITY_RULES: dict[str, RuleKind] = {
    name: RuleKind(
        measure=_reader(measure),
        of=measure,
        op=op,
        what=what,
        source=_SOURCES[name.partition("_")[0]],
        low=unit.low,
        high=unit.high,
        whole=unit.whole,
    )
    for name, measure, op, unit, what in _TABLE
}
"""Rules over the quality measures of the text that a ruleset reads, by their names."""
