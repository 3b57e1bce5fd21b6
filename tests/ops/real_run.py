"""A real run under Prometheus: crawl, canaries, a search, a dead letter, a replay, a cutover and a restart."""

from __future__ import annotations

import json
import os
import random
import re
import signal
import socket
import subprocess
import sys
import urllib.request
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, replace
from pathlib import Path
from urllib.error import HTTPError

from msgspec.structs import replace as replace_fields

from dashboards.__main__ import DOCS
from dashboards.alerts import ALERTS, rule_file
from dashboards.pace import Durations
from farmwatch.__main__ import run as run_command
from farmwatch.crawl.append_hits import append_files
from farmwatch.demo.demo_web import DemoWeb, build_demo_web
from farmwatch.demo.human_pages import human_pages
from farmwatch.demo.server import LoopbackWeb, Response
from farmwatch.demo.site_pages import llm_articles
from farmwatch.share.topic_records import topic_records
from scoring.lite_ngram.detector import LiteNgram
from scoring.stages.score import score_key
from stream.log.contract import Output, partition_of
from stream.schema.records import Score, encode
from stream.schema.roles import Role
from stream.schema.topics import HITS, SCORES
from stream.schema.vocabulary import Truth
from tests.ops.servers import Alertmanager, Prometheus
from tests.support.paths import ROOT
from tests.support.processes.farm import QUICK, Farm
from tests.support.waiting import wait_until
from tests.support.web.search_engines import SEARXNG, Engine, says

PACE = Durations(faster=20_000)  # windows are a few scrapes
_PATIENCE_S = 120
_CANARY_PAGES = 13  # per site: fewer get no verdict
_ADS = b"<script src='https://securepubads.g.doubleclick.net/tag/js/gpt.js'></script>"


@dataclass
class RealRun:
    """The running processes, and the Prometheus that scrapes them."""

    farm: Farm
    prometheus: Prometheus
    targets: dict[str, int]
    pages: dict[str, str]  # /metrics by role, read at the end

    def until(self, query: str) -> None:
        """Wait until the query has a series."""
        wait_until(lambda: self.prometheus.now(query), lambda: f"{query}\n{self.farm.tail()}", _PATIENCE_S, every_s=0.2)


def free_base() -> int:
    """A free port with the free ports after it that the roles need, below those of outgoing connections."""
    while True:
        first = random.randrange(20_000, 32_000)
        with suppress(OSError), ExitStack() as held:
            for port in ports(first).values():
                held.enter_context(socket.create_server(("127.0.0.1", port)))
            return first


def ports(first: int) -> dict[str, int]:
    """Port of each role, of `search --every` and of a replay."""
    return {name: first + place for place, name in enumerate([*(role.value for role in Role), "search", "replay"])}


def canary_file(folder: Path, *, swapped: bool = False) -> Path:
    """Human and LLM canary sites from the demo's texts; with `swapped`, each has the other's name."""
    texts = [("\n\n".join(page.paragraphs), "human") for page in human_pages()[-2 * _CANARY_PAGES :]]
    texts += [(article.text, "llm") for site in list(llm_articles().values())[1:3] for article in site[:_CANARY_PAGES]]
    other = {"human": "llm", "llm": "human"}
    lines = [
        {
            "truth": other[truth] if swapped else truth,
            "site": f"{truth}-{number // _CANARY_PAGES}",
            "title": f"Page {number}",
            "text": text,
            "made_at": "2019-04-02",
        }
        for number, (text, truth) in enumerate(texts)
    ]
    file = folder / "canaries.jsonl"
    file.write_text("\n".join(map(json.dumps, lines)), encoding="utf-8")
    return file


def dated_2021(site: Mapping[str, Response]) -> Mapping[str, Response]:
    """A site with ads whose articles were published and last changed in 2021: control pages."""
    said = re.compile(rb'(<meta property="article:)published_time(" content=")[^"]+(">)')
    both = rb"\1published_time\g<2>2021-05-04\3\1modified_time\g<2>2021-05-04\3"

    class Dated(dict[str, Response]):
        def __missing__(self, path: str) -> Response:
            answer = site[path]
            return replace(answer, body=said.sub(both, answer.body).replace(b"</head>", _ADS + b"</head>"))

    return Dated()


def settings(folder: Path) -> dict[str, str]:
    """Settings of a farm with quick metrics."""
    return {
        "crawl.stop_when_decided": "true",
        "crawl.warc_folder": str(folder / "archive"),
        "metrics.port": str(free_base()),
    }


def write_hits(folder: Path, demo: DemoWeb) -> Path:
    file = folder / "hits.jsonl"
    file.write_text("".join(json.dumps(row) + "\n" for row in demo.hits), encoding="utf-8")
    return file


@contextmanager
def command(
    farm: Farm, *arguments: str, module: str = QUICK, by: Sequence[str] = ()
) -> Iterator[subprocess.Popen[bytes]]:
    """A farmwatch command on the farm's log, ended with the block; `by` is another program to start it."""
    flags = [flag for setting in farm.flags for flag in ("--set", setting)]
    with farm.output.open("ab") as output:
        process = subprocess.Popen(
            [*by, sys.executable, "-m", module, *arguments, *flags],
            stdout=output,
            stderr=output,
            cwd=ROOT,
            env={**os.environ, "PYTHONPATH": str(ROOT)},
        )
    try:
        yield process
    finally:
        process.terminate()
        process.wait(60)


def few_are_enough(text: str) -> str:
    """Queries without their minimum number of pages and sites."""
    return re.sub(r">= [\d.]+", ">= 0", text)


@contextmanager
def watched(farm: Farm, folder: Path, pace: Durations, alerts: Alertmanager | None = None) -> Iterator[RealRun]:
    """A farm scraped by a Prometheus with all rules."""
    targets = ports(farm.config.metrics.port)
    with Prometheus(folder, targets, few_are_enough(rule_file(DOCS, pace)), alerts) as prometheus:
        yield RealRun(farm, prometheus, targets, {})


@contextmanager
def real_run(folder: Path) -> Iterator[RealRun]:
    """Everything that dashboards and alerts show, except faults of devices and brokers."""
    demo = build_demo_web(slow_s=0.7)  # long enough for windows that are compared with earlier ones
    queries = folder / "queries"
    queries.write_text("garden\n")
    with ExitStack() as held:
        people = [host for host, truth in demo.truth.items() if truth == Truth.HUMAN]
        of_2021 = {host: dated_2021(demo.hosts[host]) for host in people}
        web = held.enter_context(LoopbackWeb({**demo.hosts, **of_2021}))
        engine = held.enter_context(Engine(lambda _: says(SEARXNG)))
        own = {
            **settings(folder),
            "canary.file": str(canary_file(folder)),
            "search.searxng.url": engine.url,
            "search.searxng.rate": "100",
        }
        farm = held.enter_context(Farm(folder, f"sqlite:{folder / 'log'}", web, own))
        run = held.enter_context(watched(farm, folder, PACE))
        farm.start(console=True)
        held.callback(farm.stop)
        searching = ("hits", "search", "--source", "searxng", "--queries", str(queries), "--every", "1h")
        for role in Role:  # each counter is seen at 0 first: a rate needs values before and after
            run.until(f'count_over_time(farmwatch_build_info{{role="{role.value}"}}[5s]) > 1')
        ask_console(farm)
        run.until("farmwatch_console_request_duration_seconds_count")
        ask_console(farm)
        assert [summary.skipped for _, summary in append_files(farm.config, [write_hits(folder, demo)])] == [0]
        held.enter_context(command(farm, *searching))
        with farm.log() as log:
            log.append([Output(HITS, 0, b"x.example", b"no record")])
        farm.settle(_PATIENCE_S)
        second = _scored_by_another(farm)
        beside = ("replay", "--detector", second, "--name", "second", "--to", "follow")
        with command(farm, *beside, "--metrics-port", str(run.targets["replay"])):
            wait_until(lambda: _rows_of(farm, "second"), farm.tail, _PATIENCE_S, every_s=0.2)
            # TALLY updates gauges less often if that is slow; a new process updates at once
            os.kill(farm.roles()["tally"], signal.SIGKILL)
            run.until("farmwatch_role_restarts_total > 0")
            run.until("farmwatch_detectors_gap")
            run.until("farmwatch_content_farm_share")
        run.until('farmwatch_share{bound="point",source!="all"}')
        run.until('farmwatch_canary_share{kind="site_tpr"}')
        run.until('farmwatch_control_share{bound="low"}')
        for alert in ALERTS:
            if "offset" in alert.signal:  # values compared with a day ago exist for that long
                run.until(PACE.query(alert.signal))
        replay = ("replay", "--ruleset", "notes", "--name", "notes", "--to", "follow")
        with command(farm, *replay, "--metrics-port", str(run.targets["replay"])):
            run.until("farmwatch_replay_eta_seconds")
            run.until('farmwatch_log_records_total{role="replay"} > 0')
            run.pages = {role: _page(port) for role, port in run.targets.items()}
            flags = [word for flag in farm.flags for word in ("--set", flag)]
            assert run_command(["cutover", "notes", "--why", "a test", "--max-lag", "100000", "--partial", *flags]) == 0
            run.until('farmwatch_live_run_info{run="notes",role="judge"}')
        yield run


def _scored_by_another(farm: Farm) -> str:
    """Give each score a twin by the other threshold set of the built-in detector; returns its identity."""
    careful = LiteNgram.load().published[-1]
    identity = f"{careful.detector}/{careful.tag}"
    with farm.log() as log:
        said = list(topic_records(log, Score, SCORES))
        twins = [replace_fields(score, id=f"{score.text_digest}:{identity}", detector=identity) for score in said]
        partitions = log.topics()[SCORES]
        log.append(
            [
                Output(SCORES, partition_of(twin.site, partitions), score_key(twin).encode(), encode(twin))
                for twin in twins
            ]
        )
    return identity


def _rows_of(farm: Farm, run: str) -> bool:
    with farm.log() as log:
        return f"sites.{run}" in log.topics() and sum(log.end(f"sites.{run}")) > 0


def ask_console(farm: Farm) -> None:
    """A request to the farm's console, which refuses it for want of the token."""
    served: list[str] = []

    def tells() -> list[str]:
        served[:] = re.findall(r"^console: (\S+);", farm.output.read_text(), re.MULTILINE)
        return served

    wait_until(tells, "the console's address", _PATIENCE_S)
    with suppress(HTTPError):
        urllib.request.urlopen(served[0], timeout=10)


def _page(port: int) -> str:
    with urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics", timeout=10) as answer:
        page: str = answer.read().decode()
    return page
