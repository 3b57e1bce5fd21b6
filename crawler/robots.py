"""robots.txt as RFC 9309 has it: what an answer means, and what the rules say of a URL.

| answer | means (RFC 9309 section 2.3.1) |
|---|---|
| 2xx | its rules, the first 500 KiB |
| 4xx but 429, more than five redirects | unavailable: everything is allowed |
| 429, 5xx, no answer | unreachable: nothing is allowed, ask again later |
"""

from __future__ import annotations

import enum
from collections import OrderedDict
from collections.abc import Callable

from protego import Protego

ROBOTS_CAP_BYTES = 500 * 1024
ROBOTS_REDIRECTS = 5


class RobotsAnswer(enum.Enum):
    """What the answer to a request for robots.txt means."""

    RULES = "rules"
    UNAVAILABLE = "unavailable"
    UNREACHABLE = "unreachable"


def meaning_of(status: int, *, complete: bool = True) -> RobotsAnswer:
    """Meaning of a final HTTP status; 0 stands for no answer, 3xx for redirects that do not end.

    Not `complete` means that the body of a 2xx was cut off or unreadable: its rules are not known.
    """
    if complete and 200 <= status < 300:
        return RobotsAnswer.RULES
    if status == 429 or status >= 500 or status < 300:
        return RobotsAnswer.UNREACHABLE
    return RobotsAnswer.UNAVAILABLE


class RobotsRules:
    """The rules of one site for our product token."""

    def __init__(self, text: bytes, agent: str) -> None:
        """Parse the text of a robots.txt; whatever it holds, something comes out."""
        self._parsed = Protego.parse(text.decode("utf-8-sig", "replace").replace("\0", ""))
        self._agent = agent

    def allows(self, url: str) -> bool:
        """Whether the URL may be requested."""
        return bool(self._parsed.can_fetch(url, self._agent))

    @property
    def crawl_delay_s(self) -> float:
        """The `Crawl-delay` asked of us in seconds; 0 where there is none."""
        return max(0.0, float(self._parsed.crawl_delay(self._agent) or 0.0))

    @property
    def sitemaps(self) -> list[str]:
        """The `Sitemap:` lines as they stand."""
        return list(self._parsed.sitemaps)


class RobotsShelf:
    """The parsed rules of the sites last asked for: some 60 KiB each, hence the cap. The texts are state."""

    def __init__(self, agent: str, size: int = 256) -> None:
        """Hold up to `size` parsed files for the product token `agent`."""
        self._agent = agent
        self._size = size
        self._rules: OrderedDict[tuple[str, int], RobotsRules] = OrderedDict()

    def rules(self, site: str, version: int, text: Callable[[], bytes]) -> RobotsRules:
        """Rules of a site; `version` tells one text of it from the next, `text` is called where they are not held."""
        key = (site, version)
        rules = self._rules.get(key)
        if rules is None:
            rules = self._rules[key] = RobotsRules(text(), self._agent)
            if len(self._rules) > self._size:
                self._rules.popitem(last=False)
        else:
            self._rules.move_to_end(key)
        return rules
