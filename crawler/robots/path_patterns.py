"""Path patterns of RFC 9309 sections 2.2.2 and 2.2.3, for robots.txt and tdmrep.json.

A pattern matches from the start of path and query; `*` matches any characters, a final `$` the end. Both sides are
normalised first, octet by octet:

| octet | becomes |
|---|---|
| beyond ASCII, or not allowed in a URI | its escape, `%C3%A4` |
| escape of an unreserved character, `%61` | the character |
| escape of `:` or `@`, or of `/` in the query | the character: the RFC's own example has them equal |
| any other escape, `%2f` | the same in upper case, different from the bare character |
| `*` or `$` in a URL, or `$` inside a pattern | its escape: they are literal |
"""

from __future__ import annotations

import re

# All but the unreserved and reserved characters of RFC 3986, with `*`, `$` and `%`
_ODD = re.compile(r"%(?:[0-9A-Fa-f]{2})?|[^A-Za-z0-9\-._~:/?#\[\]@!&'()+,;=]")
_BARE = frozenset("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-._~:@")


def target_of(url: str) -> str:
    """Path and query of a URL without fragment, normalised for patterns."""
    rest = url.partition("#")[0].partition("://")[2]
    ends = [at for at in (rest.find("/"), rest.find("?")) if at >= 0]
    target = rest[min(ends) :] if ends else ""
    return _spelled(target if target.startswith("/") else "/" + target)


class PathPattern:
    """One pattern. `octets` is its normalised length, which decides which pattern is the most specific."""

    __slots__ = ("_pieces", "anchored", "has_star", "octets", "text")

    def __init__(self, pattern: str) -> None:
        """Take a pattern as written; bytes that are no UTF-8 are lone surrogates."""
        self.anchored = pattern.endswith("$")
        parts = [_spelled(part) for part in pattern.removesuffix("$").split("*")]
        self.text = "*".join(parts)
        self.octets = len(self.text) + self.anchored
        # Runs of stars are one
        self._pieces = [parts[0], *filter(None, parts[1:-1]), parts[-1]] if len(parts) > 1 else None
        self.has_star = self._pieces is not None

    def matches(self, target: str) -> bool:
        """Whether it matches a `target_of`, in time of at most the product of both lengths."""
        if self._pieces is None:
            return target == self.text if self.anchored else target.startswith(self.text)
        first, *between, last = self._pieces
        if not target.startswith(first):
            return False
        at = len(first)
        for piece in between:
            at = target.find(piece, at)
            if at < 0:
                return False
            at += len(piece)
        if self.anchored:
            return target.endswith(last) and len(target) - len(last) >= at
        return target.find(last, at) >= 0


def _spelled(text: str) -> str:
    if not _ODD.search(text):
        return text
    path, mark, query = text.partition("?")
    return _ODD.sub(_in_path, path) + mark + _ODD.sub(_in_query, query)


def _in_path(match: re.Match[str]) -> str:
    odd = match[0]
    if odd == "%":
        return odd
    if odd[0] == "%":
        character = chr(int(odd[1:], 16))
        return character if character in _BARE else odd.upper()
    try:
        octets = odd.encode("utf-8", "surrogateescape")
    except UnicodeEncodeError:  # a lone surrogate without a byte
        octets = b"?"
    return "".join(f"%{octet:02X}" for octet in octets)


def _in_query(match: re.Match[str]) -> str:
    return "/" if match[0] in ("%2F", "%2f") else _in_path(match)
