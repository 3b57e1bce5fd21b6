"""Real pages and a sample web, crawled over HTTP and processed by every stage, on both logs; they must agree.

Every page with a URL is served on loopback under its own host name. The roles are threads, and the broker is killed
once while they work. With FARMWATCH_LONG (`make real`) they are processes and the broker lives, all labelled pages are
crawled, not every 144th, and the whole sample web, and the stored records are replayed under the same rules, from
`features` and from `pages`: both must equal live. The output then has, per log: pages, time, CPU, the log's share of
it, and the audit.
"""

from __future__ import annotations

import resource
import subprocess
import sys
import time
import uuid
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

import msgspec
import pytest

from farmwatch.audit.report import AuditReport
from farmwatch.demo.server import LoopbackWeb
from replay.rows.site_table import read_sites
from scoring.rates.site_rates import site_rate
from stream.log.contract import Log
from stream.schema.control import Control
from stream.schema.records import SiteState, Verdict
from stream.schema.topics import VERDICTS
from tests.support.kafka_broker import broker, own_broker
from tests.support.processes.farm import Farm, Outcome, write_hits
from tests.support.runs.replay_world import rows_of, verdicts_of
from tests.support.sizes import LONG
from tests.support.waiting import wait_until
from tests.support.web.console_browser import Answer, Browser, browse
from tests.support.web.webs import Web, labelled_pages, sample_web

pytestmark = [pytest.mark.data, pytest.mark.kafka]
SETTINGS = {"crawl.use_links": "false"}  # the served web has exactly the labelled pages
TIMEOUT_S = 900.0
EVERY = 1 if LONG else 144  # of the labelled pages
SITES = 60 if LONG else 5  # of the sample web
UNKNOWN = "?"  # the truth of a labelled page's site


class Told(NamedTuple):
    """The result of a run: its verdicts in log order, and the row of each site."""

    verdicts: list[Verdict]
    rows: dict[str, SiteState]


class Replayed(NamedTuple):
    """A replay next to live."""

    source: str
    seconds: float
    told: Told
    unlike_live: list[str]  # ids of verdicts and sites that differ between the two


@dataclass
class Figures:
    log: str
    seconds: float
    cpu_s: float
    report: AuditReport
    outcome: Outcome
    rows: list[SiteState]
    replays: list[Replayed]
    agreement: Counter[tuple[str, str]] = field(default_factory=Counter)  # (truth, site verdict) -> sites


def run(name: str, web: Web, folder: Path) -> Figures:
    """One run of `web` on one log to the end."""
    hits = write_hits(folder, web)
    url, settings = f"sqlite:{folder / 'log'}", SETTINGS
    if name == "kafka":
        url = f"kafka:{broker() if LONG else own_broker().address}"
        settings = {**settings, "log.prefix": f"real-{uuid.uuid4().hex[:12]}."}
    with LoopbackWeb(web.hosts) as served, Farm(folder, url, served, settings) as farm:
        before, started = _roles_cpu_s(), time.monotonic()
        if LONG:
            farm.start(hits)
            farm.settle(TIMEOUT_S)
            seconds = time.monotonic() - started
            code = farm.stop()
            assert code == (1 if web.bad_lines else 0), farm.tail()  # a skipped line shows in the exit code
        else:
            farm.work_here(hits, TIMEOUT_S, meanwhile=kill_broker if name == "kafka" else None, skipped=web.bad_lines)
            seconds = time.monotonic() - started
        cpu_s = _roles_cpu_s() - before
        with farm.log() as log:
            rows = read_sites(log)
        if name == "kafka":
            check_console(farm, rows, folder)
        replayed = replays(farm) if LONG else []
        figures = Figures(name, seconds, cpu_s, farm.audit(), farm.outcome(), rows, replayed)
    for row in rows:
        figures.agreement[web.truth.get(row.site, UNKNOWN), row.verdict] += 1
    return figures


def check_console(farm: Farm, rows: Sequence[SiteState], folder: Path) -> None:
    """The console reads this log as any: each site has its verdict and its pages, and no page of the console fails."""
    pages = ("/answer", "/flow", "/crawl", "/frontier", "/runs", "/rulesets", "/letters", "/networks", "/health")

    async def visit(browser: Browser) -> tuple[list[Answer], list[Answer], Answer]:
        sites = [await browser.get("/site.json", {"site": row.site}) for row in rows[:SITES]]
        return sites, [await browser.get(path) for path in pages], await browser.get("/health.json")

    sites, others, health = browse(farm.config.log.url, folder, visit, config=farm.config)
    for answer, row in zip(sites, rows, strict=False):
        assert (answer.json["site"]["verdict"], len(answer.json["pages"])) == (row.verdict, row.pages)
    assert {answer.status for answer in others} == {200} and health.json["behind"] == 0


def kill_broker(log: Log) -> None:
    """kill -9 the broker when some pages are judged, and start it again."""
    wait_until(lambda: VERDICTS in log.topics() and any(log.end(VERDICTS)), "the first verdicts", TIMEOUT_S, 0.1)
    own_broker().kill()
    own_broker()


def replays(farm: Farm) -> list[Replayed]:
    """Both replays of a farm that has settled and was stopped."""
    with farm.log() as log:
        live = told(log, "live")
    elements = farm.config.measure.max_elements - 1  # another feature epoch, under which these pages measure the same
    found = []
    for source, settings in (("features", []), ("pages", [f"measure.max_elements={elements}"])):
        name, started = f"from-{source}", time.monotonic()
        flags = [word for setting in (*farm.flags, *settings) for word in ("--set", setting)]
        command = ["replay", "--ruleset", farm.config.judge.ruleset, "--name", name, "--full-speed", *flags]
        said = farm.output.with_name(f"{name}.log")
        with said.open("ab") as output:
            done = subprocess.run(
                [sys.executable, "-m", "farmwatch", *command],
                stdout=output,
                stderr=output,
                cwd=said.parent,
                timeout=TIMEOUT_S,
            )
        assert done.returncode == 0, said.read_text(errors="replace")[-4000:]
        with farm.log() as log:
            row, tells = Control(log).runs[name], told(log, name)
        assert row.source == source, row.why_source
        found.append(Replayed(source, time.monotonic() - started, tells, differing(live, tells)))
    return found


def told(log: Log, run: str) -> Told:
    """The result of a run, without its name, times and feature epoch."""
    verdicts = [msgspec.structs.replace(verdict, epoch="") for verdict in verdicts_of(log, run)]
    return Told(verdicts, {site: msgspec.structs.replace(row, epoch="") for site, row in rows_of(log, run).items()})


def differing(a: Told, b: Told) -> list[str]:
    """Ids of verdicts with different places or contents, and of sites with different rows."""
    longest = max(len(a.verdicts), len(b.verdicts))
    filled = [[*one.verdicts, *[None] * (longest - len(one.verdicts))] for one in (a, b)]
    verdicts = [(x or y).id for x, y in zip(*filled, strict=True) if x != y and (x or y)]
    return verdicts + sorted(site for site in a.rows.keys() | b.rows.keys() if a.rows.get(site) != b.rows.get(site))


def show(web: Web, runs: Sequence[Figures]) -> None:
    """Print the figures of the runs of one web."""
    print(f"\n{web.pages} pages on {len(web.hosts)} hosts, {len(web.hits)} hits")
    for f in runs:
        pages = f.report.steps["pages -> features"].done
        print(
            f"  {f.log:9} {f.seconds:6.1f} s, {pages / f.seconds:5.1f} pages/s, CPU {f.cpu_s:6.1f} s, "
            f"audit {'clean' if f.report.ok else 'BROKEN'}"
        )
        for step in f.report.steps.values():
            reasons = ", ".join(f"{name} {count}" for name, count in step.reasons.most_common(6))
            print(f"    {step.name:22} {step.records:6} in, {step.done:6} done, {step.broken} broken  {reasons}")
        verdicts = Counter(row.verdict for row in f.rows)
        rate = site_rate(verdicts)
        articles = sum(v.verdict == "article" for v in f.outcome.verdicts.values())
        print(
            f"    {articles} articles of {len(f.outcome.verdicts)} pages; {len(f.rows)} sites {dict(verdicts)}; {rate}"
        )
        print(f"    (truth, verdict) of sites: {dict(f.agreement)}")
        for one in f.replays:
            print(f"    replay from {one.source:8} {one.seconds:6.1f} s, {len(one.unlike_live)} records unlike live")
    print(f"  throughput kafka/embedded: {runs[0].seconds / runs[1].seconds:.2f}")


@pytest.fixture(scope="module")
def both(shared: Path, tmp_path_factory: pytest.TempPathFactory) -> list[Figures]:
    """The labelled pages and the sample web in one, run on both logs."""
    folder = tmp_path_factory.mktemp("real")
    web = labelled_pages(shared, every=EVERY)
    web.add(sample_web(shared, SITES))
    runs = [run(name, web, folder / name) for name in ("embedded", "kafka")]
    show(web, runs)
    return runs


def test_every_page_is_accounted_for_and_both_logs_agree(both: list[Figures]) -> None:
    """The pages pass all stages; the audit is clean; verdicts, scores and rows of both logs are equal."""
    for figures in both:
        assert figures.report.ok and figures.report.settled, figures.report.broken[:10]
        for one in figures.replays:
            assert one.told.verdicts and one.told.rows and not one.unlike_live, one.unlike_live[:10]
    assert both[0].outcome == both[1].outcome
    assert len(both[0].outcome.verdicts) > 2000 / EVERY + 10 * SITES


def test_the_sample_web_is_judged(both: list[Figures]) -> None:
    """Sites are crawled by hits and sitemaps, and most verdicts equal the labels."""
    agreement = both[0].agreement
    judged = sum(n for (truth, verdict), n in agreement.items() if truth != UNKNOWN and verdict in ("llm", "human"))
    right = sum(n for (truth, verdict), n in agreement.items() if truth == verdict)
    assert judged >= SITES / 3
    assert right >= 0.8 * judged


def _roles_cpu_s() -> float:
    """CPU seconds of the roles so far, be they processes or threads."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN if LONG else resource.RUSAGE_SELF)
    return used.ru_utime + used.ru_stime
