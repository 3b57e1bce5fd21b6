"""Human prose from the topics of the running Python."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from farmwatch.demo.human_pages import PAGE_WORDS, HumanPage, human_pages, prose

TOPICS = {
    "raise": """The "raise" statement
*********************

   raise_stmt ::= "raise" [expression ["from" expression]]

If no expressions are present, "raise" re-raises the exception that is
currently being handled, which is also known as the *active exception*
(see section Exceptions).  It is a word of the language. [1]

   try:
       print(1 / 0)
   except ZeroDivisionError as exc:
       raise RuntimeError("Something bad happened, as it is bound to do now") from exc

Changed in version 3.3: "None" is now permitted as "Y" in the form that is
shown above, and it has been so ever since that version was made.

Short line.

object.__new__(cls[, ...])

   Called to create a new instance of class *cls*.  It is a **static** method
   that takes the class of which an instance was requested as its argument.

* If the target is an identifier, then the name is bound to the object in
  the current local namespace of the block that is being run.

Deep heading
============

"numbers.Integral"
   These represent elements from the mathematical set of integers, be they
   positive or negative, and there are two types of them in the language.

+---------+------------------------------------------------------------------+
| Flag    | It is a row of a table that is not to be taken for the prose.    |
+---------+------------------------------------------------------------------+
"""
}


def _words(page: HumanPage) -> int:
    return sum(len(paragraph.split()) for paragraph in page.paragraphs)


def test_only_prose_is_used_without_markup() -> None:
    """Paragraphs, list items and definitions are used; code, grammar, tables and version notes are not."""
    assert list(prose(TOPICS)) == [
        (
            "The raise statement",
            "If no expressions are present, raise re-raises the exception that is currently being handled, which is"
            " also known as the active exception. It is a word of the language.",
        ),
        (
            "The raise statement",
            "Called to create a new instance of class cls. It is a static method that takes the class of which an"
            " instance was requested as its argument.",
        ),
        (
            "The raise statement",
            "If the target is an identifier, then the name is bound to the object in the current local namespace of the"
            " block that is being run.",
        ),
        (
            "Deep heading",
            "These represent elements from the mathematical set of integers, be they positive or negative, and there"
            " are two types of them in the language.",
        ),
    ]


def test_the_running_python_has_enough_distinct_pages() -> None:
    """At least nine pages for each of eight sites; each ends with the paragraph that fills it; none occurs twice."""
    pages = human_pages()
    assert len(pages) >= 8 * 9
    for page in pages:
        assert _words(page) - len(page.paragraphs[-1].split()) < PAGE_WORDS <= _words(page)
        assert len(page.paragraphs) >= 2
    paragraphs = [paragraph for page in pages for paragraph in page.paragraphs]
    assert len(set(paragraphs)) == len(paragraphs)
    assert len({page.title for page in pages}) == len(pages)


@given(st.dictionaries(st.text(max_size=8), st.text(alphabet='Aa .\n*="-[]1', max_size=400), max_size=4))
def test_any_topics_give_full_pages_or_none(topics: dict[str, str]) -> None:
    """For any text of topics, pages are full and paragraphs are single lines."""
    for page in human_pages(topics, page_words=20):
        assert _words(page) >= 20
        assert all("\n" not in paragraph for paragraph in page.paragraphs)
