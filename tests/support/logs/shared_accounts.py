"""A log with sites that share accounts."""

from __future__ import annotations

from stream.log.contract import Log, Output, partition_of
from stream.schema.records import SiteState, encode
from stream.schema.topics import SITES, all_topics

PARTITIONS = 3
UA, ADSENSE, GTM = "analytics:google:123456", "ads:adsense:1234567890123456", "analytics:gtm:ABC123"
ROWS = {  # site -> its verdict and signals
    "www.c.co.uk": ("llm", [UA]),
    "b.com": ("human", [UA, ADSENSE]),
    "shop.b.com": ("llm", []),
    "a.net": ("undecided", [ADSENSE, "ads:adsense", "cms:wordpress"]),
    "x.org": ("human", [GTM]),
    "www.y.co.uk": ("human", [GTM]),
    "alone.org": ("llm", ["analytics:google:99999"]),
    "one.d.org": ("llm", []),
    "two.d.org": ("llm", []),
}


def fill(log: Log) -> None:
    """Four sites of an operator by two accounts, two that share a container alone, two of one domain, one alone."""
    log.create(all_topics(PARTITIONS, "e"))
    log.append([account_row(site, verdict, signals) for site, (verdict, signals) in ROWS.items()])


def account_row(site: str, verdict: str, signals: list[str]) -> Output:
    """A row of the topic of sites, with each signal on four pages."""
    state = SiteState(id=site, site=site, verdict=verdict, pages=5, signals=dict.fromkeys(sorted(signals), 4))
    return Output(SITES, partition_of(site, PARTITIONS), site.encode(), encode(state))
