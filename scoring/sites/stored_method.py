"""Encodes a site method with its numbers as text: a run keeps its first method, independent of later settings."""

from __future__ import annotations

import msgspec

from scoring.errors import BadSiteNumbers
from scoring.sites.deciles import DecileTest
from scoring.sites.gaussian import GaussianTest
from scoring.sites.sprt import SiteTest

StoredMethod = SiteTest | GaussianTest | DecileTest
_decoder: msgspec.json.Decoder[StoredMethod] = msgspec.json.Decoder(StoredMethod)


def text_of_method(method: StoredMethod) -> str:
    """JSON, on one line. Raises BadSiteNumbers for numbers that JSON does not keep, such as infinite ones."""
    text = msgspec.json.encode(method).decode()
    if method_of_text(text) != method:
        raise BadSiteNumbers(f"a site method whose numbers JSON does not keep: {text}")
    return text


def method_of_text(text: str) -> StoredMethod:
    """The method that `text_of_method` wrote. Raises BadSiteNumbers for a text that this farmwatch cannot read."""
    try:
        return _decoder.decode(text)
    except msgspec.DecodeError as error:  # also for numbers that the parameters refuse
        raise BadSiteNumbers(f"a site method that this farmwatch cannot read: {error}") from error


def same_method(one: str, other: str) -> bool:
    """Whether two texts describe equal methods; an unreadable text only equals itself."""
    if one == other:
        return True
    try:
        return method_of_text(one).digest == method_of_text(other).digest
    except BadSiteNumbers:
        return False
