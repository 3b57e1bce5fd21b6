"""What happened while the share had its history: cutovers, other versions, reviews."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import groupby
from operator import attrgetter, itemgetter
from typing import Any

from scoring.rates.direct_share import ShareState
from stream.schema.records import RatePoint
from stream.schema.runs import Cutover, shown_run

_VERSIONS = {"digest": "ruleset", "detector": "detector", "site_method_digest": "site method", "epoch": "feature epoch"}


def marks_of(points: Sequence[RatePoint], cutovers: Sequence[Cutover]) -> list[dict[str, Any]]:
    """Each with its time (ms), kind and words, in their order; a version that a cutover changed is the cutover's."""
    marks = [
        {"at": move.at, "kind": "cutover", "text": f"{shown_run(move.to_run)}{f': {move.why}' if move.why else ''}"}
        for move in cutovers
        if points[0].at <= move.at
    ]
    seen = {name: {getattr(points[0], name)} for name in _VERSIONS}
    was_reviewed, before = points[0].share_method == ShareState.REVIEWED, points[0].at
    for at, of_time in groupby(points, attrgetter("at")):
        now = list(of_time)
        values = {name: {getattr(point, name) for point in now} - {""} for name in _VERSIONS}
        changed = [words for name, words in _VERSIONS.items() if values[name] - seen[name]]
        if changed and not any(before <= move.at <= at for move in cutovers):
            marks.append({"at": at, "kind": "version", "text": f"another {', '.join(changed)}"})
        is_reviewed = any(point.share_method == ShareState.REVIEWED for point in now)
        if is_reviewed != was_reviewed:
            marks.append({"at": at, "kind": "review", "text": "in force" if is_reviewed else "ended"})
        seen = {name: seen[name] | values[name] for name in _VERSIONS}
        was_reviewed, before = is_reviewed, at
    return sorted(marks, key=itemgetter("at"))
