"""`/.well-known/tdmrep.json` of the TDM Reservation Protocol (W3C community group report of 10 May 2024, 6.1).

The file is a list of rules; the first whose `location`, a path pattern as in robots.txt, matches a URL counts. Clear
mistakes are accepted: one rule without the list, `"1"` and `true` for 1, a location that is a whole URL or lacks the
slash, and the whole rules of a file that is cut or has a comma too many.
"""

from __future__ import annotations

import json
import re
from contextlib import suppress
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from crawler.robots.path_patterns import PathPattern, target_of

RULES_CAP = 1000
PATTERNS_CAP = 65_536  # characters of all locations together, which bound the time of a match
POLICY_CAP = 500  # characters kept of the URL of a policy
_KEPT = 32  # parsed files cached; one of 64 KiB, the fetcher's cap, takes at most a MiB

_OBJECT = re.compile(r"\{[^{}]*\}")


@dataclass(frozen=True, slots=True)
class TdmRule:
    """One rule of the file, `location` as written."""

    location: str
    reserved: bool
    policy: str = ""  # URL of the owner's conditions


class TdmRep:
    """The rules of one site. Immutable."""

    def __init__(self, rules: list[TdmRule]) -> None:
        self.rules = tuple(rules)
        self._patterns = tuple((_pattern(rule.location), rule) for rule in rules)

    @classmethod
    @lru_cache(_KEPT)  # a crawl parses it for each page of a site
    def parse(cls, body: bytes) -> TdmRep:
        """Parse a file. Never raises: an invalid file has no rules; what is beyond the caps is ignored."""
        try:
            listed: Any = json.loads(body)  # of any size: the fetcher caps it
        except (ValueError, RecursionError):
            listed = _salvaged(body)
        rules: list[TdmRule] = []
        room = PATTERNS_CAP
        for item in (listed if isinstance(listed, list) else [listed])[:RULES_CAP]:
            location = item.get("location") if isinstance(item, dict) else None
            if not isinstance(location, str) or not location.strip():
                continue
            room -= len(location)
            if room < 0:
                break
            value, policy = item.get("tdm-reservation"), item.get("tdm-policy")
            reserved = (
                value == 1 if isinstance(value, (int, float)) else isinstance(value, str) and value.strip() == "1"
            )
            rules.append(
                TdmRule(location.strip(), reserved, policy.strip()[:POLICY_CAP] if isinstance(policy, str) else "")
            )
        return cls(rules)

    def rule_for(self, url: str) -> TdmRule | None:
        target = target_of(url)
        return next((rule for pattern, rule in self._patterns if pattern.matches(target)), None)

    def reserves(self, url: str) -> bool:
        rule = self.rule_for(url)
        return rule is not None and rule.reserved


def _salvaged(body: bytes) -> list[Any]:
    rules: list[Any] = []
    for match in _OBJECT.finditer(body.decode("utf-8", "replace")):
        with suppress(ValueError):
            rules.append(json.loads(match[0]))
        if len(rules) >= RULES_CAP:
            break
    return rules


def _pattern(location: str) -> PathPattern:
    if location.lower().startswith(("http://", "https://")):
        location = "/" + location.split("://", 1)[1].partition("/")[2]
    return PathPattern(location if location.startswith(("/", "*")) else "/" + location)


TDM_PATH = "/.well-known/tdmrep.json"  # TDM Reservation Protocol (W3C community group), section 6
