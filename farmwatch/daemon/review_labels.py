"""Reads the labels of a review, which the share rests on."""

from __future__ import annotations

from pathlib import Path

import msgspec

from farmwatch.terminal.jsonl import JsonLines
from scoring.rates.reviewed_share import Review
from scoring.rates.settings import RateSettings
from stream.schema.vocabulary import HUMAN, LLM
from stream.text.user_errors import FarmwatchError

_DAY_MS = 86_400_000


class _Label(msgspec.Struct, frozen=True, kw_only=True):
    """The fields of a line of `farmwatch label` that a review uses; the last line of a page counts."""

    fetch_id: str
    site: str = ""
    label: str = ""  # llm | human; "" = none, or retracted
    labelled_at: int = 0


def read_review(settings: RateSettings, now_ms: int) -> Review | None:
    """Labels llm and human of `rate.review`; None without a file, or if the newest is older than `rate.review_days`.

    Raises FarmwatchError if the file cannot be read.
    """
    if not settings.review:
        return None
    file = Path(settings.review).expanduser()
    if not file.is_file():
        raise FarmwatchError(f"rate.review: {file} is no file: name the labels that `farmwatch label` wrote")
    lines = JsonLines([file], _Label, "rate")
    newest_of_page = {label.fetch_id: label for _, label in lines}
    lines.end()
    votes: dict[str, list[bool]] = {}
    for label in newest_of_page.values():
        if label.label in (LLM, HUMAN) and label.site:
            votes.setdefault(label.site, []).append(label.label == LLM)
    newest = max((label.labelled_at for label in newest_of_page.values()), default=0)
    until = newest + int(settings.review_days * _DAY_MS)
    if now_ms > until:
        return None
    return Review({site: sum(found) / len(found) for site, found in votes.items()}, newest, until)
