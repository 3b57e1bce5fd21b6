"""Remarks on a share, as values: `farmwatch.share.words` makes sentences of them."""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum, auto
from typing import Self

import msgspec

Fact = bool | int | float | str


class RemarkKind(StrEnum):
    """What is said. The first remark of a result is its headline: the share, or that there is none."""

    SHARE = auto()
    TOO_FEW = auto()
    TOO_WIDE = auto()
    KINDS_NOT_TOLD_APART = auto()
    NO_SCORES = auto()
    NO_SHARE = auto()

    # why there is none
    NO_THRESHOLD = auto()
    NO_LABELS = auto()
    NO_SITEMAPS = auto()
    NO_SIGNALS = auto()
    FLAGGED_ALIKE = auto()
    SELDOM_FLAGGED = auto()
    OFTEN_FLAGGED = auto()

    # missing data
    SET_A_THRESHOLD = auto()
    OTHER_DETECTOR = auto()
    KNOWN_WOULD_TELL = auto()
    CLUSTERS_NEEDED = auto()
    NONE_KNOWN = auto()
    ONE_ARTICLE_EACH = auto()
    SITES_NEEDED = auto()

    # doubts
    FEW_CLUSTERS = auto()
    FEW_FOR_A_CHANGE = auto()
    UNLIKE_KNOWN = auto()
    MIXED_SITES = auto()
    SCATTER = auto()

    # content farms
    FARMS = auto()
    FARM_SIGNS = auto()
    FARMS_OF = auto()
    FARMS_NOT_MEASURED = auto()
    WITHOUT_SIGNS = auto()

    # a review
    FEW_LABELS = auto()
    LABELS_TOO_OLD = auto()
    CONTRADICTION = auto()
    REVIEWED_SHARE = auto()
    LABELLED = auto()
    LABELLERS_DIFFER = auto()
    FEW_TWICE = auto()
    WIDER = auto()
    AGAINST_FLAGS = auto()
    UNLABELLED = auto()
    WITHOUT_LABELS = auto()

    # the share by site verdicts
    NO_RATE = auto()
    FEW_FOR_A_RATE = auto()
    RATE = auto()
    UNDECIDED = auto()
    FEW_SITES = auto()
    BELOW_FALSE_ALARMS = auto()
    ABOVE_FOUND = auto()
    UNCLASSIFIABLE = auto()

    # its correction
    NOT_CORRECTED = auto()
    CORRECTED = auto()
    FEW_CANARIES = auto()


REASONS = frozenset(
    {
        RemarkKind.NO_THRESHOLD,
        RemarkKind.NO_LABELS,
        RemarkKind.NO_SITEMAPS,
        RemarkKind.NO_SIGNALS,
        RemarkKind.FLAGGED_ALIKE,
        RemarkKind.SELDOM_FLAGGED,
        RemarkKind.OFTEN_FLAGGED,
    }
)
"""Remarks that complete the headline before them."""


class Remark(msgspec.Struct, frozen=True):
    """A kind with the numbers and names that belong to it."""

    kind: RemarkKind
    facts: Mapping[str, Fact] = {}

    @classmethod
    def of(cls, kind: RemarkKind, /, **facts: Fact) -> Self:
        """With these facts."""
        return cls(kind, facts)
