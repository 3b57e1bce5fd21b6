"""A web of dated sites: those that turned are found, and the series by day of publication is right, on either log."""

from __future__ import annotations

import json
import uuid
from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import cycle

import pytest

from farmwatch.__main__ import run
from farmwatch.demo.human_pages import human_pages
from farmwatch.demo.server import LoopbackWeb, Response
from farmwatch.demo.site_pages import llm_articles
from scoring.rates.published import CONTROLS, FEWEST_CONTROLS
from tests.support.kafka_broker import broker
from tests.support.processes.farm import Farm

pytestmark = pytest.mark.slow

EACH = 8  # articles of before ChatGPT, and since
PATIENCE_S = 240.0
SETTINGS = {"crawl.use_links": "false", "crawl.use_sitemaps": "false", "crawl.page_budget": str(2 * EACH)}
TURNED, ALWAYS_LLM, REDATED, UNDATED = ("turned", 3), ("model", 2), ("redated", 1), ("undated", 1)
PEOPLE = ("people", FEWEST_CONTROLS)
OLD, NEW = "2021", "2024"


class DatedWeb:
    """Its pages, and how many articles it has of each year, and of these by a model, as far as their days are sure."""

    def __init__(self) -> None:
        self._human = cycle([page.title, *page.paragraphs] for page in human_pages())
        self._llm = cycle(article.text.split("\n\n") for articles in llm_articles().values() for article in articles)
        self.hosts: dict[str, dict[str, Response]] = {}
        self.articles: Counter[str] = Counter()
        self.by_model: Counter[str] = Counter()
        for kind, number in (TURNED, ALWAYS_LLM, REDATED, UNDATED, PEOPLE):
            for place in range(number):
                pages = self.hosts.setdefault(f"{kind}{place}.test", {})
                for page in range(2 * EACH):
                    self._add(pages, kind, page)

    def _add(self, pages: dict[str, Response], kind: str, page: int) -> None:
        year = OLD if page < EACH else NEW
        is_llm = kind == ALWAYS_LLM[0] or (year == NEW and kind in (TURNED[0], UNDATED[0]))
        day, path = f"{year}-0{1 + page % EACH}-11", f"/{page}"
        head = f"<meta property='article:published_time' content='{day}'>"
        if kind == PEOPLE[0]:
            head += f"<meta property='article:modified_time' content='{day}'>"
        if kind == UNDATED[0]:
            head = ""
        if kind == REDATED[0]:  # an archive of people that says it is new
            head, path = head.replace(OLD, NEW), f"/2016/03/1{page}/article"
        if kind not in (UNDATED[0], REDATED[0]):
            self.articles[year] += 1
            self.by_model[year] += is_llm
        body = "".join(f"<p>{text}</p>" for text in next(self._llm if is_llm else self._human))
        head = f"<head><meta property='og:type' content='article'><meta name='author' content='A. River'>{head}</head>"
        pages[path] = Response(body=f"<html>{head}<body><article>{body}</article></body></html>".encode())


@pytest.fixture(scope="module")
def web() -> DatedWeb:
    return DatedWeb()


@pytest.fixture(scope="module", params=["embedded", pytest.param("kafka", marks=pytest.mark.kafka)])
def farm(web: DatedWeb, request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Farm]:
    """The web, crawled."""
    folder = tmp_path_factory.mktemp("dated")
    hits, url, settings = folder / "hits.jsonl", f"sqlite:{folder / 'log'}", SETTINGS
    urls = [f"http://{host}{path}" for host, pages in web.hosts.items() for path in pages]
    hits.write_text("".join(json.dumps({"url": url, "query_id": f"q{url}"}) + "\n" for url in urls))
    if request.param == "kafka":
        url, settings = f"kafka:{broker()}", {**settings, "log.prefix": f"dated-{uuid.uuid4().hex[:12]}."}
    with LoopbackWeb(web.hosts) as served, Farm(folder, url, served, settings) as made:
        made.work_here(hits, PATIENCE_S)
        yield made


def ask(farm: Farm, capsys: pytest.CaptureFixture[str], *command: str) -> list[dict[str, object]]:
    flags: Sequence[str] = [word for setting in farm.flags for word in ("--set", setting)]
    assert run([*command, "--json", *flags]) == 0
    return [json.loads(line) for line in capsys.readouterr().out.splitlines()]


def test_the_sites_that_turned_are_found_and_no_others(farm: Farm, capsys: pytest.CaptureFixture[str]) -> None:
    """Neither those by a model or by people throughout, nor those without a date or with one that is contradicted."""
    found = ask(farm, capsys, "sites", "--turned")
    assert sorted(str(row["site"]) for row in found) == [f"{TURNED[0]}{place}.test" for place in range(TURNED[1])]
    every = {str(row["site"]): (row["before_scored"], row["since_scored"]) for row in ask(farm, capsys, "sites")}
    assert every["redated0.test"] == every["undated0.test"] == (0, 0)
    assert every["people0.test"] == every["model0.test"] == (EACH, EACH)


def test_the_series_has_the_true_shares_in_its_intervals(
    web: DatedWeb, farm: Farm, capsys: pytest.CaptureFixture[str]
) -> None:
    """Corrected by the control pages; the articles of each year are those whose day is sure."""
    series = {str(line["group"]): line for line in ask(farm, capsys, "rate", "--by", "published-year")}
    assert {year: line["articles"] for year, line in series.items()} == dict(web.articles)
    for year, line in series.items():
        truth = web.by_model[year] / web.articles[year]
        assert line["p0_by"] == CONTROLS
        assert isinstance(line["low"], float) and isinstance(line["high"], float)
        assert line["low"] <= truth <= line["high"], (year, truth, line)
    quarters = ask(farm, capsys, "rate", "--by", "published")
    assert [line["group"] for line in quarters] == [
        f"{year}-Q{quarter}" for year in (OLD, NEW) for quarter in (1, 2, 3)
    ]


def test_the_audit_recomputes_what_rows_have_of_dates(farm: Farm) -> None:
    """Of every row, from the log."""
    report = farm.audit()
    assert (report.ok, report.broken) == (True, [])
