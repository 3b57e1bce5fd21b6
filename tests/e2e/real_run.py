"""`make real`: the labelled pages and the sample web through every stage, on both logs, with the numbers.

Every page that has a URL is served on loopback under its own host name, crawled over HTTP from a hits file and carried
to the rate. Prints per log: pages, time, CPU, the log's share of it, the audit, and whether both logs agree. Then what
is stored is replayed by the same rules, from `features` and from `pages`: both must say what live said.
"""

from __future__ import annotations

import argparse
import re
import resource
import tempfile
import time
import urllib.request
import uuid
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from farmwatch.audit.report import AuditReport
from farmwatch.demo.server import LoopbackWeb
from replay.runs.site_table import SiteTable
from scoring.rates.rate import estimate
from tests.conftest import data_root
from tests.e2e.real_replays import Replayed, replays, show_replays
from tests.support.farm import Farm, Outcome, write_hits
from tests.support.kafka_broker import broker
from tests.support.webs import Web, labelled_pages, sample_web

HITS_ONLY = {"crawl.use_links": "false", "crawl.use_sitemaps": "false"}  # the served web has these pages and no others


@dataclass
class Figures:
    log: str
    seconds: float
    cpu_s: float
    log_cpu_s: float
    report: AuditReport
    outcome: Outcome
    agreement: Counter[tuple[str, str]] = field(default_factory=Counter)  # (truth, site verdict) -> sites
    rate: str = ""
    replays: list[Replayed] = field(default_factory=list)


def run(
    name: str, url: str, web: Web, folder: Path, settings: dict[str, str], timeout_s: float, *, again: bool = False
) -> Figures:
    """One run of `web` on one log, as processes, to the end; with `again`, replays of it, too."""
    hits = write_hits(folder, web)
    with LoopbackWeb(web.hosts) as served, Farm(folder, url, served, settings) as farm:
        before, started = _children_cpu_s(), time.monotonic()
        farm.start(hits)
        farm.settle(timeout_s)
        seconds = time.monotonic() - started
        log_cpu_s = sum(_log_cpu_s(farm))
        code = farm.stop()
        if code != (1 if web.bad_lines else 0):  # a skipped line shows in the exit code
            raise RuntimeError(f"farmwatch up ended with {code}\n{farm.tail()}")
        figures = Figures(name, seconds, _children_cpu_s() - before, log_cpu_s, farm.audit(), farm.outcome())
        with farm.log() as log:
            table = SiteTable(log)
            table.refresh()
            rows = list(table.rows())
        for row in rows:
            figures.agreement[(web.truth.get(row.site, "?"), row.verdict)] += 1
        verdicts = Counter(row.verdict for row in rows)
        classifiable = len(rows) - verdicts["unclassifiable"]
        rate = estimate(verdicts["llm"], classifiable, None)
        figures.rate = (
            f"rate {_percent(rate.rate)} [{_percent(rate.low)}, {_percent(rate.high)}]: {verdicts['llm']} llm of "
            f"{classifiable} classifiable ({verdicts['undecided']} undecided), {verdicts['unclassifiable']} "
            f"unclassifiable, {len(rows)} sites"
        )
        figures.replays = replays(farm, timeout_s) if again else []
        return figures


def show(title: str, web: Web, runs: Sequence[Figures]) -> bool:
    """Print the figures of the runs of one web; True where all is well."""
    equal = True
    print(f"\n{title}: {web.pages} pages on {len(web.hosts)} hosts, {len(web.hits)} hits")
    for f in runs:
        pages = f.report.steps["pages -> features"].done
        print(
            f"  {f.log:9} {f.seconds:6.1f} s, {pages / f.seconds:5.1f} pages/s, CPU {f.cpu_s:6.1f} s, of it in the log "
            f"{f.log_cpu_s:5.1f} s = {f.log_cpu_s / f.cpu_s:.1%}, audit {'clean' if f.report.ok else 'BROKEN'}"
        )
        for step in f.report.steps.values():
            reasons = ", ".join(f"{name} {count}" for name, count in step.reasons.most_common(6))
            print(f"    {step.name:22} {step.records:6} in, {step.done:6} done, {step.broken} broken  {reasons}")
        for broken in f.report.broken[:10]:
            print(f"    broken: {broken}")
        articles = sum(v.verdict == "article" for v in f.outcome.verdicts.values())
        print(f"    {articles} articles of {len(f.outcome.verdicts)} pages; {f.rate}")
        if web.truth:
            judged = sum(n for (_, verdict), n in f.agreement.items() if verdict in ("llm", "human"))
            right = sum(n for (truth, verdict), n in f.agreement.items() if truth == verdict)
            sites = sum(f.agreement.values())
            print(f"    sites judged right: {right} of {judged} judged, {sites} sites {dict(f.agreement)}")
        if f.replays:
            equal = show_replays(f.replays) and equal
    same = all(f.outcome == runs[0].outcome for f in runs)
    if len(runs) > 1:
        ratio = runs[0].seconds / runs[1].seconds
        print(f"  verdicts, scores and rows on both logs: {'equal' if same else 'DIFFERENT'}")
        print(f"  throughput kafka/embedded: {ratio:.2f}")
    return same and equal and all(f.report.ok and f.report.settled for f in runs)


@contextmanager
def both_logs(folder: Path, names: Sequence[str]) -> Iterator[list[tuple[str, str, Path, dict[str, str]]]]:
    """(name, url, folder, settings) of the logs asked for."""
    chosen = []
    for name in names:
        place = folder / name
        place.mkdir(parents=True)
        if name == "kafka":
            chosen.append((name, f"kafka:{broker()}", place, {"log.prefix": f"real-{uuid.uuid4().hex[:12]}."}))
        else:
            chosen.append((name, f"sqlite:{place / 'log'}", place, {}))
    yield chosen


def main() -> int:
    """Run both webs on both logs; exit code 1 where an audit is broken, or logs or replays differ."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--logs", default="embedded,kafka", help="embedded, kafka or both by a comma")
    parser.add_argument("--every", type=int, default=1, help="take every Nth labelled page only")
    parser.add_argument("--timeout", type=float, default=900, help="seconds a run may take")
    args = parser.parse_args()
    fine = True
    with tempfile.TemporaryDirectory(prefix="farmwatch-real-") as temporary:
        for title, web, settings in (
            ("sample web", sample_web(data_root()), {}),
            ("labelled pages", labelled_pages(data_root(), every=args.every), HITS_ONLY),
        ):
            folder = Path(temporary) / title.replace(" ", "-")
            with both_logs(folder, args.logs.split(",")) as logs:
                runs = [
                    run(name, url, web, place, {**settings, **extra}, args.timeout, again=True)
                    for name, url, place, extra in logs
                ]
            fine = show(title, web, runs) and fine
    return 0 if fine else 1


def _children_cpu_s() -> float:
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def _log_cpu_s(farm: Farm) -> Iterator[float]:
    """CPU seconds inside the log, from each role's /metrics, whose address it logged."""
    for address in set(re.findall(r"http://127\.0\.0\.1:\d+", farm.output.read_text(errors="replace"))):
        with urllib.request.urlopen(f"{address}/metrics", timeout=10) as response:
            for line in response.read().decode().splitlines():
                if line.startswith("farmwatch_log_cpu_seconds_total{"):
                    yield float(line.rpartition(" ")[2])


def _percent(value: float | None) -> str:
    return "unknown" if value is None else f"{value:.1%}"


if __name__ == "__main__":
    raise SystemExit(main())
