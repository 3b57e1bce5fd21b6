"""The inspection of answers: whether a response is a page at all. `farmwatch` passes in what does it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Protocol


class Inspection(Protocol):
    """What a response is."""

    @property
    def reason(self) -> str:
        """Why it is no page, a word of `crawler.reasons.NO_PAGES`; "" = it is a page."""

    @property
    def outline(self) -> bytes:
        """A short digest of its text, for `Inspector.same`; b"" = there is none, or none was asked for."""


class Inspector(Protocol):
    """Inspects responses. Both functions are pure, take linear time and never raise; any thread may call them."""

    def inspect(
        self,
        url: str,
        status: int,
        headers: Mapping[str, str],
        body: bytes | str,
        encoding: str,
        has_outline: bool = True,
    ) -> Inspection:
        """What the response is; `headers` are the kept ones, in lower case. `has_outline`: it is asked for."""

    def same(self, outline: bytes, other: bytes) -> bool:
        """Whether two answers are the same page "not found"."""
