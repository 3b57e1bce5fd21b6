"""The pages of a run as lists show them: the newest visit of each, its verdict, and the score of its text."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from operator import attrgetter

from farmwatch.config.config import Config
from farmwatch.share.date_columns import date_columns
from farmwatch.share.topic_records import topic_records
from farmwatch.tables.columns import Column, columns_of
from replay.runs.configured import tally_identity
from replay.runs.lookup import find_run, names_to_read
from stream.log.contract import Log, partition_of
from stream.schema.control import Control
from stream.schema.dates import PageDates
from stream.schema.projection import projection_of
from stream.schema.records import Page, R, Record, Score, Verdict
from stream.schema.runs import LIVE
from stream.schema.topics import PAGES, SCORES
from stream.schema.vocabulary import KEPT, FetchOutcome, PageClass


@projection_of(Page)
class PageHead(Record, frozen=True, kw_only=True):
    """The fields of a page's record that lists show."""

    page_id: str
    url: str
    outcome: str
    reason: str
    fetched_at: int
    found_by: str


@projection_of(Verdict)
class VerdictHead(Record, frozen=True, kw_only=True):
    """The fields of a verdict that lists show."""

    page_id: str
    url: str
    verdict: str
    first_failed: str
    failed: list[str]
    text_digest: str
    fetched_at: int
    dates: PageDates | None


@dataclass(slots=True)
class ListedPage:
    """A page. `result`: its verdict; of a page that is not judged, how its fetch ended."""

    site: str
    url: str
    result: str = ""
    why: str = ""  # the first failed rule, or the reason why it was not fetched
    p_llm: float | None = None
    flag: bool | None = None
    score: float | None = None
    abstain: str = ""
    flagged_windows: float | None = None
    failed: list[str] | None = None
    found_by: str = ""
    fetched_at: int = 0
    page_id: str = ""
    text_digest: str = ""
    dates: PageDates | None = None


PAGE_COLUMNS: list[Column[ListedPage]] = [
    *columns_of(
        ListedPage,
        "dates",
        result={"total": "count", "values": (*PageClass, *FetchOutcome)},
        why={"meaning": "the first rule that failed, or why there is no page"},
        p_llm={"meaning": "probability that a model wrote the text"},
        flag={"meaning": "whether the detector flags it"},
        flagged_windows={"meaning": "share of the windows of its text that a language model flags"},
    ),
    *date_columns(attrgetter("dates")),
]
PAGES_SHOWN = (
    "url",
    "result",
    "why",
    "flag",
    "p_llm",
    "score",
    "abstain",
    "published",
    "fetched_at",
    "found_by",
    "failed",
)


def page_lines(log: Log, config: Config, run: str = "", site: str = "") -> Iterator[ListedPage]:
    """The pages of a run (default: the live one), or of one site of it; by site, in the order of their fetch.

    A partition is held at a time. Raises NotFound for an unknown run.
    """
    control, names, topics = Control(log), names_to_read(log, run), log.topics()
    detector = "" if not control.runs else find_run(control, run or LIVE).detector or tally_identity(config)
    partitions = topics.get(PAGES, 0)
    wanted = range(partitions) if not site else [partition_of(site, partitions)] if partitions else []
    for partition in wanted:
        lines: dict[tuple[str, str], ListedPage] = {}
        for page in _of_site(log, PageHead, PAGES, partition, site):
            key = page.site, page.page_id
            if page.outcome != FetchOutcome.UNCHANGED or key not in lines:
                lines[key] = ListedPage(
                    *(page.site, page.url, page.outcome, page.reason),
                    found_by=page.found_by,
                    fetched_at=page.fetched_at,
                    page_id=page.page_id,
                )
        for verdict in _of_site(log, VerdictHead, names.verdicts, partition, site):
            key = verdict.site, verdict.page_id
            line = lines.setdefault(key, ListedPage(*(verdict.site, verdict.url), page_id=verdict.page_id))
            line.result, line.why, line.failed = verdict.verdict, verdict.first_failed, verdict.failed
            line.text_digest, line.fetched_at, line.dates = verdict.text_digest, verdict.fetched_at, verdict.dates
        scores = {
            (score.site, score.text_digest): score
            for score in _of_site(log, Score, SCORES, partition, site)
            if detector in ("", score.detector)
        }
        for line in sorted(lines.values(), key=lambda line: (line.site, line.fetched_at, line.url)):
            if line.result in KEPT and (said := scores.get((line.site, line.text_digest))):
                line.p_llm, line.flag, line.score, line.abstain = said.p_llm, said.flag, said.score, said.abstain
                line.flagged_windows = said.flagged_windows
            yield line


def _of_site(log: Log, kind: type[R], topic: str, partition: int, site: str) -> Iterator[R]:
    return (record for record in topic_records(log, kind, topic, [partition]) if site in ("", record.site))
