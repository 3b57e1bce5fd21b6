"""Sites of two runs are compared in the newest term that both have judged."""

from __future__ import annotations

from contextlib import closing

from replay.compare.run_pair import ComparedRun
from replay.compare.site_rows import SiteRows, in_same_terms
from replay.rows.site_table import compared_row
from scoring.stages.site_tally import term_key
from stream.log.contract import Output
from stream.memory.log import MemoryLog
from stream.schema.records import SiteState, Verdict, encode
from stream.schema.runs import Run, names_of
from stream.schema.topics import SITE_TERMS, all_topics
from tests.support.logs.term_rows import term_row


def run_of(name: str) -> ComparedRun:
    newest = Verdict(id="f", site="a.test", page_id="p", url="u", verdict="article", digest="d1")
    run = Run(name=name, ruleset="default", digest="d1", detector="fake/1", epoch="e")
    return ComparedRun(run, names_of(name), "done", newest, "")


def rows_of(*rows: SiteState) -> SiteRows:
    return SiteRows({row.site: compared_row(row) for row in rows}, [], 0, "fake/1", "sprt m")


def test_the_newer_run_is_set_back_to_the_term_of_the_other() -> None:
    """A site that one run has in a later term is compared by its earlier row; the search results stay; others stay."""
    newest = [
        term_row("a.test", "llm", 1, (1,), best_rank=3),
        term_row("b.test", "llm", 1),
        term_row("c.test", "human", 1),
    ]
    older = [term_row("a.test", "human"), term_row("b.test", "llm", 1)]
    with closing(MemoryLog()) as log:
        log.create(all_topics(1, "e"))
        for row in (term_row("a.test", "human"), term_row("b.test", "human"), term_row("c.test", "llm")):
            log.append([Output(SITE_TERMS, 0, term_key(row.site, row.term).encode(), encode(row))])
        a, b = in_same_terms(log, (run_of("live"), run_of("other")), rows_of(*newest), rows_of(*older))
    verdicts = {site: (row.verdict, row.term) for site, row in a.rows.items()}
    assert verdicts == {"a.test": ("human", 0), "b.test": ("llm", 1), "c.test": ("human", 1)}
    assert (a.rows["a.test"].sources, a.rows["a.test"].best_rank) == (["file"], 3)
    assert b == rows_of(*older)
