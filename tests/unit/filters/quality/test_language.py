"""Language identification: passages in many languages, quotations, hostile texts, and the labelled pages."""

from __future__ import annotations

import json
import re
from pathlib import Path
from unittest.mock import Mock

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from farmwatch.labels.labelled_pages import LabelledPage
from filters.quality.language import FIRST_LOOK, SECOND_LOOK, SURE, identify
from filters.quality.names import LANGUAGES
from tests.support.paths import DOCS

pytestmark = pytest.mark.xdist_group("labelled")

DATA = Path(__file__).parent
PASSAGES: dict[str, str] = json.loads((DATA / "language_passages.json").read_text("utf-8"))
FIRST_CHARS = FIRST_LOOK[0] * FIRST_LOOK[1]
LOOKED_AT = SECOND_LOOK[0] * (SECOND_LOOK[1] + 1)


def repeated(code: str, chars: int) -> str:
    """This many characters of the passage in that language, repeated."""
    return (f"{PASSAGES[code]} " * (chars // len(PASSAGES[code]) + 1))[:chars]


@pytest.mark.parametrize("code", PASSAGES)
def test_a_passage_is_in_its_language(code: str) -> None:
    """For a passage of 100 characters, its language is more probable than all others together."""
    found, probability = identify(PASSAGES[code])
    assert found == identify(PASSAGES[code][:100])[0] == code
    assert 0.5 < probability <= 1


@pytest.mark.parametrize("part", [0.0, 0.25, 0.5, 0.75, 1.0])
@pytest.mark.parametrize(("page", "quoted"), [("en", "de"), ("de", "en"), ("en", "ja"), ("fr", "ru")])
def test_a_quotation_does_not_decide(page: str, quoted: str, part: float) -> None:
    """An eighth of a page in another language, at any place, does not change the result."""
    text = repeated(page, 7_000)
    at = int(len(text) * part)
    assert identify(text[:at] + repeated(quoted, 1_000) + text[at:])[0] == page


def test_a_doubt_takes_a_second_look() -> None:
    """An unsure first look is followed by a look at more of the text, which decides; a sure one is final."""
    sure = Mock(return_value=("en", SURE))
    unsure = Mock(side_effect=[("pcm", SURE - 0.01), ("en", 0.99)])
    text = repeated("en", 50_000)
    assert (identify(text, sure), sure.call_count) == (("en", SURE), 1)
    assert (identify(text, unsure), unsure.call_count) == (("en", 0.99), 2)
    assert len(unsure.call_args.args[0]) > 2 * FIRST_CHARS


@given(st.integers(0, 200_000))
@settings(max_examples=60)
def test_what_is_looked_at_is_bounded_and_spread(chars: int) -> None:
    """Of a long text, few characters are read, from every part of it; a short text is read whole."""
    unsure = Mock(return_value=("en", 0.0))
    parts = "abcd"  # one letter for each quarter
    text = "".join(letter * (chars // 4) for letter in parts)
    identify(text, unsure)
    looks = [call.args[0] for call in unsure.call_args_list]
    assert all(len(look) <= LOOKED_AT for look in looks)
    assert all(set(parts) <= set(look) for look in looks)
    assert len(text) > FIRST_CHARS or looks in ([text], [])


@pytest.mark.parametrize("text", ["", " \n\t", "12 34, 56.7 – 89%", "\0" * 100, "\U0001f600" * 5_000, "★ ☆ → ■"])
def test_without_letters_there_is_no_language(text: str) -> None:
    """Spaces, digits, NULs, emoji and symbols have no language."""
    assert identify(text) == (None, 0.0)


@pytest.mark.parametrize(
    "text",
    [
        "\ud800\udfff\udc80 words of a text " * 50,
        "words\0of\0a\0text " * 50,
        "a" * 2_000_000,
        "a" + "\u0301\u0316" * 1_000_000,
        "\u202e\ufeff\ufffe words \x85\x9f " * 50,
        "1" * 2_000_000 + "a",
    ],
    ids=["surrogates", "NULs", "one word", "combining", "controls", "figures"],
)
def test_hostile_texts_are_answered_soon(text: str) -> None:
    """Broken, endless and unprintable texts get an answer with a probability, the same each time."""
    found = identify(text)
    assert found == identify(text)
    assert found[0] is not None
    assert 0 < found[1] <= 1


@given(st.text(st.characters(), max_size=600))
@settings(max_examples=100)
def test_any_text_is_answered(text: str) -> None:
    """Any characters, surrogates included, give a code and a probability, or neither."""
    code, probability = identify(text)
    assert (code is None) == (probability == 0.0)
    assert 0 <= probability <= 1


def test_the_page_lists_every_code() -> None:
    """docs/reference/languages.md lists exactly the codes that a ruleset may name, each once."""
    page = (DOCS / "reference" / "languages.md").read_text(encoding="utf-8")
    section = page.partition("\n## The codes\n")[2].partition("\n## ")[0]
    lists = [line for line in section.splitlines() if line.startswith("`")]
    listed = re.findall(r"`([^`]+)`", " ".join(lists))
    assert sorted(listed) == sorted(LANGUAGES)
    assert f"these {len(LANGUAGES)} " in section


@pytest.mark.data
def test_languages_of_the_labelled_pages(labelled: list[LabelledPage]) -> None:
    """At most 1 page in 500 gets another language than its readers gave, and hardly any foreign page is English."""
    truth = json.loads((DATA / "language_truth.json").read_text("utf-8"))
    pages = [(truth["pages"].get(page.label.id, truth["default"]), page.features.measures) for page in labelled]
    judged = [(code, measures["language"]) for code, measures in pages if code and measures.get("language")]
    assert len(judged) > 120
    wrong = [(code, found) for code, found in judged if {"nb": "no", "nn": "no"}.get(str(found), found) != code]
    assert len(wrong) <= len(judged) / 500, wrong
    assert sum(code != "en" and found == "en" for code, found in judged) <= 1
    assert sum(code != "en" for code, _ in judged) > 15


@pytest.mark.data
def test_passages_say_what_the_whole_page_says(labelled: list[LabelledPage]) -> None:
    """For every labelled page, the sampled passages and the whole text have the same language."""
    from py3langid.langid import MODEL_FILE, LanguageIdentifier

    whole = LanguageIdentifier.from_model_file(MODEL_FILE, norm_probs=True)
    texts = [page.features.text for page in labelled if len(page.features.text) > FIRST_CHARS]
    assert len(texts) > 60
    differ = [(identify(text), whole.classify(text)) for text in texts if identify(text)[0] != whole.classify(text)[0]]
    assert len(differ) <= len(texts) / 100, differ
