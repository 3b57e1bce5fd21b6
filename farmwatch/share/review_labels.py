"""Reads the labels of a review, for a share from labels."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from operator import attrgetter
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from farmwatch.terminal.jsonl import JsonLines
from scoring.rates.settings import RateSettings
from stream.schema.vocabulary import Truth
from stream.text.times import DAY_MS
from stream.text.user_errors import FarmwatchError

if TYPE_CHECKING:
    from scoring.estimate.reviewed_share import Review


class ReviewLabel(msgspec.Struct, frozen=True, kw_only=True):
    """The fields of a line of `review label` that a review uses; of a page, each person's last line counts."""

    fetch_id: str
    site: str = ""
    label: str = ""  # llm | human; "" = none, or retracted
    by: str = ""
    labelled_at: int = 0
    drawn: int = 0  # sites of its sample, labelled or not
    drawn_at: int = 0  # when, ms
    place: int = 0  # of its site in the sample, from 1; 0: unknown


def read_review(settings: RateSettings, now_ms: int) -> Review | None:
    """The review of the labels of `rate.review`; None without a file. Raises FarmwatchError if it cannot be read."""
    return review_of(read_labels(settings), settings, now_ms) if settings.review else None


def read_labels(settings: RateSettings) -> list[ReviewLabel]:
    """The lines of `rate.review`; none without a file. Raises FarmwatchError if it cannot be read."""
    if not settings.review:
        return []
    path = Path(settings.review).expanduser()
    files = sorted(path.glob("*.jsonl")) if path.is_dir() else [path] if path.is_file() else []
    if not files:
        raise FarmwatchError(
            f"rate.review: {path} is no file, and no folder of files *.jsonl: name the labels that `review label` wrote"
        )
    lines = JsonLines(files, ReviewLabel, "rate")
    labels = [label for _, label in lines]
    lines.end()
    return labels


@dataclass
class _Sample:
    """What the labels show of a draw."""

    drawn: int
    reached: int = 0  # the last site of the random order with a line; 0: unknown
    sites: set[str] = field(default_factory=set)

    @property
    def unnamed(self) -> int:
        """Its sites that should have a line and have none."""
        return max((self.reached or self.drawn) - len(self.sites), 0)


def review_of(labels: Iterable[ReviewLabel], settings: RateSettings, now_ms: int) -> Review:
    """The review of these labels. A label is as old as the draw of its sample.

    Sites are in random order: those after the last labelled one are not drawn yet.
    """
    from scoring.estimate.reviewed_share import Review

    kept_ms = int(settings.review_days * DAY_MS)
    newest: dict[tuple[str, str], ReviewLabel] = {}
    samples: dict[int, _Sample] = {}  # by the time of the draw
    for label in labels:
        if not label.label and not label.labelled_at:  # a page of a sample, in a folder with the labels
            continue
        newest[label.fetch_id, label.by] = label
        if label.drawn and label.site and label.drawn_at + kept_ms >= now_ms:
            sample = samples.setdefault(label.drawn_at, _Sample(label.drawn))
            sample.reached = max(sample.reached, label.place)
            sample.sites.add(label.site)
    votes: dict[str, dict[str, list[bool]]] = {}  # person -> site -> whether its articles are by a language model
    too_old: set[str] = set()
    oldest = now_ms
    for label in sorted(newest.values(), key=attrgetter("by", "site")):  # draws of the truth depend on their order
        at = label.drawn_at or label.labelled_at
        if label.label not in (Truth.LLM, Truth.HUMAN) or not label.site:
            continue
        if at + kept_ms < now_ms:
            too_old.add(label.site)
            continue
        votes.setdefault(label.by, {}).setdefault(label.site, []).append(label.label == Truth.LLM)
        oldest = min(oldest, at)
    shares = {by: {site: sum(said) / len(said) for site, said in sites.items()} for by, sites in votes.items()}
    labelled = {site for sites in shares.values() for site in sites}
    named = labelled.union(*(sample.sites for sample in samples.values()))  # a site of two samples: once
    drawn = len(named) + sum(sample.unnamed for sample in samples.values())
    at = oldest if votes else 0
    return Review(shares, drawn, at, at + kept_ms, len(too_old - labelled))
