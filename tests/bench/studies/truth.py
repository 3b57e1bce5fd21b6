"""Served webs of known truth through the whole daemon: whether the interval of `farmwatch rate` covers the share.

Run by `python -m tests.bench.studies.truth [runs, default 10]`. Each run draws 32 of the 60 sites of the sample web, a
known share of them LLM sites, with geometric lengths of mean 6, and serves them on loopback to `farmwatch up` with the
demo's configuration: decided sites are crawled no further. The estimate has no known sites.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np

from farmwatch.demo.server import LoopbackWeb
from tests.bench.timing import argument
from tests.support.paths import data_root
from tests.support.processes.farm import Farm, write_hits
from tests.support.web.webs import sample_web

SITES, MEAN, TIMEOUT_S = 32, 6, 300.0  # of the 60 sites 30 are LLM sites
SHARES = (0.1, 0.15, 0.2, 0.25, 0.3, 0.35, 0.4, 0.5, 0.6, 0.8)


def main() -> None:
    """Print a line for each run."""
    runs = argument(1, len(SHARES))
    truths = sample_web(data_root()).truth
    covered = named = 0
    for run in range(runs):
        rng = np.random.default_rng(run)
        llm = round(SHARES[run % len(SHARES)] * SITES)
        chosen: list[str] = []
        for truth, count in (("llm", llm), ("human", SITES - llm)):
            names = [host.split(".")[0] for host, of in truths.items() if of == truth]
            chosen += rng.permutation(names)[:count].tolist()
        lengths = {name: min(int(rng.geometric(1 / MEAN)), 15) for name in chosen}
        is_in, has_share = _run(lengths, llm / SITES)
        covered += is_in
        named += has_share
    print(f"covered in {covered} of {runs} runs; {named} of {runs} name a share")


def _run(lengths: dict[str, int], truth: float) -> tuple[bool, bool]:
    """Whether the interval covers the truth, and whether a share is published; without one it may be 0 to 1."""
    web = sample_web(data_root(), lengths=lengths)
    settings = {"crawl.stop_when_decided": "true"}
    with tempfile.TemporaryDirectory() as name, LoopbackWeb(web.hosts) as served:
        folder = Path(name)
        with Farm(folder, f"sqlite:{folder / 'log'}", served, settings) as farm:
            farm.start(write_hits(folder, web))
            farm.settle(TIMEOUT_S)
            farm.stop()
            said = subprocess.run(
                [sys.executable, "-m", "farmwatch", "rate", "--json", "--log", f"sqlite:{folder / 'log'}"],
                capture_output=True,
                check=True,
                cwd=folder,
            )
    found = max(map(json.loads, said.stdout.splitlines()), key=lambda line: int(line["scored_sites"]))
    low, high = found["low"], found["high"]
    is_in = bool(low <= truth <= high)
    share = found["method"] if found["share"] is None else f"{found['share']:.3f}"
    judged = "-" if found["judged_share"] is None else f"{found['judged_share']:.3f}"
    print(
        f"truth {truth:.3f}  share {share} ({low:.3f} to {high:.3f}) of {found['scored_sites']} sites"
        f"  {'covered' if is_in else 'MISSED'}  judged {judged}",
        flush=True,
    )
    return is_in, found["share"] is not None


if __name__ == "__main__":
    main()
