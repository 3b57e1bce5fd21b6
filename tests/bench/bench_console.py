"""The console on a large log: it rebuilds its index, answers a mix of requests, then is idle.

Run by `python -m tests.bench.bench_console [SITES] [PAGES] [REQUESTS]`. The console is a process of its own with one
client over loopback HTTP. The log is synthetic: the first site has 1,000 pages, the second has 1, the others share the
rest. No other role runs, so TALLY's process keeps no answer. In the last phase another process writes pages and rows of
sites meanwhile. Beside it, on the index's table of sites: bare sqlite3, and Datasette if it is on the PATH.
"""

from __future__ import annotations

import http.client
import json
import os
import random
import shutil
import socket
import sqlite3
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager, suppress
from itertools import islice
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import urlencode

import msgspec
import numpy as np
import zstandard

from crawler.web.urls import fetch_id, page_id
from farmwatch.upkeep.console_files import INDEX
from filters.rules.judgement import judge
from filters.rules.ruleset import load_ruleset
from filters.settings import MeasureSettings
from filters.site_memory.measurer import Measurer
from scoring.stages.score import score_key
from stream.log.contract import Message, Output, partition_of
from stream.opening import open_log
from stream.processing.dead_letters import dead_letter
from stream.schema.records import Page, RatePoint, Record, SiteState, encode
from stream.schema.topics import FEATURES, HITS, PAGES, RATES, SCORES, SITE_TERMS, SITES, VERDICTS, all_topics
from tests.bench.timing import apart, argument, memory_mib
from tests.support.front_door import DETECTOR, article_html
from tests.support.pages.page_records import text_score

PARTITIONS = 24
LETTERS, POINTS, SERIES = 10_000, 720, 35  # dead letters; points of a month in each series of the history
BIG = 1_000  # pages of the first site
TOKEN = "bench"
MARKS = (100, 1_000, 10_000)  # requests after which memory is read
WRITES_PER_S = 50  # pages in the last phase
TICKS = os.sysconf("SC_CLK_TCK")
RULES = load_ruleset("default")


class Kind(NamedTuple):
    """A row of the table: requests of one kind, all of them likely to be asked again."""

    name: str
    paths: Sequence[str]


def main() -> None:
    sites, pages, requests = argument(1, 100_000), argument(2, 1_000_000), argument(3, 10_000)
    with tempfile.TemporaryDirectory() as folder:
        url = f"sqlite:{folder}/log"
        apart(write, url, sites, pages)
        measure(url, sites, requests)


def measure(url: str, sites: int, requests: int) -> None:
    """Start a console on the log at `url`, and print its figures."""
    print(f"5 million turns of a loop: {yardstick_s():.2f} s", flush=True)
    index = Path(url.partition(":")[2]) / INDEX
    for path in index.parent.glob(f"{INDEX}*"):
        path.unlink()
    kinds = kinds_of(sites)
    with console(url) as (client, pid):
        rebuild(client, pid, index)
        client.ask_all(kinds, requests, pid)
        idle(pid)
        with writer(url, sites):
            client.ask_all(kinds, requests // 10, pid)
    floor(index)
    peer(index, sites)


def rebuild(client: Client, pid: int, index: Path) -> None:
    """Wait until the index is at the end of the log; meanwhile its progress is asked for."""
    started, waits = time.perf_counter(), []
    first = None
    while (behind := client.json("/health.json")["behind"]) or first is None:
        first = first or behind
        waits.append(client.last_s)
        time.sleep(0.25)
    spent = time.perf_counter() - started
    size = sum(path.stat().st_size for path in index.parent.glob(f"{INDEX}*"))
    print(f"rebuild: {first:,} records in {spent:.0f} s ({first / spent:,.0f}/s), {cpu_of(pid):.0f} s of CPU,", end=" ")
    print(f"{size / 2**20:,.0f} MiB; meanwhile {figures(waits)}; {memory_mib(pid=pid):.0f} MiB resident", flush=True)


def idle(pid: int, seconds: float = 60.0) -> None:
    """The CPU of a minute without requests."""
    time.sleep(seconds)  # what the last requests asked for is found
    before = cpu_of(pid)
    time.sleep(seconds)
    print(f"idle: {(cpu_of(pid) - before) / seconds:.2%} of a core", flush=True)


class Client:
    def __init__(self, port: int) -> None:
        self._connection = http.client.HTTPConnection("127.0.0.1", port, timeout=600)
        self._cookie = ""
        self.last_s = 0.0
        self._cookie = self.get(f"/?token={TOKEN}").headers["Set-Cookie"].partition(";")[0]

    def get(self, path: str) -> http.client.HTTPResponse:
        started = time.perf_counter()
        self._connection.request("GET", path, headers={"Cookie": self._cookie})
        answer = self._connection.getresponse()
        self.body = answer.read()
        self.last_s = time.perf_counter() - started
        return answer

    def json(self, path: str) -> Any:
        while self.get(path).status == 202:  # it is being found for the first time
            time.sleep(1)
        return json.loads(self.body)

    def ask_all(self, kinds: Sequence[Kind], requests: int, pid: int) -> None:
        """Ask for all kinds in random order, HTML and JSON in turn, and print a line for each."""
        self._connection.close()  # the console may have closed an idle one; the next request opens another
        rng = random.Random(5)
        times: dict[str, list[float]] = {kind.name: [] for kind in kinds}
        first: dict[str, float] = {}
        memory: dict[int, float] = {}
        cpu = cpu_of(pid)
        for n in range(requests):
            kind = kinds[n % len(kinds)]
            path, mark, query = rng.choice(kind.paths).partition("?")
            asked = f"{path}{'.json' if n // len(kinds) % 2 else ''}{mark}{query}"
            began = time.perf_counter()
            while (answer := self.get(asked)).status == 202:  # it is being found for the first time
                times[kind.name].append(self.last_s)
                time.sleep(1)
            if answer.status != 200:
                sys.exit(f"{asked}: {answer.status} {self.body[:300]!r}")
            first.setdefault(kind.name, time.perf_counter() - began)
            times[kind.name].append(self.last_s)
            if n + 1 in MARKS:
                memory[n + 1] = memory_mib(pid=pid)
        resident = ", ".join(f"{size:.0f} after {n:,}" for n, size in memory.items())
        every = figures([spent_s for found in times.values() for spent_s in found])
        print(f"{requests:,} requests: {every}; CPU {1000 * (cpu_of(pid) - cpu) / requests:.1f} ms each", end="")
        print(f"; MiB resident: {resident}" if resident else "")
        for name, found in times.items():
            print(f"  {name:24} {figures(found)}, the first {1000 * first[name]:.0f} ms", flush=True)


def kinds_of(sites: int) -> list[Kind]:
    """What is asked. `sites` of the log."""
    rng = random.Random(7)
    some = [site_name(n) for n in rng.sample(range(2, sites), 200)]

    def listed(**query: str) -> str:
        return f"/sites?{urlencode(query)}"

    def sorted_by(sort: str) -> Kind:
        return Kind(f"sites by {sort}", [listed(sort=sort, after=site) for site in ("", *some)])

    return [
        Kind("answer", ["/answer"]),
        *(Kind(f"answer by {by}", [f"/answer?by={by}"]) for by in ("source", "rank", "query-group", "week")),
        Kind("flow", ["/flow"]),
        Kind("pages of a kind", [f"/pages?kind={kind}" for kind in ("judged", "article", "dropped", "failed")]),
        *map(sorted_by, ("site", "articles", "flagged", "updated", "p_llm")),
        Kind("sites of a verdict", [listed(verdict=v, sort=s) for v in ("llm", "human") for s in ("site", "updated")]),
        Kind("sites, one found", [listed(search=site, sort=s) for site in some for s in ("site", "articles")]),
        Kind("sites, many found", [listed(search=text) for text in ("d1", "example", "7.d3")]),
        Kind("sites, none found", [listed(search=text, sort="updated") for text in ("zq", "no such site")]),
        Kind("site of 1 page", [f"/site?site={site_name(1)}"]),
        Kind("site of 10 pages", [f"/site?site={site}" for site in some]),
        Kind("site of 1,000 pages", [f"/site?site={site_name(0)}"]),
        Kind("page", [_page(site, 1) for site in some]),
        *(Kind(f"page after {n} others", [_page(site_name(0), n)]) for n in (40, 500)),
        Kind("page, another ruleset", [_page(site, 1, ruleset="c4") for site in some]),
        *(Kind(name, [f"/{name}"]) for name in ("crawl", "runs", "letters", "health")),
    ]


def _page(site: str, n: int, **more: str) -> str:
    return f"/page?{urlencode({'url': page_url(site, n), **more})}"


@contextmanager
def console(url: str) -> Iterator[tuple[Client, int]]:
    port = free_port()
    command = [sys.executable, "-m", "farmwatch", "console", "--log", url]
    sets = (f"console.port={port}", f"console.token={TOKEN}", f"log.partitions={PARTITIONS}")
    words = [word for pair in sets for word in ("--set", pair)]
    running = subprocess.Popen([*command, *words], stderr=subprocess.PIPE, text=True)
    assert running.stderr is not None
    try:
        while not (line := running.stderr.readline()).count("http://"):
            if not line:
                sys.exit("the console ended")
        yield Client(port), running.pid
    finally:
        running.terminate()
        print(running.stderr.read(), end="")
        running.wait()


@contextmanager
def writer(url: str, sites: int) -> Iterator[None]:
    """A process that writes pages and rows of sites, until the block ends."""
    code = f"from tests.bench.bench_console import keep_writing; keep_writing({url!r}, {sites})"
    running = subprocess.Popen([sys.executable, "-c", code])
    try:
        yield
    finally:
        running.terminate()
        running.wait()


def keep_writing(url: str, sites: int) -> None:
    """Write WRITES_PER_S new pages a second."""
    rng = random.Random(9)
    with closing(open_log(url)) as log:
        maker = Maker()
        number = 1_000_000
        while True:
            outputs: list[Output] = []
            for _ in range(WRITES_PER_S):
                site, number = site_name(rng.randrange(2, sites)), number + 1
                outputs += maker.page(site, number)
                outputs.append(_output(SITES, maker.site(site, number % 8, number % 3, number)))
            log.append(outputs)
            time.sleep(1)


def floor(index: Path) -> None:
    """Bare queries of the table of sites, on one connection and without HTTP."""
    real, by_flagged = "substr(site, -8) <> '.invalid'", "ORDER BY flagged DESC, site DESC"
    with closing(sqlite3.connect(index)) as database:
        for name, query in (
            ("by site", "SELECT * FROM site WHERE site > 's5' ORDER BY site LIMIT 50"),
            ("by flagged", f"SELECT * FROM site WHERE {real} AND flagged < 2 {by_flagged} LIMIT 50"),
            ("none found", "SELECT * FROM site WHERE instr(site, 'zq') > 0 LIMIT 50"),
        ):
            times = []
            for _ in range(100):
                started = time.perf_counter()
                database.execute(query).fetchall()
                times.append(time.perf_counter() - started)
            print(f"  bare sqlite3, sites {name}: {figures(times)}", flush=True)


def peer(index: Path, sites: int) -> None:
    """Datasette's pages of the same table, with its defaults: by name, by number, and a name that contains a text."""
    command = shutil.which("datasette")
    if command is None:
        print("  datasette: not on the PATH")
        return
    plain, port = index.with_name("plain.sqlite"), free_port()
    with closing(sqlite3.connect(plain)) as database:
        database.execute("ATTACH ? AS full", [str(index)])
        database.execute("CREATE TABLE site (site TEXT PRIMARY KEY, verdict TEXT, articles INTEGER, flagged INTEGER)")
        database.execute("INSERT INTO site SELECT site, verdict, articles, flagged FROM full.site")
        database.execute("CREATE INDEX by_flagged ON site (flagged, site)")
        database.commit()
    running = subprocess.Popen(
        [command, "serve", "-i", str(plain), "-p", str(port)], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    )
    rng = random.Random(3)
    try:
        until = time.monotonic() + 60
        while time.monotonic() < until:
            with suppress(OSError), socket.create_connection(("127.0.0.1", port)):
                break
            time.sleep(0.2)
        connection = http.client.HTTPConnection("127.0.0.1", port, timeout=600)
        for name, query in (
            ("by site", "_size=50&_next={}"),
            ("by flagged", "_sort_desc=flagged&_size=50&_next=1,{}"),
            ("one found", "site__contains={}&_size=50"),
            ("none found", "site__contains=zq&_size=50"),
        ):
            for kind in ("", ".json"):
                times = []
                for _ in range(40):
                    started = time.perf_counter()
                    connection.request("GET", f"/plain/site{kind}?{query.format(site_name(rng.randrange(2, sites)))}")
                    answer = connection.getresponse()
                    answer.read()
                    assert answer.status == 200, f"{name}: {answer.status}"
                    times.append(time.perf_counter() - started)
                print(f"  datasette{kind}, sites {name}: {figures(times)}", flush=True)
    finally:
        running.terminate()
        running.wait()


def free_port() -> int:
    with closing(socket.create_server(("127.0.0.1", 0))) as probe:
        return int(probe.getsockname()[1])


def yardstick_s() -> float:
    """Seconds of a loop in bare Python: the speed of this machine at this time."""
    started = time.perf_counter()
    for _ in range(5_000_000):
        pass
    return time.perf_counter() - started


def figures(times: Sequence[float]) -> str:
    """Median, 95th percentile and largest of these seconds."""
    p50, p95 = 1000 * np.quantile(times, (0.5, 0.95))
    return f"p50 {p50:.1f}, p95 {p95:.1f}, largest {1000 * max(times):.0f} ms"


def cpu_of(pid: int) -> float:
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / TICKS


def site_name(n: int) -> str:
    return f"s{n}.d{n // 2}.example"


def page_url(site: str, n: int) -> str:
    return f"https://{site}/articles/{n}/a-page-of-a-site"


class Maker:
    """Makes the records of pages: measured once, then with other names. Every third is too short."""

    def __init__(self) -> None:
        measurer = Measurer(MeasureSettings())
        self.epoch = measurer.epoch
        texts = (article_html(400), article_html(420), "<html><body><p>Too short.</p></body></html>")
        self._bodies = [zstandard.compress(html.encode()) for html in texts]
        self._features = [measurer.measure(page_url("a.example", n), html, "a.example") for n, html in enumerate(texts)]
        self._verdicts = [judge(features, RULES) for features in self._features]

    def page(self, site: str, n: int) -> Iterator[Output]:
        """The records of page `n` of a site; its text is short but on the first site."""
        kind, url = n % 3, page_url(site, n)
        at: dict[str, Any] = {"site": site, "page_id": page_id(url), "url": url}
        at |= {"id": fetch_id(url, 1), "fetched_at": 1_000 * n + 1}
        features, verdict = self._features[kind], self._verdicts[kind]
        yield _output(PAGES, Page(**at, status=200, body=self._bodies[kind]))
        text = features.text if site == site_name(0) else features.text[:100]
        yield _output(FEATURES, msgspec.structs.replace(features, **at, text=text))
        digest = at["page_id"][::-1] if verdict.verdict == "article" else ""
        yield _output(VERDICTS, msgspec.structs.replace(verdict, **at, text_digest=digest))
        if digest:
            score = text_score(site, digest, DETECTOR, n % 7 == 0, at["page_id"], at["id"], p_llm=n % 7 / 7)
            yield _output(SCORES, score, score_key(score))

    def site(self, site: str, articles: int, flagged: int, n: int) -> SiteState:
        verdict = ("llm", "human", "human", "undecided")[n % 4] if articles else "unclassifiable"
        row: dict[str, Any] = {"verdict": verdict, "updated_at": 1_700_000_000_000 + 7_919 * n % 10_000_019}
        row |= {"detector": DETECTOR, "ruleset": RULES.name, "digest": RULES.digest, "method_digest": "0123abcd"}
        row |= {"pages": articles + 1, "articles": articles, "scored": articles, "flagged": min(articles, flagged)}
        row |= {"dropped_by": {"language": 2, "words": 1}, "sources": [f"source{n % 4}"], "queries": [f"q{n % 500}"]}
        return SiteState(id=site, site=site, best_rank=1 + n % 30, days=[20_000 + n % 90], **row)


def write(url: str, sites: int, pages: int) -> None:
    rng, maker = np.random.default_rng(3), Maker()
    scored = np.where(rng.random(sites) < 0.7, np.minimum(rng.geometric(0.25, sites), 20), 0)
    flagged = rng.binomial(scored, np.where(rng.random(sites) < 0.15, 0.8, 0.05))
    counts = [BIG, 1, *(round((pages - BIG - 1) * (n + 1) / (sites - 2)) - round((pages - BIG - 1) * n / (sites - 2))
        for n in range(sites - 2))]  # fmt: skip
    rows = [maker.site(site_name(n), int(scored[n]), int(flagged[n]), n) for n in range(sites)]

    def outputs() -> Iterator[Output]:
        for n, count in sorted(enumerate(counts), key=lambda pair: pair[0] % 97):  # sites are crawled side by side
            for page in range(count):
                yield from maker.page(site_name(n), page)
        for row in rows:
            yield _output(SITES, row)
        for row in rows[::5]:
            yield _output(SITE_TERMS, row, f"{row.site} 0")
        yield from letters()
        yield from points()

    with closing(open_log(url)) as log:
        log.create(all_topics(PARTITIONS, maker.epoch))
        left, written, started = outputs(), 0, time.perf_counter()
        while batch := list(islice(left, 5_000)):
            log.append(batch)
            written += len(batch)
        spent = time.perf_counter() - started
    print(f"{sites:,} sites, {pages:,} pages: {written:,} records written at {written / spent:,.0f}/s", flush=True)


def letters() -> Iterator[Output]:
    for n in range(LETTERS):
        site, error = site_name(n), (KeyError, ValueError, OSError)[n % 3]("broken")
        message = Message(HITS, partition_of(site, PARTITIONS), n, site.encode(), b"{" * 5_000, {}, 0)
        yield dead_letter(message, ("crawl", "measure")[n % 2], error, 1)


def points() -> Iterator[Output]:
    """A month of the series of rates."""
    now = int(time.time() // 3600) * 3_600_000
    for n in range(POINTS):
        for series in range(SERIES):
            group = f"g{series}" if series else ""
            of_time: dict[str, Any] = {"at": now - n * 3_600_000, "by": group and "rank", "group": group}
            shares = {"share": 0.2, "share_low": 0.1, "share_high": 0.3}
            point = RatePoint(id=f"{group} {n}", site="", **of_time | shares)
            yield Output(RATES, 0, point.id.encode(), encode(point))


def _output(topic: str, record: Record, key: str = "") -> Output:
    return Output(topic, partition_of(record.site, PARTITIONS), (key or record.site).encode(), encode(record))


if __name__ == "__main__":
    main()
