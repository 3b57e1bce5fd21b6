"""Results as records: a hit on its topic, or an archived page with its hit."""

from __future__ import annotations

import dataclasses

import msgspec

from crawler.hit_records import hit_output, page_outputs
from crawler.sources.source import Query, SearchResult
from crawler.warc.pages import ArchivedPage
from crawler.web.hits_file import make_hit
from stream.log.contract import Output


def result_output(
    source: str, query: Query, found: SearchResult, page: int, rank: int, started_ms: int, now_ms: int, partitions: int
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
    return hit_output(msgspec.structs.replace(make_hit(fields, now_ms=now_ms), fetched_at=now_ms), partitions)


def listed_page(query: Query, archived: ArchivedPage, partitions: int) -> list[Output]:
    """An archived page and its hit, which stands for the query that listed it; append them together."""
    hit = msgspec.structs.replace(archived.hit, query_id=query.id, query=query.text)
    return page_outputs(dataclasses.replace(archived, hit=hit), partitions)
