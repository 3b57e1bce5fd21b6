"""Reads the labels of a review, for a share from labels."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

import msgspec

from farmwatch.terminal.jsonl import JsonLines
from scoring.estimate.reviewed_share import Review
from scoring.rates.settings import RateSettings
from stream.schema.vocabulary import Truth
from stream.text.times import DAY_MS
from stream.text.user_errors import FarmwatchError


class ReviewLabel(msgspec.Struct, frozen=True, kw_only=True):
    """The fields of a line of `farmwatch review label` that a review uses; the last line of a page counts."""

    fetch_id: str
    site: str = ""
    label: str = ""  # llm | human; "" = none, or retracted
    labelled_at: int = 0
    drawn: int = 0  # sites of its sample, labelled or not
    drawn_at: int = 0  # when, ms


def read_review(settings: RateSettings, now_ms: int) -> Review | None:
    """The review of the labels of `rate.review`; None without a file. Raises FarmwatchError if it cannot be read."""
    return review_of(read_labels(settings), settings, now_ms) if settings.review else None


def read_labels(settings: RateSettings) -> list[ReviewLabel]:
    """The lines of `rate.review`; none without a file. Raises FarmwatchError if it cannot be read."""
    if not settings.review:
        return []
    file = Path(settings.review).expanduser()
    if not file.is_file():
        raise FarmwatchError(f"rate.review: {file} is no file: name the labels that `farmwatch review label` wrote")
    lines = JsonLines([file], ReviewLabel, "rate")
    labels = [label for _, label in lines]
    lines.end()
    return labels


def review_of(labels: Iterable[ReviewLabel], settings: RateSettings, now_ms: int) -> Review:
    """The review of these labels. A label is as old as the draw of its sample."""
    kept_ms = int(settings.review_days * DAY_MS)
    newest_of_page: dict[str, ReviewLabel] = {}
    samples: dict[int, tuple[int, set[str]]] = {}  # time of the draw -> sites, and those of them with lines
    for label in labels:
        newest_of_page[label.fetch_id] = label
        if label.drawn and label.site and label.drawn_at + kept_ms >= now_ms:
            samples.setdefault(label.drawn_at, (label.drawn, set()))[1].add(label.site)
    votes: dict[str, list[bool]] = {}
    too_old: set[str] = set()
    oldest = now_ms
    for label in newest_of_page.values():
        at = label.drawn_at or label.labelled_at
        if label.label not in (Truth.LLM, Truth.HUMAN) or not label.site:
            continue
        if at + kept_ms < now_ms:
            too_old.add(label.site)
            continue
        votes.setdefault(label.site, []).append(label.label == Truth.LLM)
        oldest = min(oldest, at)
    shares = {site: sum(of_site) / len(of_site) for site, of_site in votes.items()}
    named = shares.keys() | {site for _, sites in samples.values() for site in sites}  # a site of two samples: once
    drawn = len(named) + sum(max(drawn - len(sites), 0) for drawn, sites in samples.values())
    at = oldest if votes else 0
    return Review(shares, drawn, at, at + kept_ms, len(too_old - shares.keys()))
