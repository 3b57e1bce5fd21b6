"""Features of pages that are told apart by a number, for the tests of stages that read them."""

from __future__ import annotations

from stream.schema.records import Features


def numbered_page(number: int, text: str = "", site: str = "a.example", tokens: int = 9) -> Features:
    """A page whose text is its number, if no other is said."""
    return Features(
        id=f"f{number}",
        site=site,
        page_id=f"p{number}",
        url=f"https://{site}/{number}",
        epoch="e",
        text=text or str(number),
        text_digest=f"t{text or number}",
        measures={"tokens": tokens},
        fetched_at=number,
    )
