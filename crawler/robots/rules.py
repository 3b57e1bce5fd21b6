"""robots.txt by RFC 9309: the meaning of a response, and the rules for a URL.

| response | meaning (RFC 9309 section 2.3.1) |
|---|---|
| 2xx | its rules, the first 500 KiB |
| 4xx but 429, more than five redirects | unavailable: everything is allowed |
| 429, 5xx, no response | unreachable: nothing is allowed, try again later |

The deciding rule is looked up: prefixes and whole paths by their text, wildcards by an index. So a URL costs
microseconds with any real file, and at most about 1 ms with a hostile one. protego is only the oracle of the tests,
because it differs where site owners would mind: a group named `farm` applies to us and one named `farmwatch/1.0` does
not, it compares escapes by their characters, and `Allow: /x/index.html` allows `/x/`.
"""

from __future__ import annotations

import enum
from collections import OrderedDict
from collections.abc import Callable, Iterable
from dataclasses import dataclass

from crawler.robots.lines import Line, RobotsRule, group_of, lines_of
from crawler.robots.path_patterns import PathPattern, target_of
from crawler.robots.preferences import StatedRules
from crawler.robots.wildcards import TOO_COSTLY, Starred, WildcardIndex

ROBOTS_REDIRECTS = 5
_ALWAYS_ALLOWED = "/robots.txt"  # RFC 9309 section 2.2.2
_RULE_BYTES = 200  # approximate memory of a rule besides its text
_STARRED_BYTES = 600  # and of the pieces and the index of one with a wildcard


class RobotsAnswer(enum.Enum):
    """The meaning of the response to a request for robots.txt."""

    RULES = "rules"
    UNAVAILABLE = "unavailable"
    UNREACHABLE = "unreachable"


def meaning_of(status: int, *, complete: bool = True) -> RobotsAnswer:
    """Meaning of a final HTTP status; 0 stands for no answer, 3xx for too many redirects.

    Not `complete`: the body of a 2xx was cut or unreadable, so its rules are unknown.
    """
    if complete and 200 <= status < 300:
        return RobotsAnswer.RULES
    if status == 429 or status >= 500 or status < 300:
        return RobotsAnswer.UNREACHABLE
    return RobotsAnswer.UNAVAILABLE


class RuleTable:
    """Rules of robots.txt, indexed for the longest match."""

    def __init__(self, rules: Iterable[RobotsRule]) -> None:
        self._starts: dict[str, RobotsRule] = {}
        self._wholes: dict[str, RobotsRule] = {}
        starred: dict[tuple[str, bool], Starred] = {}
        for rule in rules:
            pattern = PathPattern(rule.pattern)
            if pattern.has_star:
                key = (pattern.text, pattern.anchored)
                if key not in starred or rule.allow > starred[key][1].allow:
                    starred[key] = (pattern, rule)
            else:
                plain = self._wholes if pattern.anchored else self._starts
                if pattern.text not in plain or rule.allow > plain[pattern.text].allow:
                    plain[pattern.text] = rule
        texts = (*self._starts, *self._wholes, *(text for text, _ in starred))
        self.size_bytes = sum(map(len, texts)) + _RULE_BYTES * len(texts) + _STARRED_BYTES * len(starred)
        self.is_empty = not texts
        self._lengths = sorted({len(start) for start in self._starts}, reverse=True)
        self._wildcards = WildcardIndex(starred.values())

    def find(self, target: str) -> RobotsRule | None:
        """The longest matching rule; of two as long, the one that allows (RFC 9309 section 2.2.2).

        TOO_COSTLY stands for a rule of a hostile file.
        """
        octets, best = -1, None
        if target in self._wholes:
            octets, best = len(target) + 1, self._wholes[target]
        else:
            for length in self._lengths:
                rule = self._starts.get(target[:length]) if length <= len(target) else None
                if rule is not None:
                    octets, best = length, rule
                    break
        return self._wildcards.find(target, best, octets)


class RobotsRules:
    """The rules of one site for our product token."""

    def __init__(self, text: bytes, agent: str) -> None:
        """Parse the first 500 KiB of a robots.txt; never raises. Only our group is kept."""
        group, sitemaps = group_of(lines_of(text), agent)
        self._table = RuleTable(group.rules)
        self.crawl_delay_s = group.delay_s  # for us; 0 = none
        self._stated = StatedRules(group.stated)
        self.sitemaps = [line.value.encode("utf-8", "replace").decode() for line in sitemaps]  # as in the file
        self.size_bytes = self._table.size_bytes + sum(map(len, self.sitemaps)) + _RULE_BYTES  # of memory, about

    def allows(self, url: str) -> bool:
        if self._table.is_empty:
            return True
        target = target_of(url)
        rule = self._table.find(target) if target != _ALWAYS_ALLOWED else None
        return rule is None or rule.allow

    def preferences(self, url: str) -> list[str]:
        """The signals of `Content-Usage` and `Content-Signal` lines on a URL."""
        return self._stated.signals(url)


class DecisionReason(enum.StrEnum):
    """What decided."""

    RULE = "rule"
    NO_RULE = "no_rule"  # no rule of our group matches
    NO_GROUP = "no_group"  # no group names us or `*`
    ROBOTS_TXT = "robots_txt"  # itself is always allowed
    TOO_COSTLY = "too_costly"  # more wildcards would have to be tried than are


@dataclass(frozen=True, slots=True)
class RobotsExplanation:
    """The decision on a URL, and the lines behind it; line numbers count from 1, 0 is none."""

    allowed: bool
    why: DecisionReason
    rule: RobotsRule | None = None
    agents: tuple[Line, ...] = ()  # the lines that name us
    rules: int = 0  # in our group
    crawl_delay_s: float = 0.0
    crawl_delay_line: Line | None = None
    preferences: tuple[str, ...] = ()  # signals on the use of the URL by AI


def explain(text: bytes, agent: str, url: str) -> RobotsExplanation:
    """The decision on a normalised URL under a robots.txt for our product token, with its reason."""
    group, _ = group_of(lines_of(text), agent)
    table, target = RuleTable(group.rules), target_of(url)
    rule = None
    if target == _ALWAYS_ALLOWED:
        why = DecisionReason.ROBOTS_TXT
    elif (rule := table.find(target)) is TOO_COSTLY:
        why, rule = DecisionReason.TOO_COSTLY, None
    elif rule is not None:
        why = DecisionReason.RULE
    else:
        why = DecisionReason.NO_RULE if group.agents else DecisionReason.NO_GROUP
    allowed = rule.allow if rule else why is not DecisionReason.TOO_COSTLY
    return RobotsExplanation(
        allowed=allowed,
        why=why,
        rule=rule,
        agents=tuple(group.agents),
        rules=len(group.rules),
        crawl_delay_s=group.delay_s,
        crawl_delay_line=group.delay_line,
        preferences=tuple(StatedRules(group.stated).signals(url)),
    )


class RobotsShelf:
    """A cache of parsed rules, bounded by number and bytes.

    The largest text, 500 KiB, takes about 0.4 s to parse: once per site and day.
    """

    def __init__(self, agent: str, size: int = 1024, cap_bytes: int = 32 * 1024 * 1024) -> None:
        self._agent = agent
        self._size = size
        self._cap_bytes = cap_bytes
        self._bytes = 0
        self._held: OrderedDict[str, tuple[int, RobotsRules]] = OrderedDict()

    def held(self, name: str) -> tuple[int, RobotsRules] | None:
        entry = self._held.get(name)
        if entry is not None:
            self._held.move_to_end(name)
        return entry

    def put(self, name: str, version: int, rules: RobotsRules) -> None:
        """Cache rules in place of older ones; the newest are cached whatever their size."""
        if name in self._held:
            self._bytes -= self._held.pop(name)[1].size_bytes
        self._held[name] = (version, rules)
        self._bytes += rules.size_bytes
        while len(self._held) > max(1, self._size) or (self._bytes > self._cap_bytes and len(self._held) > 1):
            self._bytes -= self._held.popitem(last=False)[1][1].size_bytes

    def rules(self, site: str, version: int, text: Callable[[], bytes]) -> RobotsRules:
        """The rules of a site; `version` identifies its text, and `text` is called if they are not cached."""
        entry = self.held(site)
        if entry is not None and entry[0] == version:
            return entry[1]
        rules = RobotsRules(text(), self._agent)
        self.put(site, version, rules)
        return rules
