"""The rules that web-corpus builders have published, each over one quality measure.

- Gopher: Rae et al. 2021, arXiv:2112.11446, appendix A.1. The limits of the mean are the paper's; those of the median
  are the variant of the users' notes, and DOLMa's.
- C4: Raffel et al. 2020, JMLR 21:140, section 2.2, with the lines that its cleaning keeps.
- FineWeb: Penedo et al. 2024, arXiv:2406.17557, section 3.6.
- DOLMa: Soldaini et al. 2024, arXiv:2402.00159, with the counting of its published taggers.

How each measure is computed: `filters.quality.measures`. The published thresholds: `filters/rulesets`.
"""

from __future__ import annotations

from typing import Any

from filters.quality.names import MEASURES
from filters.rules.kinds import RuleKind

_COUNT: dict[str, Any] = {"whole": True}
_SHARE: dict[str, Any] = {"high": 1}
_NUMBER: dict[str, Any] = {}  # a mean, a median, or a rate that may exceed 1

# rule -> its possible thresholds, and what is measured. A rule is named FAMILY_min_MEASURE or FAMILY_max_MEASURE.
_RULES: dict[str, tuple[dict[str, Any], str]] = {
    "gopher_min_words": (_COUNT, "words that are not all punctuation"),
    "gopher_max_words": (_COUNT, "words that are not all punctuation"),
    "gopher_min_mean_word_chars": (_NUMBER, "mean characters of words that are not all punctuation"),
    "gopher_max_mean_word_chars": (_NUMBER, "mean characters of words that are not all punctuation"),
    "gopher_min_median_word_chars": (_NUMBER, "median characters of all words"),
    "gopher_max_median_word_chars": (_NUMBER, "median characters of all words"),
    "gopher_max_hashes_per_word": (_NUMBER, "number of # / words"),
    "gopher_max_ellipses_per_word": (_NUMBER, "number of ... and … / words"),
    "gopher_max_bullet_line_share": (_SHARE, "lines that begin with • or - / lines"),
    "gopher_max_ellipsis_line_share": (_SHARE, "lines that end in ... or … / lines"),
    "gopher_min_alpha_word_share": (_SHARE, "words with a letter / words"),
    "gopher_min_stop_words": (_COUNT | {"high": 8}, "how many of: the be to of and that have with"),
    "gopher_max_duplicate_paragraph_share": (_SHARE, "paragraphs that repeat an earlier one / paragraphs"),
    "gopher_max_duplicate_paragraph_char_share": (
        _SHARE,
        "characters of paragraphs that repeat an earlier one / characters",
    ),
    "gopher_max_duplicate_line_share": (_SHARE, "lines that repeat an earlier one / lines"),
    "gopher_max_duplicate_line_char_share": (_SHARE, "characters of lines that repeat an earlier one / characters"),
    **{  # occurrences may overlap: "a a a a" has twice its characters in pairs
        f"gopher_max_top_{n}gram_share": (
            _NUMBER,
            f"times x characters of the most frequent sequence of {n} words / characters",
        )
        for n in (2, 3, 4)
    },
    **{
        f"gopher_max_duplicate_{n}gram_share": (
            _SHARE,
            f"characters of sequences of {n} words that repeat an earlier one, none counted twice / characters",
        )
        for n in range(5, 11)
    },
    "c4_max_lorem_ipsum_lines": (_COUNT, "kept lines with the words lorem ipsum"),
    "c4_max_curly_bracket_lines": (_COUNT, "kept lines with an opening curly bracket"),
    "c4_min_sentences": (_COUNT, "sentences of the kept lines"),
    "fineweb_min_punctuated_line_share": (
        _SHARE,
        "lines that end in terminal punctuation / lines that are not empty",
    ),
    "fineweb_max_short_line_share": (_SHARE, "lines of at most 30 characters / lines that are not empty"),
    "fineweb_max_duplicate_line_char_share": (_SHARE, "characters of lines that repeat an earlier one / characters"),
    "fineweb_max_newlines_per_word": (_NUMBER, "line breaks / words"),
    "dolma_min_words": (_COUNT, "words"),
    "dolma_max_words": (_COUNT, "words"),
    "dolma_min_median_word_chars": (_NUMBER, "median characters of all words"),
    "dolma_max_median_word_chars": (_NUMBER, "median characters of all words"),
    "dolma_max_symbol_word_share": (_SHARE, "words with # or … / words"),
    "dolma_min_alpha_word_share": (_SHARE, "words with a letter / words"),
    "dolma_min_required_words": (_COUNT, "how often the be to of and that have with occur"),
    "dolma_max_bullet_line_share": (_SHARE, "lines that begin with * or - / lines"),
    "dolma_max_ellipsis_line_share": (_SHARE, "lines that end in … / lines"),
    "dolma_max_duplicate_line_share": (_SHARE, "lines that occur more than once, the first among them / lines"),
    "dolma_max_duplicate_line_char_share": (
        _SHARE,
        "characters of lines that occur more than once / characters of words",
    ),
    **{
        f"dolma_max_top_{n}gram_share": (
            _NUMBER,
            f"times x characters of the most frequent sequence of {n} words / characters of words",
        )
        for n in (2, 3, 4)
    },
    **{
        f"dolma_max_duplicate_{n}gram_share": (
            _SHARE,
            f"characters of sequences of {n} words that occur more than once / characters of all of {n} words",
        )
        for n in range(5, 11)
    },
    "dolma_max_unpunctuated_line_share": (_SHARE, 'lines that do not end in . ? ! or " / lines'),
    "dolma_max_repetitions": (
        _COUNT | {"op": "<", "low": 1},
        "times that the most repeated sequence of 1 to 13 words follows itself",
    ),
}

_RULE_NAMES = {"c4_max_lorem_ipsum_lines": "c4_lorem_ipsum", "c4_max_curly_bracket_lines": "c4_curly_bracket"}
_SOURCES = {
    "gopher": "Gopher, arXiv:2112.11446",
    "c4": "C4, JMLR 21:140",
    "fineweb": "FineWeb, arXiv:2406.17557",
    "dolma": "DOLMa, arXiv:2402.00159",
}


def _kind(name: str, limits: dict[str, Any], what: str) -> RuleKind:
    family, bound, measured = name.split("_", 2)
    own = f"{family}_{measured}"
    of = own if own in MEASURES else measured
    position = MEASURES.index(of)  # found once, not for each page
    return RuleKind(
        measure=lambda facts, _: facts.quality[position],
        of=of,
        what=what,
        source=_SOURCES[family],
        **{"op": ">=" if bound == "min" else "<=", **limits},
    )


QUALITY_RULES = {_RULE_NAMES.get(name, name): _kind(name, limits, what) for name, (limits, what) in _RULES.items()}
"""Rules over the quality measures of the text that a ruleset reads, by their names."""
