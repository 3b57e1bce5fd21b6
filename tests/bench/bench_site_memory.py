"""The cost of a site's memory: a page's outline, its comparison with the site, reading sites back after a start.

Run with `python -m tests.bench.bench_site_memory [FOLDER]`; FOLDER should be on the disk that the log will use. Texts
are generated with the lengths of real articles. Times are CPU time; exact containment by Python's sets, the
alternative, is faster and takes ten times the memory.
"""

from __future__ import annotations

import random
import statistics
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

from filters.duplicates.chunker import Chunks, chunk
from filters.duplicates.shingles import Outline, outline
from filters.settings import SITE_CAPS
from filters.site_memory.memory import SiteMemory
from filters.site_memory.rows import NoState
from stream.embedded.log import EmbeddedLog
from stream.log.contract import Commit, Member, Topic
from stream.processing.state import KeyedState
from tests.bench.timing import cpu_s

PARTITIONS = 24
SITES, PAGES_A_SITE = 1_000, 20
LENGTHS = (220, 330, 450, 600, 1_250)  # words: the deciles 5, 25, 50, 70 and 95 of 900 articles


class _Text(NamedTuple):
    text: str
    chunks: Chunks
    outline: Outline


def main() -> None:
    place = Path(sys.argv[1]) if len(sys.argv) > 1 else Path(tempfile.gettempdir())
    texts = _texts(2_000)
    _page_alone()
    _one_site(texts)
    _restore(texts, place)


def _page_alone() -> None:
    text = _text(random.Random(1), 600)
    print("a page of 600 words, best of 500, CPU ms")
    cap = SITE_CAPS.shingles_per_site
    for name, work in (
        ("outline: shingles, sketch, simhash", lambda: outline(text, cap)),
        ("chunks", lambda: chunk(text.encode())),
        ("peer: the set of its 5-word tuples", lambda: _tuples(text)),
    ):
        print(f"  {name:<52} {_best(work) * 1e3:8.3f}")


def _tuples(text: str) -> set[tuple[str, ...]]:
    words = text.lower().split()
    return set(zip(words, words[1:], words[2:], words[3:], words[4:], strict=False))


def _one_site(texts: list[_Text]) -> None:
    """CPU time per page of one endless site, in the thousand pages before each mark."""
    print("\none site, CPU ms a page (comparison, row and eviction), median of the last thousand pages")
    print(f"  {'pages':>8} {'ms a page':>10} {'in memory, KB':>14}")
    memory, nothing = SiteMemory(), NoState()
    times: list[float] = []
    for number in range(100_000):
        found = texts[number % len(texts)]
        started = time.thread_time()
        memory.compare(nothing, 0, "site", str(number), found.chunks, found.outline)
        times.append(time.thread_time() - started)
        if number + 1 in (20, 1_000, 10_000, 100_000):
            print(f"  {number + 1:>8} {statistics.median(times[-1_000:]) * 1e3:10.3f} {memory.size_bytes / 1e3:14.0f}")
    sets = [set(memoryview(found.outline.shingles).cast("I")) for found in texts[:40]]
    earlier = frozenset().union(*sets[:-1])
    size = sys.getsizeof(earlier) + 32 * len(earlier)  # of an int
    print(
        f"  {'peer':>8} {_best(lambda: sets[-1] & earlier) * 1e3:10.3f} {size / 1e3:14.0f}  exact containment by a set"
    )


def _restore(texts: list[_Text], disk: Path) -> None:
    with tempfile.TemporaryDirectory(dir=disk, prefix="bench-site-memory-") as folder:
        log = EmbeddedLog(Path(folder))
        log.create([Topic("pages", PARTITIONS)])
        member = _joined(log)
        memory = SiteMemory()
        for site in range(SITES):
            state = KeyedState(member.state(site % PARTITIONS))
            for page in range(PAGES_A_SITE):
                found = texts[(site * PAGES_A_SITE + page) % len(texts)]
                memory.compare(state, site % PARTITIONS, f"s{site}.example", str(page), found.chunks, found.outline)
            member.commit(Commit(state={site % PARTITIONS: state.changes()}))
        member.close()
        log.close()
        started, cpu = time.perf_counter(), time.process_time()
        log = EmbeddedLog(Path(folder))
        member = _joined(log)
        memory = SiteMemory()
        states = [KeyedState(member.state(partition)) for partition in range(PARTITIONS)]
        for site in range(SITES):  # a page without words reads its site and changes nothing
            partition = site % PARTITIONS
            memory.compare(states[partition], partition, f"s{site}.example", "new", chunk(b""), Outline())
        wall, cpu = time.perf_counter() - started, time.process_time() - cpu
        assert memory.sites == SITES
        size = memory.size_bytes / 1e6
        member.close()
        log.close()
    print(f"\nembedded log in {disk}, opened anew, {SITES} sites of {PAGES_A_SITE} pages read back")
    print(f"  wall {wall:.2f} s, CPU {cpu:.2f} s, {size:.0f} MB in memory (the file may lie in the system's cache)")


def _joined(log: EmbeddedLog) -> Member:
    member = log.join("measure", ["pages"], member="bench", store="site-memory")
    while len(member.assignment()) < PARTITIONS:
        member.poll(0.05, 1, 1)
    return member


def _texts(count: int) -> list[_Text]:
    rng = random.Random(3)
    made = []
    for number in range(count):
        text = _text(rng, LENGTHS[number % len(LENGTHS)])
        made.append(_Text(text, chunk(text.encode()), outline(text, SITE_CAPS.shingles_per_site)))
    return made


def _text(rng: random.Random, words: int) -> str:
    return " ".join(rng.choices(_WORDS, k=words))


def _best(work: Callable[[], object]) -> float:
    return min(cpu_s(work) for _ in range(500))


_letters = random.Random(2)
_WORDS = ["".join(_letters.choices("aeioubcdfglmnprst", k=2 + number % 9)) for number in range(5_000)]


if __name__ == "__main__":
    main()
