"""`farmwatch crawl robots`: the decision, its line and source, and no control characters."""

from __future__ import annotations

import time
from contextlib import closing
from pathlib import Path

import pytest

from crawler.frontier.rows import SiteRow, pack, robots_key, site_key, tdm_key
from stream.log.contract import Commit, StateChange, partition_of
from stream.opening import open_log
from stream.schema.forgotten import Forgotten, ForgottenHost
from stream.schema.topics import FRONTIER_STORE, HITS, all_topics
from stream.text.user_errors import Exit
from tests.support.front_door import PARTITIONS, Ran, Runner
from tests.support.web.robots_texts import COSTLY_TARGET, costly_robots

_TEXT = """# ours
User-agent: *
Disallow: /x
Allow: /x/free
Crawl-delay: 10
Sitemap: https://a.example/s.xml
"""


def _file(farmwatch: Runner, folder: Path, text: str | bytes, url: str, *more: str) -> Ran:
    (folder / "robots.txt").write_bytes(text if isinstance(text, bytes) else text.encode())
    return farmwatch("crawl", "robots", url, "--file", "robots.txt", *more)


def test_the_line_that_decides_is_told(farmwatch: Runner, tmp_path: Path) -> None:
    """The output has decision, line, group and delay, each with its line number; exit 1 if forbidden."""
    ran = _file(farmwatch, tmp_path, _TEXT, "https://a.example/x/y")
    assert ran.code == Exit.PROBLEM
    assert ran.out.splitlines() == [
        "may not be fetched: https://a.example/x/y",
        "  robots.txt   from the file robots.txt, 98 bytes",
        "  decision     disallowed, line 3: Disallow: /x",
        "  group        line 2: User-agent: * (for everyone, as none names farmwatch; 2 rules)",
        "  delay        10 s between starts (line 5: Crawl-delay: 10)",
        "  preferences  none on the use by AI",
        "  tdmrep.json  not asked",
    ]
    ran = _file(farmwatch, tmp_path, _TEXT, "a.example/x/free/1")
    assert ran.code == Exit.OK
    assert "decision     allowed, line 4: Allow: /x/free" in ran.out


@pytest.mark.parametrize(
    ("text", "path", "why", "code"),
    [
        ("", "/", "no_group", Exit.OK),
        ("User-agent: other\nDisallow: /", "/", "no_group", Exit.OK),
        ("User-agent: *\nDisallow: /x", "/", "no_rule", Exit.OK),
        ("User-agent: *\nDisallow: /", "/robots.txt", "robots_txt", Exit.OK),
        ("User-agent: *\nDisallow: /", "/", "rule", Exit.PROBLEM),
        ("User-agent: *\nCrawl-delay: 86401", "/", "no_rule", Exit.PROBLEM),
        (costly_robots().decode(), COSTLY_TARGET, "too_costly", Exit.PROBLEM),
    ],
)
def test_each_reason_has_its_words(
    farmwatch: Runner, tmp_path: Path, text: str, path: str, why: str, code: Exit
) -> None:
    """JSON has the reason, the text has it in words, and both have the same exit code."""
    url = f"https://a.example{path}"
    ran = _file(farmwatch, tmp_path, text, url, "--json")
    found = ran.json
    assert (ran.code, found["why"], found["may_be_fetched"]) == (code, why, code == Exit.OK)
    assert _file(farmwatch, tmp_path, text, url).code == code


def test_preferences_are_shown_and_obeyed_on_request(farmwatch: Runner, tmp_path: Path) -> None:
    """The line names what robots.txt prefers, and a no forbids the URL only where crawl.obey_preferences is on."""
    text, url = "User-agent: *\nContent-Usage: /x train-ai=n, search=y\n", "https://a.example/x"
    said = "preferences  content-usage:train-ai=n, content-usage:search=y; crawl.obey_preferences is"
    ran = _file(farmwatch, tmp_path, text, url)
    assert ran.code == Exit.OK and said in " ".join(ran.out.split("\n")).replace("               ", "")
    obeying = ("--set", "crawl.obey_preferences=true")
    assert _file(farmwatch, tmp_path, text, url, *obeying).code == Exit.PROBLEM
    assert _file(farmwatch, tmp_path, text, "https://a.example/y", *obeying).code == Exit.OK


def test_a_crawl_delay_is_quoted_and_judged_as_by_the_crawl(farmwatch: Runner, tmp_path: Path) -> None:
    """The line is quoted as written; a delay of our own that is longer than the cap allows theirs, as in the crawl."""
    text = "User-agent: *\nDisallow: /x\nCrawl-delay: 2 min # slow\nContent-Signal: ai-train=no\n"
    ran = _file(farmwatch, tmp_path, text, "https://a.example/x/y")
    assert "120 s between starts (line 3: Crawl-delay: 2 min)" in ran.out
    assert "content-signal:ai-train=no" in ran.out and "recorded" not in ran.out
    cap = ("--set", "crawl.crawl_delay_cap_s=10")
    assert _file(farmwatch, tmp_path, text, "https://a.example/", *cap).code == Exit.PROBLEM
    assert _file(farmwatch, tmp_path, text, "https://a.example/", *cap, "--set", "crawl.delay_s=120").code == Exit.OK


def test_before_any_crawl_a_file_is_asked_for(farmwatch: Runner, tmp_path: Path) -> None:
    """Without a log no robots.txt is kept: exit code 3, as where the crawl keeps none, and a way out is named."""
    ran = farmwatch("crawl", "robots", "https://a.example/", "--log", f"sqlite:{tmp_path / 'none'}")
    assert ran.code == Exit.UNAVAILABLE and "--file" in ran.err


def test_hostile_text_does_not_steer_the_terminal(farmwatch: Runner, tmp_path: Path) -> None:
    """Escapes, bells, bidirectional marks and invalid UTF-8 are printed as harmless characters, shortened."""
    hostile = (
        b"User-agent: farmwatch\x1b]0;x\x07\nDisallow: /a*\x1b[2J\xe2\x80\xae\xff"
        + b"z" * 9000
        + b"$\nAllow: /\x9b1m*\n"
    )
    hostile += b"Disallow: *\x1b[31m*\xff*\nDisallow: /a\nSitemap: \x1b]52;c;x\x07\xff\xfe" + b"s" * 9000
    for more in ((), ("--json",)):
        ran = _file(farmwatch, tmp_path, hostile, "https://a.example/a", *more)
        assert ran.code == Exit.PROBLEM
        assert all(line.isprintable() and len(line) < 2000 for line in ran.out.splitlines())


@pytest.mark.parametrize(
    "name", ["www.a.example", "a.example", "*.a.example", "www.*"], ids=["host", "domain", "below", "pattern"]
)
def test_an_excluded_host_may_not_be_fetched(farmwatch: Runner, tmp_path: Path, name: str) -> None:
    """The covering exclusion is named with its reason, unless it has ended or covers others."""
    log = ("--log", f"sqlite:{tmp_path / 'log'}")
    farmwatch("crawl", "exclude", name, "--why", "owner asked", "--yes", *log)
    url = "http://www.a.example/x"
    for ran in (farmwatch("crawl", "robots", url, *log), _file(farmwatch, tmp_path, "", url, *log)):
        assert ran.code == Exit.PROBLEM and ran.out.startswith(f"may not be fetched: {url}")
        assert f"excluded as {name} by " in ran.out and "owner asked" in ran.out
    found = farmwatch("crawl", "robots", url, "--json", *log).json
    assert (found["may_be_fetched"], found["why"]) == (False, "excluded") and name in found["decision"][0]
    other = _file(farmwatch, tmp_path, "", "http://b.example/x", "--json", *log).json
    assert other["may_be_fetched"]
    farmwatch("crawl", "exclude", name, "--remove", *log)
    assert _file(farmwatch, tmp_path, "", url, *log).code == Exit.OK


def test_a_forgotten_host_may_not_be_fetched(farmwatch: Runner, finished: str) -> None:
    """A host in the ledger of forgotten hosts is never visited again, and `robots` says so."""
    with closing(open_log(finished)) as log:
        log.append(Forgotten(log).outputs("a.example", ForgottenHost(at=1, by="me")))
    ran = farmwatch("crawl", "robots", "http://a.example/x", "--log", finished)
    assert ran.code == Exit.PROBLEM and "forgotten" in ran.out
    found = farmwatch("crawl", "robots", "http://a.example/x", "--json", "--log", finished).json
    assert (found["may_be_fetched"], found["why"]) == (False, "forgotten")


def _frontier(url: str, site: str, robots: bytes | None, tdm: bytes | None, row: SiteRow) -> None:
    log = open_log(url)
    log.create(all_topics(PARTITIONS, "epoch"))
    member = log.join("crawl", [HITS], member="0", store=FRONTIER_STORE)
    partition = partition_of(site, PARTITIONS)
    while partition not in member.assignment():
        member.poll(0.05, 1, 1)
    puts = {site_key(site): pack(row), robots_key(site): robots, tdm_key(site): tdm}
    changes = [StateChange(key, value) for key, value in puts.items() if value is not None]
    member.commit(Commit(state={partition: changes}))
    member.close()
    log.close()


def test_what_the_frontier_keeps_is_shown(farmwatch: Runner, tmp_path: Path) -> None:
    """The decision is by the texts in the site's rows, with their expiry."""
    url = f"sqlite:{tmp_path / 'log'}"
    until = int(time.time() * 1000) + 3_600_000
    tdm = b'[{"location": "/", "tdm-reservation": 1}]'
    _frontier(url, "a.example", _TEXT.encode(), tdm, SiteRow(site="a.example", robots_until=until, tdm_until=until))
    ran = farmwatch("crawl", "robots", "https://a.example/x", "--log", url)
    assert ran.code == Exit.PROBLEM
    assert "kept by the frontier, 98 bytes" in ran.out and "asked again after 20" in ran.out
    assert "line 3: Disallow: /x" in ran.out
    ran = farmwatch("crawl", "robots", "https://a.example/y", "--log", url)
    assert ran.code == Exit.OK and "data mining is reserved; crawl.obey_opt_out is off" in ran.out
    ran = farmwatch("crawl", "robots", "https://a.example/y", "--log", url, "--set", "crawl.obey_opt_out=true")
    assert ran.code == Exit.PROBLEM and "the page is left alone" in ran.out
    ran = farmwatch("crawl", "robots", "https://b.example/", "--log", url)
    assert ran.code == Exit.UNAVAILABLE and "b.example is not in the frontier" in ran.err


def test_wrong_arguments_are_told(farmwatch: Runner, tmp_path: Path) -> None:
    """A non-URL or a missing file is refused."""
    assert farmwatch("crawl", "robots", "mailto://a@b.example", "--file", "x").code == Exit.USAGE
    assert farmwatch("crawl", "robots", "https://a.example/", "--file", "nowhere").code == Exit.UNAVAILABLE
