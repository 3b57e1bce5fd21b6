"""Canary sites: pages of known truth that travel the live path, under names that no real site can have.

The last label of their name is `invalid`, which RFC 2606 reserves and which no resolver answers; the truth stands in
the name, so that a site row alone says whether its verdict is right:

    label.round.human.canary.invalid     written by people
    label.round.llm.canary.invalid       written by a language model
"""

from __future__ import annotations

from typing import Final

HUMAN_TRUTH: Final = "human"
LLM_TRUTH: Final = "llm"
TRUTHS: Final = (HUMAN_TRUTH, LLM_TRUTH)

_SUFFIX = ".canary.invalid"


def is_canary(site: str) -> bool:
    """Whether the site is a canary: its verdict measures errors, and never counts in a rate."""
    return truth_of(site) is not None


def truth_of(site: str) -> str | None:
    """`human` or `llm`, who wrote the canary site's pages; None for every other site."""
    if not site.endswith(_SUFFIX):
        return None
    label, _, truth = site.removesuffix(_SUFFIX).rpartition(".")
    return truth if label and truth in TRUTHS else None
