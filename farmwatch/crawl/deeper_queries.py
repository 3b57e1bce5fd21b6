"""The queries of which the next search asks for more result pages: LLM sites hold many of their first results."""

from __future__ import annotations

from farmwatch.share.result_counts import ranked_hits
from replay.rows.site_table import read_sites
from scoring.rates.direct_share import FEWEST_SITES
from scoring.rates.results import FIRST_RANKS
from scoring.rates.settings import RateSettings
from scoring.rates.split_rates import llm_probabilities
from stream.log.contract import Log


def deeper_queries(
    log: Log, settings: RateSettings, source: str, since_ms: int, now_ms: int, above: float
) -> frozenset[str]:
    """Ids of the queries of which LLM sites are expected to hold more than `above` of the first ten results.

    Results of `source` since `since_ms` count, where their site has a scored article; fewer than FEWEST_SITES say
    nothing. Deeper results do not count, so that more of them do not change the answer.
    """
    likely = llm_probabilities(read_sites(log), settings, now_ms)
    of_query: dict[str, list[float]] = {}
    for hit in ranked_hits(log, since_ms):
        is_first = hit.source == source and hit.fetched_at >= since_ms and 0 < hit.rank <= FIRST_RANKS
        if is_first and hit.site in likely:
            of_query.setdefault(hit.query_id, []).append(likely[hit.site])
    return frozenset(
        query for query, found in of_query.items() if len(found) >= FEWEST_SITES and sum(found) / len(found) > above
    )
