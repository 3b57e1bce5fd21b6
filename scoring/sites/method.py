"""The shared part of all site methods: their digest, their JSON, and the end of their sentences."""

from __future__ import annotations

import hashlib
from functools import cached_property
from typing import ClassVar

import msgspec

from scoring.interface import MethodName, SiteVerdict


class NumberedMethod(msgspec.Struct, frozen=True, dict=True, forbid_unknown_fields=True, tag_field="method"):
    """A site method with its numbers. A run keeps it as JSON, independent of later settings.

    The fields of a method are its numbers and then `close_after_ms`: the site closes this long after the deciding page;
    None = never.
    """

    name: ClassVar[MethodName]

    @cached_property
    def digest(self) -> str:
        """SHA-256 of all inputs of a verdict except the scores; 8 hex digits. Part of each site's row."""
        parts = [self.name, *(getattr(self, field) for field in self.__struct_fields__)]
        return hashlib.sha256(msgspec.json.encode(parts, order="deterministic")).hexdigest()[:8]


def describe_corrections(verdict: SiteVerdict) -> str:
    """The end of every method's sentence: an earlier verdict, and whether the site is mixed."""
    said = ""
    if verdict.before:
        said += f"; corrected: {verdict.before} after the first {verdict.before_pages}"
    if verdict.mixed:
        said += "; mixed: two clear groups of scores, one on either side of the threshold"
    return said


def describe_too_few(pages: int, least: int) -> str:
    """The sentence for an unclassifiable site."""
    return f"{pages} usable {'score' if pages == 1 else 'scores'}, at least {least} are needed"
