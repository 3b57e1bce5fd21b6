"""`farmwatch hits search --source`: results of engines become hits, once or on a schedule; no secret is printed."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import threading
import urllib.request
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from crawler.sources.ledger import Ledger
from stream.opening import open_log
from stream.schema.records import Hit, decode
from stream.schema.topics import HITS
from stream.text.user_errors import Exit
from tests.support.front_door import PARTITIONS, Runner
from tests.support.waiting import wait_until
from tests.support.web.search_engines import BRAVE, BRAVE_LIMITS, MOJEEK, SEARXNG, Answering, Asked, Engine, Reply, says

pytestmark = pytest.mark.slow

KEY = "s3cr3t-0f-the-test"
SOON_S = 20.0
CONFIG = """
[crawl]
contact = "https://contact.example/"
[search.searxng]
url = "{url}"
rate = 100
[search.brave]
url = "{url}/brave"
quota_month = 5
rate = 100
[search.json_http.mojeek]
url = "{url}/mojeek?q={{query}}"
items = "response.results"
snippet = "desc"
key_file = "mojeek.key"
key_param = "api_key"
rate = 100
[search.json_http.mine]
url = "{url}/mine?q={{query}}"
key_env = "BRAVE_API_KEY"
key_header = "X-Key"
rate = 100
"""
SAYS = {"/search": SEARXNG, "/mojeek": MOJEEK, "/mine": SEARXNG}


def _engine(asked: Asked) -> Reply:
    return says(BRAVE, **BRAVE_LIMITS) if asked.path == "/brave" else says(SAYS[asked.path])  # type: ignore[arg-type]


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[Engine], str]:
    """Writes configuration, keys and queries for a source; returns the log's URL."""

    def write(engine: Engine) -> str:
        (tmp_path / "farmwatch.toml").write_text(CONFIG.format(url=engine.url))
        (tmp_path / "mojeek.key").write_text(KEY + "\n")
        (tmp_path / "queries").write_text("garden\nwall\n")
        monkeypatch.setenv("BRAVE_API_KEY", KEY)
        return f"sqlite:{tmp_path / 'log'}"

    return write


@pytest.fixture(name="engine")
def _running_engine() -> Iterator[Engine]:
    with Engine(_engine) as running:
        yield running


@pytest.fixture
def url(engine: Engine, place: Callable[[Engine], str]) -> str:
    """The log of a folder that is configured for the source."""
    return place(engine)


def _hits(url: str) -> list[Hit]:
    log = open_log(url)
    found = [decode(Hit, m.value or b"") for p in range(PARTITIONS) for m in log.read(HITS, p)]
    log.close()
    return found


def test_several_sources_are_asked_in_one_search(farmwatch: Runner, engine: Engine, url: str) -> None:
    """Two queries to four sources: each hit has source, query and rank, and each source has a line with its outcome."""
    names = ["searxng", "brave", "mojeek", "mine"]
    flags = [flag for name in names for flag in ("--source", name)]
    ran = farmwatch("hits", "search", *flags, "--queries", "queries", "--log", url)
    assert ran.code == Exit.OK, ran.err
    assert ran.out.splitlines()[1] == "brave: 2 queries asked, 4 hits appended, 3 requests left"
    assert "did not answer: duckduckgo, qwant" in ran.out.splitlines()[0]
    hits = _hits(url)
    assert sorted({(hit.source, hit.query_id, hit.rank) for hit in hits}) == sorted(
        (name, query, rank) for name in names for query in ("garden", "wall") for rank in (1, 2)
    )
    assert {hit.engine for hit in hits if hit.source == "searxng"} == {"brave,mojeek", "brave"}
    assert all(asked.headers["User-Agent"].endswith("(+https://contact.example/)") for asked in engine.seen)


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--source", "bing", "--queries", "queries"], "no source is called 'bing'"),
        (["--source", "warc", "--queries", "queries"], "farmwatch log import"),
        (["--source", "brave"], "--queries"),
        (["--queries", "queries"], "--source"),
        (["--source", "file,brave", "--queries", "queries"], "farmwatch hits add"),
        (["--source", "brave", "--queries", "queries", "--every", "6"], "such as 90m, 6h, 1d"),
        (["--source", "brave", "--queries", "-", "--every", "6h"], "not standard input"),
        (["--source", "brave", "--queries", "queries", "--pages", "0"], "--pages"),
        (["--source", "commoncrawl", "--queries", "queries"], "search.commoncrawl.crawl"),
        (["--source", ",", "--queries", "queries"], "names no source"),
        (["--source", "brave", "--queries", "queries", "--pages", "50"], "brave gives 10 at most"),
    ],
)
def test_a_command_line_that_does_not_fit_is_usage(
    farmwatch: Runner, place: Callable[[Engine], str], arguments: list[str], said: str
) -> None:
    """Exit 2 before any request, with the allowed values."""
    with Engine(_engine) as engine:
        ran = farmwatch("hits", "search", *arguments, "--log", place(engine))
    assert (ran.code, engine.seen) == (Exit.USAGE, [])
    assert said in ran.err


def test_the_quota_holds_over_searches_and_is_told(farmwatch: Runner, engine: Engine, url: str, tmp_path: Path) -> None:
    """With five requests a month, the third search of two queries makes one and says so; the doctor counts them."""
    assert "brave: 0 of 5 requests of this month used, 5 left;" in farmwatch("doctor", "--log", url).out
    assert not (tmp_path / "log").exists()
    codes = []
    for _ in range(3):
        ran = farmwatch("hits", "search", "--source", "brave", "--queries", "queries", "--json", "--log", url)
        codes.append(ran.code)
    assert (codes, len(engine.seen)) == ([Exit.OK, Exit.OK, Exit.PROBLEM], 5)
    said = ran.json
    assert (said["source"], said["queries"], said["unasked"], said["left"]) == ("brave", 1, 1, 0)
    assert "no request left until" in said["ended"]
    used = "brave: 5 of 5 requests of this month used, 0 left; 100 a second at most"
    assert used in farmwatch("doctor", "--log", url).out
    (tmp_path / "log" / "log.sqlite").write_bytes(b"no database" * 1000)
    assert "brave: ? of 5 requests of this month used; 100 a" in farmwatch("doctor", "--log", url).out


def test_a_missing_key_is_told_before_anything_is_asked(
    farmwatch: Runner, engine: Engine, url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A missing key is reported before any request, and by the doctor in its own line."""
    monkeypatch.delenv("BRAVE_API_KEY")
    ran = farmwatch("hits", "search", "--source", "brave", "--queries", "queries", "--log", url)
    doctor = farmwatch("doctor", "--log", url)
    assert (ran.code, engine.seen) == (Exit.USAGE, [])
    assert "brave needs a key: set the environment variable BRAVE_API_KEY" in ran.err
    lines = [line for line in doctor.out.splitlines() if line.split()[1] == "search"]
    assert any("FAIL" in line and "BRAVE_API_KEY" in line for line in lines)
    said = "mojeek: no quota set, 0 requests this month; 100 a second at most"
    assert any("OK" in line and said in line for line in lines)


def test_a_secret_is_never_printed(farmwatch: Runner, place: Callable[[Engine], str], tmp_path: Path) -> None:
    """A secret is never printed by a search, failed or not, or by `doctor config`, and is not in the log."""
    statuses = [200]

    def echoing(asked: Asked) -> Reply:
        said = {"error": KEY, "response": {"status": f"ERROR: bad api_key {KEY}"}, "headers": dict(asked.headers)}
        return says(said, statuses[-1], Location=f"http://elsewhere.example/{KEY}", Retry_After=KEY)

    with Engine(echoing) as engine:
        url = place(engine)
        printed = ""
        for status in (200, 401, 403, 422, 302):
            statuses.append(status)
            before = len(engine.seen)
            for name in ("searxng", "brave", "mojeek", "mine"):
                ran = farmwatch("hits", "search", "--source", name, "--queries", "queries", "--log", url)
                printed += ran.out + ran.err
            sent = [json.dumps([asked.query, dict(asked.headers)]) for asked in engine.seen[before:]]
            assert KEY in "".join(sent), "the engine got the key, so there was something to leak"
        for command in (["config", "show"], ["config", "show", "--json"], ["doctor", "--log", url]):
            ran = farmwatch(*command)
            printed += ran.out + ran.err
    assert KEY not in printed
    written = b"".join(file.read_bytes() for file in (tmp_path / "log").rglob("*") if file.is_file())
    assert KEY.encode() not in written


@pytest.mark.parametrize(
    "line",
    [
        f'[search.brave]\nkey_env = "{KEY}"',
        f'[search.brave]\nkey_env = "{KEY.replace("-", "")}"',
        f'[search.brave]\nurl = "https://user:{KEY}@api.example/"',
        f'[search.json_http.mine]\nurl = "https://api.example/?q={{query}}&api_key={KEY}"',
        f'[search.json_http.mine]\nurl = "https://api.example/?q={{query}}"\nheaders = {{ Authorization = "{KEY}" }}',
        f'[search.brave]\nkey = "{KEY}"',
        f'[search.json_http.mine]\nkey = "{KEY}"',
    ],
)
def test_a_key_in_the_configuration_is_refused_without_repeating_it(
    farmwatch: Runner, tmp_path: Path, line: str
) -> None:
    """A key at any wrong place: exit 2, and a message with the right place but without the key."""
    (tmp_path / "farmwatch.toml").write_text(line + "\n")
    ran = farmwatch("doctor", "config")
    assert ran.code == Exit.USAGE
    assert "search" in ran.err
    assert not {KEY, KEY.replace("-", "")} & set(re.split(r"[^\w-]", ran.out + ran.err))


def _search(tmp_path: Path, url: str, *arguments: str) -> subprocess.Popen[str]:
    command = [sys.executable, "-m", "farmwatch", "hits", "search", "--queries", "queries", "--log", url, *arguments]
    environment = {**os.environ, "FARMWATCH_LOG_PARTITIONS": str(PARTITIONS), "HOME": str(tmp_path)}
    return subprocess.Popen(
        command, cwd=tmp_path, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )


def _daemon(tmp_path: Path, url: str, *more: str) -> subprocess.Popen[str]:
    every = ("--every", "6h", "--json", "--set", "metrics.port=0")
    return _search(tmp_path, url, "--source", "searxng", "--source", "brave", *every, *more)


def _logged(daemon: subprocess.Popen[str], event: str) -> str:
    assert daemon.stderr is not None
    return next(line for line in daemon.stderr if event in line)


def _rounds(daemon: subprocess.Popen[str]) -> dict[str, Any]:
    assert daemon.stdout is not None
    return {one["source"]: one for one in (json.loads(daemon.stdout.readline()) for _ in range(2))}


def _end(daemon: subprocess.Popen[str]) -> str:
    daemon.send_signal(signal.SIGTERM)
    return daemon.communicate(timeout=20)[1]


def test_the_daemon_keeps_its_schedule_over_a_restart(place: Callable[[Engine], str], tmp_path: Path) -> None:
    """A round a source, metrics, a clean SIGTERM, the same schedule afterwards; a second daemon exits with 3."""
    held: list[Answering] = [_engine]
    with Engine(lambda asked: held[0](asked)) as engine:
        url = place(engine)
        first = _daemon(tmp_path, url)
        served = _logged(first, "endpoints_served")
        (metrics,) = re.findall(r"http://\S+/metrics", served)
        sources = set(_rounds(first))
        page = urllib.request.urlopen(metrics, timeout=5).read().decode()
        health = urllib.request.urlopen(metrics.replace("/metrics", "/healthz"), timeout=5).read().decode()
        beside = _daemon(tmp_path, url)
        _, refused = beside.communicate(timeout=60)
        assert (beside.returncode, len(engine.seen), first.poll()) == (Exit.UNAVAILABLE, 4, None)
        assert "another process searches searxng" in refused
        err = _end(first)
        assert (first.returncode, sources) == (Exit.OK, {"brave", "searxng"})
        assert 'farmwatch_search_queries_total{outcome="found",role="search",source="brave"} 2.0' in page
        assert 'farmwatch_search_quota_left{role="search",source="brave"} 3.0' in page
        assert "searxng: " in health
        assert KEY not in page + health + err + served
        asked = len(engine.seen)
        second = _daemon(tmp_path, url)
        for _ in range(2):
            _logged(second, "next_round")
        _end(second)
        assert (second.returncode, len(engine.seen)) == (Exit.OK, asked)


def test_a_source_that_refuses_does_not_hold_up_the_others(place: Callable[[Engine], str], tmp_path: Path) -> None:
    """Brave refuses the key and is parked with a message; SearXNG's round is complete; SIGTERM ends both."""

    def refusing(asked: Asked) -> Reply:
        return Reply(b"", 401) if asked.path == "/brave" else _engine(asked)

    with Engine(refusing) as engine:
        daemon = _daemon(tmp_path, place(engine))
        said = _rounds(daemon)
        err = _end(daemon)
    assert (said["brave"]["queries"], said["brave"]["unasked"]) == (0, 2)
    assert (said["searxng"]["queries"], said["searxng"]["hits"], said["searxng"]["ended"]) == (2, 4, "")
    assert "brave answers 401" in err
    assert (daemon.returncode, [asked.path for asked in engine.seen].count("/brave")) == (Exit.OK, 1)


def test_a_killed_daemon_goes_on_where_it_was(place: Callable[[Engine], str], tmp_path: Path) -> None:
    """After kill -9 at the third of six queries, the next process asks the rest, with at most one query repeated."""
    is_killed = threading.Event()

    def slow(asked: Asked) -> Reply:
        if asked.path == "/brave" and sum(seen.path == "/brave" for seen in engine.seen) > 3:
            is_killed.wait(SOON_S)
        return _engine(asked)

    with Engine(slow) as engine:
        url = place(engine)
        (tmp_path / "queries").write_text("".join(f"garden {n}\n" for n in range(6)))
        more = ("--set", "search.brave.quota_month=0")
        first = _daemon(tmp_path, url, *more)
        wait_until(lambda: sum(asked.path == "/brave" for asked in engine.seen) > 3, "four requests", SOON_S)
        first.kill()
        first.communicate(timeout=20)
        is_killed.set()
        log = open_log(url)
        round_ = Ledger(log, "brave").round
        log.close()
        assert round_ is not None and (round_.done, round_.total) == (3, 6)
        second = _daemon(tmp_path, url, *more)
        assert second.stdout is not None
        next(line for line in second.stdout if '"brave"' in line)
        _end(second)
    asked = [asked.query["q"] for asked in engine.seen if asked.path == "/brave"]
    assert asked == [f"garden {n}" for n in (0, 1, 2, 3, 3, 4, 5)]
    ids = [hit.id for hit in _hits(url) if hit.source == "brave"]
    assert len(set(ids)) == 12


def test_ctrl_c_ends_a_search_by_hand_while_a_request_is_under_way(
    place: Callable[[Engine], str], tmp_path: Path
) -> None:
    """Ctrl-C ends it with 130 before the response, with a message on the request; a second Ctrl-C ends it at once."""

    over = threading.Event()

    def slow(_: Asked) -> Reply:
        over.wait(30)
        return says(SEARXNG)

    for signals in (1, 2):
        over.clear()
        with Engine(slow) as engine:
            url = place(engine)
            search = _search(tmp_path, url, "--source", "searxng")
            wait_until(lambda engine=engine: bool(engine.seen), "a request", SOON_S)
            search.send_signal(signal.SIGINT)
            said = _logged(search, "stopping")
            if signals == 2:
                search.send_signal(signal.SIGINT)
            _, rest = search.communicate(timeout=20)
            over.set()
        assert (search.returncode, "begins anew" in said) == (Exit.INTERRUPTED, True)
        assert ("farmwatch: stopped" in rest) == (signals == 1)
