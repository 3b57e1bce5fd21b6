"""Control sites of an archive: pages fetched before ChatGPT, under a name that no real site can have.

The name is that of the host and `.archive.human.canary.invalid`, so that of a canary site (`scoring.rates.canary`): a
canary counts in no share and is never crawled. It is known to be human, and other than a canary it does not expire.
"""

from __future__ import annotations

from urllib.parse import urlsplit

_SUFFIX = ".archive.human.canary.invalid"


def control_site(host: str) -> str:
    """The control site of a host's pages."""
    return f"{host}{_SUFFIX}"


def control_url(url: str) -> str:
    """A URL of a host under the name of its control site, without a port."""
    parts = urlsplit(url)
    return parts._replace(netloc=control_site(parts.hostname or "")).geturl()


def is_control_site(site: str) -> bool:
    """Whether the site is a control site of an archive."""
    return site.endswith(_SUFFIX)


def real_host(site: str) -> str:
    """The host whose pages a control site has; any other site is its own."""
    return site.removesuffix(_SUFFIX)
