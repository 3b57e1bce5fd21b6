"""Text that came from the network, made safe to keep: valid Unicode, no control characters, no longer than a cap.

aiohttp hands over header bytes that are no UTF-8 as lone surrogates, which no encoder takes. Every string that is
kept of a response goes through `clean` where it enters; URLs go through `normalise`, which leaves ASCII.
"""

from __future__ import annotations

import re

# Controls, line separators, and what turns the direction of the text around it
_UNWANTED = re.compile("[\x00-\x1f\x7f-\x9f\u2028-\u202e\u2066-\u2069]+")


def clean(text: str, cap: int) -> str:
    """`text` with runs of control characters as one space, cut to `cap` characters.

    Bytes that were no UTF-8 are read as ISO-8859-1, their old meaning (RFC 9110 section 5.5).
    """
    text = text[:cap]
    if text.isascii():
        if text.isprintable():
            return text.strip()
    else:
        text = "".join(chr(ord(c) - 0xDC00) if "\udc80" <= c <= "\udcff" else c for c in text)
        text = text.encode("utf-8", "replace").decode()  # surrogates of any other origin
    return _UNWANTED.sub(" ", text).strip()
