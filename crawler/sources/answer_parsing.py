"""Parsing of source responses, which may be anything: statuses, JSON of any shape, dotted paths."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

import msgspec

from crawler.fetch.response_headers import retry_after_s
from crawler.sources.settings import BraveSettings
from crawler.sources.source import (
    BadAnswer,
    QueryRefused,
    Results,
    SearchResult,
    Source,
    SourceAnswer,
    SourceBusy,
    SourceRefused,
)

_ITEMS_CAP = 1000  # results of one answer; no engine gives as many
_TEXT_CAP = 2000  # characters of a title or snippet
_REASONS_CAP = 20  # kept for bad items

_WORDS = {
    400: "does not understand the request",
    401: "does not know the key",
    402: "wants to be paid",
    403: "forbids it",
    404: "has nothing at this URL",
    414: "finds the query too long",
    422: "does not accept the query",
}
_OF_THE_QUERY = frozenset({400, 414, 422})


def refuse_status(name: str, answer: SourceAnswer, means: Mapping[int, str]) -> None:
    """Raise SourceBusy, QueryRefused or SourceRefused for a status other than 200; `means` explains statuses."""
    status = answer.status
    if status == 200:
        return
    wait_s = retry_after_s(answer.headers.get("retry-after", ""), answer.at_s)
    hint = means.get(status, "")
    if status in (408, 425, 429) or status >= 500:
        said = hint or ("too many requests" if status == 429 else "it has a failure of its own, or is overloaded")
        raise SourceBusy(f"{name} answers {status}: {said}", wait_s)
    said = f"{name} answers {status}: it {_WORDS.get(status, 'gives no results')}{f'; {hint}' if hint else ''}"
    raise QueryRefused(said) if status in _OF_THE_QUERY and not hint else SourceRefused(said)


def at_path(value: Any, path: str) -> Any:
    """The value at a dotted path of names and list positions; None if there is none."""
    for part in path.split(".") if path else ():
        if isinstance(value, dict):
            value = value.get(part)
        elif isinstance(value, list) and part.isascii() and part.isdigit() and int(part[:9]) < len(value):
            value = value[int(part[:9])]
        else:
            return None
    return value


def text_of(value: Any) -> str:
    """A title or snippet as clean text; "" if it is no text."""
    if not isinstance(value, str):
        return ""
    folded = " ".join(value[: 4 * _TEXT_CAP].split())[:_TEXT_CAP]
    return folded if folded.isprintable() else "".join(filter(str.isprintable, folded))


def read_items(
    items: Iterable[Any], read: Callable[[dict[str, Any], int], SearchResult]
) -> tuple[list[SearchResult], list[str]]:
    """The results of the items, with their position from 1, and why others (`ValueError`) were skipped."""
    results: list[SearchResult] = []
    bad: list[str] = []
    for place, item in enumerate(items, 1):
        try:
            if not isinstance(item, dict):
                raise ValueError("is no object")
            results.append(read(item, place))
        except ValueError as error:
            bad.append(f"result {place} {error}" if len(bad) < _REASONS_CAP else "")
    return results, bad


def url_of(value: Any) -> str:
    """The URL of a result. Raises ValueError if there is none."""
    if not isinstance(value, str) or not value.strip():
        raise ValueError("has no url")
    return value.strip()


class JsonEngine(Source):
    """The common part of the search APIs that answer with a list of JSON objects. `_means` explains their statuses."""

    _means: Mapping[int, str] = {}
    _items = "results"  # path to the list
    _paths = ("url", "title", "description")  # of a result: paths to its URL, title and snippet

    def __init__(self, settings: BraveSettings, key: str) -> None:
        super().__init__(key)
        self._url = settings.url
        self._count = settings.count

    @property
    def _table(self) -> str:
        return self.name

    def read(self, answer: SourceAnswer) -> tuple[Any, Results]:
        """The JSON of a response, and the results in it. Raises SourceError."""
        refuse_status(self.name, answer, self._means)
        try:
            said = msgspec.json.decode(answer.body)
        except (msgspec.DecodeError, RecursionError, UnicodeDecodeError):
            kind = "an HTML page" if answer.body.lstrip()[:1] == b"<" else "something else"
            raise BadAnswer(
                f"{self.name} answers with {kind} in place of JSON: check search.{self._table}.url"
            ) from None
        items = at_path(said, self._items)
        if items is None and isinstance(said, dict | list):
            items = []
        if not isinstance(items, list):
            raise BadAnswer(f"{self.name} answers in an unknown format: there is no list of results at {self._items}")
        results, bad = read_items(items[:_ITEMS_CAP], self._item)
        return said, Results(results, min(len(items), _ITEMS_CAP), bad, bool(items))

    def _item(self, item: dict[str, Any], place: int) -> SearchResult:
        url, title, snippet = (at_path(item, path) for path in self._paths)
        return SearchResult(url_of(url), place, text_of(title), text_of(snippet))


def whole_number(value: Any) -> int | None:
    """A number from 0 in digits; None for anything else."""
    text = str(value).strip()
    return int(text) if text.isascii() and text.isdigit() and len(text) < 16 else None
