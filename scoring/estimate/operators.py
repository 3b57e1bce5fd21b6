"""Operators: the domains that share an account, by the signals of their pages and what their ads.txt states.

Domains are united where they share an account of AdSense, of Universal Analytics (`UA-`) or of GA4, or an owner, whose
own domain is one of them. Not by

- the account of a platform: one that is also AdSense's host account of a page, or that a platform's own host has, such
  as a public suffix (`blogspot.com` itself) or any host of _PLATFORMS;
- an id on more than MOST_DOMAINS domains, such as a theme's or an agency's, or a container of Google Tag Manager,
  unless they share a second id of another kind.

What a content management system, an app or an advertiser's network numbers is no account of an owner.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import NamedTuple

from stream.text.registrable_domain import is_public_suffix, registrable_domain

MOST_DOMAINS = 50

ADSENSE = "ads:adsense"
STATED_OWNER = "ads-txt:owner"
"""The owner that an ads.txt names: `ads-txt:owner:DOMAIN`."""

_HOST_ACCOUNT = "ads:adsense-host"
_CONTAINER = "analytics:gtm"
_LINKING = frozenset((ADSENSE, STATED_OWNER, "analytics:google", "analytics:ga4"))
_OTHERS = frozenset(
    {
        *(_CONTAINER, "analytics:facebook", "analytics:clarity", "analytics:hotjar", "affiliate:amazon"),
        *("affiliate:skimlinks", "verification:google"),
    }
)
_PLATFORMS = frozenset(  # without a public suffix of their own
    {
        *("wordpress.com", "blogger.com", "tumblr.com", "medium.com", "substack.com", "typepad.com", "wix.com"),
        *("squarespace.com", "livejournal.com"),
    }
)
_OF_PLATFORMS = frozenset(
    {
        *("analytics:google:52447", "ads:adsense:3443918307802676"),  # WordPress.com's, on all blogs
        "analytics:google:1778701",  # Maven's, on the magazines of other firms
        "analytics:google:486179",  # Tecnavia's, on the newspapers that it serves
    }
)
_ACCOUNTS = _LINKING | _OTHERS | {_HOST_ACCOUNT}


class SiteAccounts(NamedTuple):
    """A site's host, its domain, and its signals, of which ids count."""

    host: str
    domain: str
    signals: Iterable[str]


def accounts_of(signals: Mapping[str, int]) -> dict[str, int]:
    """The signals by which operators are found."""
    return {signal: pages for signal, pages in signals.items() if _kind(signal) in _ACCOUNTS}


class Operators(NamedTuple):
    """The domains that share accounts; only those that do."""

    of: dict[str, str]  # domain -> its operator, by the lowest domain
    links: dict[str, set[str]]  # domain -> the ids that link it to others
    possible: list[tuple[str, set[str]]]  # a container and the domains that share no second id with it


def find_operators(sites: Callable[[], Iterator[SiteAccounts]]) -> Operators:
    """The operators with several domains, and the containers of Google Tag Manager that alone link none.

    `sites` restarts at each call, because a list of a million sites is large.
    """
    domains_with: defaultdict[str, set[str]] = defaultdict(set)
    ids_of: defaultdict[str, set[str]] = defaultdict(set)
    of_platforms = {*_OF_PLATFORMS, *(f"{STATED_OWNER}:{domain}" for domain in _PLATFORMS)}
    for host, domain, signals in sites():
        for signal in signals:
            kind = _kind(signal)
            if kind == _HOST_ACCOUNT:
                of_platforms.add(f"{ADSENSE}:{signal.rpartition(':')[2]}")
            elif kind in _ACCOUNTS:
                domains_with[signal].add(domain)
                ids_of[domain].add(signal)
                if domain in _PLATFORMS or is_public_suffix(host.removeprefix("www.")):
                    of_platforms.add(signal)
    owners = {signal for signal in domains_with if _kind(signal) == STATED_OWNER}
    for host, domain, _ in sites() if owners else ():
        if (own := f"{STATED_OWNER}:{registrable_domain(host)}") in owners:
            domains_with[own].add(domain)
    shared = {of: domains for of, domains in domains_with.items() if len(domains) > 1 and of not in of_platforms}
    components, links = _Components(), defaultdict[str, set[str]](set)

    def link(domains: set[str], *ids: str) -> None:
        components.unite(domains)
        for domain in domains:
            links[domain].update(ids)

    for of, domains in shared.items():
        if _kind(of) in _LINKING and len(domains) <= MOST_DOMAINS:
            link(domains, of)
            continue
        second: defaultdict[str, set[str]] = defaultdict(set)
        for domain in domains:
            for other in ids_of[domain]:
                if other in shared and _kind(other) != _kind(of):
                    second[other].add(domain)
        for other, both in second.items():
            if len(both) > 1:
                link(both, of, other)
    roots = {domain: components.root(domain) for domain in components.parents}
    containers = [(of, domains) for of, domains in shared.items() if _kind(of) == _CONTAINER]
    possible = [
        (of, domains)
        for of, domains in sorted(containers)
        if len(domains) <= MOST_DOMAINS and len({roots.get(domain, domain) for domain in domains}) > 1
    ]
    return Operators(roots, dict(links), possible)


def _kind(signal: str) -> str:
    """`kind:name` of an id; of a signal without one something that is no kind of account."""
    return signal.rpartition(":")[0]


class _Components:
    """Union-find; the root of a component is its lowest domain."""

    def __init__(self) -> None:
        self.parents: dict[str, str] = {}

    def root(self, domain: str) -> str:
        root = domain
        while (parent := self.parents[root]) != root:
            root = parent
        while self.parents[domain] != root:
            self.parents[domain], domain = root, self.parents[domain]
        return root

    def unite(self, domains: Iterable[str]) -> None:
        ordered = sorted(domains)
        if len(ordered) > 1:
            for domain in ordered:
                self.parents.setdefault(domain, domain)
            roots = {self.root(domain) for domain in ordered}
            lowest = min(roots)
            for root in roots:
                self.parents[root] = lowest
