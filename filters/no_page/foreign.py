"""Tells HTML from what else is served as HTML: feeds, sitemaps, JSON, scripts, style sheets, text, binary files."""

from __future__ import annotations

import re

_XML = re.compile(
    rb"<(?:rss|feed|rdf:rdf|urlset|sitemapindex|opml|svg|soap|wsdl|kml|gpx|error|response|listbucketresult)[\s:>]"
)
_ROOT = re.compile(rb"<[!?][^>]{0,2000}>|\s+")
_JSON = re.compile(rb"[\[{] *(?:[\[{\"}\]]|-?\d)|\)\]\}'")
_SCRIPT = re.compile(
    rb"(?:[!;(+ ]*(?:async )?function[ (*]|(?:var|let|const) [\w${]+ *[=,;}]|[\"']use strict[\"']"
    rb"|(?:window|document|self)[.\[]|import [\w{*\"']|define\(|[\w$.]{1,60}\( *[{\[\"']|/\*[!*]"
    rb"|@(?:charset|import|media|font-face)|[\w.#*,: -]{1,80}\{[\w -]{1,40}:)"
)
_ELEMENT = re.compile(
    rb"<(?:!doctype html|html|head|body|title|meta|link|div|p|br|a|table|span|h[1-6]|ul|ol|center|font|img|form|iframe"
    rb"|script|noscript|section|article|main|frameset|pre|b|i|hr)[ />]"
)


def is_html(document: bytes) -> bool:
    """Whether a document, with ASCII letters in lower case and plain spaces, is HTML. An empty one is not."""
    start = document.lstrip()
    if _JSON.match(start) or _SCRIPT.match(start):
        # a page may begin with a stray bracket or a line of script, but then its elements follow soon
        return b"<html" in start[:4096] or b"<!doctype html" in start[:4096]
    if start.startswith((b"<?xml", b"<!--", b"<")):
        root = start[:4096]
        while before := _ROOT.match(root):
            root = root[before.end() :]
        if _XML.match(root):
            return False
        if start.startswith(b"<?xml") and not _ELEMENT.search(root):
            return False
    return bool(_ELEMENT.search(document))
