"""ads.txt of sites over HTTP on loopback, on both logs: who is asked, and which sites are of one operator."""

from __future__ import annotations

import json
import uuid
from pathlib import Path

import pytest

from farmwatch.__main__ import run
from farmwatch.demo.human_pages import human_pages
from farmwatch.demo.server import LoopbackWeb, Response
from tests.support.kafka_broker import broker
from tests.support.processes.farm import Farm

pytestmark = pytest.mark.slow

PAGES = 2  # of a site
PATIENCE_S = 120.0
OWNER = "ads-txt:owner:owner.test"
ACCOUNT = "ads:adsense:1234567890123456"
LINES = {"direct": "google.com, pub-1234567890123456, DIRECT\n", "reseller": "google.com, pub-9999999999, RESELLER\n"}
ADS = "<script async src='https://pagead2.googlesyndication.com/pagead/js/adsbygoogle.js'></script>"
WEB = {  # site -> whether it has ads, and its ads.txt
    "one.test": (True, "OWNERDOMAIN=owner.test\n" + LINES["reseller"]),
    "two.test": (True, "\ufeff# ours\r\nownerdomain = www.owner.test\r\n" + LINES["direct"]),
    "three.test": (True, LINES["direct"] + LINES["reseller"]),
    "reseller.test": (True, LINES["reseller"]),
    "plain.test": (False, "OWNERDOMAIN=owner.test\n"),
    "forbids.test": (True, "OWNERDOMAIN=owner.test\n"),
    "html.test": (True, "<html>OWNERDOMAIN=owner.test\n"),
    "absent.test": (True, ""),
}
OPERATOR = {"one.test", "three.test", "two.test"}
TEXTS = [[page.title, *page.paragraphs] for page in human_pages()]


def served(site: str, texts: list[list[str]]) -> dict[str, Response]:
    """The pages, robots.txt and ads.txt of a site."""
    has_ads, stated = WEB[site]
    head = f"<head><meta property='og:type' content='article'>{ADS if has_ads else ''}</head>"
    pages = {
        f"/{n}": Response(body=f"<html>{head}<body><article><p>{'<p>'.join(text)}</article>".encode())
        for n, text in enumerate(texts)
    }
    plain = {"Content-Type": "text/plain"}
    if stated:
        pages["/ads.txt"] = Response(headers=plain, body=stated.encode())
    if site == "forbids.test":
        pages["/robots.txt"] = Response(headers=plain, body=b"User-agent: *\nDisallow: /ads.txt\n")
    return pages


@pytest.mark.parametrize(
    ("kind", "is_on"),
    [
        pytest.param("embedded", True, id="embedded"),
        pytest.param("kafka", True, id="kafka", marks=pytest.mark.kafka),
        pytest.param("embedded", False, id="by-default"),
    ],
)
def test_sites_that_state_an_owner_or_an_account_are_of_one_operator(
    tmp_path: Path, kind: str, is_on: bool, capfd: pytest.CaptureFixture[str]
) -> None:
    """Sites with ads are asked for ads.txt once, where robots.txt allows it; by default none is.

    Two sites with the same owner, and a third with the account of one, are one operator; an account of a reseller and
    an HTML page link nothing. `site` names the ids, and a later hit makes no second request.
    """
    web = {site: served(site, TEXTS[PAGES * n : PAGES * (n + 1)]) for n, site in enumerate(WEB)}
    hits, later = tmp_path / "hits.jsonl", tmp_path / "later.jsonl"
    for number, file in enumerate((hits, later)):
        file.write_text(
            "".join(json.dumps({"url": f"http://{site}/{number}", "query_id": site}) + "\n" for site in WEB)
        )
    settings = {"crawl.use_sitemaps": "false", "log.prefix": f"ads-{uuid.uuid4().hex[:12]}."}
    settings |= {"crawl.ask_ads_txt": "true"} if is_on else {}
    url = f"sqlite:{tmp_path / 'log'}" if kind == "embedded" else f"kafka:{broker()}"
    with LoopbackWeb(web) as loopback, Farm(tmp_path, url, loopback, settings) as farm:
        farm.work_here(hits, PATIENCE_S)
        farm.work_here(later, PATIENCE_S)  # all processes are new
        options = [word for flag in farm.flags for word in ("--set", flag)]
        capfd.readouterr()
        assert run(["sites", "--json", *options]) == run(["site", "three.test", *options]) == 0
        shown = capfd.readouterr().out.splitlines()
        report = farm.audit()
    asked = sorted(request.host for request in loopback.requests if request.path == "/ads.txt")
    assert asked == (sorted(WEB.keys() - {"plain.test", "forbids.test"}) if is_on else [])
    rows = {row["site"]: row for row in map(json.loads, (line for line in shown if line.startswith("{")))}
    assert {row["pages"] for row in rows.values()} == {PAGES} and rows.keys() == WEB.keys()
    assert {site for site, row in rows.items() if row["operator"] == "one.test"} == (OPERATOR if is_on else set())
    assert rows["two.test"]["operator_ids"] == ([OWNER, ACCOUNT] if is_on else [])
    said = [line.strip() for line in shown if line.strip().startswith("operator:")]
    assert said == ([f"operator: one.test, 3 sites, by {ACCOUNT}"] if is_on else [])
    assert (report.ok, report.broken) == (True, [])
