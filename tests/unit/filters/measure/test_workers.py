"""Worker processes: every page gets a result, whatever fails in it or the worker; no worker outlives its parent."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import zstandard

from filters.errors import WorkersUnavailable
from filters.measure.page_measures import RawPage, measure_raw
from filters.measure.workers import ExtractionPool
from filters.settings import MeasureSettings
from tests.support.paths import ROOT
from tests.support.waiting import wait_until

pytestmark = pytest.mark.slow

SENTENCE = "The river rose slowly during the night and the people of the village moved their boats to higher ground. "

# A worker whose extractor follows the page's instructions; it stands in for pages that hang or crash the real one.
OBEDIENT = """
import os, time
import filters.measure.extractors as extraction
import filters.extraction.html_tree as html_tree
import filters.measure.page_measures as measuring
def obey(html, tree):
    if html.startswith("hang"):
        time.sleep(600)
    if html.startswith("spin"):
        while True: pass
    if html.startswith("die"):
        os._exit(3)
    if html.startswith("greedy"):
        bytearray(1 << 40)
    if html.startswith("print"):
        print("x" * 100000, flush=True)
        os.write(1, b"y" * 1000)
    return extraction.Extraction(text=f"{os.getpid()} {html}", path="recall", tried=("recall",))
extraction.EXTRACTORS["trafilatura"] = extraction.ExtractorRow(lambda model: obey, ())
html_tree.parse = lambda html: html_tree.etree.Element("html")
measuring.identify = lambda text: ("en", 1.0)
measuring.measure_quality = lambda text, tokenizer: {"main": [None] * 99}  # it and the next build tables first
measuring.reason_of = lambda *answer: ""
from filters.measure.worker_process import main
main()
"""
# A parent process with a worker on an endless page.
NEGLIGENT = """
import sys, zstandard
from filters.measure.page_measures import RawPage
from filters.settings import MeasureSettings
from filters.measure.workers import ExtractionPool
settings = MeasureSettings(workers=2, time_limit_s=10)
pool = ExtractionPool(settings, command=(sys.executable, "-c", sys.argv[1]))
pages = [RawPage("u", "", zstandard.ZstdCompressor().compress(body)) for body in (b"warm", b"spin")]
pool.map(pages[:1] * 4)
print(*pool.pids, flush=True)
pool.map(pages[1:])
"""


NewPool = Callable[..., ExtractionPool]


@pytest.fixture
def new_pool() -> Iterator[NewPool]:
    """Makes pools whose workers run `code`, with these settings, and closes them."""
    made: list[ExtractionPool] = []

    def make(*, code: str = OBEDIENT, recycle_pages: int = 5_000, **settings: Any) -> ExtractionPool:
        command = (sys.executable, "-c", code)
        made.append(ExtractionPool(MeasureSettings(**settings), command=command, recycle_pages=recycle_pages))
        return made[-1]

    yield make
    for pool in made:
        pool.close()


def raw(html: str | bytes, url: str = "https://a.example/x") -> RawPage:
    body = html.encode() if isinstance(html, str) else html
    return RawPage(url, "utf-8", zstandard.ZstdCompressor().compress(body))


def cpu_s(pid: int) -> float:
    """CPU time of a process, without that of the kernel."""
    return int(Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[11]) / os.sysconf("SC_CLK_TCK")


def alive(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0] != "Z"
    except (FileNotFoundError, ProcessLookupError):
        return False


def test_results_are_in_order_and_as_without_workers(pool: ExtractionPool, article: str) -> None:
    """Results keep the order of the pages and equal measuring in this process."""
    pages = [raw(article.replace("river", f"river {n}"), f"https://a.example/{n}") for n in range(12)]
    assert pool.map(pages) == [measure_raw(page, MeasureSettings()) for page in pages]
    assert pool.map([]) == []


@pytest.mark.parametrize(
    ("body", "error"),
    [
        (b"", "empty"),
        (b"<div>" * 5000 + SENTENCE.encode() + b"</div>" * 5000, "too_deep"),
        (f"<html><body>\0<p>{SENTENCE * 5} Grüße</p></body></html>".encode("latin-1"), ""),
        (bytes(3 * 1024 * 1024), "not_html"),
    ],
    ids=["empty", "nested", "charset and NUL", "large"],
)
def test_bad_pages_are_answered_by_the_workers_they_met(pool: ExtractionPool, body: bytes, error: str) -> None:
    """Each kind of bad page yields features or a named error, and no worker dies."""
    before = pool.pids
    (found,) = pool.map([raw(body)])
    assert found.error == error
    assert bool(found.text) == (not found.error)
    assert pool.pids == before


def test_hanging_page_is_killed_at_the_limit_and_others_are_not_held_up(new_pool: NewPool) -> None:
    """Pages that sleep or spin time out and their workers are replaced; all other pages are measured."""
    pool = new_pool(workers=2, time_limit_s=1.0)
    before = pool.pids
    results = pool.map([raw(html) for html in ("one", "hang", "two", "spin", "three", "four")])
    assert [result.error for result in results] == ["", "timeout", "", "timeout", "", ""]
    assert [result.text.split()[-1] for result in results if result.text] == ["one", "two", "three", "four"]
    assert results[1].measures == {"url_path": "/x"}
    assert not set(before) & set(pool.pids)
    wait_until(lambda: not any(map(alive, before)), "the end of the workers")


@pytest.mark.parametrize(
    ("workers", "bad"),
    [(1, {"hang": "timeout", "die": "worker_died", "greedy": "out_of_memory"}), (2, {"die": "worker_died"})],
)
def test_a_bad_page_costs_its_own_result_only(new_pool: NewPool, workers: int, bad: dict[str, str]) -> None:
    """Pages queued behind a bad page are measured, in order; a worker killed from outside loses no page."""
    pool = new_pool(workers=workers, time_limit_s=0.7)
    good = iter([f"p{number}" for number in range(9)])
    htmls = [next(good), "print", *(html for one in bad for html in (one, next(good), next(good))), *good]
    results = pool.map([raw(html) for html in htmls])
    assert [result.error for result in results] == [bad.get(html, "") for html in htmls]
    measured = [result.text.split()[1] for result in results if result.text]
    assert measured == [html for html in htmls if html not in bad]
    os.kill(pool.pids[0], signal.SIGKILL)
    assert pool.map([raw("three")])[0].text.endswith("three")


def test_page_that_waits_has_its_whole_time(new_pool: NewPool) -> None:
    """A page's time limit counts from when its worker takes it, not from when it is sent."""
    pool = new_pool(workers=1, time_limit_s=0.8, code=OBEDIENT.replace("600", "0.5"))
    assert [result.error for result in pool.map([raw("hang")] * 4)] == [""] * 4


def test_worker_has_its_next_page_before_it_answers(new_pool: NewPool) -> None:
    """While there are many pages, one is queued for each worker; the last ones go to the first idle worker."""
    counting = OBEDIENT.replace(
        'if html.startswith("hang"):', "import select\n    if html.startswith('look'):"
    ).replace(
        "time.sleep(600)",
        "return extraction.Extraction(text=f'0 {bool(select.select([0], [], [], 0.5)[0])}', path='recall', tried=())",
    )
    pool = new_pool(workers=1, code=counting)
    first, *_, last = pool.map([raw("look" + os.urandom(20_000).hex()) for _ in range(4)])
    assert (first.text, last.text) == ("0 True", "0 False")


def test_worker_is_recycled_after_its_pages(new_pool: NewPool) -> None:
    """After its pages a new process replaces a worker; pages and answers larger than a socket's buffer arrive whole."""
    pool = new_pool(workers=1, recycle_pages=2)
    htmls = [os.urandom(300_000).hex() for _ in range(3)]
    pids, texts = zip(*(result.text.split() for result in pool.map([*map(raw, htmls)])), strict=True)
    assert pids[0] == pids[1] != pids[2]
    assert list(texts) == htmls


def test_workers_that_cannot_start_are_an_error_to_try_again(new_pool: NewPool) -> None:
    """If every worker dies at its start, the call ends with a retriable error, and no page gets a result."""
    pool = new_pool(workers=1, code="raise SystemExit(9)")
    with pytest.raises(WorkersUnavailable, match="exit status 9"):
        pool.map([raw("one")])
    assert WorkersUnavailable.retriable
    assert not pool.ready()


def test_batch_given_up_leaves_nothing_for_the_next(new_pool: NewPool, tmp_path: Path) -> None:
    """After a batch that ended with an error, the next batch gets only its own answers."""
    broken = tmp_path / "broken"
    code = OBEDIENT.replace('"hang"', '"nap"').replace("600", "1")
    pool = new_pool(workers=2, code=f"import os\nif os.path.exists({str(broken)!r}): os._exit(9)\n{code}")
    pool.map([raw("warm"), raw("warm")])
    broken.touch()
    with pytest.raises(WorkersUnavailable):
        pool.map([raw("nap"), raw("die"), raw("die"), raw("one")])
    broken.unlink()
    answers = pool.map([raw(f"p{number}") for number in range(4)])
    assert [answer.text.split()[1] for answer in answers] == ["p0", "p1", "p2", "p3"]


def test_closed_pool_has_no_workers(new_pool: NewPool) -> None:
    """Closing ends the processes; a call after it is a retriable error."""
    pool = new_pool(workers=2)
    pids = pool.pids
    pool.close()
    wait_until(lambda: not any(map(alive, pids)), "the end of the workers")
    with pytest.raises(WorkersUnavailable):
        pool.map([raw("one")])


def test_workers_end_with_their_parent() -> None:
    """When the parent is killed, idle workers end at once and a worker that spins ends by its own alarm."""
    command = [sys.executable, "-c", NEGLIGENT, OBEDIENT.replace("main()", "main(0.6)")]
    parent = subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, text=True)
    assert parent.stdout is not None
    pids = [int(pid) for pid in parent.stdout.readline().split()]
    before = sum(map(cpu_s, pids))
    wait_until(lambda: sum(map(cpu_s, pids)) > before + 0.1, "a worker that spins")
    parent.kill()
    parent.wait()
    parent.stdout.close()
    assert len(pids) == 2
    wait_until(lambda: not any(map(alive, pids)), "the end of the workers")


@pytest.fixture
def _ctrl_c_interrupts() -> Iterator[None]:
    """As in a terminal; a job in the background begins with SIGINT ignored."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


@pytest.mark.usefixtures("_ctrl_c_interrupts")
def test_ctrl_c_does_not_wait_for_a_page(new_pool: NewPool) -> None:
    """An interrupted batch ends at once, even if a page has most of its time left; the next batch is measured."""
    pool = new_pool(workers=2, time_limit_s=600.0)
    pool.map([raw("warm")] * 4)
    interrupt = threading.Timer(0.3, os.kill, [os.getpid(), signal.SIGINT])
    interrupt.start()
    with pytest.raises(KeyboardInterrupt):
        pool.map([raw("hang"), raw("one")])
    assert pool.map([raw("two")])[0].text.endswith("two")
