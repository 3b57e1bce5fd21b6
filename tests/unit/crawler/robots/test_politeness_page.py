"""The code keeps the promises of docs/explanation/politeness.md."""

from __future__ import annotations

import re

import msgspec
import pytest

from crawler.robots.lines import ROBOTS_CAP_BYTES
from crawler.robots.opt_outs import forbids_mining, opt_outs
from crawler.robots.preferences import prefers_no
from crawler.robots.rules import ROBOTS_REDIRECTS, RobotsRules
from crawler.settings import CrawlSettings
from crawler.signing.request_signer import EARLIER_S, VALID_S
from crawler.web.sitemaps import URLS_CAP
from tests.support.paths import ROOT

PAGE = (ROOT / "docs" / "explanation" / "politeness.md").read_text(encoding="utf-8")


def test_every_setting_that_is_named_exists() -> None:
    """Each `crawl.…` on the page is a setting."""
    named = set(re.findall(r"(?<!/)crawl\.([a-z_]+)", PAGE))
    known = {field.name for field in msgspec.structs.fields(CrawlSettings)}
    assert len(named) >= 10 and named <= known


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("delay_s", "| 5 s | `crawl.delay_s`"),
        ("domain_delay_s", "| 2 s | `crawl.domain_delay_s`"),
        ("address_delay_s", "| 1 s | `crawl.address_delay_s`"),
        ("delay_slow_cap_s", "2 ×, up to 60 s"),
        ("crawl_delay_cap_s", "up to 86,400 s, else the site is left"),
        ("page_budget", "| 40, and 3 a page"),
        ("requests_per_page", "40, and 3 a page"),
        ("url_cap", "500 URLs a site"),
        ("retry_s", "`crawl.retry_s` (30 s)"),
        ("sitemap_files", "At most 10 files"),
    ],
)
def test_the_defaults_are_those_of_the_code(name: str, words: str) -> None:
    """Each default on the page is the default in the code."""
    assert words in PAGE
    assert f"{getattr(CrawlSettings(), name):,g}" in words
    assert CrawlSettings().park_cap_s == 3600 and "capped at 1 h" in PAGE
    assert CrawlSettings().obey_opt_out is False and "`crawl.obey_opt_out` is **off** by default" in PAGE


def test_the_caps_are_those_of_the_code() -> None:
    """Each size limit on the page is the limit in the code."""
    assert ROBOTS_CAP_BYTES == 500 * 1024 and "500 KiB" in PAGE
    assert ROBOTS_REDIRECTS == 5 and "up to five redirects" in PAGE
    assert f"{URLS_CAP:,} entries" in PAGE
    assert CrawlSettings().body_bytes == 2 * 1024 * 1024 and "cut off at 2 MiB" in PAGE
    assert EARLIER_S + VALID_S == 6 * 60 and "valid for six minutes" in PAGE
    assert CrawlSettings().refetch_fetched_s == 30 * 86_400 and "after 30 days" in PAGE


def test_the_example_of_a_group_is_right() -> None:
    """The page's example robots.txt has the stated effect on the crawler, including its exception."""
    text = re.search(r"```\n  (User-agent: \*.*?)\n  ```", PAGE, re.DOTALL)
    assert text is not None
    lines = "\n".join(line.strip() for line in text[1].split("\n"))
    rules = RobotsRules(lines.encode(), "farmwatch")
    assert not rules.allows("https://a.example/") and rules.crawl_delay_s == 10
    mended = lines.replace("Crawl-delay: 10\n", "Crawl-delay: 10\nDisallow:\n")
    assert RobotsRules(mended.encode(), "farmwatch").allows("https://a.example/")


def test_the_signals_are_those_of_the_code() -> None:
    """Each signal in the page's table is recorded from its place, and the ones to obey are obeyed."""
    for word in re.findall(r"`(\w+)`", PAGE.split("| signal | where | obeyed |")[1].split("\n")[2].split("|")[1]):
        signals = opt_outs({"x-robots-tag": word}, f"<meta name=robots content={word}>".encode(), "farmwatch")
        assert signals == [f"header:{word}", f"meta:{word}"] and forbids_mining(signals)


@pytest.mark.parametrize("name", ["Content-Usage", "Content-Signal"])
def test_the_preferences_are_those_of_the_code(name: str) -> None:
    """Each no in the page's table is one in a header and in robots.txt, and the page's own line states one."""
    (row,) = re.findall(rf"\| \[`{name}`\].*", PAGE)
    _, said, where, *_ = row.split("|")
    for word in re.findall(r"`(\S+=\S+)`", said):
        assert prefers_no(opt_outs({name.lower(): word}, b"", "farmwatch"))
        rules = RobotsRules(f"User-agent: *\n{name}: {word}\n".encode(), "farmwatch")
        assert prefers_no(rules.preferences("https://a.example/"))
    (line,) = re.findall(r"`([^`]+: [^`]+)`", where)
    assert prefers_no(RobotsRules(f"User-agent: *\n{line}\n".encode(), "farmwatch").preferences("https://a.example/x"))
