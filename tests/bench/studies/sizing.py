"""A page's cost to a deployment: CPU and memory of each role, bytes of the log by topic, on the labelled pages.

Run by `python -m tests.bench.studies.sizing [SETTING=VALUE …]`: it crawls the labelled pages over loopback on the
embedded log, with all roles as processes. The CPU time of a run without hits is subtracted, because it is that of the
start. The peer is one bare call of Trafilatura a page.
"""

from __future__ import annotations

import re
import sys
import tempfile
from collections.abc import Mapping
from pathlib import Path

from farmwatch.demo.server import LoopbackWeb
from stream.log.contract import Log
from tests.bench.timing import children, cpu_s, processes_cpu_s
from tests.support.pages.extraction_peer import bare
from tests.support.paths import data_root
from tests.support.processes.farm import ROLES, Farm, write_hits
from tests.support.waiting import wait_until
from tests.support.web.webs import Web, labelled_pages

MILLION = 1_000_000


def main() -> None:
    """Print both tables."""
    web = labelled_pages(data_root())
    settings = dict(argument.split("=", 1) for argument in sys.argv[1:])
    with tempfile.TemporaryDirectory() as folder:
        idle, _, _, _ = run(Path(folder) / "idle", Web(web.hosts), settings)
        spent, resident, sizes, pages = run(Path(folder) / "run", web, settings)
    htmls = [page.body.decode("utf-8", "replace") for paths in web.hosts.values() for page in paths.values()]
    for html in htmls[:20]:
        bare(html)  # loads its tables
    bare_s = cpu_s(lambda: [bare(html) for html in htmls])
    print(f"{pages} pages on {len(web.hosts)} hosts")
    print(f"{'role':10} {'CPU ms a page':>14} {'pages a day, one core':>22} {'resident MiB':>13}")
    for role in ROLES:
        each = max(spent[role] - idle[role], 0.01) / pages
        print(f"{role:10} {each * 1000:14.2f} {86400 / each:22,.0f} {resident[role] / 2**20:13.0f}")
    whole_s = sum(spent[role] - idle[role] for role in ROLES)
    print(f"all roles {whole_s / pages * 1000:15.2f}")
    each = bare_s / len(htmls)
    print(f"beside {len(htmls)} bare calls of Trafilatura of {each * 1000:.2f} ms: {whole_s / bare_s:.2f}")
    print(f"\n{'topic':28} {'records':>9} {'GB a million pages':>19}")
    for topic, (records, size) in sorted(sizes.items()):
        if records:
            print(f"{topic:28} {records:9} {size / pages * MILLION / 1e9:19.2f}")


def run(
    folder: Path, web: Web, more: Mapping[str, str]
) -> tuple[dict[str, float], dict[str, int], dict[str, tuple[int, int]], int]:
    """CPU seconds and resident bytes of each role, (records, bytes) of each topic, and pages."""
    hits = write_hits(folder, web)
    settings = {"crawl.use_links": "false", "crawl.use_sitemaps": "false", **more}
    with LoopbackWeb(web.hosts) as served, Farm(folder, f"sqlite:{folder / 'log'}", served, settings) as farm:
        farm.start(hits if web.hits else None)
        wait_until(
            lambda: len(set(re.findall(r"http://127\.0\.0\.1:\d+", farm.output.read_text()))) == len(ROLES), "roles", 60
        )
        farm.settle(900)
        spent = dict.fromkeys(ROLES, 0.0)
        resident = dict.fromkeys(ROLES, 0)
        for role, pid in farm.roles().items():
            spent[role] = processes_cpu_s(pid)
            for process in (pid, *children(pid)):
                found = re.search(r"VmHWM:\s+(\d+)", Path(f"/proc/{process}/status").read_text())
                resident[role] += int(found[1]) * 1024 if found else 0
        farm.stop()
        with farm.log() as log:
            sizes = {topic: sized(log, topic) for topic in log.topics()}
            return spent, resident, sizes, sizes["pages"][0]


def sized(log: Log, topic: str) -> tuple[int, int]:
    """Records and bytes of keys, values and headers."""
    records = size = 0
    for partition in range(log.topics()[topic]):
        for message in log.read(topic, partition):
            records += 1
            size += (
                len(message.key) + len(message.value or b"") + sum(len(k) + len(v) for k, v in message.headers.items())
            )
    return records, size


if __name__ == "__main__":
    main()
