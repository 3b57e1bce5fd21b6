"""The log of a run with sites judged by TALLY itself: 24 sites in PARTITIONS partitions, 3 of them llm."""

from __future__ import annotations

import msgspec

from crawler.web.urls import fetch_id, page_id
from replay.rows.site_table import read_sites
from replay.runs.topology import READS
from scoring.sites.registry import method_of_text
from scoring.stages.score import score_key
from scoring.stages.tally import TallyStage
from stream.log.contract import Output, partition_of
from stream.schema.records import Features, Hit, Page, Record, Score, ScoreRequest, SiteState, Verdict, encode
from stream.schema.runs import Run
from stream.schema.topics import FEATURES, HITS, PAGES, SCORE_REQUESTS, SCORES, SITES, VERDICTS
from tests.support.front_door import PARTITIONS
from tests.support.pages.page_records import text_score
from tests.support.runs.cutover_world import DETECTOR, CutoverWorld

SITES_MADE, LLM_SITES, PAGES_EACH = 24, 3, 16
DAY_MS = 86_400_000
FIRST_DAY_MS = 20_000 * DAY_MS


def site_name(number: int) -> str:
    """The sites of the log; the first LLM_SITES are llm."""
    return f"s{number}.example"


def tallied(world: CutoverWorld) -> Run:
    """Fill the log of a world; every stage has read all of its inputs."""
    run = world.begin_live()
    for number in range(SITES_MADE):
        put_site(world, run, number)
    tally(world, run)
    return run


def put_site(world: CutoverWorld, run: Run, number: int, at_ms: int | None = None) -> None:
    """Append a site's hits and pages with the records of MEASURE, JUDGE and SCORE, at `at_ms` (default: now).

    A quarter of the pages is dropped; every sixth site is kept by segments alone. 15 in 16 articles of an llm site are
    flagged, and 1 in 16 of another site.
    """
    site, outputs = site_name(number), []
    partition = partition_of(site, PARTITIONS)

    def put(topic: str, record: Record, key: str = "") -> None:
        outputs.append(Output(topic, partition, (key or site).encode(), encode(record), {}, at_ms))

    for page in range(PAGES_EACH):
        url = f"http://{site}/{page}"
        fetch, name, text = fetch_id(url, 1), page_id(url), f"{site} {page}"
        at = (FIRST_DAY_MS if at_ms is None else at_ms) + page * DAY_MS // 4
        query = f"q{number % 3}"
        source = "searxng" if page % 5 == 0 else "file"
        put(HITS, Hit(id=f"h{text}", site=site, url=url, query_id=query, source=source, rank=page + 2, fetched_at=at))
        put(PAGES, Page(id=fetch, site=site, page_id=name, url=url, fetched_at=at))
        put(FEATURES, Features(id=fetch, site=site, page_id=name, url=url, epoch="e", fetched_at=at))
        is_article = page % 4 > 0
        kept = "segments" if number % 6 == 5 else "article"
        verdict = Verdict(
            id=fetch,
            site=site,
            page_id=name,
            url=url,
            verdict=kept if is_article else "dropped",
            first_failed="" if is_article and kept == "article" else "min_tokens",
            ruleset=run.ruleset,
            digest=run.digest,
            text_digest=text,
            fetched_at=at,
        )
        put(VERDICTS, verdict)
        if is_article:
            put(SCORE_REQUESTS, ScoreRequest(id=fetch, site=site, page_id=name, url=url, text_digest=text, text="t"))
            score = score_of(site, text, (page == 1) != (number < LLM_SITES), fetch, name)
            put(SCORES, score, score_key(score))
    world.log.append(outputs)


def score_of(site: str, text: str, flag: bool, fetch: str = "", page: str = "") -> Score:
    return text_score(site, text, DETECTOR, flag, page, fetch, score=0.8 if flag else 1.1)


def tally(world: CutoverWorld, run: Run) -> None:
    """Run TALLY over all records, and commit the ends for the other groups."""
    stage = TallyStage(run.detector, world.config.tally, method=method_of_text(run.site_method))
    world.work("tally", stage)
    for group, topics in READS.items():
        for topic in topics if group != "tally" else ():
            world.log.reset(group, topic, world.log.end(topic))


def rows_of(world: CutoverWorld) -> dict[str, SiteState]:
    return {row.site: row for row in read_sites(world.log)}


def rewrite(world: CutoverWorld, row: SiteState, **fields: object) -> None:
    """Append a site's row again, with other fields, under its own key."""
    changed = msgspec.structs.replace(row, **fields)
    world.log.append([Output(SITES, partition_of(row.site, PARTITIONS), row.site.encode(), encode(changed))])
