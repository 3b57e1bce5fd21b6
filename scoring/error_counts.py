"""How often the site verdict is right, counted on sites whose truth is known: what a rate is corrected by."""

from __future__ import annotations

from typing import ClassVar

import msgspec

from scoring.errors import BadParameters


class ErrorCounts(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """How the site verdict did on sites whose truth is known, undecided counted as not llm."""

    METHOD: ClassVar[str] = "corrected"

    llm_sites: int  # n1: LLM sites tested
    llm_found: int  # a: of them called llm
    human_sites: int  # n0: human sites tested
    human_cleared: int  # b: of them not called llm

    def __post_init__(self) -> None:
        if not (0 <= self.llm_found <= self.llm_sites and 0 <= self.human_cleared <= self.human_sites):
            raise BadParameters(f"error counts need 0 <= found <= sites for both kinds, not {self}")

    @property
    def better_than_chance(self) -> bool:
        """Whether Se' + Sp' > 1, so that a rate can be corrected by them."""
        return (self.llm_found + 1) / (self.llm_sites + 2) + (self.human_cleared + 1) / (self.human_sites + 2) > 1


class CanaryCounts(ErrorCounts, frozen=True, forbid_unknown_fields=True):
    """Error counts of canary sites; an estimate that is corrected by them says so."""

    METHOD: ClassVar[str] = "corrected by canaries"
