"""The registrable domain of a host, by the Public Suffix List with its private suffixes.

`a.blogspot.com` is a registrable domain, because anyone may register under `blogspot.com`; the domain of
`shop.example.co.uk` is `example.co.uk`. An IP literal, a single label and a public suffix are their own domains.
"""

from __future__ import annotations

from functools import cache, lru_cache

from publicsuffixlist import PublicSuffixList

_HOSTS = 65_536  # cached results; about 10 MB


@lru_cache(_HOSTS)
def registrable_domain(host: str) -> str:
    """The registrable domain of a host in lower-case ASCII, without a port."""
    host = host.removesuffix(".")
    if host.startswith("[") or host.rpartition(".")[2].isdigit():
        return host
    domain: str | None = _suffixes().privatesuffix(host)
    return domain or host


@lru_cache(_HOSTS)
def is_public_suffix(host: str) -> bool:
    """Whether anyone may register below this host, as of a platform such as `blogspot.com`; also a single label."""
    return "." in host and not host.rpartition(".")[2].isdigit() and _suffixes().privatesuffix(host) is None


_suffixes = cache(PublicSuffixList)  # the list that is part of the package, read on first use
