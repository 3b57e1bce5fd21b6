"""What 10^4, 10^6 and 10^8 sites of 20 pages need: both tables of docs/explanation/scale.md.

Run: python -m tests.bench.studies.scale. Costs of a page and of a site are read from the measured tables of
docs/how-to/deploy.md and docs/reference/benchmarks.md, limits from the settings; the rest is arithmetic, linear in
pages, sites or records.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property

from crawler.settings import CrawlSettings
from scoring.sites.settings import TallySettings
from stream.schema.topics import DEFAULT_PARTITIONS, ON_KAFKA
from tests.support.paths import DOCS

SITES = (10**4, 10**6, 10**8)
STATEFUL = ("CRAWL", "MEASURE", "TALLY")
ROLES = ("CRAWL", "MEASURE", "JUDGE", "SCORE", "TALLY")
DELETED = ("pages", "features", "score.requests", "verdicts")  # topics that lose records by time
PAGES = 20  # of a site and term
REQUESTS = PAGES + 4  # robots.txt, tdmrep.json, a sitemap, a URL that cannot exist
ANSWER_S = 1.0  # assumed: a request from its start to its end
LOAD = 0.5  # of a process, so that it catches up after a pause
REPLICAS = 3
BROKER_TB, FULL = 4.0, 0.7  # assumed: the disk of a broker, and how full it may be
PATIENCE_S = 600.0  # assumed: how long the loss of a machine may stop its sites
DAY_S = 86_400
CRAWL = CrawlSettings(contact="https://crawler.example/about")
# A pair of 7.2 billion parameters each, 2 operations a parameter and token, on a card of 989 teraflops in bfloat16 of
# which a large model gets .4: computed, not measured.
PAIR_TEXTS_S = 0.4 * 989e12 / (2 * 2 * 7.2e9 * 512)


def cell(page: str, row: str, column: int = 1, part: int = 0) -> float:
    """A number of a table: of the row that begins with `row`; `part`: of several numbers in the cell."""
    lines = (DOCS / page).read_text(encoding="utf-8").splitlines()
    line = next(line for line in lines if line.startswith(f"| {row}"))
    return float(re.findall(r"\d[\d,]*\.?\d*|\.\d+", line.split(" | ")[column])[part].replace(",", ""))


COSTS_MS = {role: cell("how-to/deploy.md", role) for role in ROLES}  # of a page, SCORE with lite-ngram
_COMPACTED = "`sites`, `scores`"
TOPICS_KB = {row: cell("how-to/deploy.md", row) for row in (*(f"`{topic}`" for topic in DELETED), _COMPACTED)}  # a page


@dataclass(frozen=True)
class Scale:
    """A number of sites, each measured once a term."""

    sites: int

    @property
    def pages(self) -> int:
        return PAGES * self.sites

    @property
    def term_s(self) -> float:
        return TallySettings().term_days * DAY_S

    @property
    def pages_s(self) -> float:
        return self.pages / self.term_s

    @property
    def requests_s(self) -> float:
        return REQUESTS * self.sites / self.term_s

    @cached_property
    def cores(self) -> dict[str, float]:
        """Busy cores of each role."""
        return {role: self.pages_s * cost_ms / 1000 for role, cost_ms in COSTS_MS.items()}

    @property
    def days(self) -> float:
        """Days of a term with one process of each role: CRAWL waits for answers, MEASURE computes."""
        crawl_s = REQUESTS * self.sites * ANSWER_S / CRAWL.max_in_flight
        return max(crawl_s, self.cores["MEASURE"] * self.term_s) / DAY_S

    @cached_property
    def kept_tb(self) -> dict[str, float]:
        """TB of each topic, one replica."""
        kept = {}
        for topic in DELETED:
            limit = ON_KAFKA[topic.replace(".", "_")]
            size = self.pages_s * limit.days * DAY_S * TOPICS_KB[f"`{topic}`"] * 1000
            kept[topic] = min(size, limit.size_bytes or math.inf) / 1e12
        kept["`sites`, `scores`, `hits`"] = self.pages * TOPICS_KB[_COMPACTED] * 1000 / 1e12
        return kept

    @property
    def log_mb_s(self) -> float:
        """MB a second that the roles write, changelogs included."""
        changes = self.changelogs_tb * 1e6 / self.term_s
        return self.pages_s * sum(TOPICS_KB.values()) / 1000 + changes

    @property
    def crawl_processes(self) -> int:
        in_flight = self.requests_s * ANSWER_S / CRAWL.max_in_flight
        return max(1, math.ceil(max(in_flight, self.cores["CRAWL"]) / LOAD))

    def processes(self, role: str) -> int:
        return self.crawl_processes if role == "CRAWL" else max(1, math.ceil(self.cores[role] / LOAD))

    @property
    def state_gb(self) -> dict[str, float]:
        """GB of the local copies of the state, by role."""
        return {role: self.sites * of_state(role, 0) / 1e9 for role in STATEFUL}

    @property
    def changelogs_tb(self) -> float:
        """TB of the changelogs, one replica."""
        return sum(self.sites * of_state(role, 1) for role in STATEFUL) / 1e12

    def restore_s(self, role: str, members: int) -> float:
        """Seconds in which a role's state is read back by a member, one of so many."""
        return self.sites * of_state(role, 2) / members / of_state(role, 3)

    def hosts(self, delay_s: float) -> float:
        """Hosts that can be measured in a term if their requests start this far apart."""
        return self.term_s / (REQUESTS * delay_s)

    @property
    def partitions(self) -> int:
        """Enough for the processes of any role, and for members that restore their state in PATIENCE_S."""
        restoring = (math.ceil(self.restore_s(role, 1) / PATIENCE_S) for role in STATEFUL)
        return max(DEFAULT_PARTITIONS, *restoring, *(self.processes(role) for role in ROLES))

    @property
    def brokers(self) -> int:
        kept_tb = sum(self.kept_tb.values()) + self.changelogs_tb
        return max(REPLICAS, math.ceil(kept_tb * REPLICAS / (BROKER_TB * FULL)))

    @property
    def texts_s(self) -> float:
        return self.pages_s * cell(BENCHES, "**Several members**", 1, 0)


BENCHES = "reference/benchmarks.md"
LOOK = "TALLY's process: a look"


def of_state(role: str, part: int) -> float:
    """Of a site: bytes on disk, bytes and records of the changelog; and records restored by a CPU-second."""
    return cell(BENCHES, f"state of {role}", 1, part)


Row = tuple[str, str, Callable[[Scale], str]]


def amount(value: float) -> str:
    """Three significant digits at most, without an exponent."""
    if value >= 100 or value == int(value):
        return f"{round(value):,}"
    digits = 1 if value >= 10 else 2 if value >= 1 else 1 - math.floor(math.log10(value))
    return f"{value:.{digits}f}".rstrip("0").rstrip(".")


def per_role(value: Callable[[Scale, str], float]) -> Callable[[Scale], str]:
    return lambda scale: "; ".join(amount(value(scale, role)) for role in ROLES)


NEEDS: tuple[Row, ...] = (
    ("pages a second; requests", "sites × 20 (24) / 90 days", lambda s: f"{amount(s.pages_s)}; {amount(s.requests_s)}"),
    (
        "sites in progress, 120 s each at 5 s a request",
        "requests a second × 5 s",
        lambda s: amount(max(1, s.requests_s * CRAWL.delay_s)),
    ),
    (
        "days of a term, one process of each role",
        f"sites × 24 × 1 s / 64, pages × {COSTS_MS['MEASURE']:g} ms: the longer",
        lambda s: amount(s.days),
    ),
    (
        "CPU hours of a term: CRAWL; MEASURE; JUDGE; SCORE; TALLY",
        f"pages × {'; '.join(f'{cost:g}' for cost in COSTS_MS.values())} ms",
        per_role(lambda s, role: s.cores[role] * s.term_s / 3600),
    ),
    ("processes of each, at half load", "CRAWL: 64 requests in flight", per_role(lambda s, role: s.processes(role))),
    (
        "log, written; network of the brokers, MB/s",
        f"{sum(TOPICS_KB.values()):.1f} kB a page and changelogs; × (3 replicas + 1 reader)",
        lambda s: f"{amount(s.log_mb_s)}; {amount(s.log_mb_s * (REPLICAS + 1))}",
    ),
    (
        "kept, TB: pages; features; score requests; verdicts; compacted",
        "30 days, at most 960 GiB; 180; 30; 90 days; one term",
        lambda s: "; ".join(amount(size) for size in s.kept_tb.values()),
    ),
    (
        "state on the members' disks, GB: CRAWL; MEASURE; TALLY; its changelogs, TB",
        "bytes a site",
        lambda s: f"{'; '.join(amount(size) for size in s.state_gb.values())}; {amount(s.changelogs_tb)}",
    ),
    ("partitions", "24, or a restore in 10 minutes", lambda s: amount(s.partitions)),
    ("brokers", "3 replicas, 4 TB each, 70 % full", lambda s: amount(s.brokers)),
    (
        "cores of an encoder",
        "1,585 articles an hour, .43 for each page",
        lambda s: amount(s.texts_s * 3600 / cell(BENCHES, "**Encoder** on a CPU", 1)),
    ),
    (
        "GPUs of a pair of 7 B, computed, none was measured",
        f"{PAIR_TEXTS_S:.0f} texts a second",
        lambda s: amount(max(1, math.ceil(s.texts_s / PAIR_TEXTS_S / LOAD))),
    ),
)


def of_million(row: str, part: int = 0) -> Callable[[Scale], float]:
    """A figure of the benches at a million sites, for other numbers of sites."""
    return lambda scale: cell(BENCHES, row, 1, part) * scale.sites / 10**6


def console(part: int) -> Callable[[Scale], float]:
    """A figure of the console's index of a million pages, for other numbers of pages."""
    return lambda scale: cell(BENCHES, "index rebuilt from", 1, part) * scale.pages / 10**6


BREAKS: tuple[Row, ...] = (
    (
        "memory, GB: TALLY's process; `rate` without a kept answer",
        ".51; 2.15 GB a million sites",
        lambda s: f"{amount(of_million('its largest memory')(s))}; {amount(of_million('memory of `rate`')(s))}",
    ),
    (
        "CPU seconds: TALLY's look at the rows; that `rate`",
        "59.9; 28.9 s a million",
        lambda s: f"{amount(of_million(LOOK)(s))}; {amount(of_million('**`farmwatch rate`**', 1)(s))}",
    ),
    (
        "console: index, GB; rebuilt in, hours",
        "551 MiB; 93 s of CPU a million pages",
        lambda s: f"{amount(console(2)(s) * 2**20 / 1e9)}; {amount(console(0)(s) / 3600)}",
    ),
    (
        "hosts of one registrable domain, of one address, that fit into a term, thousands",
        "90 days / (24 × 2 s; 1 s)",
        lambda s: f"{amount(s.hosts(CRAWL.domain_delay_s) / 1000)}; {amount(s.hosts(CRAWL.address_delay_s) / 1000)}",
    ),
    (
        "rows in one of 24 partitions, millions: CRAWL; MEASURE",
        "41; 21 a site",
        lambda s: "; ".join(
            amount(s.sites * of_state(role, 2) / DEFAULT_PARTITIONS / 1e6) for role in ("CRAWL", "MEASURE")
        ),
    ),
    (
        "minutes of restore after the loss of a disk, one process a role: CRAWL; MEASURE",
        "rows / rows a CPU-second",
        lambda s: "; ".join(amount(s.restore_s(role, 1) / 60) for role in ("CRAWL", "MEASURE")),
    ),
)


def table(rows: tuple[Row, ...]) -> str:
    """A table in Markdown, with a column for each number of sites."""
    scales = [Scale(sites) for sites in SITES]
    lines = ["| sites | formula | 10,000 | a million | 100 million |", "|---|---|---|---|---|"]
    lines += [f"| {what} | {how} | " + " | ".join(map(value, scales)) + " |" for what, how, value in rows]
    return "\n".join(lines)


def main() -> None:
    print(f"{table(NEEDS)}\n\n{table(BREAKS)}")


if __name__ == "__main__":
    main()
