"""Remarks by their kinds."""

from __future__ import annotations

from collections.abc import Iterable

from scoring.estimate.remarks import Remark, RemarkKind


def kinds(remarks: Iterable[Remark]) -> list[RemarkKind]:
    """The kinds of remarks, in their order."""
    return [remark.kind for remark in remarks]


def facts(remarks: Iterable[Remark], kind: RemarkKind) -> dict[str, object]:
    """The facts of the remark of a kind."""
    return next(dict(remark.facts) for remark in remarks if remark.kind == kind)
