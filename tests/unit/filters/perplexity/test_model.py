from __future__ import annotations

import math
from itertools import product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from filters.perplexity.fluent import Unit, fluent_text
from filters.perplexity.model import Formula, NgramModel, load_model, shipped_model, surprisal
from tests.support.small_ngrams import BIGRAMS, TRIGRAMS, UNKNOWN, UNSEEN, WORDS, model_of

BIGRAM, TRIGRAM = model_of(WORDS, BIGRAMS), model_of(WORDS, BIGRAMS, TRIGRAMS)
_SPOKEN = {"<number>": "7"}


def _perplexity(model: NgramModel, text: str, formula: Formula) -> float | None:
    (perplexity,) = model.surprisals(text, formula).perplexities()
    return perplexity


def _of(*shares: float) -> float:
    return 2 ** (-sum(map(math.log2, shares)) / len(shares))


@pytest.mark.parametrize(
    ("model", "text", "shares"),
    [
        # .8 B(w1 w2) + .2 U(w1) + 1e-6, from <s> on; U(<s>) is the share of sentences
        (BIGRAM, "The dog barks.", (0.8 * 0.75 + 0.2 * 0.25, 0.8 * 0.5 + 0.2 * 0.4, 0.8 * 0.25 + 0.2 * 0.2)),
        (BIGRAM, "Barks the 12 !", (0.2 * 0.25, 0.2 * 0.2, 0.8 * 0.125 + 0.2 * 0.4)),
        (BIGRAM, "Cat dog", (0.2 * 0.25, 0)),
        # .6 T(w1 w2 w3) + .3 B(w1 w2) + .1 U(w1) + 1e-6
        (TRIGRAM, "The dog barks.", (0, 0.6 * 0.75 + 0.3 * 0.75 + 0.1 * 0.25, 0.6 * 0.5 + 0.3 * 0.5 + 0.1 * 0.4)),
    ],
)
def test_published_formula(model: NgramModel, text: str, shares: tuple[float, ...]) -> None:
    """The published formula gives the perplexity that a hand computes."""
    expected = _of(*(share + 1e-6 for share in shares))
    assert _perplexity(model, text, Formula.PUBLISHED) == pytest.approx(expected, rel=1e-3)


@pytest.mark.parametrize(
    ("model", "text", "shares"),
    [
        (BIGRAM, "The dog barks.", (0.8 * 0.75 + 0.4 * 0.4, 0.8 * 0.5 + 0.5 * 0.2, 0.8 * 0.25 + 0.8 * 0.2)),
        (BIGRAM, "Cat dog", (0.4 * UNKNOWN / UNSEEN, 0.2)),
        (
            TRIGRAM,
            "The dog barks.",
            (
                0.75 * 0.75 + (1 - 0.75 * 0.75) * 0.4,
                0.6 * 0.75 + (1 - 0.6 * 0.75) * (0.75 * 0.5 + (1 - 0.75 * 0.625) * 0.2),
                0.6 * 0.5 + (1 - 0.6 * 0.5) * (0.75 * 0.25 + (1 - 0.75 * 0.25) * 0.2),
            ),
        ),
    ],
)
def test_interpolated(model: NgramModel, text: str, shares: tuple[float, ...]) -> None:
    """The rest of each history goes to the word's own share; an unknown word has its part of the unknown share."""
    assert _perplexity(model, text, Formula.INTERPOLATED) == pytest.approx(_of(*shares), rel=1e-3)


_SHARES = st.floats(0.01, 1)


@settings(max_examples=60, deadline=None)
@given(data=st.data(), with_trigrams=st.booleans())
def test_sums_to_one(data: st.DataObject, with_trigrams: bool) -> None:
    """After any history, the probabilities of the words and of the unknown ones sum to 1, whatever was left out."""
    words = ["a", "b", "c", "<number>"]
    weights = {word: data.draw(_SHARES) for word in words}
    own = {word: (1 - UNKNOWN) * weight / sum(weights.values()) for word, weight in weights.items()} | {"<s>": 0.3}
    pairs = data.draw(st.sets(st.sampled_from(list(product(["<s>", *words], words))), min_size=1))
    bigrams = {pair: data.draw(_SHARES) / 4 for pair in pairs}
    triples = [(first, second, word) for (first, second), word in product(sorted(pairs), words) if second != "<s>"]
    kept = data.draw(st.sets(st.sampled_from(triples), min_size=1)) if with_trigrams else set()
    model = model_of(own, bigrams, {triple: data.draw(_SHARES) / 4 for triple in kept})
    for history in ("", "a", "b a", "7 c", "unseen", "a unseen", "unseen b"):
        before = model.surprisals(history).units.sum()
        total = 0.0
        for word in (*words, "other"):
            text = f"{history} {_SPOKEN.get(word, word)}"
            probability = 2 ** -((model.surprisals(text).units.sum() - before) / 4096)
            total += probability * (UNSEEN if word == "other" else 1)
        assert total == pytest.approx(1, abs=1e-3)


def test_no_word_is_lost() -> None:
    """Each word counts, known or not; a text of unknown words is less likely than one of known words."""
    surprisals = BIGRAM.surprisals("The zebra barks.\nZebra, zebra 9!")
    assert surprisals.words.tolist() == [3, 3]
    known, unknown = surprisals.perplexities()
    assert known is not None and unknown is not None and known < unknown


def test_sentences_alone_and_together() -> None:
    """A sentence has the same perplexity alone as in a text: the history begins anew."""
    sentences = ["The dog barks. ", "Barks the dog! ", "7 dogs.\n", "The dog."]
    alone = [_perplexity(BIGRAM, sentence, Formula.INTERPOLATED) for sentence in sentences]
    assert BIGRAM.surprisals("".join(sentences)).perplexities() == alone


def test_fluent_text() -> None:
    """Sentences above the limit, and those without a word, go; the lines of the others stay."""
    text = "The dog barks. Zebra quagga!\nMenu | Login\n• •\nThe dog. The dog barks."
    assert fluent_text(text, BIGRAM, 100) == "The dog barks.\nThe dog. The dog barks."
    assert fluent_text(text, BIGRAM, 1) == ""
    assert fluent_text("The dog. \n\n The dog. ", BIGRAM, 100) == "The dog. \n\n The dog. "
    assert fluent_text("", BIGRAM, 100) == ""


@pytest.mark.parametrize(
    ("unit", "kept"), [(Unit.PARAGRAPH, "The dog barks. Quagga!"), (Unit.PAGE, "The dog barks. Quagga!\n  Login")]
)
def test_fluent_units(unit: Unit, kept: str) -> None:
    """A paragraph, or the page, is kept by the perplexity of all its words."""
    text = "The dog barks. Quagga!\n  Login"
    assert fluent_text(text, BIGRAM, 40, unit=unit) == kept
    assert fluent_text(text, BIGRAM, 2, unit=unit) == ""


def test_limit_is_kept() -> None:
    """A sentence at the limit is kept: only what exceeds it goes."""
    even = model_of({"<s>": 0.5, "a": 0.5, "b": 0.4}, {("a", "b"): 0.5})
    (perplexity,) = even.surprisals("a").perplexities()
    assert perplexity == 2.0 and fluent_text("a", even, 2) == "a" and fluent_text("a", even, 1.99) == ""


def test_surprisals_are_those_of_every_processor() -> None:
    """They are looked up by numbers whose logarithms are not near a half, and are right to .55 of a unit."""
    middles = (np.arange(1 << 16) + 0.5) / (1 << 17) + 0.5
    exact = -4096 * np.log2(middles)
    assert np.abs(exact % 1 - 0.5).min() > 1e-7  # 10,000 times what logarithms differ by
    assert surprisal(middles).tolist() == np.rint(exact).tolist()
    for p in (1, 0.5, 1 / 3, 2e-6, 1e-24):
        assert int(surprisal(np.float64(p))) == pytest.approx(-4096 * math.log2(p), abs=0.55)


def test_shipped_model() -> None:
    """The shipped model finds sentences likely, and menus and strings of letters unlikely."""
    text = (
        "The president said on Tuesday that he would not sign the bill.\nHome | About us | Login | Register\nxq zwv jkq"
    )
    sentence, menu, letters = shipped_model().surprisals(text).perplexities()
    assert sentence is not None and menu is not None and letters is not None
    assert sentence < 1000 < 5000 < menu < letters
    assert load_model("english") is shipped_model()
    assert shipped_model().card.licence.startswith("BSD-2-Clause")
