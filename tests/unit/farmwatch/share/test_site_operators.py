"""The operators of sites, by the rows of all sites, in lists, in `site`, and in the console."""

from __future__ import annotations

import json
from contextlib import closing
from pathlib import Path

import pytest

from farmwatch.share.site_operators import SiteOperator, find_site_operators, operator_groups
from farmwatch.share.topic_records import topic_records
from scoring.rates.canary import CanaryName
from stream.log.contract import Output, partition_of
from stream.opening import open_log
from stream.schema.records import AdsTxt, SiteState, encode
from stream.schema.topics import ADS_TXT
from stream.text.user_errors import Exit
from tests.support.front_door import Runner
from tests.support.logs.shared_accounts import ADSENSE, GTM, PARTITIONS, ROWS, UA, fill
from tests.support.web.console_browser import Answer, Browser, browse

STATES = [
    SiteState(id=site, site=site, verdict=verdict, signals=dict.fromkeys(signals, 4))
    for site, (verdict, signals) in ROWS.items()
]


@pytest.fixture
def url(tmp_path: Path) -> str:
    """A log with the rows of `fill`."""
    url = f"sqlite:{tmp_path / 'log'}"
    with closing(open_log(url)) as log:
        fill(log)
    return url


def test_an_operator_is_named_by_its_lowest_registrable_domain() -> None:
    """Its sites are those of all its domains; the ids of a site are those that link its domain to others."""
    found = find_site_operators(STATES)
    assert found["a.net"] == SiteOperator("a.net", 4, (ADSENSE,))
    assert found["shop.b.com"] == found["b.com"] == SiteOperator("a.net", 4, (ADSENSE, UA))
    assert found["www.c.co.uk"] == SiteOperator("a.net", 4, (UA,))
    assert found["one.d.org"] == SiteOperator("d.org", 2)
    assert "alone.org" not in found


def test_a_container_alone_is_a_possible_operator() -> None:
    """It links nothing, and each site names the domain of the other."""
    found = find_site_operators(STATES)
    assert found["x.org"] == SiteOperator(possible={GTM: ["y.co.uk"]})
    assert found["www.y.co.uk"] == SiteOperator(possible={GTM: ["x.org"]})
    both = [SiteState(id=site, site=site, signals={GTM: 1, UA: 1}) for site in ("x.org", "y.org")]
    assert find_site_operators(both)["x.org"] == SiteOperator("x.org", 2, (UA, GTM))


def test_canaries_have_no_operator() -> None:
    """Although the names of all of them share a domain."""
    names = [CanaryName("a", "0" * 16, 5, number, "human").site for number in range(3)]
    assert find_site_operators(SiteState(id=name, site=name) for name in names) == {}


def test_operators_are_counted_by_the_verdicts_of_their_sites() -> None:
    """The largest first; single sites are none."""
    groups = operator_groups({row.site: row.verdict for row in STATES}, find_site_operators(STATES))
    assert [(of.operator, of.sites, of.domains, of.ids) for of in groups] == [
        ("a.net", 4, 3, [ADSENSE, UA]),
        ("d.org", 2, 1, []),
    ]
    assert groups[0].verdicts == {"llm": 2, "human": 1, "undecided": 1}
    assert groups[0].names == ["a.net", "b.com", "shop.b.com", "www.c.co.uk"]


def test_the_commands_show_them(farmwatch: Runner, url: str) -> None:
    """`sites --by operator`, the columns of `sites --json`, and `site` in words and as JSON."""
    shown = farmwatch("sites", "--by", "operator", "--log", url)
    assert shown.code == Exit.OK, shown.err
    assert shown.out.splitlines()[1].split("\t")[:7] == ["a.net", "4", "3", "2", "1", "1", "0"]
    assert "3 sites of no operator" in shown.err
    lines = farmwatch("sites", "--by", "operator", "--json", "--log", url).lines
    assert lines[0]["ids"] == [ADSENSE, UA] and lines[1]["names"] == ["one.d.org", "two.d.org"]
    rows = {line["site"]: line for line in farmwatch("sites", "--json", "--log", url).lines}
    row = rows["www.c.co.uk"]
    assert (row["operator"], row["operator_sites"], row["operator_ids"]) == ("a.net", 4, [UA])
    assert rows["x.org"]["possible_operators"] == {GTM: ["y.co.uk"]}
    assert (rows["alone.org"]["operator"], rows["alone.org"]["operator_sites"]) == ("", 1)
    said = farmwatch("site", "b.com", "--log", url).out
    assert f"operator: a.net, 4 sites, by {ADSENSE}, {UA}" in " ".join(said.split())
    assert json.loads(farmwatch("site", "x.org", "--json", "--log", url).out)["possible_operators"] == {
        GTM: ["y.co.uk"]
    }
    assert farmwatch("sites", "--by", "operator", "--llm", "--log", url).code == Exit.USAGE


def test_the_console_shows_them(farmwatch: Runner, url: str, tmp_path: Path) -> None:
    """/networks.json has the rows of the command; a site leads to its operator, and that to its sites."""

    async def visit(browser: Browser) -> list[Answer]:
        asked = (
            "/networks.json",
            "/networks",
            "/networks?operator=a.net",
            "/networks?operator=%3Cb%3E",
            "/site?site=b.com",
        )
        return [await browser.get(path) for path in (*asked, "/site?site=x.org", "/sites.json")]

    twin, page, of_one, unknown, site, possible, sites = browse(url, tmp_path, visit)
    rows = farmwatch("sites", "--by", "operator", "--json", "--log", url).lines
    assert twin.json["operators"] == [{key: value for key, value in row.items() if key != "names"} for row in rows]
    assert '<a href="/networks?operator=a.net">' in page.text and "d.org" in page.text
    assert '<a href="/site?site=shop.b.com">' in of_one.text and "d.org" not in of_one.text
    assert unknown.status == 404 and "no operator of several sites" in unknown.text and "<b>" not in unknown.text
    assert '<a href="/networks?operator=a.net">a.net, 4 sites' in site.text
    assert "possibly also y.co.uk" in possible.text
    assert {row["site"]: row["operator"] for row in sites.json["sites"]}["shop.b.com"] == "a.net"


def test_what_ads_txt_states_is_evidence_everywhere(farmwatch: Runner, url: str, tmp_path: Path) -> None:
    """The owner's own site is of the operator too; lists, `site` and the console name the ids until it is forgotten."""
    owner = "ads-txt:owner:x.org"
    with closing(open_log(url)) as log:
        for site in ("one.d.org", "alone.org"):
            stated = AdsTxt(id=site, site=site, owner_domain="x.org")
            log.append([Output(ADS_TXT, partition_of(site, PARTITIONS), site.encode(), encode(stated))])
    rows = {line["site"]: line for line in farmwatch("sites", "--json", "--log", url).lines}
    operator = {site for site, row in rows.items() if row["operator"] == "alone.org"}
    assert operator == {"alone.org", "one.d.org", "two.d.org", "x.org"}
    assert rows["x.org"]["operator_ids"] == [owner] and rows["alone.org"]["signals"][owner] == 0

    async def visit(browser: Browser) -> list[Answer]:
        return [await browser.get(path) for path in ("/sites.json", "/site?site=alone.org")]

    sites, page = browse(url, tmp_path, visit)
    assert {row["site"]: row["signals"] for row in sites.json["sites"]} == {
        site: row["signals"] for site, row in rows.items()
    }
    said = " ".join(farmwatch("site", "alone.org", "--log", url).out.split())
    for text in ("analytics google (99999); ads-txt owner (x.org)", f"alone.org, 4 sites, by {owner}"):
        assert text in said and text in page.text.replace("</a>", "")
    assert farmwatch("crawl", "forget", "alone.org", "--yes", "--log", url).code == Exit.OK
    rows = {line["site"]: line for line in farmwatch("sites", "--json", "--log", url).lines}
    assert rows["x.org"]["operator_sites"] == 3 and "alone.org" not in rows
    with closing(open_log(url)) as log:
        assert [row.site for row in topic_records(log, AdsTxt, ADS_TXT)] == ["one.d.org"]
