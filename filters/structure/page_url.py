"""The measures of a page's URL."""

from __future__ import annotations

import re

_PATH = re.compile(r"(?:[a-zA-Z][a-zA-Z0-9+.-]*:)?//[^/?#]*([^?#]*)")
_DATE = re.compile(r"/(?:19|20)[0-9]{2}[/-](?:0?[1-9]|1[0-2])(?![0-9])")
_WORD = re.compile(r"[^\W\d_]{2,}")


def url_measures(url: str) -> dict[str, float | None]:
    """Depth, last segment and date of the path; nothing is known without a URL."""
    match = _PATH.match(url)
    if match is None:
        return {}
    path = match[1]
    segments = [segment for segment in path.split("/") if segment]
    slug = segments[-1] if segments else ""
    return {
        "url_date": float(_DATE.search(path) is not None),
        "path_depth": float(len(segments)),
        "slug_chars": float(len(slug)),
        "slug_words": float(len(_WORD.findall(slug))),
        "slug_digits": float(sum(character.isdigit() for character in slug)),
    }
