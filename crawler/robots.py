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
        """Parse the first 500 KiB of a robots.txt; whatever they hold, something comes out."""
        text = text[:ROBOTS_CAP_BYTES]
        self.size_bytes = len(text)
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
    """Parsed rules in memory, capped by number and by the bytes of their texts.

    Parsed rules take some 35 times their text, so the cap of 4 MiB stands for about 140 MiB. The largest text, 500 KiB,
    takes about 0.3 s to parse: once per site and day, in a process that is idle most of the time.
    """

    def __init__(self, agent: str, size: int = 256, cap_bytes: int = 4 * 1024 * 1024) -> None:
        """Hold up to `size` files of up to `cap_bytes` together for the product token `agent`."""
        self._agent = agent
        self._size = size
        self._cap_bytes = cap_bytes
        self._bytes = 0
        self._held: OrderedDict[str, tuple[int, RobotsRules]] = OrderedDict()

    def held(self, name: str) -> tuple[int, RobotsRules] | None:
        """The version and the rules held under a name, if any."""
        found = self._held.get(name)
        if found is not None:
            self._held.move_to_end(name)
        return found

    def hold(self, name: str, version: int, text: bytes) -> RobotsRules:
        """Parse a text and hold it in place of an older one; the newest is held whatever its size."""
        rules = RobotsRules(text, self._agent)
        if name in self._held:
            self._bytes -= self._held.pop(name)[1].size_bytes
        self._held[name] = (version, rules)
        self._bytes += rules.size_bytes
        while len(self._held) > max(1, self._size) or (self._bytes > self._cap_bytes and len(self._held) > 1):
            self._bytes -= self._held.popitem(last=False)[1][1].size_bytes
        return rules

    def rules(self, site: str, version: int, text: Callable[[], bytes]) -> RobotsRules:
        """Rules of a site; `version` tells one text of it from the next, `text` is called where they are not held."""
        found = self.held(site)
        return found[1] if found is not None and found[0] == version else self.hold(site, version, text())
