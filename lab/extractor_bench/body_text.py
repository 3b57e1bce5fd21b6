"""Body text extraction: the run of a page's tokens with the most words and the fewest tags.

A. Finn, N. Kushmerick and B. Smyth, "Fact or fiction: content classification for digital libraries", DELOS 2001.
"""

from __future__ import annotations

import re
from html import unescape

_BODY = re.compile(r"<body\b[^>]*>(.*?)(?:</body>|\Z)", re.DOTALL | re.IGNORECASE)
_UNSEEN = re.compile(r"<!--.*?(?:-->|\Z)|<(script|style)\b.*?(?:</\1\s*>|\Z)", re.DOTALL | re.IGNORECASE)
_TOKEN = re.compile(r"<[/!?a-zA-Z][^>]*>|[^\s<]+|<")
_ENDS_A_LINE = re.compile(r"</?(?:p|div|hr|br|blockquote|table|tr|h[1-6]|li|ul|ol|dt|dd)\b", re.IGNORECASE)


def body_text(html: str) -> str:
    """The words of the best run, with line breaks at block elements."""
    body = _BODY.search(html)
    tokens = _TOKEN.findall(_UNSEEN.sub(" ", body[1] if body else html))
    best = start = total = 0
    first, end = 0, 0
    for at, token in enumerate(tokens):  # the run with the largest sum, a word 1 and a tag -1 (Kadane's algorithm)
        if total <= 0:
            total, start = 0, at
        total += -1 if token[0] == "<" and len(token) > 1 else 1
        if total > best:
            best, first, end = total, start, at + 1
    words = []
    for token in tokens[first:end]:
        if token[0] != "<" or len(token) == 1:
            words.append(token)
        elif _ENDS_A_LINE.match(token):
            words.append("\n")
    lines = unescape(" ".join(words)).split("\n")
    return "\n".join(line for line in (" ".join(line.split()) for line in lines) if line)
