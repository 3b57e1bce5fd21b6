"""A web of farms and other sites over HTTP on loopback: which sites count as farms, surely, perhaps or not."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from msgspec.structs import replace

from farmwatch.__main__ import run
from farmwatch.demo.human_pages import human_pages
from farmwatch.demo.server import LoopbackWeb, Response
from farmwatch.demo.site_pages import llm_articles
from farmwatch.share.current_rate import read_sitemaps
from farmwatch.share.evidence_pages import evidence_pages
from scoring.rates.farm_signs import FarmSigns
from stream.log.contract import Output
from stream.schema.records import encode
from stream.schema.topics import SITES
from tests.support.processes.farm import Farm

pytestmark = pytest.mark.slow

PAGES = 2  # of a site
PATIENCE_S = 120.0
LLM = [article.text.split("\n\n") for article in llm_articles()["tidynest.example"]]
HUMAN = [[page.title, *page.paragraphs] for page in human_pages()]
ADS = "<script async src='https://pagead2.googlesyndication.com/pagead/js/adsbygoogle.js'></script>"
SHOP = "<a href='https://www.amazon.com/dp/B000?tag=tidy-20'>buy</a>"
LINK = "<a href='https://www.amazon.com/dp/B000'>buy</a>"  # without a tag
ANALYTICS = "<script src='https://www.googletagmanager.com/gtag/js?id=G-ABC123'></script>"
WEB = {  # site -> what its pages have, on how many, the URLs of its sitemap (0: none), and mass, monetised, both
    "farm.test": (ADS, 2, 120, (True, True, True)),
    "shop.test": (SHOP, 2, 150, (True, True, True)),
    "links.test": (LINK, 2, 150, (True, False, False)),
    "one-ad.test": (ADS, 1, 150, (True, False, False)),
    "small.test": (ADS, 2, 30, (False, True, False)),
    "no-map.test": (ADS, 2, 0, (None, True, None)),
    "partly.test": (ADS, 2, -40, (None, True, None)),  # one of two files is missing
    "poor.test": ("", 0, 0, (None, False, False)),
}


def served(site: str, texts: list[list[str]]) -> dict[str, Response]:
    """The pages, robots.txt and sitemaps of a site."""
    has, number, urls, _ = WEB[site]
    pages = {}
    for place, text in enumerate(texts):
        head = f"<meta property='og:type' content='article'>{ANALYTICS}{has if place < number and has == ADS else ''}"
        body = "".join(f"<p>{part}</p>" for part in text) + (has if place < number and has != ADS else "")
        html = f"<html><head>{head}</head><body><article>{body}</article></body></html>"
        pages[f"/{place}"] = Response(body=html.encode())
    if urls:
        listed = "".join(f"<url><loc>http://{site}/old/{n}</loc></url>" for n in range(abs(urls)))
        xml = f"<urlset xmlns='http://www.sitemaps.org/schemas/sitemap/0.9'>{listed}</urlset>"
        pages["/map.xml"] = Response(headers={"Content-Type": "application/xml"}, body=xml.encode())
        names = ["map.xml", "gone.xml"] if urls < 0 else ["map.xml"]
        robots = "User-agent: *\nDisallow: /old/\n" + "".join(f"Sitemap: http://{site}/{name}\n" for name in names)
        pages["/robots.txt"] = Response(headers={"Content-Type": "text/plain"}, body=robots.encode())
    return pages


def test_farms_of_a_crawled_web_are_told(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    """Sitemaps, ads and affiliate links that the crawl met decide; `rate --of farm` and `site` say the same."""
    texts = LLM * 2
    web = {
        site: served(site, texts[PAGES * n : PAGES * (n + 1)] if n < 4 else HUMAN[PAGES * (n - 4) : PAGES * (n - 3)])
        for n, site in enumerate(WEB)
    }
    hits = tmp_path / "hits.jsonl"
    hits.write_text(
        "".join(
            json.dumps({"url": f"http://{site}/{n}", "query_id": site}) + "\n" for site in WEB for n in range(PAGES)
        )
    )
    with LoopbackWeb(web) as loopback, Farm(tmp_path, f"sqlite:{tmp_path / 'log'}", loopback) as farm:
        farm.work_here(hits, PATIENCE_S)
        outcome = farm.outcome()
        rows = outcome.sites
        with farm.log() as log:
            signs, proofs = FarmSigns.of(rows.values(), read_sitemaps(log)), evidence_pages(log, rows)
            ten = {"pages": 10, "articles": 10, "signals": {"cms:wix": 10}}
            others = [  # sites without either sign, so that there is a share
                replace(rows["poor.test"], id=site, site=site, queries=[site], scored=10, flagged=10 * (n < 20), **ten)
                for n in range(60)
                for site in [f"{n}.example"]
            ]
            log.append([Output(SITES, 0, row.site.encode(), encode(row)) for row in others])
        options = [word for flag in farm.flags for word in ("--set", flag)]
        capfd.readouterr()
        assert run(["rate", "--of", "farm", "--json", *options]) == 0
        (line,) = map(json.loads, capfd.readouterr().out.splitlines())
        of_sites = {}
        for site in WEB:
            assert run(["site", site, "--json", *options]) == 0
            of_sites[site] = json.loads(capfd.readouterr().out)["content_farm"]
    assert {row.articles for row in rows.values()} == {PAGES}
    found = {site: (signs.mass(row), signs.monetised(row), signs.farm(row)) for site, row in rows.items()}
    assert found == {site: expected for site, (*_, expected) in WEB.items()}
    told = {site: (of["mass"], of["monetised"], of["farm"]) for site, of in of_sites.items()}
    assert told == found
    flagged = {score.text_digest: score.p_llm or 0 for score in outcome.scores.values() if score.flag}
    surest: dict[str, list[tuple[float, str]]] = {}
    for page in outcome.verdicts.values():
        if page.text_digest in flagged:
            surest.setdefault(page.site, []).append((flagged[page.text_digest], page.url))
    assert proofs == {site: max(pages)[1] for site, pages in surest.items()} != {}
    kinds = [expected for *_, (*_, expected) in WEB.values()]
    assert line["definition"] == "farm" and line["scored_sites"] == len(WEB) + 60
    assert (line["farms"][0]["yes"], line["farms"][0]["unknown"]) == (kinds.count(True), kinds.count(None)) == (2, 2)
