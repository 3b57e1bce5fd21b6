"""The quality measures: values by example, tokens as arrays, and texts built to be slow."""

from __future__ import annotations

import subprocess
import sys
from collections import Counter
from random import Random

import msgspec
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from filters.quality.c4 import clean
from filters.quality.characters import TERMINAL_PUNCTUATION
from filters.quality.lines import punctuated_text
from filters.quality.measures import measure_main, measure_quality
from filters.quality.names import MEASURES
from filters.quality.ngrams import DUPLICATE, repeated_ngrams
from filters.quality.tokens import TOKENIZERS, Tokens

ANY_TEXT = st.one_of(st.text(), st.text(st.sampled_from("ab \n\x85\x1c\u2028\u3000é😀\ud800"), max_size=40))


def measures(text: str, tokenizer: str = "whitespace") -> dict[str, float | None]:
    return dict(zip(MEASURES, measure_quality(text, tokenizer)["main"], strict=True))


@given(ANY_TEXT)
def test_white_space_is_found_as_str_split_finds_it(text: str) -> None:
    """For any characters, lengths equal those of `str.split`, and equal tokens have equal hashes."""
    tokens = Tokens.of(text)
    assert tokens.lengths.tolist() == [len(word) for word in text.split()]
    assert len(dict.fromkeys(tokens.hashes.tolist())) == len(dict.fromkeys(text.split()))


@given(st.lists(st.tuples(st.text(st.sampled_from("ab, é\t"), max_size=8), st.booleans()), min_size=1, max_size=8))
def test_tokens_of_lines_kept_are_those_of_the_text_they_make(lines: list[tuple[str, bool]]) -> None:
    """Tokens selected from the kept lines equal the tokens of the cleaned text."""
    text = "\n".join(line for line, _ in lines)
    rest = "\n".join(line for line, kept in lines if kept)
    for tokenize in TOKENIZERS.values():
        chosen = Tokens.of(text, tokenize).of_lines([kept for _, kept in lines], rest)
        again = Tokens.of(rest, tokenize)
        assert chosen.lengths.tolist() == again.lengths.tolist()
        assert chosen.hashes.tolist() == again.hashes.tolist()
        assert [kind & 255 for kind in chosen.kinds.tolist()] == [kind & 255 for kind in again.kinds.tolist()]


def walked(words: list[str], n: int) -> int:
    """datatrove's walk by its definition: step by step over words joined without a space."""
    seen: set[str] = set()
    place = chars = 0
    while place <= len(words) - n:
        gram = "".join(words[place : place + n])
        if gram in seen:
            chars += len(gram)
            place += n
        else:
            seen.add(gram)
            place += 1
    return chars


def test_gophers_words() -> None:
    """Tokens of punctuation alone are not words but count in the divisor; symbols are counted in the text."""
    values = measures("The cat -- sat... on #1 mat, with ## 22")
    shares = {"hashes_per_word": 3 / 10, "ellipses_per_word": 1 / 10, "alpha_word_share": 6 / 10}
    means = {"mean_word_chars": (3 + 3 + 6 + 2 + 2 + 4 + 4 + 2) / 8, "median_word_chars": 2.5}
    assert values.items() >= {"words": 8, **means, **shares, "stop_words": 1, "dolma_words": 10}.items()


def test_an_empty_text_has_unknown_shares() -> None:
    """A share is None if there is nothing to divide by; counts are 0."""
    for values in (measures(""), measures(" \n ")):
        assert values["words"] == values["dolma_words"] == values["stop_words"] == values["c4_sentences"] == 0
        assert values["mean_word_chars"] is values["top_2gram_share"] is values["fineweb_short_line_share"] is None


@given(ANY_TEXT)
def test_values_are_floats_that_travel(text: str) -> None:
    """Each text has a value for each name, and a record can carry them."""
    found = measure_quality(text)
    assert tuple(found) == ("main", "c4", "nopunc")
    assert all(len(values) == len(MEASURES) for values in found.values())
    assert msgspec.msgpack.decode(msgspec.msgpack.encode(found)) == found
    assert all(value is None or type(value) is float for values in found.values() for value in values)


LINE_BREAKS = ["\n", "\r", "\r\n", "\x0b", "\x0c", "\x1c", "\x1d", "\x1e", "\x85", "\u2028", "\u2029"]


@given(
    st.lists(
        st.tuples(
            st.sampled_from(
                ["A cat sat here.", "  A dog ran.", "no end", "a bit more", "See [1] it go.", "Use {javascript}!", ""]
            ),
            st.one_of(st.just("\n"), st.just("\n"), st.sampled_from(LINE_BREAKS)),
        ),
        max_size=8,
    ).map(lambda lines: "".join(line + line_break for line, line_break in lines)),
    st.booleans(),
)
@example("a\x85b c d.\nThis is one line.\nmenu\n", False)
def test_the_cleaned_text_is_measured_as_if_it_were_a_main_text(text: str, stripped: bool) -> None:
    """The measures of the cleaned text equal those of a main text with the same content, except for C4's counts.

    Those of the punctuated lines are all equal. This holds for any line breaks, with or without one at the end.
    """
    text = text.strip() if stripped else text
    for tokenizer in TOKENIZERS:
        found = measure_quality(text, tokenizer)
        for name, value, expected in zip(MEASURES, found["c4"], measure_main(clean(text).text, tokenizer), strict=True):
            assert value == expected or name.startswith("c4_"), name
        assert found["nopunc"] == measure_main(punctuated_text(text), tokenizer)


def test_words_and_marks_are_tokens_of_their_own() -> None:
    """The word-boundary tokenizer does not split words at marks inside them."""
    assert TOKENIZERS["words"]("Don't pay $3.50, well-kept U.S. host_1!") == [
        *("Don't", "pay", "$", "3.50", ",", "well-kept", "U.S", ".", "host_1", "!")
    ]


@pytest.mark.parametrize("tokenizer", TOKENIZERS)
@pytest.mark.parametrize(
    "text",
    [
        "word " * 100_000,
        "x" * 500_000,
        " ".join(f"w{number}" for number in range(80_000)),
        "a b c d e f g h i j k l m n\n" * 8_000,
        "\n" * 300_000,
        "[1]" * 50_000 + ".",
        ("x" * 20_000 + " ") * 30,
        "é—" * 60_000,
        "a.b" * 100_000,
    ],
    ids=["one word", "no space", "all distinct", "one line", "line feeds", "citations", "long words", "marks", "stops"],
)
def test_hostile_texts_are_measured_in_linear_time(text: str, tokenizer: str) -> None:
    """Hostile texts of a size at which a quadratic algorithm would not finish are measured."""
    assert len(measure_quality(text, tokenizer)["main"]) == len(MEASURES)


PIECES = pytest.mark.parametrize("piece", [1 << 16, 97], ids=["whole", "in pieces"])


@PIECES
@pytest.mark.parametrize("distinct", [1_000, 4_000])
def test_joined_words_are_compared_in_long_texts_too(distinct: int, piece: int) -> None:
    """Ten words occur twice, split differently the second time: duplicates for datatrove, not for DOLMa."""
    filler = [f"w{number}" for number in range(distinct)]
    second, first = ["aa", *"bcdef", "gg", *"hij", "kl"], ["a", "ab", *"cdef", "gg", *"hij", "kl"]
    words = [*first, *filler, *second]
    found = repeated_ngrams(Tokens.of(" ".join(words)), piece)
    assert found.walked_chars == [walked(words, n) for n in DUPLICATE]
    assert found.walked_chars[5] > found.all_chars[5] == 0


@PIECES
@pytest.mark.parametrize("third", ["ab", "c"])
@pytest.mark.parametrize("count", [200, 2_000, 17_000])
def test_many_repeated_ngrams_are_counted_as_few_are(count: int, third: str, piece: int) -> None:
    """N-gram counts follow the definitions at any length, even if different words join to the same characters."""
    random = Random(4)
    words = [random.choice(["a", "b", third, "long", "words"]) for _ in range(count)]
    found = repeated_ngrams(Tokens.of(" ".join(words)), piece)
    assert found.walked_chars == [walked(words, n) for n in DUPLICATE]
    for n, top in zip((2, 3, 4), found.top, strict=True):
        counts = Counter(zip(*(words[i:] for i in range(n)), strict=False))
        first, times = counts.most_common(1)[0]
        assert top == (sum(map(len, first)), times)
    for n, chars in zip(DUPLICATE, found.all_chars, strict=True):
        counts = Counter(zip(*(words[i:] for i in range(n)), strict=False))
        assert chars == sum(times * sum(map(len, gram)) for gram, times in counts.items() if times > 1)


def test_rulesets_are_read_without_arrays() -> None:
    """Names of measures load without numpy, so that commands on rulesets start fast."""
    code = "import sys, filters.rules.ruleset as r; r.load_ruleset('gopher'); sys.exit('numpy' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


@pytest.mark.parametrize(
    "text", ["Ends ….", "A line…  ", "• one\n-two\n", "\n\na\n\n\nb\n\nb", "x \x85- y\n \n…", "a\n"]
)
def test_line_shares_are_their_definitions(text: str) -> None:
    """Line shares follow their definitions with trailing white space, empty lines and unusual line breaks."""
    values, gopher, lines = measures(text), text.splitlines(), text.split("\n")
    assert values["bullet_line_share"] == sum(line.lstrip().startswith(("•", "-")) for line in gopher) / len(gopher)
    assert values["ellipsis_line_share"] == sum(line.rstrip().endswith(("…", "...")) for line in gopher) / len(gopher)
    visible = [line for line in lines if line.strip()]
    assert values["fineweb_punctuated_line_share"] == sum(line[-1] in TERMINAL_PUNCTUATION for line in visible) / len(
        visible
    )
    assert values["fineweb_newlines_per_word"] == text.count("\n") / len(text.split())
