"""Internal links of a page, in page order, as a generator.

Uses a pattern, not a parser: a hostile page must not cost more than its length. All repetitions are bounded or stop at
the next `<`.
"""

from __future__ import annotations

import html
import itertools
import re
from collections.abc import Iterator

import ada_url

from crawler.web.urls import URL_CAP, is_skipped
from stream.text.charsets import text_in

_SCAN = re.compile(
    r"<!--.*?(?:-->|\Z)|<script\b.*?(?:</script|\Z)|<style\b.*?(?:</style|\Z)|<(a|base)\s([^<>]{1,4000})>",
    re.IGNORECASE | re.DOTALL,
)
_HREF = re.compile(r"""(?:^|\s)href\s*=\s*(?:"([^"]*)"|'([^']*)'|([^\s"'>]+))""", re.IGNORECASE)
_REL = re.compile(r"""(?:^|\s)rel\s*=\s*(?:"([^"]*)"|'([^']*)'|([^\s"'>]+))""", re.IGNORECASE)
_TAGS_CAP = 10_000  # links looked at per page
_NOT_HTTP = ("#", "mailto:", "javascript:", "tel:", "data:")


def internal_links(body: bytes, encoding: str, url: str) -> Iterator[str]:
    """Normalised URLs of the same host and port that the page at `url` (normalised) links to, each once.

    Leaves out links with rel=nofollow and URLs for which `is_skipped` is true. Joined URLs of the page's own host are
    normalised already: ada-url writes hosts, ports and dots in one way, and credentials or a dotted host do not match.
    """
    authority = url.split("/", 3)[2]
    inside = (f"http://{authority}/", f"https://{authority}/")
    base = url
    seen = {url}
    tags = (match for match in _SCAN.finditer(text_in(encoding, body)) if match[1] is not None)
    for match in itertools.islice(tags, _TAGS_CAP):
        href = _HREF.search(match[2])
        if href is None:
            continue
        target = (href[1] or href[2] or href[3] or "").strip()
        if not target or target.startswith(_NOT_HTTP):
            continue
        try:
            link = ada_url.join_url(base, html.unescape(target) if "&" in target else target).partition("#")[0]
        except (ValueError, UnicodeEncodeError):
            continue
        if match[1].lower() == "base":
            if base is url:  # the first one counts (HTML Living Standard section 4.2.3)
                base = link
        elif link.startswith(inside) and link not in seen and len(link) <= URL_CAP:
            seen.add(link)
            rel = _REL.search(match[2])
            is_followed = rel is None or "nofollow" not in (rel[1] or rel[2] or rel[3] or "").lower().split()
            if is_followed and not is_skipped(link):
                yield link
