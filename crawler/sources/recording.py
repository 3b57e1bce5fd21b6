"""Results as records: a hit on its topic, or an archived page with its hit."""

from __future__ import annotations

import msgspec

from crawler.hits_file import make_hit
from crawler.sources.source import Found, Query
from crawler.warc_in import ArchivedPage
from stream.log import Output, partition_of
from stream.records import encode
from stream.topics import HITS, PAGES


def hit_output(
    source: str, query: Query, found: Found, page: int, rank: int, started_ms: int, now_ms: int, partitions: int
) -> Output:
    """The hit of a result, ranked over all pages, as it stands in its site's partition.

    Its id is that of the round that started at `started_ms`, so that a round that is repeated in part finds it again;
    its time is `now_ms`. Raises UnusableUrl or ValueError for what no hit can be.
    """
    fields = {
        "url": found.url,
        "query_id": query.id,
        "query": query.text,
        "source": source,
        "engine": found.engine,
        "rank": rank,
        "result_page": page,
        "title": found.title,
        "snippet": found.snippet,
        "fetched_at": started_ms,
    }
    hit = msgspec.structs.replace(make_hit(fields), fetched_at=now_ms)
    return _output(HITS, hit.site, encode(hit), partitions)


def page_outputs(query: Query, archived: ArchivedPage, partitions: int) -> list[Output]:
    """An archived page and its hit, which stands for the query that listed it; append them together."""
    hit = msgspec.structs.replace(archived.hit, query_id=query.id, query=query.text)
    return [
        _output(HITS, hit.site, encode(hit), partitions),
        _output(PAGES, archived.page.site, encode(archived.page), partitions),
    ]


def _output(topic: str, site: str, value: bytes, partitions: int) -> Output:
    return Output(topic, partition_of(site, partitions), site.encode(), value)
