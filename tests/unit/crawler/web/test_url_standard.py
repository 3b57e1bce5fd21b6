"""Agreement with the URL Standard: input, base and expected URL (null: failure) of the web-platform-tests for http(s).

The table states facts of `urltestdata.json` (web-platform-tests, BSD-3-Clause), one case a line.
"""

from __future__ import annotations

import json
import re
from pathlib import Path

from crawler.errors import UnusableUrl
from crawler.web.urls import normalise, port_of

CASES = [json.loads(line) for line in Path(__file__).with_name("url_standard.jsonl").read_text("utf-8").splitlines()]

# ada-url takes labels that are no punycode, as they stand; no name in DNS can have most of them
BROKEN_PUNYCODE = re.compile(r"xn--pokxncvks|xn--/", re.IGNORECASE)


def _ours(expected: str | None, text: str) -> str | None:
    """The standard's answer under the deviations that `crawler.web.urls` states."""
    if expected is None or re.search("[\ud800-\udfff]", text):  # a lone surrogate is no text of UTF-8
        return None
    url = re.sub(r"^(https?://)[^/?#]*@", r"\1", expected.partition("#")[0])  # no credentials, no fragment
    if port_of(url) in ("0", "21") or re.match(r"https?://[^/]*\.\.?/", url):  # of other protocols; no host
        return None
    return url


def test_agreement_with_the_url_standard() -> None:
    """Each case of the standard's table has its URL or its failure, but for the stated deviations."""
    plain, differing = 0, []
    for text, base, expected in CASES:
        try:
            found = normalise(text, base)
        except UnusableUrl:
            found = None
        plain += found == expected
        if found != _ours(expected, text):
            differing.append(text)
    stated = len(CASES) - plain - len(differing)
    print(f"URL Standard: {plain} of {len(CASES)} the same, {stated} by a stated deviation, {len(differing)} differ")
    assert all(BROKEN_PUNYCODE.search(text) for text in differing), differing
    assert len(CASES) == 424 and len(differing) == 7 and plain >= 350
