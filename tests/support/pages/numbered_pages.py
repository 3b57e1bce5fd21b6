"""Features of pages, for tests of rules and of stages that read features."""

from __future__ import annotations

from stream.schema.records import Features


def numbered_page(number: int, text: str = "", site: str = "a.example", tokens: int = 9) -> Features:
    """Features of a page; by default its text is its number."""
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


def page_features(
    text: str = "text",
    digest: str = "d",
    *,
    quality: dict[str, list[float | None]] | None = None,
    **measures: float | str | None,
) -> Features:
    """Features of a page with this text, and these measures; the others are unknown."""
    return Features(
        id="f",
        site="a.example",
        page_id="p",
        url="u",
        epoch="e",
        extract_path="recall",
        text=text,
        text_digest=digest,
        measures=measures,
        quality=quality or {},
    )
