"""The evidence page of a site: its article that the detector holds most surely for a language model's."""

from __future__ import annotations

from collections.abc import Mapping

from farmwatch.share.page_lines import VerdictHead
from farmwatch.share.topic_records import topic_records
from replay.runs.lookup import names_to_read
from stream.log.contract import Log, partition_of
from stream.schema.records import Score, SiteState
from stream.schema.topics import SCORES
from stream.schema.vocabulary import KEPT


def evidence_pages(log: Log, rows: Mapping[str, SiteState], run: str = "") -> dict[str, str]:
    """Site -> URL of the flagged article of its term with the highest score; partition by partition."""
    names = names_to_read(log, run)
    partitions = log.topics().get(names.verdicts, 0)
    best: dict[str, tuple[float, str]] = {}
    for partition in sorted({partition_of(site, partitions) for site in rows}) if partitions else ():
        surest: dict[tuple[str, str], float] = {}  # of a flagged text
        for score in topic_records(log, Score, SCORES, [partition]):
            row = rows.get(score.site)
            if row is not None and score.flag and score.detector == row.detector:
                surest[score.site, score.text_digest] = score.p_llm if score.p_llm is not None else 0.0
        for page in topic_records(log, VerdictHead, names.verdicts, [partition]):
            row = rows.get(page.site)
            sure = surest.get((page.site, page.text_digest))
            if row is not None and sure is not None and page.verdict in KEPT and page.fetched_at >= row.term_start:
                best[page.site] = max(best.get(page.site, (-1.0, "")), (sure, page.url))
    return {site: url for site, (_, url) in best.items()}
