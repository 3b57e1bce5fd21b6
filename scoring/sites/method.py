"""What a method is that judges a site by its page scores: what it is given, what it says, and in which words."""

from __future__ import annotations

import hashlib

import msgspec

from scoring.interface import MethodName, SiteVerdict


def method_digest(name: MethodName, numbers: msgspec.Struct, close_after_ms: int | None) -> str:
    """SHA-256 of all that a verdict follows from beside the scores: numbers and closing rule; 8 hex digits.

    Verdicts of two digests are not pooled: they come from two tests, whatever their method's name.
    """
    parts = [name, numbers, close_after_ms]
    return hashlib.sha256(msgspec.json.encode(parts, order="deterministic")).hexdigest()[:8]


def afterthoughts(verdict: SiteVerdict) -> str:
    """What every method's sentence ends with: what was corrected, and whether the site is mixed."""
    said = ""
    if verdict.before:
        said += f"; corrected: {verdict.before} after the first {verdict.before_pages}"
    if verdict.mixed:
        said += "; mixed: two clear groups of scores, one on either side of the threshold"
    return said
