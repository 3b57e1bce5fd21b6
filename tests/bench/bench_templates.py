"""Splitting archived pages: CPU a page, and the diff beside `difflib` on the same words.

    python -m tests.bench.bench_templates [rounds]

The thesis's prototype takes about 1.4 s for a cross on a usual machine, where 5 million turns of a loop in bare Python
take 0.3 s; the machine's own time for it is printed, and the ratio is scaled by it. A cross is five pages read from the
archive, parsed, compared and written. The peer of the diff is what `lxml.html.diff` does: `difflib.SequenceMatcher`,
matches of fewer than three words left out.
"""

from __future__ import annotations

import statistics
import sys
import time
from collections.abc import Callable, Sequence
from contextlib import closing
from difflib import SequenceMatcher

from crawler.settings import CrawlSettings
from filters.settings import MeasureSettings
from lab.templates.archived import Archives
from lab.templates.diff import LEAST_WORDS, matches
from lab.templates.splitting import SiteSplitter, Split
from lab.templates.words import page_tree, words_of
from tests.bench.timing import argument, cpu_s
from tests.support.paths import data_root

THESIS_S, USUAL_LOOP_S = 1.4, 0.3


def by_difflib(old: Sequence[str], new: Sequence[str]) -> list[tuple[int, int, int]]:
    found = SequenceMatcher(None, old, new).get_matching_blocks()
    return [(block.a, block.b, block.size) for block in found if block.size >= LEAST_WORDS]


def median_s(work: Callable[[], object], rounds: int) -> float:
    return statistics.median(cpu_s(work) for _ in range(rounds))


def loop() -> None:
    """The measure of the machine."""
    for _ in range(5_000_000):
        pass


def main() -> None:
    folder = data_root() / "data" / "dbce"
    if not folder.is_dir():
        sys.exit(f"the labelled archives are not at {folder}: set FARMWATCH_TEST_DATA")
    settings = MeasureSettings()
    rounds = argument(1, 3)
    with closing(Archives(sorted(folder.glob("*.warc.gz")), CrawlSettings(), int(time.time() * 1000))) as archives:
        assert not list(archives.scan(print))
        pages: list[Split] = []

        def split_all() -> None:
            pages.clear()
            for site in archives.sites():
                for found in SiteSplitter(archives, settings).split(site):
                    assert isinstance(found, Split)
                    assert found.written()
                    pages.append(found)

        whole = median_s(split_all, rounds) / len(pages)
        words = {
            key: words_of(page_tree(*archives.body(key), settings)).words
            for site in archives.sites()
            for key in archives.pages(site)
        }

        def crosses_alone() -> None:
            """Nothing is kept of the cross before."""
            for page in pages:
                splitter = SiteSplitter(archives, settings)
                assert splitter.split_cross(page.key, page.others, page.similarity).written()

        alone = median_s(crosses_alone, rounds) / len(pages)
    pairs = [(words[other], words[page.key]) for page in pages for other in page.others.values()]
    numbered = []
    for old, new in pairs:
        numbers: dict[str, int] = {}
        numbered.append([[numbers.setdefault(word, len(numbers)) for word in side] for side in (old, new)])
    ours = median_s(lambda: [matches(*pair) for pair in numbered], rounds)
    peer = median_s(lambda: [by_difflib(*pair) for pair in pairs], rounds)
    machine = median_s(loop, rounds) / USUAL_LOOP_S
    print(f"this machine takes {machine:.2f} times the usual time; {len(pages)} crosses")
    for name, took in (("a cross alone", alone), ("a page of a site, its neighbours kept", whole)):
        usual = took / machine
        speed = THESIS_S / usual
        print(f"{name}: {took * 1e3:.0f} ms of CPU, {usual * 1e3:.0f} usual, {speed:.0f} times the thesis's speed")
    ours_ms, peer_ms = (1e3 * took / len(pairs) for took in (ours, peer))
    print(f"diff: {ours_ms:.1f} ms a pair, difflib {peer_ms:.1f} ms: {peer_ms / ours_ms:.1f} times its speed")


if __name__ == "__main__":
    main()
