"""Texts of robots.txt that cost a matcher much."""

from __future__ import annotations

ALL = b"User-agent: *\n"
COSTLY_TARGET = "/c" + "ab" * 900
"""A path that contains all pieces of the patterns of `costly_robots`, and matches none."""


def costly_robots(rules: int = 8192) -> bytes:
    """Up to 8,192 patterns that look as if they match COSTLY_TARGET, until their last piece."""
    spelled = (f"{number:013b}".replace("0", "a").replace("1", "b") for number in range(rules))
    return ALL + b"".join(b"Disallow: /*%s*c$\n" % "*".join(letters).encode() for letters in spelled)
