"""Parses queries into metrics, labels and values, and makes wrong queries of them."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

from dashboards.pace import Durations

Series = Mapping[str, str]  # labels, including `__name__`
_TOKEN = re.compile(r'"[^"]*"|[a-zA-Z_:][\w:]*|\d+(?:\.\d+)?[smhd]?|=~|!~|[<>=!]=|\S|\s+')
_WORDS = {*("by", "on", "and", "or", "unless", "offset", "bool", "group_left", "without", "ignoring"), "time", "vector"}
_GROUPING = {"by", "on", "group_left"}
_FLIPPED = {"<": ">", ">": "<", "==": "!=", "!=": "==", ">=": "<", "<=": ">"}


class Token(NamedTuple):
    """A piece of a query; `kind` is metric, label, value, comparison, number (of a comparison) or other."""

    kind: str
    text: str
    matcher: tuple[str, str, str] = ("", "", "")  # of a value: metric, label, operator


def tokens(query: str) -> list[Token]:
    """The tokens, whose concatenation is the query."""
    found: list[Token] = []
    texts = _TOKEN.findall(query)
    metric = label = operator = word = ""
    inside = ""  # "{" inside a selector, "(" inside a list of labels
    for place, text in enumerate(texts):
        following = next((one for one in texts[place + 1 :] if one.strip()), "")
        kind = "other"
        if inside == "{":
            if text[0].isalpha():
                kind, label = "label", text
            elif text[0] == '"':
                kind = "value"
            elif text != "}" and text.strip(" ,"):
                operator = text
        elif inside == "(" and (text[0].isalpha() or text[0] == "_"):
            kind = "label"
        elif text in _FLIPPED:
            kind = "comparison"
        elif text[0].isdigit() and word in _FLIPPED:
            kind = "number"
        elif text[0].isalpha() and text not in _WORDS and following not in ("(", "by"):
            kind, metric = "metric", text
        found.append(Token(kind, text, (metric, label, operator) if kind == "value" else ("", "", "")))
        if text == "{":
            inside = "{"
        elif text == "(" and word in _GROUPING:
            inside = "("
        elif text in "})" and inside:
            inside = ""
        word = text if text.strip() else word
    return found


def wrong_names(query: str, series: Sequence[Series]) -> list[str]:
    """The metrics, labels and values of a query that no series has."""
    found = tokens(query)
    metrics = {token.text for token in found if token.kind == "metric"}
    named = [one for one in series if one["__name__"] in metrics]
    labels = {label for one in named for label in one}
    wrong = [f"metric {name}" for name in sorted(metrics - {one["__name__"] for one in named})]
    wrong += [f"label {token.text}" for token in found if token.kind == "label" and token.text not in labels]
    for token in found:
        if token.kind == "value":
            metric, label, operator = token.matcher
            has = {one[label] for one in named if one["__name__"] == metric and label in one}
            for value in token.text[1:-1].split("|") if "~" in operator else [token.text[1:-1]]:
                if not any(re.fullmatch(value, one) if "~" in operator else value == one for one in has):
                    wrong.append(f"value {metric}.{label}={value}")
    return wrong


def renamed(query: str) -> Iterator[str]:
    """The query with one metric, label or value renamed, for each of them."""
    found = tokens(query)
    for place, token in enumerate(found):
        if token.kind in ("metric", "label"):
            yield _with(found, place, f"{token.text}x")
        elif token.kind == "value":
            for value in re.findall(r"[^|]+", token.text[1:-1]):
                yield _with(found, place, token.text.replace(value, f"{value}x", 1))


def flipped(query: str) -> Iterator[str]:
    """The query with one comparison reversed, or one set operator replaced."""
    found = tokens(query)
    for place, token in enumerate(found):
        other = (
            _FLIPPED.get(token.text)
            if token.kind == "comparison"
            else {"and": "unless", "unless": "and"}.get(token.text)
        )
        if other:
            yield _with(found, place, other)


def moved(query: str) -> Iterator[str]:
    """The query with one threshold, window or offset halved and doubled; 0 becomes a value below and above all."""
    found = tokens(query)
    for place, token in enumerate(found):
        if re.fullmatch(r"\d+[smhd]", token.text):
            seconds = Durations().seconds(f"@{token.text}")
            for other_s in (seconds // 2, seconds * 2):
                yield _with(found, place, f"{other_s}s")
        if token.kind == "number":
            number = float(token.text)
            for other in (number / 2, number * 2) if number else (-1.0, 1e12):
                yield _with(found, place, f"{other:.15g}")


def _with(found: Sequence[Token], place: int, text: str) -> str:
    return "".join([*(token.text for token in found[:place]), text, *(token.text for token in found[place + 1 :])])
