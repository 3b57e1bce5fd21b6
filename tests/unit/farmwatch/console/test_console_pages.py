"""The console's pages: their numbers are those of the commands, and nothing of a crawled page runs in them."""

from __future__ import annotations

import csv
import html
import html.parser
import io
import json
import re
from contextlib import closing
from operator import itemgetter
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import msgspec
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from crawler.web.urls import page_id
from farmwatch.config.config import load
from farmwatch.console.page_environment import outward
from farmwatch.console.views import SPLITS
from filters.perplexity.names import DANGER
from filters.settings import MeasureSettings
from filters.site_memory.measurer import Measurer
from stream.log.contract import Message, Output, partition_of, wall_ms
from stream.opening import open_log
from stream.processing.dead_letters import dead_letter
from stream.schema.records import Page, RatePoint, Sitemaps, SiteState, Verdict, encode
from stream.schema.topics import FEATURES, HITS, PAGES, RATES, SITEMAPS, SITES, VERDICTS, all_topics
from stream.text.user_errors import Exit
from tests.support.front_door import PARTITIONS, SHORT_URL, SITE, URL, Runner, article_html
from tests.support.paths import ROOT
from tests.support.web.console_browser import Answer, Browser, browse, visited

EXTRACTED = '[rules.extracted]\nthreshold = "ok"\n'
HOSTILE = "<script>alert(1)</script>\"'><img src=x onerror=alert(2)>{{7*7}}javascript:alert(3)"


def without_remarks(answer: Answer) -> list[dict[str, Any]]:
    """The lines of the share, without the sentences that the page shows below them."""
    return [{name: line[name] for name in line if name != "remarks"} for line in answer.json["lines"]]


@pytest.mark.usefixtures("no_weights")
def test_every_number_is_that_of_the_command(farmwatch: Runner, finished: str, tmp_path: Path) -> None:
    """/answer.json is `rate --json`; /sites.json, /pages.json and /page.json are those commands' own JSON."""
    answer, sites, pages = visited(finished, tmp_path, "/answer.json", "/sites.json", "/pages.json")
    listed = farmwatch("pages", "--json", "--log", finished).lines
    assert sorted(pages.json["pages"], key=itemgetter("url")) == sorted(listed, key=itemgetter("url")) and listed
    assert without_remarks(answer) == [farmwatch("rate", "--json", "--log", finished).json]
    rows = farmwatch("sites", "--json", "--log", finished).lines
    assert [row["site"] for row in sites.json["sites"]] == [row["site"] for row in rows]
    for row, said in zip(sites.json["sites"], rows, strict=True):
        assert {name: row[name] for name in said} == said
    for url in (URL, SHORT_URL):
        (page,) = visited(finished, tmp_path, "/page.json", url=url)
        explained = farmwatch("page", url, "--json", "--log", finished).json
        assert {name: page.json[name] for name in explained if name != "warning"} == {
            name: value for name, value in explained.items() if name != "warning"
        }


def test_a_site_shows_what_its_sitemaps_list(finished: str, tmp_path: Path) -> None:
    """The page and its JSON twin have the counts, as a lower bound while files are unread."""
    counts = Sitemaps(id=SITE, site=SITE, urls=1200, files_read=2, files_listed=3, months={"2019-04": 7, "2024-05": 9})
    with closing(open_log(finished)) as log:
        partition = partition_of(SITE, log.topics()[SITEMAPS])
        log.append([Output(SITEMAPS, partition, SITE.encode(), encode(counts))])
    page, twin = visited(finished, tmp_path, "/site", "/site.json", site=SITE)
    assert "at least 1,200 URLs in 2 of 3 files; changed from 2019-04 to 2024-05" in page.text
    assert (twin.json["sitemaps"]["urls"], twin.json["sitemaps"]["files_listed"]) == (1200, 3)


@pytest.mark.usefixtures("no_weights")
def test_pages_of_a_site_lead_to_their_explanation(finished: str, tmp_path: Path) -> None:
    """A site lists its pages with verdict, reason and score; another ruleset judges a page beside the live one."""
    (site,) = visited(finished, tmp_path, "/site.json", site=SITE)
    pages = {page["url"]: page for page in site.json["pages"]}
    assert (pages[URL]["result"], pages[URL]["p_llm"], pages[URL]["flag"]) == ("article", 0.97, True)
    assert pages[SHORT_URL]["result"] == "dropped" and pages[SHORT_URL]["why"]
    (page,) = visited(finished, tmp_path, "/page", url=URL, ruleset="c4")
    assert page.status == 200 and "Ruleset c4" in page.text and "Ruleset default" in page.text


@pytest.mark.usefixtures("no_weights")
def test_sentences_that_are_too_unlikely_are_marked(farmwatch: Runner, finished: str, tmp_path: Path) -> None:
    """A page under a run that drops unlikely sentences shows all, and those with their perplexity; so does `page`."""
    ruleset = tmp_path / "fluent.toml"
    ruleset.write_text(f'scores = "fluent"\n[fluent]\nlimit = 700\n{EXTRACTED}', encoding="utf-8")
    assert farmwatch("replay", "--ruleset", ruleset, "--name", "fluent", "--log", finished).code == Exit.OK
    assert DANGER in farmwatch("rate", "--run", "fluent", "--log", finished).err
    (page,) = visited(finished, tmp_path, "/page", url=URL, ruleset="run fluent")
    (found,) = visited(finished, tmp_path, "/page.json", url=URL, ruleset="run fluent")
    sentences = found.json["other"]["sentences"]
    assert "".join(sentence["text"] for sentence in sentences) == found.json["text"] and not found.json["sentences"]
    unlikely = [sentence["perplexity"] for sentence in sentences if sentence["is_unlikely"]]
    assert unlikely and min(unlikely) > 700 > min(sentence["perplexity"] for sentence in sentences)
    assert page.text.count("<s class") == len(unlikely)
    assert farmwatch("page", URL, "--ruleset", ruleset, "--json", "--log", finished).json["sentences"] == sentences


@pytest.mark.usefixtures("no_weights")
def test_the_numbers_of_each_split_and_of_the_state_are_those_of_the_commands(
    farmwatch: Runner, finished: str, tmp_path: Path
) -> None:
    """/answer.json?of=&by= is `rate --of --by --json`, /flow.json and /health.json say what `status --json` says."""
    for of, split in SPLITS:
        (answer,) = visited(finished, tmp_path, "/answer.json", of=of, by=split)
        said = farmwatch("rate", "--of", of, *(("--by", split) if split else ()), "--json", "--log", finished).out
        assert without_remarks(answer) == [json.loads(line) for line in said.splitlines()]
        (file,) = visited(finished, tmp_path, "/answer.csv", of=of, by=split)
        groups = [row["group"] for row in csv.DictReader(io.StringIO(file.text))]
        assert groups == [line["group"] for line in answer.json["lines"]]
    flow, health = visited(finished, tmp_path, "/flow.json", "/health.json")
    status = farmwatch("status", "--json", "--log", finished).json
    assert [flow.json["status"][name] for name in ("run", "crawl")] == [status[name] for name in ("run", "crawl")]
    of_share = ("share", "low", "high", "scored_sites", "sites", "digest")
    assert [flow.json["status"]["share"][name] for name in of_share] == [status["share"][name] for name in of_share]
    assert [(role["role"], role["lag"]) for role in flow.json["status"]["roles"]] == [
        (role["role"], role["lag"]) for role in status["roles"]
    ]
    assert health.json["wrong"] == status["wrong"]


def test_the_docs_name_every_page_with_its_fields_and_have_its_pictures(finished: str, tmp_path: Path) -> None:
    """A row of the guide for each page: its twin, each field of its address, and its pictures, which are there."""

    async def visit(browser: Browser) -> dict[str, str]:
        twins = [path for path in browser.paths if path.endswith(".json")]
        return {path: (await browser.get(path, {"no": "such"})).json["error"] for path in twins}

    guide = (ROOT / "docs/how-to/console.md").read_text(encoding="utf-8")
    rows = dict(re.findall(r"^\| `/\w+`, `(/\w+\.json)`[^|]*(\|.*)$", guide, re.MULTILINE))
    said = browse(finished, tmp_path, visit)
    assert rows.keys() == said.keys()
    for path, row in rows.items():
        _, fields, pictures, _ = row.split("|")
        known = said[path].partition("it has ")[2]
        assert known == (", ".join(re.findall(r"`(\w+)`", fields.partition(":")[0])) or "none"), path
        name = path.strip("/").removesuffix(".json")
        files = [f"images/console-{name}{ending}.png" for ending in ("", "-dark", "-390")]
        assert re.findall(r"\(\.\./([^)]+)\)", pictures) == files, path
        assert all((ROOT / "docs" / file).is_file() for file in files), f"{path}: `make screenshots`"


def test_what_cannot_be_found_beside_the_share_hides_no_share(finished: str, tmp_path: Path) -> None:
    """The file of the canaries is gone: the rest of the page is there."""
    config = load(
        flags=[f"log.url={finished}", f"log.partitions={PARTITIONS}", f"canary.file={tmp_path}/gone"], environment={}
    ).config

    async def visit(browser: Browser) -> Answer:
        return await browser.get("/answer.json")

    answer = browse(finished, tmp_path, visit, config=config)
    assert answer.status == 200 and answer.json["lines"] and answer.json["canaries"] is None


def test_what_is_not_there_is_said(finished: str, tmp_path: Path) -> None:
    """An unknown site or page is 404, a wrong value of a field 400, with words."""
    answers = visited(finished, tmp_path, "/site", site="no.example")
    answers += visited(finished, tmp_path, "/page", url="https://no.example/")
    assert [answer.status for answer in answers] == [404, 404] and "no such site" in answers[0].text
    (wrong,) = visited(finished, tmp_path, "/sites", sort="beauty")
    assert wrong.status == 400 and "articles" in wrong.text
    (no_twin,) = visited(finished, tmp_path, "/nope.json")
    assert (no_twin.status, no_twin.json) == (404, {"error": "Not Found: /nope.json"})


def test_a_field_that_an_address_does_not_have_is_named(finished: str, tmp_path: Path) -> None:
    """On every page, its twin and its files: nothing is left out in silence."""

    async def visit(browser: Browser) -> dict[str, Answer]:
        files = (".json", ".csv", ".svg")
        twins = {path for path in browser.paths if path.endswith(files) and not path.startswith("/static/")}
        pages = {path.removesuffix(".json") for path in twins if path.endswith(".json")}
        return {path: await browser.get(path, {"verdcit": "llm"}) for path in twins | pages}

    for path, answer in browse(finished, tmp_path, visit).items():
        assert answer.status == 400 and f"{path} has no field" in answer.text and "verdcit" in answer.text
        assert path.endswith(".json") == (answer.json is not None)


def test_a_field_with_another_value_is_refused(finished: str, tmp_path: Path) -> None:
    """Where a number or one of some words is wanted, the field and its value are named."""
    wrong = {
        "/sites": {"least": "abc"},
        "/answer": {"by": "week", "of": "farm"},
        "/label": {"of": "all"},
        "/letters": {"settled": "-1"},
    }

    async def visit(browser: Browser) -> dict[str, Answer]:
        return {path: await browser.get(f"{path}.json", query) for path, query in wrong.items()}

    for path, answer in browse(finished, tmp_path, visit).items():
        name, value = next(iter(wrong[path].items()))
        assert answer.status == 400 and answer.json["error"].startswith(f"{name}={value!r}")


def test_a_file_that_would_not_be_whole_is_refused(
    finished: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It says that there are more rows than a file of the console has, and which command writes them all."""
    monkeypatch.setattr("farmwatch.console.app.ALL", 1)
    for name, answer in zip(("sites", "pages"), visited(finished, tmp_path, "/sites.csv", "/pages.csv"), strict=True):
        assert answer.status == 400 and f"farmwatch {name} --format csv" in answer.text


def test_a_page_leads_to_its_own_twin(finished: str, tmp_path: Path) -> None:
    """Whatever characters the fields of the address have."""

    async def visit(browser: Browser) -> Answer:
        page = await browser.get("/sites", {"search": "%41#&verdict=llm+"})
        (twin,) = re.findall(r'href="(/sites\.json[^"]*)"', page.text)
        return await browser.get(html.unescape(twin))

    assert browse(finished, tmp_path, visit).json["filter"]["search"] == "%41#&verdict=llm+"


def test_an_index_that_cannot_be_read_is_said(finished: str, tmp_path: Path) -> None:
    """The page says so in words; its twin too."""

    async def visit(browser: Browser) -> list[Answer]:
        (tmp_path / "console.sqlite").unlink()
        return [await browser.get("/sites"), await browser.get("/sites.json")]

    for answer in browse(finished, tmp_path, visit):
        assert answer.status == 503 and "the index of the console" in answer.text


async def screens_of(browser: Browser, path: str, query: dict[str, str]) -> list[Any]:
    """All screens of a list."""
    screens = [(await browser.get(path, query)).json]
    while after := screens[-1]["next"]:
        screens.append((await browser.get(path, {**query, "after": after})).json)
    return screens


def test_sites_are_searched_sorted_and_paged(tmp_path: Path) -> None:
    """Each site is on exactly one screen, in order; canaries are on none."""
    url = f"sqlite:{tmp_path / 'log'}"
    rows = [
        SiteState(
            id=site, site=site, verdict=("human", "llm", "llm")[n % 3], articles=n % 7, sources=["file"] * (n % 2)
        )
        for n, site in enumerate([*(f"s{n:03}.example" for n in range(120)), "x.ab.3.1.human.canary.invalid"])
    ]
    with closing(open_log(url)) as log:
        log.create(all_topics(PARTITIONS, "e"))
        log.append([Output(SITES, partition_of(r.site, PARTITIONS), r.site.encode(), encode(r)) for r in rows])

    async def visit(browser: Browser) -> list[list[dict[str, Any]]]:
        found = []
        fields = {"sort": "articles", "verdict": "human", "search": "S01", "source": "file", "least": "5"}
        for query in ({}, *({name: value} for name, value in fields.items())):
            screens = await screens_of(browser, "/sites.json", query)
            found.append([site for screen in screens for site in screen["sites"]])
        return found

    by_name, by_articles, human, search, of_file, many = browse(url, tmp_path, visit)
    names = [row.site for row in rows[:-1]]
    assert [row["site"] for row in by_name] == names
    assert sorted(row["site"] for row in by_articles) == names
    counts = [row["articles"] for row in by_articles]
    assert counts == sorted(counts, reverse=True)
    assert [row["site"] for row in human] == names[::3]
    assert [row["site"] for row in search] == names[10:20]
    assert [row["site"] for row in of_file] == names[1::2]
    assert [row["site"] for row in many] == [row.site for row in rows[:-1] if row.articles >= 5]


def test_sites_that_count_through_segments_are_said(tmp_path: Path) -> None:
    """The row of a site of which no page is an article says so; the site's own page how many pages count like that."""
    url = f"sqlite:{tmp_path / 'log'}"
    rows = [
        SiteState(id=site, site=site, articles=5, scored=5, through_segments=through)
        for site, through in (("all.example", 5), ("some.example", 2), ("none.example", 0))
    ]
    with closing(open_log(url)) as log:
        log.create(all_topics(PARTITIONS, "e"))
        log.append([Output(SITES, partition_of(r.site, PARTITIONS), r.site.encode(), encode(r)) for r in rows])
    (sites,) = visited(url, tmp_path, "/sites")
    assert [row.count("through segments") for row in sites.text.split("<tr>") if ".example</a>" in row] == [1, 0, 0]
    (site,) = visited(url, tmp_path, "/site", site="some.example")
    assert "5 articles of 0 pages, 2 through segments" in site.text


def test_totals_and_facets_are_those_of_the_sites(finished: str, tmp_path: Path) -> None:
    """The numbers beside each choice are of the sites that it would leave; the file has all rows, and no formula."""
    rows = [
        SiteState(id=site, site=site, verdict=verdict, articles=3, scored=n % 2, sources=["=1+1"])
        for n, (site, verdict) in enumerate(
            [("c.example", "llm"), ("d.example", "undecided"), ("e.example", "unclassifiable"), ("f.example", "llm")]
        )
    ]
    with closing(open_log(finished)) as log:
        log.append([Output(SITES, partition_of(r.site, PARTITIONS), r.site.encode(), encode(r)) for r in rows])

    async def visit(browser: Browser) -> list[Answer]:
        while not ((every := await browser.get("/sites.json", {"least": "3"})).json["facets"] or {}).get("source"):
            pass
        return [every, *[await browser.get(path, {"verdict": "llm"}) for path in ("/sites.json", "/sites.csv")]]

    every, llm, file = browse(finished, tmp_path, visit)
    facets = every.json["facets"]
    assert facets["total"]["sites"] == len(every.json["sites"]) == sum(facets["verdict"].values())
    assert facets["total"]["articles"] == sum(row["articles"] for row in every.json["sites"])
    assert facets["verdict"]["llm"] == 2 and facets["source"]["=1+1"] == 4
    written = list(csv.DictReader(io.StringIO(file.text)))
    assert [row["site"] for row in written] == [row["site"] for row in llm.json["sites"]]


def test_the_pages_of_a_site_come_in_screens(tmp_path: Path) -> None:
    """Each page is on exactly one screen, in the order of the fetches, of which two may be at the same time."""
    url = f"sqlite:{tmp_path / 'log'}"
    with closing(open_log(url)) as log:
        log.create(all_topics(1, "e"))
        pages = [Page(id=f"{n}", site=SITE, page_id=f"{n:03}", url=f"u{n:03}", fetched_at=n // 2) for n in range(250)]
        log.append([Output(PAGES, 0, SITE.encode(), encode(page)) for page in reversed(pages)])
        log.append([Output(SITES, 0, SITE.encode(), encode(SiteState(id=SITE, site=SITE)))])

    async def visit(browser: Browser) -> list[list[str]]:
        screens = await screens_of(browser, "/site.json", {"site": SITE})
        return [[page["url"] for page in screen["pages"]] for screen in screens]

    screens = browse(url, tmp_path, visit)
    assert [len(screen) for screen in screens] == [100, 100, 50]
    assert [url for screen in screens for url in screen] == [page.url for page in pages]


def test_a_long_history_is_thinned(finished: str, tmp_path: Path) -> None:
    """The newest point is always there, and no more than a plot shows."""
    now = wall_ms()
    points = [RatePoint(id=f"{n}", site="", at=now - n * 3_600_000, share=0.1, share_low=0.0) for n in range(700)]
    with closing(open_log(finished)) as log:
        log.append([Output(RATES, 0, point.id.encode(), encode(point)) for point in points])
    (answer,) = visited(finished, tmp_path, "/answer.json")
    times = [point["at"] for point in answer.json["history"]]
    assert times[-1] == now and times == sorted(times) and 100 < len(times) <= 200


def test_earlier_pages_that_are_far_apart_are_found(farmwatch: Runner, finished: str, tmp_path: Path) -> None:
    """Records of other sites stand between those of the site, few or many: the page says what `explain` says."""
    partition, measurer = partition_of(SITE, PARTITIONS), Measurer(MeasureSettings())
    with closing(open_log(finished)) as log:
        for n, others in enumerate((3, 100, 40, 0)):
            url = f"https://{SITE}/{n}"
            features = measurer.measure(url, article_html(), SITE, page_id=page_id(url), fetched_at=n)
            other = msgspec.structs.replace(features, site="other.example")
            made = [("other.example", other)] * others + [(SITE, features)]
            log.append([Output(FEATURES, partition, key.encode(), encode(record)) for key, record in made])
            fetched = Page(id=features.id, site=SITE, page_id=features.page_id, url=url)
            log.append([Output(PAGES, partition, SITE.encode(), encode(fetched))])
    (page,) = visited(finished, tmp_path, "/page.json", url=url)
    explained = farmwatch("page", url, "--json", "--log", finished).json
    assert page.json["repeats"] == explained["repeats"] and page.json["repeats"][0]["pages"] == 4


@pytest.mark.usefixtures("no_weights")
def test_segments_are_framed_in_the_text_of_a_page(finished: str, tmp_path: Path) -> None:
    """A frame for each kind, whether each ruleset counts it; lines of records are faint in the main text."""
    url = f"https://{SITE}/forums/thread"
    posts = "".join(
        f"<li class=post><i class=author>{who}</i> {html.escape(HOSTILE)} {f'{who} says. ' * 99}</li>" for who in "abc"
    )
    source = f"<html><body><main><p>{'A question is asked here. ' * 9}</p><ol>{posts}</ol></main></body></html>"
    features = Measurer(MeasureSettings()).measure(url, source, SITE, page_id=page_id(url))
    with closing(open_log(finished)) as log:
        partition = partition_of(SITE, PARTITIONS)
        for topic, record in (
            (FEATURES, features),
            (PAGES, Page(id="1", site=SITE, page_id=features.page_id, url=url)),
        ):
            log.append([Output(topic, partition, SITE.encode(), encode(record))])
    (page,) = visited(finished, tmp_path, "/page", url=url, ruleset="whole-web")
    titles = re.findall(r"<h3>(.*?)</h3>", page.text)
    assert [title.partition(":")[0] for title in titles] == ["comment", "post", "article"]
    assert titles[0].startswith("comment: 2 records, ")
    assert titles[0].endswith("; not counted by <code>whole-web</code>: text of visitors")
    assert titles[1].endswith("<code>whole-web</code>: too repetitive")
    assert "; not counted by <code>default</code>: the ruleset scores no segments; not counted by " in titles[1]
    assert [page.text.count(line) for line in ('<p class="line record">', ' outside">')] == [3, 3]
    assert "<script>alert" not in page.text and page.text.count("&lt;script&gt;alert") >= 6
    assert (page.text.count("visitors"), visited(finished, tmp_path, "/page", url=URL)[0].text.count("<h3>")) == (2, 0)


class Tags(html.parser.HTMLParser):
    """Collects the tags of a page, and their attributes."""

    def __init__(self) -> None:
        super().__init__()
        self.tags: set[str] = set()
        self.attributes: set[tuple[str, str | None]] = set()
        self.scripts: list[str] = []  # addresses; "" = inline
        self.outward: set[str] = set()  # addresses of links to crawled pages

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.add(tag)
        self.scripts += [dict(attrs).get("src") or "" for _ in range(tag == "script")]
        outward = dict(attrs).get("rel") == "noopener noreferrer nofollow"
        self.outward |= {value or "" for name, value in attrs if outward and name == "href"}
        self.attributes.update((name, value) for name, value in attrs if not (outward and name == "href"))


@pytest.fixture(scope="module")
def hostile_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("hostile")


@settings(max_examples=3)
@example(text=HOSTILE)
@given(text=st.text(min_size=1, max_size=60))
@pytest.mark.usefixtures("no_weights")
def test_no_crawled_string_becomes_markup(hostile_folder: Path, text: str) -> None:
    """Hostile URLs, reasons and queries: every page has the console's own tags and scripts, no handler, no address."""
    folder = hostile_folder / str(len(list(hostile_folder.iterdir())))
    url, address = f"sqlite:{folder / 'log'}", f"https://{SITE}/{text}"
    clean = text.encode("utf-8", "replace").decode()
    row = SiteState(id=SITE, site=SITE, sources=[clean], queries=[clean], dropped_by={clean: 1}, ruleset=clean)
    page = Page(id="1", site=SITE, page_id=page_id(address), url=address, outcome="failed", reason=clean)
    verdict = Verdict(id="2", site=SITE, page_id="p", url=clean, verdict="dropped", first_failed=clean)
    with closing(open_log(url)) as log:
        log.create(all_topics(1, "e"))
        records = ((SITES, row), (PAGES, page), (VERDICTS, verdict))
        log.append([Output(topic, 0, SITE.encode(), encode(record)) for topic, record in records])
    answers = [
        *visited(url, folder, "/site", site=SITE),
        *visited(url, folder, "/sites", search=clean),
        *visited(url, folder, "/page", url=address),
        *visited(url, folder, "/flow", "/answer", "/crawl", "/runs", "/rulesets", "/letters", "/health"),
    ]
    for answer in answers:
        found = Tags()
        found.feed(answer.text)
        assert not found.tags & {"img", "iframe", "object", "embed", "base", "style"}
        assert not any(name.startswith("on") for name, _ in found.attributes)
        assert len(found.scripts) <= 3 and all(place.startswith("/static/") for place in found.scripts)
        assert all(urlsplit(place).scheme in ("http", "https") and urlsplit(place).hostname for place in found.outward)
        places = {value or "" for name, value in found.attributes if name in ("href", "src", "action")}
        assert all(place.startswith("/") and not place.startswith("//") for place in places)


@pytest.mark.parametrize(
    "address",
    [
        "javascript:alert(1)",
        "JavaScript://a.example/%0aalert(1)",
        "data:text/html,x",
        "//a.example",
        "https://",
        "http://[",
        "",
    ],
)
def test_only_an_address_of_the_web_becomes_a_link(address: str) -> None:
    """A hostile one is text; the link of another tells the page nothing of the console."""
    assert outward(address) == ""
    link = outward('https://a.example/"><script>')
    assert 'rel="noopener noreferrer nofollow"' in link and "<script>" not in link


def test_of_two_tabs_that_pause_the_crawl_one_is_told(farmwatch: Runner, finished: str, tmp_path: Path) -> None:
    """The first form pauses it, as `farmwatch crawl pause` does; the second learns that it was paused already."""

    async def visit(browser: Browser) -> list[Answer]:
        pause = await browser.form("/crawl", why=HOSTILE, order="pause")
        done = [await browser.post("/crawl/pause", pause) for _ in range(2)]
        said = await browser.get("/crawl", {"already": "1"})
        resumed = await browser.post("/crawl/pause", {**pause, "order": "resume"})
        return [*done, said, resumed]

    first, second, page, resumed = browse(finished, tmp_path, visit)
    assert (first.headers["Location"], second.headers["Location"]) == ("/crawl", "/crawl?already=1")
    assert "the crawl is paused" in page.text and "was quicker" in page.text and "<script>" not in page.text
    assert resumed.headers["Location"] == "/crawl"
    assert "not paused" in farmwatch("crawl", "resume", "--log", finished).err


def test_hosts_are_excluded_and_visited_again(farmwatch: Runner, finished: str, tmp_path: Path) -> None:
    """As `farmwatch crawl exclude`; a pattern that reaches beyond one domain and a name that is none change nothing."""

    async def visit(browser: Browser) -> list[Answer]:
        form = await browser.form("/crawl", order="exclude", why="owner")
        names = ["WWW.Example.com", "b.example.com", "*.com", "a b"]
        done = [await browser.post("/crawl/exclude", {**form, "name": name}) for name in names]
        ended = await browser.post("/crawl/exclude", {**form, "name": "b.example.com", "order": "remove"})
        return [*done, ended, await browser.get("/crawl.json")]

    *answers, page = browse(finished, tmp_path, visit)
    assert [answer.status for answer in answers] == [303, 303, 400, 400, 303]
    assert "reaches beyond one domain" in answers[2].text
    listed = farmwatch("crawl", "exclude", "--json", "--log", finished).lines
    assert [one["name"] for one in listed if one["excluded"]] == ["www.example.com"]
    assert [(one["name"], one["why"]) for one in page.json["exclusions"]] == [("www.example.com", "owner")]


def test_dead_letters_are_settled(farmwatch: Runner, finished: str, tmp_path: Path) -> None:
    """Of the chosen stage, run and reason only, as `farmwatch log dead`; the page says how many, and no bytes run."""
    with closing(open_log(finished)) as log:
        letters = ((KeyError("x"), ""), (KeyError(HOSTILE), ""), (ValueError("no"), ""), (KeyError("x"), "other"))
        for offset, (error, run) in enumerate(letters):
            log.append([dead_letter(Message(HITS, 0, offset, SITE.encode(), b"{", {}, 0), "crawl", error, 1, run)])

    async def visit(browser: Browser) -> list[Answer]:
        page = await browser.get("/letters")
        drop = await browser.form("/letters", order="drop", stage="crawl", run="", reason="KeyError")
        return [page, await browser.post("/letters", drop), await browser.get("/letters.json")]

    page, dropped, after = browse(finished, tmp_path, visit)
    assert "<script>" not in page.text and "&lt;script" in page.text
    assert dropped.headers["Location"] == "/letters?settled=2&refused=0"
    left = {(one["run"], one["reason"]): one["open"] for one in after.json["letters"]}
    assert left == {("", "KeyError"): 0, ("", "ValueError"): 1, ("other", "KeyError"): 1}
    states = [letter["state"] for letter in farmwatch("log", "dead", "list", "--json", "--log", finished).lines]
    assert sorted(states) == ["dropped", "dropped", "open", "open"]


def test_a_forgotten_host_is_on_no_page_and_not_in_the_index(farmwatch: Runner, finished: str, tmp_path: Path) -> None:
    """`farmwatch crawl forget` clears index and labels of a stopped console: no bytes have the host's name."""
    folder = Path(finished.partition(":")[2])
    assert visited(finished, folder, "/site", site=SITE)[0].status == 200
    assert SITE.encode() in (folder / "console.sqlite").read_bytes()
    labels = [{"fetch_id": site, "site": site, "page_type": "article", "text": "words"} for site in (SITE, "b.example")]
    (folder / "labels.jsonl").write_text("".join(json.dumps(label) + "\n" for label in labels))
    (folder / "labels.jsonl").chmod(0o600)
    assert farmwatch("crawl", "forget", SITE, "--yes", "--log", finished).code == 0
    left = b"".join(path.read_bytes() for path in folder.glob("console.sqlite*"))
    assert SITE.encode() not in left
    assert [json.loads(line)["site"] for line in (folder / "labels.jsonl").open()] == ["b.example"]
    assert (folder / "labels.jsonl").stat().st_mode & 0o777 == 0o600
    assert [answer.status for answer in visited(finished, folder, "/site", site=SITE)] == [404]


def test_the_index_follows_the_log(finished: str, tmp_path: Path) -> None:
    """New rows show without a restart; a damaged index, or one of another run, is made anew."""
    index = tmp_path / "console.sqlite"
    (first,) = visited(finished, tmp_path, "/sites.json")
    with closing(open_log(finished)) as log:
        row = SiteState(id="new.example", site="new.example")
        log.append([Output(SITES, partition_of(row.site, PARTITIONS), row.site.encode(), encode(row))])
    (second,) = visited(finished, tmp_path, "/sites.json")
    names = [[row["site"] for row in answer.json["sites"]] for answer in (first, second)]
    assert names == [["b.example", SITE], ["b.example", SITE, "new.example"]]
    index.write_bytes(b"no database" * 1000)
    (third,) = visited(finished, tmp_path, "/sites.json")
    assert third.json["sites"] == second.json["sites"]
