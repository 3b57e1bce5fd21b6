"""A site that turns from human to LLM texts, over HTTP on loopback with short terms."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from pathlib import Path

import msgspec
import pytest

from farmwatch.__main__ import run
from farmwatch.demo.human_pages import human_pages
from farmwatch.demo.server import LoopbackWeb, Response
from farmwatch.demo.site_pages import llm_articles
from filters.settings import MeasureSettings
from replay.rows.site_table import read_rows
from scoring.sites.settings import TallySettings
from stream.log.contract import Log
from stream.schema.records import SiteState
from stream.schema.runs import names_of
from tests.support.logs.tally_desk import SPRT
from tests.support.processes.farm import Farm
from tests.support.waiting import wait_until
from tests.support.web.article_head import ARTICLE_HEAD

pytestmark = pytest.mark.slow

SITE = "turns.test"
PAGES = 8
SERVED = 15  # to the roles
TERM_S = 8.0
PATIENCE_S = 180.0
TALLY = TallySettings(sprt=SPRT, term_days=TERM_S / 86_400)
MEASURE = MeasureSettings(workers=1)


def rows_of(log: Log, run: str = "live") -> dict[int, SiteState]:
    """Term -> the site's row, without its time and run."""
    names = names_of(run)
    rows = [*read_rows(log, names.terms), *read_rows(log, names.sites)]
    return {row.term: plain(row) for row in rows}


def plain(row: SiteState) -> SiteState:
    """A row, and that of the verdict which counts meanwhile, without what tells runs apart."""
    former = None if row.former is None else plain(row.former)
    return msgspec.structs.replace(row, updated_at=0, run="", former=former)


class TurningSite(Mapping[str, Response]):
    """Pages with texts by people, and from `turn` on by a language model."""

    def __init__(self) -> None:
        human = [[page.title, *page.paragraphs] for page in human_pages()]
        llm = [article.text.split("\n\n") for article in llm_articles()["tidynest.example"]]
        self._texts, self._turned = human[:SERVED], llm[:SERVED]

    def turn(self) -> None:
        self._texts = self._turned

    def __getitem__(self, path: str) -> Response:
        texts = {f"/{number}": text for number, text in enumerate(self._texts)}
        body = "".join(f"<p>{paragraph}</p>" for paragraph in texts[path])
        return Response(body=f"<html>{ARTICLE_HEAD}<body><article>{body}</article></body></html>".encode())

    def __iter__(self) -> Iterator[str]:
        return iter(f"/{number}" for number in range(SERVED))

    def __len__(self) -> int:
        return SERVED


def test_a_site_that_turns_is_llm_in_a_later_term(tmp_path: Path) -> None:
    """With short terms the roles find it human, and llm in a later term; the terms before stay as they are.

    A replay has the same rows of these terms, and the audit is clean. A machine that is too slow for a verdict within a
    term gets it in a later one.
    """
    site = TurningSite()
    hits = tmp_path / "hits.jsonl"
    hits.write_text("".join(json.dumps({"url": f"http://{SITE}{path}", "query_id": "q"}) + "\n" for path in site))
    settings = {
        "crawl.stop_when_decided": "true",
        "crawl.page_budget": str(SERVED),
        "crawl.use_sitemaps": "false",
        "tally.term_days": str(TERM_S / 86_400),
    }
    with LoopbackWeb({SITE: site}) as web, Farm(tmp_path, f"sqlite:{tmp_path / 'log'}", web, settings) as farm:

        def term_of(log: Log, verdict: str) -> int | None:
            """The first term with this verdict."""
            return min((term for term, row in rows_of(log).items() if row.verdict == verdict), default=None)

        def turn(log: Log) -> None:
            wait_until(lambda: term_of(log, "human") is not None, "the verdict human", PATIENCE_S, every_s=0.2)
            site.turn()
            wait_until(lambda: term_of(log, "llm") is not None, "the verdict llm", PATIENCE_S, every_s=0.2)

        farm.work_here(hits, PATIENCE_S, meanwhile=turn)
        flags = [flag for setting in farm.flags for flag in ("--set", setting)]
        assert run(["replay", "--ruleset", "default", "--name", "again", *flags]) == 0
        with farm.log() as log:
            human, llm = term_of(log, "human"), term_of(log, "llm")
            assert human is not None and llm is not None and human < llm
            live, again = ({t: row for t, row in rows_of(log, name).items() if t <= llm} for name in ("live", "again"))
        assert again == live
        report = farm.audit()
        assert (report.ok, report.broken) == (True, [])
