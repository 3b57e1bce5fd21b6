"""Which pages are surely human by their dates: the controls, on which the errors of a detector show."""

from __future__ import annotations

from enum import StrEnum

from stream.schema.dates import CHATGPT, PageDates
from stream.text.times import day_ms


class PageAge(StrEnum):
    """What the dates of a page say of its author: the values of `Verdict.age`."""

    UNKNOWN = ""  # later, or without a date that can be trusted
    CONTROL = "control"  # a text of before ChatGPT, so surely human
    DECLARED = "declared"  # published before it, as the page says, and perhaps changed since: second class


def age_of(dates: PageDates | None, fetched_at: int) -> PageAge:
    """Whether a page is a control page; `fetched_at` in ms, 0 = unknown.

    A page fetched before ChatGPT is one, whatever it states. On a later fetch, the day of publication must be trusted,
    and the day of the last change stated, both before it: of pages published before, half were changed since.
    """
    if 0 < fetched_at < day_ms(CHATGPT):
        return PageAge.CONTROL
    if dates is None or dates.trusted is None or dates.trusted >= CHATGPT:
        return PageAge.UNKNOWN
    if dates.modified is None:
        return PageAge.DECLARED
    return PageAge.CONTROL if dates.modified.last_day < CHATGPT else PageAge.UNKNOWN
