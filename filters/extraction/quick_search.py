"""Searches by tag and attributes as Trafilatura's XPaths make them, in a third of their time.

libxml2 makes a set of nodes for each step of an XPath, and lxml calls Python for each `re:test`. Here the attributes of
elements are looked up among those seen before. An XPath of another form is left as it is.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from itertools import islice
from typing import Any

Search = Callable[[Any], list[Any]]
"""From an element to its descendants that fit, in document order."""

Attribute = tuple[str, str]  # name and value
Test = Callable[[str], bool]  # of a value

_STRING = r"'([^']*)'"
_NAME = r"@([\w-]+)"
_VALUE = rf"(?:translate\({_NAME}, *{_STRING}, *{_STRING}\)|{_NAME}(?:\|{_NAME})?)"
_TERM = re.compile(rf"(contains|starts-with|re:test)\({_VALUE}, *{_STRING}(?:, *'(i)')?\)|{_NAME}(?:={_STRING})?")
_CONDITION = r"\[\s*((?:'[^']*'|[^'\[\]])*?)\s*\]"
_TAGS = r"\[(self::\w+(?: or self::\w+)*)\]"
_PATH = re.compile(rf"\(?\.//\*(?:{_TAGS})?{_CONDITION}(\)?\[1\])?(\[.*)?", re.S)
_KEPT, _KEPT_CHARS = 1024, 200  # answers of a search, and characters of an attribute with a kept answer


def search_for(xpath: Any) -> Search:
    """A search equal to the XPath of lxml; if that is for first elements (`[1]`), only for the first of the tree."""
    path = _PATH.fullmatch(xpath.path.strip())
    fits = path and _condition(path[2])
    if not path or not fits:
        return xpath  # type: ignore[no-any-return]  # lxml is untyped
    tags = re.findall(r"self::(\w+)", path[1] or "") or ["*"]

    def fitting(tree: Any) -> Iterator[Any]:
        return (e for e in tree.iter(*tags) if (attributes := e.items()) and fits(attributes) and e is not tree)

    if path[4]:  # further conditions, for which few pages have an element
        return lambda tree: xpath(tree) if next(fitting(tree), None) is not None else []
    if path[3]:
        return lambda tree: list(islice(fitting(tree), 1))
    return lambda tree: list(fitting(tree))


def _condition(terms: str) -> Callable[[list[Attribute]], bool] | None:
    """Whether one of the terms is true of an element's attributes; None = not understood."""
    tests: list[tuple[tuple[str, ...], Test]] = []
    of_first: list[tuple[tuple[str, ...], _Answers]] = []  # for the attribute of these names that comes first
    for term in re.split(r"\s+or\s+(?=@|contains|starts-with|re:test)", terms):
        found = _TERM.fullmatch(term)
        test = found and _test(found)
        if not found or not test:
            return None
        names = tuple(filter(None, found.group(2, 5, 6, 9)))
        if len(names) > 1:
            of_first.append((names, _Answers([(names, test)])))
        else:
            tests.append((names, test))
    known = _Answers(tests)

    def fits(attributes: list[Attribute]) -> bool:
        for attribute in attributes:
            if known[attribute]:
                return True
        for names, answers in of_first:
            for attribute in attributes:
                if attribute[0] in names:
                    if answers[attribute]:
                        return True
                    break
        return False

    return fits


def _test(term: re.Match[str]) -> Test | None:
    """The test of a term; None = not understood, or it may be true of an element without the attribute."""
    call, string, flag, present, equal = term.group(1, 7, 8, 9, 10)
    if present:
        return lambda value: equal in (None, value)
    if call == "re:test":
        search = re.compile(string, re.IGNORECASE if flag else 0).search
        return None if search("") else lambda value: search(value) is not None
    before, after = term[3] or "", term[4] or ""
    if not string or len(before) != len(after):
        return None
    table = str.maketrans(before, after)
    of = str.startswith if call == "starts-with" else str.__contains__
    return lambda value: of(value.translate(table), string)


class _Answers(dict[Attribute, bool]):
    """Whether an attribute passes one of the tests of its name; long values are not kept: no page fills the memory."""

    def __init__(self, tests: list[tuple[tuple[str, ...], Test]]) -> None:
        self._tests = {name: [test for names, test in tests if name in names] for names, _ in tests for name in names}

    def __missing__(self, attribute: Attribute) -> bool:
        name, value = attribute
        if name not in self._tests:
            return False
        answer = any(test(value) for test in self._tests[name])
        if len(value) <= _KEPT_CHARS:
            if len(self) >= _KEPT:
                self.clear()
            self[attribute] = answer
        return answer
