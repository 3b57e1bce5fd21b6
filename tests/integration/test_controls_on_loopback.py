"""A web of dated sites over HTTP on loopback, on both logs: what the detector flags of control pages."""

from __future__ import annotations

import json
import uuid
from collections.abc import Sequence
from pathlib import Path

import pytest

from farmwatch.__main__ import run
from farmwatch.demo.human_pages import human_pages
from farmwatch.demo.server import LoopbackWeb, Response
from farmwatch.demo.site_pages import llm_articles
from tests.support.kafka_broker import broker
from tests.support.processes.farm import Farm

pytestmark = pytest.mark.slow

PAGES = 6  # of a site
PATIENCE_S = 180.0
OLD, CHANGED, UNDATED = ("2021-05-04", "2021-06-01"), ("2021-05-04", "2024-02-01"), ("2021-05-04", "")
LLM = [article.text.split("\n\n") for article in llm_articles()["tidynest.example"]]
HUMAN = [[page.title, *page.paragraphs] for page in human_pages()]
WEB = {  # what each site says of its pages, and their texts: those of wrong.test are a detector's false positives
    "old.test": (OLD, HUMAN[:PAGES]),
    "wrong.test": (OLD, LLM[:PAGES]),
    "changed.test": (CHANGED, LLM[PAGES : 2 * PAGES]),
    "undated.test": (UNDATED, HUMAN[PAGES : 2 * PAGES]),
}


def page(dates: tuple[str, str], paragraphs: Sequence[str]) -> Response:
    names = zip(("article:published_time", "article:modified_time"), dates, strict=True)
    meta = "".join(f"<meta property='{name}' content='{day}'>" for name, day in names if day)
    head = f"<head><meta property='og:type' content='article'><meta name='author' content='A. River'>{meta}</head>"
    body = "".join(f"<p>{paragraph}</p>" for paragraph in paragraphs)
    return Response(body=f"<html>{head}<body><article>{body}</article></body></html>".encode())


@pytest.mark.parametrize("kind", ["embedded", pytest.param("kafka", marks=pytest.mark.kafka)])
def test_the_flag_rate_of_controls_is_that_of_the_dated_pages(
    tmp_path: Path, kind: str, capfd: pytest.CaptureFixture[str]
) -> None:
    """Pages with both days before ChatGPT are controls, whatever the detector says of them; the others are none.

    Rows, `rate`, and `review controls` count the same pages; those of wrong.test are flagged.
    """
    served = {
        site: {f"/{n}": page(dates, text) for n, text in enumerate(texts)} for site, (dates, texts) in WEB.items()
    }
    urls = [f"http://{site}{path}" for site, pages in served.items() for path in pages]
    hits = tmp_path / "hits.jsonl"
    hits.write_text("".join(json.dumps({"url": url, "query_id": "q"}) + "\n" for url in urls))
    settings = {"crawl.use_sitemaps": "false", "log.prefix": f"controls-{uuid.uuid4().hex[:12]}."}
    url = f"sqlite:{tmp_path / 'log'}" if kind == "embedded" else f"kafka:{broker()}"
    with LoopbackWeb(served) as web, Farm(tmp_path, url, web, settings) as farm:
        farm.work_here(hits, PATIENCE_S)
        found = farm.outcome()
        options = ["--json", *(word for flag in farm.flags for word in ("--set", flag))]
        capfd.readouterr()
        assert run(["rate", *options]) == run(["review", "controls", *options]) == 0
        line, *registers = map(json.loads, capfd.readouterr().out.splitlines())
    ages = {(verdict.site, verdict.age) for verdict in found.verdicts.values()}
    wanted = {"old.test": "control", "wrong.test": "control", "changed.test": "", "undated.test": "declared"}
    assert ages == set(wanted.items())
    flags: dict[str, list[bool]] = {site: [] for site in WEB}
    for score in found.scores.values():
        if score.flag is not None:
            flags[score.site].append(score.flag)
    assert all(flags.values()) and sum(flags["wrong.test"]) > sum(flags["old.test"])
    for site, row in found.sites.items():
        of_site = len(flags[site]), sum(flags[site])
        control, declared = (of_site if wanted[site] == age else (0, 0) for age in ("control", "declared"))
        assert (row.control_scored, row.control_flagged) == control
        assert (row.declared_scored, row.declared_flagged) == declared
    of_pages = [*flags["old.test"], *flags["wrong.test"]]
    counted = {"sites": 2, "pages": len(of_pages), "flagged": sum(of_pages)}
    assert line["controls"].items() >= counted.items()
    (of_all,) = (row for row in registers if (row["age"], row["by"]) == ("control", "all"))
    assert of_all.items() >= counted.items()
    assert line["declared"]["pages"] == len(flags["undated.test"])
