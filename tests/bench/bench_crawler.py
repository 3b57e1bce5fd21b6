"""Pages per CPU-second of the crawler and its peers: the same pages, the same server in another process, one run.

    python -m tests.bench.bench_crawler [sites] [rounds]

Each contender is a separate process, and only its CPU time counts (user and system, all threads and children). The
rounds are interleaved. The server checks that each contender fetched the 40 different pages of every site. Rows: raw
aiohttp (get and read), our fetch path (guard, DNS, gate, redirects, inflating, charset, zstd, envelope), our whole
stage on the embedded log (frontier, robots.txt, links, commits), Scrapy and Crawlee with links followed; the frugal
Scrapy requests robots.txt, and extracts no more links of a site than it needs pages.
"""

from __future__ import annotations

import statistics
import sys

from tests.bench.peers.crawler_contenders import CONTENDERS, IN_FLIGHT, contend
from tests.bench.peers.crawler_peers import PEERS, missing_peers, version
from tests.bench.peers.crawler_server import PER_SITE, Server, page
from tests.bench.timing import apart, argument

GOALS = (
    ("our fetch path", "raw aiohttp", 0.6),
    ("our whole stage", "raw aiohttp", 0.25),
    ("our whole stage", "Scrapy", 2.0),
    ("our whole stage", "Scrapy, robots.txt", 2.0),
    ("our whole stage", "Scrapy, frugal", 2.0),
    ("our whole stage", "Crawlee, robots.txt", 2.0),
)


def main() -> None:
    sites, rounds = argument(1, 80), argument(2, 3)
    missing = missing_peers()
    if missing:
        sys.exit(f"{' and '.join(missing)} not installed: pip install --require-hashes -r requirements-bench.lock")
    costs: dict[str, list[dict[str, float]]] = {name: [] for name in CONTENDERS}
    with Server(sites) as server:
        for _ in range(rounds):
            for name in CONTENDERS:
                costs[name].append(_run(server, name, sites))
    count = sites * PER_SITE
    rates = {name: statistics.median(count / run["cpu_s"] for run in runs) for name, runs in costs.items()}
    print(f"{count} pages of {len(page())} bytes on {sites} sites, {IN_FLIGHT} in flight, medians of {rounds} rounds")
    print(", ".join(f"{peer} {version(peer)}" for peer in ("aiohttp", *PEERS)))
    print(f"{'':20} {'pages/CPU-s':>12} {'of raw':>7} {'largest RSS, MiB':>17}")
    for name, rate in rates.items():
        largest = max(run["rss_mib"] for run in costs[name])
        print(f"{name:20} {rate:12.0f} {rate / rates['raw aiohttp']:7.2f} {largest:17.0f}")
    for ours, theirs, goal in GOALS:
        print(f"{ours} / {theirs}: {rates[ours] / rates[theirs]:.2f} (goal {goal:.2f})")
    share = statistics.median(run["log_share"] for run in costs["our whole stage"])
    print(f"log's share of the stage's CPU: {share:.2f}")


def _run(server: Server, name: str, sites: int) -> dict[str, float]:
    cost: dict[str, float] = apart(contend, name, server.target, sites)
    counts = server.counts()
    wrong = {host: found for host, found in counts.items() if found != (PER_SITE, PER_SITE)}
    assert len(counts) == sites and not wrong, f"{name}: {len(counts)} of {sites} sites, not as expected: {wrong}"
    return cost


if __name__ == "__main__":
    main()
