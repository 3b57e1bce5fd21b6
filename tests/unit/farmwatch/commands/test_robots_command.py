"""`farmwatch crawl robots`: the decision, its line and source, and no control characters."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
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
from tests.support.web.loopback import Reply, Web, redirect

_TEXT = """# ours
User-agent: *
Disallow: /x
Allow: /x/free
Crawl-delay: 10
Sitemap: https://a.example/s.xml
"""


@pytest.fixture
def web() -> Iterator[Web]:
    """A web on loopback."""
    with Web() as found:
        yield found


def _asked(farmwatch: Runner, web: Web, url: str, *more: str) -> Ran:
    settings = {
        "contact": "owner@a.example", "allow_private": "true", "resolve_to": json.dumps({"*": web.target}),
        "delay_s": "0.01", "domain_delay_s": "0", "address_delay_s": "0",
    }  # fmt: skip
    flags = [part for name, value in settings.items() for part in ("--set", f"crawl.{name}={value}")]
    return farmwatch("crawl", "robots", url, *flags, *more)


def _file(farmwatch: Runner, folder: Path, text: str | bytes, url: str, *more: str) -> Ran:
    (folder / "robots.txt").write_bytes(text if isinstance(text, bytes) else text.encode())
    return farmwatch("crawl", "robots", url, "--file", "robots.txt", *more)


def test_the_line_that_decides_is_told(farmwatch: Runner, tmp_path: Path) -> None:
    """The output has decision, line, group, delay and sitemaps, each with its line number; exit 1 if forbidden."""
    ran = _file(farmwatch, tmp_path, _TEXT, "https://a.example/x/y")
    assert ran.code == Exit.PROBLEM
    assert ran.out.splitlines() == [
        "may not be fetched: https://a.example/x/y",
        "  robots.txt   from the file robots.txt, 98 bytes",
        "  decision     disallowed, line 3: Disallow: /x",
        "  group        line 2: User-agent: * (for everyone, as none names farmwatch; 2 rules)",
        "  delay        10 s between starts (line 5: Crawl-delay: 10)",
        "  sitemaps     1 named",
        "               line 6: https://a.example/s.xml",
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
        ("User-agent: *\nCrawl-delay: 600", "/", "no_rule", Exit.PROBLEM),
        ("User-agent: *\n" + "".join(f"Disallow: /*{n}*\n" for n in range(20_000)), "/", "too_costly", Exit.PROBLEM),
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


def test_a_site_is_asked_as_the_crawl_asks_it(farmwatch: Runner, web: Web) -> None:
    """robots.txt is fetched with our User-Agent, through redirects, and the answer's meaning is printed."""
    web.routes["a.test/robots.txt"] = redirect("http://b.test/r")
    web.routes["b.test/r"] = Reply(_TEXT.encode())
    ran = _asked(farmwatch, web, "http://a.test/x", "--set", "crawl.ask_tdmrep=false")
    assert ran.code == Exit.PROBLEM
    assert "HTTP 200 after 1 redirect, at http://b.test/r: its rules are obeyed" in ran.out
    assert "line 3: Disallow: /x" in ran.out
    assert [seen.path for seen in web.seen] == ["/robots.txt", "/r"]
    assert web.seen[0].headers["User-Agent"].startswith("farmwatch/")


def test_the_reservation_of_a_site_is_asked_for(farmwatch: Runner, web: Web) -> None:
    """tdmrep.json is fetched after robots.txt, unless forbidden there, and printed with its effect under the policy."""
    web.routes["a.test/robots.txt"] = Reply(b"")
    tdm = b'[{"location": "/x", "tdm-reservation": 1, "tdm-policy": "https://a.example/\\u001b[2Jp"}]'
    web.routes["a.test/.well-known/tdmrep.json"] = Reply(tdm)
    ran = _asked(farmwatch, web, "http://a.test/x")
    assert ran.code == Exit.OK
    assert (
        "location /x: data mining is reserved, conditions at https://a.example/ [2Jp; crawl.obey_opt_out is off"
        in ran.out
    )
    assert _asked(farmwatch, web, "http://a.test/x", "--set", "crawl.obey_opt_out=true").code == Exit.PROBLEM
    assert "reserves nothing here" in _asked(farmwatch, web, "http://a.test/y").out
    web.routes["a.test/robots.txt"] = Reply(b"User-agent: *\nDisallow: /.well-known/")
    web.seen.clear()
    assert "tdmrep.json  not asked" in _asked(farmwatch, web, "http://a.test/x").out
    assert [seen.path for seen in web.seen] == ["/robots.txt"]


@pytest.mark.parametrize(
    ("status", "words", "code"),
    [
        (404, "so everything is allowed", Exit.OK),
        (503, "nothing is allowed", Exit.PROBLEM),
        (429, "nothing is allowed", Exit.PROBLEM),
    ],
)
def test_what_no_robots_txt_means(farmwatch: Runner, web: Web, status: int, words: str, code: Exit) -> None:
    """A site without robots.txt allows everything; one whose robots.txt fails allows nothing, and no line is shown."""
    web.routes["a.test/robots.txt"] = Reply(status=status)
    ran = _asked(farmwatch, web, "http://a.test/x", "--set", "crawl.ask_tdmrep=false")
    assert ran.code == code
    assert f"HTTP {status}" in ran.out and words in ran.out and "line " not in ran.out


def test_nobody_is_asked_without_a_contact(farmwatch: Runner) -> None:
    """Without a contact the command refuses, as the crawler does; private addresses are not reached."""
    ran = farmwatch("crawl", "robots", "https://a.example/")
    assert ran.code == Exit.USAGE and "crawl.contact" in ran.err
    flags = (
        "--set",
        "crawl.contact=a@b.example",
        "--set",
        "crawl.domain_delay_s=0",
        "--set",
        "crawl.address_delay_s=0",
    )
    ran = farmwatch("crawl", "robots", "http://127.0.0.1:8080/", *flags)
    assert ran.code == Exit.PROBLEM and "private_address" in ran.out


@pytest.mark.parametrize(
    "name", ["www.a.example", "a.example", "*.a.example", "www.*"], ids=["host", "domain", "below", "pattern"]
)
def test_an_excluded_host_is_not_asked(farmwatch: Runner, web: Web, tmp_path: Path, name: str) -> None:
    """The covering exclusion is named with its reason, and nobody is asked, unless it has ended or covers others."""
    log = ("--log", f"sqlite:{tmp_path / 'log'}")
    farmwatch("crawl", "exclude", name, "--why", "owner asked", "--yes", *log)
    url = "http://www.a.example/x"
    for more in ((), ("--stored",)):
        ran = _asked(farmwatch, web, url, *log, *more)
        assert ran.code == Exit.PROBLEM and ran.out.startswith(f"may not be fetched: {url}")
        assert f"excluded as {name} by " in ran.out and "owner asked" in ran.out
    assert _file(farmwatch, tmp_path, "", url, *log).code == Exit.PROBLEM
    found = _asked(farmwatch, web, url, "--json", *log).json
    assert (found["may_be_fetched"], found["why"]) == (False, "excluded") and name in found["decision"][0]
    assert web.seen == []
    assert _asked(farmwatch, web, "http://b.example/x", *log).code == Exit.OK
    web.seen.clear()
    farmwatch("crawl", "exclude", name, "--remove", *log)
    assert _asked(farmwatch, web, url, *log).code == Exit.OK and web.seen


def test_a_forgotten_host_is_not_asked(farmwatch: Runner, web: Web, finished: str) -> None:
    """A host in the ledger of forgotten hosts is never visited again, and `robots` says so."""
    with closing(open_log(finished)) as log:
        log.append(Forgotten(log).outputs("a.example", ForgottenHost(at=1, by="me")))
    ran = _asked(farmwatch, web, "http://a.example/x", "--log", finished)
    assert ran.code == Exit.PROBLEM and "forgotten" in ran.out
    found = _asked(farmwatch, web, "http://a.example/x", "--json", "--log", finished).json
    assert (found["may_be_fetched"], found["why"]) == (False, "forgotten")
    assert web.seen == []


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
    """--stored shows the texts in the site's rows and their expiry, without a request."""
    url = f"sqlite:{tmp_path / 'log'}"
    until = int(time.time() * 1000) + 3_600_000
    tdm = b'[{"location": "/", "tdm-reservation": 1}]'
    _frontier(url, "a.example", _TEXT.encode(), tdm, SiteRow(site="a.example", robots_until=until, tdm_until=until))
    ran = farmwatch("crawl", "robots", "https://a.example/x", "--stored", "--log", url)
    assert ran.code == Exit.PROBLEM
    assert "kept by the frontier, 98 bytes" in ran.out and "asked again after 20" in ran.out
    assert "line 3: Disallow: /x" in ran.out
    ran = farmwatch("crawl", "robots", "https://a.example/y", "--stored", "--log", url)
    assert ran.code == Exit.OK and "data mining is reserved; crawl.obey_opt_out is off" in ran.out
    ran = farmwatch(
        "crawl", "robots", "https://a.example/y", "--stored", "--log", url, "--set", "crawl.obey_opt_out=true"
    )
    assert ran.code == Exit.PROBLEM and "the page is left alone" in ran.out
    ran = farmwatch("crawl", "robots", "https://b.example/", "--stored", "--log", url)
    assert ran.code == Exit.UNAVAILABLE and "b.example is not in the frontier" in ran.err


def test_wrong_arguments_are_told(farmwatch: Runner, tmp_path: Path) -> None:
    """A non-URL, a missing file, or two sources at once is refused."""
    assert farmwatch("crawl", "robots", "mailto://a@b.example", "--file", "x").code == Exit.USAGE
    assert farmwatch("crawl", "robots", "https://a.example/", "--file", "nowhere").code == Exit.UNAVAILABLE
    assert farmwatch("crawl", "robots", "https://a.example/", "--file", "x", "--stored").code == Exit.USAGE
