"""Internal links of a page, in page order, found one by one so that the caller may stop early.

A pattern over the bytes, not a parser: links need no tree, and a hostile page must not cost more than its length. All
repetitions are bounded or stop at the next `<`.
"""

from __future__ import annotations

import html
import re
from collections.abc import Iterator

from crawler.errors import UnusableUrl
from crawler.urls import host_of, is_skipped, normalise, port_of

_SCAN = re.compile(
    r"<!--.*?(?:-->|\Z)|<script\b.*?(?:</script|\Z)|<style\b.*?(?:</style|\Z)|<(a|base)\s([^<>]{1,4000})>",
    re.IGNORECASE | re.DOTALL,
)
_HREF = re.compile(r"""(?:^|\s)href\s*=\s*(?:"([^"]*)"|'([^']*)'|([^\s"'>]+))""", re.IGNORECASE)
_NOFOLLOW = re.compile(r"""(?:^|\s)rel\s*=\s*["']?[^"'>]{0,80}\bnofollow\b""", re.IGNORECASE)
_NOT_HTTP = ("#", "mailto:", "javascript:", "tel:", "data:")


def internal_links(body: bytes, encoding: str, url: str) -> Iterator[str]:
    """Normalised URLs of the same host and port that the page at `url` (a normalised URL) links to, each once.

    Links with rel=nofollow are left out, as are the URLs that `is_skipped` names.
    """
    host, port = host_of(url), port_of(url)
    base = url
    seen = {url}
    for match in _SCAN.finditer(body.decode(encoding, "replace")):
        if match[1] is None:
            continue
        href = _HREF.search(match[2])
        if href is None:
            continue
        target = html.unescape(href[1] or href[2] or href[3] or "").strip()
        if not target or target.startswith(_NOT_HTTP):
            continue
        try:
            found = normalise(target, base)
        except UnusableUrl:
            continue
        if match[1].lower() == "base":
            base = found
        elif found not in seen and host_of(found) == host and port_of(found) == port:
            seen.add(found)
            if not is_skipped(found) and not _NOFOLLOW.search(match[2]):
                yield found
