"""A search source at work: ranks, back-off, quotas, and rounds that survive a restart."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from datetime import UTC, datetime
from itertools import pairwise
from pathlib import Path

import pytest

from crawler.sources.brave import Brave
from crawler.sources.ledger import Ledger
from crawler.sources.queries import read_queries
from crawler.sources.searxng import Searxng
from crawler.sources.settings import BraveSettings, SearxngSettings
from crawler.sources.source import Query, SourceAnswer, SourceBusy, SourceRefused, SourceRequest
from crawler.sources.usage import PARK_FIRST_S, counted, next_month_s
from stream.log.contract import Log, Message, Output
from stream.log.errors import LogUnavailable
from stream.memory.log import MemoryLog
from stream.opening import open_log
from stream.schema.topics import CONTROL, all_topics
from tests.support.paths import ROOT
from tests.support.web.search_desk import NOON, PARTITIONS, Desk, answer

pytestmark = pytest.mark.slow

QUERIES = [Query(f"q{n}", f"garden {n}") for n in range(6)]


@pytest.fixture
def log() -> Iterator[Log]:
    """A log with every topic."""
    made: Log = MemoryLog()
    made.create(all_topics(PARTITIONS, "e"))
    yield made
    made.close()


def _brave(urls: int = 2, more: bool = True) -> dict[str, object]:
    results = [{"url": f"https://s{n}.example/", "title": f"T{n}"} for n in range(urls)]
    return {"query": {"more_results_available": more}, "web": {"results": results}}


def _desk(
    log: Log, answering: Callable[[SourceRequest], SourceAnswer | Exception], tries: int = 5, **settings: object
) -> Desk:
    mine = BraveSettings(rate=100.0, **settings)  # type: ignore[arg-type]
    return Desk(log, Brave(mine, "key"), mine, answering, tries)


def test_a_query_ends_at_the_last_page_that_the_source_gives(log: Log) -> None:
    """If more result pages are configured than the source has, only existing pages are requested."""
    desk = _desk(log, lambda _: answer(_brave()), pages=5)
    desk.source.pages_cap = 2
    desk.run(QUERIES[:1])
    assert len(desk.asked) == 2


def test_ranks_go_on_over_result_pages(log: Log) -> None:
    """Ranks continue from page to page; a result without a web URL keeps its rank and is skipped."""
    bad = [{"title": "no url"}, {"url": "ftp://a.example/"}, {"url": "https://\x00/"}]
    pages = iter([_brave(2), {"web": {"results": [*bad, {"url": "https://s9.example/"}]}}])
    desk = _desk(log, lambda _: answer(next(pages)), pages=2)
    summary = desk.run(QUERIES[:1])
    found = sorted((hit.rank, hit.result_page, hit.site, hit.query_id, hit.source) for hit in desk.hits())
    assert found == [
        (1, 1, "s0.example", "q0", "brave"),
        (2, 1, "s1.example", "q0", "brave"),
        (6, 2, "s9.example", "q0", "brave"),
    ]
    assert (summary.hits, summary.skipped, summary.outcomes["found"]) == (3, 3, 1)
    assert {hit.fetched_at // 1000 for hit in desk.hits()} == {int(NOON)}


def test_a_busy_source_is_left_alone_and_asked_again(log: Log) -> None:
    """After two 429 responses the client waits its own back-off, then Retry-After, and gets the answer."""
    script: list[SourceAnswer | Exception] = [SourceBusy("429"), SourceBusy("429", 600.0), answer(_brave())]
    desk = _desk(log, lambda _: script.pop(0))
    summary = desk.run(QUERIES[:1])
    assert [round(later - NOON) for later in desk.asked] == [0, 30, 630]
    assert (summary.hits, summary.ended) == (2, "")
    assert Ledger(log, "brave").usage.park_level == 0


def test_a_query_that_never_succeeds_is_given_up(log: Log) -> None:
    """A query is given up after `tries`; other queries continue, back-off grows, and failed requests use the quota."""
    desk = _desk(log, lambda _: SourceBusy("503"), tries=2)
    summary = desk.run(QUERIES[:2])
    assert (summary.outcomes["failed"], len(desk.asked), summary.ended) == (2, 4, "")
    gaps = [later - earlier for earlier, later in pairwise(desk.asked)]
    assert gaps == [PARK_FIRST_S, 2 * PARK_FIRST_S, 4 * PARK_FIRST_S]
    assert Ledger(log, "brave").usage.day_used == 4


def test_a_park_survives_a_restart(log: Log) -> None:
    """A park survives a restart: the next process keeps the remaining wait."""
    desk = _desk(log, lambda _: SourceBusy("429", 900.0), tries=1)
    desk.run(QUERIES[:1])
    desk.answering = lambda _: answer(_brave())
    desk.run(QUERIES[:1])
    assert desk.asked == [NOON, NOON + 900]


def test_a_search_by_hand_does_not_wait_for_long(log: Log) -> None:
    """With little patience the round ends; its message names the reason and the end of the wait."""
    desk = _desk(log, lambda _: SourceBusy("brave answers 429", 900.0))
    summary = desk.run(QUERIES, patience_s=120.0, kept=False)
    assert "brave answers 429" in summary.ended and "12:15:00Z" in summary.ended
    assert (summary.queries, summary.refused) == (0, False)


def test_a_refusal_ends_the_round(log: Log) -> None:
    """A wrong key ends the round after one request, because it is wrong for all queries."""
    desk = _desk(log, lambda _: answer({}, status=401))
    summary = desk.run(QUERIES)
    assert (len(desk.asked), summary.queries, summary.refused) == (1, 0, True)
    assert "key" in summary.ended
    desk.answering = lambda _: answer(_brave())
    assert desk.run(QUERIES).queries == len(QUERIES)


def test_a_query_that_is_refused_costs_only_itself(log: Log) -> None:
    """A query beyond Brave's length limit is skipped without a request."""
    desk = _desk(log, lambda _: answer(_brave()))
    summary = desk.run([Query("long", "x" * 500), QUERIES[0]])
    assert (summary.outcomes["refused"], summary.outcomes["found"], len(desk.asked)) == (1, 1, 1)


def test_the_quota_is_never_overdrawn_also_over_restarts(log: Log) -> None:
    """With three requests a month, no process makes a fourth; the round resumes in the next month."""
    desk = _desk(log, lambda _: answer(_brave()), quota_month=3)
    desk.stop_after = 2
    desk.run(QUERIES)
    desk.stop_after = None
    summary = desk.run(QUERIES, patience_s=120.0)
    assert len(desk.asked) == 3
    assert "no request left until 2025-12-01 00:00:00Z" in summary.ended
    assert summary.left == 0
    assert desk.metrics.registry.get_sample_value("farmwatch_search_quota_left", {"source": "brave"}) == 0
    desk.stop_after, desk.now = 5, 1_764_547_200 - 100.0
    desk.run(QUERIES)
    assert [moment >= 1_764_547_200 for moment in desk.asked] == [False] * 3 + [True] * 2  # 2025-12-01


def test_processes_beside_each_other_do_not_overdraw_a_quota(tmp_path: Path) -> None:
    """Two concurrent processes that share twenty requests a day make twenty, and twenty are counted."""
    url = f"sqlite:{tmp_path / 'log'}"
    made = open_log(url)
    made.create(all_topics(PARTITIONS, "e"))
    made.close()
    code = (
        "import sys; from functools import partial; from pathlib import Path\n"
        "from crawler.sources.brave import Brave; from stream.log.file_lock import file_lock\n"
        "from crawler.sources.settings import BraveSettings; from crawler.sources.source import Query\n"
        "from stream.opening import open_log; from tests.support.web.search_desk import Desk, answer\n"
        "mine = BraveSettings(rate=100.0, quota_day=20)\n"
        "desk = Desk(open_log(sys.argv[1]), Brave(mine, 'key'), mine, lambda _: answer({}))\n"
        "desk.exclusive = partial(file_lock, Path(sys.argv[2]))\n"
        "print('ready', flush=True); sys.stdin.readline()\n"
        "desk.run([Query(f'q{n}', 'garden') for n in range(20)], patience_s=60.0, kept=False)\n"
        "print(len(desk.asked))\n"
    )
    command = [sys.executable, "-c", code, url, str(tmp_path / "lock")]
    searches = [
        subprocess.Popen(command, cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) for _ in range(2)
    ]
    for search in searches:
        assert search.stdout is not None and search.stdout.readline() == "ready\n"
    for search in searches:
        assert search.stdin is not None
        search.stdin.write("\n")
        search.stdin.flush()
    asked = [int(search.communicate(timeout=60)[0]) for search in searches]
    made = open_log(url)
    assert (sum(asked), Ledger(made, "brave").usage.day_used) == (20, 20)
    made.close()
    assert sum(count > 0 for count in asked) > 1, "they were at work at the same time"


def _keep_unreadable(log: Log) -> None:
    log.append([Output(CONTROL, 0, b"search/brave", b"\xc1")])


def test_an_unreadable_usage_does_not_reset_the_quota(log: Log) -> None:
    """After an unreadable usage record the last known usage holds: of three requests a day, one is left."""
    desk = _desk(log, lambda _: answer(_brave()), quota_day=3)
    desk.run(QUERIES[:2], kept=False)
    _keep_unreadable(log)
    assert desk.run(QUERIES, patience_s=1.0, kept=False).queries == 1


def test_a_source_without_a_known_usage_is_refused_until_its_counts_reset(log: Log) -> None:
    """Without a known usage, no request is made until the counts reset, and the message names that day."""
    _keep_unreadable(log)
    desk = _desk(log, lambda _: answer(_brave()), quota_day=3)
    ledger = Ledger(log, "brave", clock=lambda: written_s)
    written_s = next(iter(log.read(CONTROL, 0))).timestamp_ms / 1000
    assert not ledger.is_readable
    reset = datetime.fromtimestamp(next_month_s(written_s), UTC)
    with pytest.raises(SourceRefused, match=f"wait until the counts reset on {reset:%Y-%m-%d}"):
        ledger.change(lambda usage: counted(usage, written_s))
    desk.now = written_s
    summary = desk.run(QUERIES)
    assert (summary.refused, desk.asked) == (True, []) and "cannot be read" in summary.ended
    desk.now = reset.timestamp()
    assert desk.run(QUERIES, patience_s=1.0, kept=False).queries == 3


def test_the_end_is_not_kept_waiting_by_a_request(log: Log) -> None:
    """On shutdown, a pending request is cancelled, and its query is repeated in the next run."""
    desk = _desk(log, lambda _: answer(_brave()))
    desk.stop_after, desk.together = 1, 2  # the response takes five seconds
    summary = desk.run(QUERIES)
    assert (summary.queries, summary.ended, desk.hits()) == (0, "stopped", [])
    desk.stop_after, desk.together = None, 1
    assert desk.run(QUERIES).queries == len(QUERIES)


def test_a_query_that_is_asked_again_after_a_crash_gives_the_same_ids(log: Log) -> None:
    """A process dies after appending hits and before its progress: the hits are repeated with the same ids."""
    desk = _desk(log, lambda _: answer(_brave()))
    desk.run(QUERIES[:1], kept=False)
    desk.run(QUERIES[:1], kept=False)
    ids = [hit.id for hit in desk.hits()]
    assert (len(ids), len(set(ids))) == (4, 2)


def test_the_rate_is_kept(log: Log) -> None:
    """With two requests a second, six queries start half a second apart, also after a restart."""
    mine = BraveSettings(rate=2.0)
    desk = Desk(log, Brave(mine, "key"), mine, lambda _: answer(_brave()))
    desk.run(QUERIES[:3])
    desk.run(QUERIES[:3])
    assert all(later - earlier >= 0.499 for earlier, later in pairwise(desk.asked))


def test_searxng_is_asked_at_most_so_many_at_once(log: Log) -> None:
    """At most `at_once` queries are in flight, and each is answered under its own id."""
    mine = SearxngSettings(url="http://127.0.0.1:1", rate=100.0)
    said = {"results": [{"url": "https://a.example/", "engine": "e"}], "unresponsive_engines": [["qwant", "timeout"]]}
    desk = Desk(log, Searxng(mine), mine, lambda _: answer(said))
    desk.together = 2
    summary = desk.run(QUERIES)
    assert desk.most_under_way == 2
    assert sorted(hit.query_id for hit in desk.hits()) == [query.id for query in QUERIES]
    assert summary.unresponsive == {"qwant": "timeout"}
    assert Ledger(log, "searxng").usage.unresponsive == {"qwant": "timeout"}


class _AwayLog(MemoryLog):
    """A log whose next few appends fail."""

    def __init__(self) -> None:
        super().__init__()
        self.away = 0

    def append(self, outputs: Sequence[Output]) -> list[int]:
        """Fail, while the log is away."""
        if self.away:
            self.away -= 1
            raise LogUnavailable("the broker is away")
        return super().append(outputs)


class _CountingLog(MemoryLog):
    """A log that counts how often it is read."""

    reads = 0

    def read(self, topic: str, partition: int, start: int = 0, stop: int | None = None) -> Iterator[Message]:
        """Count, and read."""
        self.reads += 1
        return super().read(topic, partition, start, stop)


def test_a_look_where_nothing_is_new_reads_nothing() -> None:
    """A poll without new records reads nothing, because each read on Kafka opens a consumer."""
    log = _CountingLog()
    log.create(all_topics(PARTITIONS, "e"))
    log.append([Output(CONTROL, 0, b"other", b"x")])
    ledger = Ledger(log, "brave")
    reads = log.reads
    ledger.refresh()
    assert log.reads == reads
    log.append([Output(CONTROL, 0, b"other", b"x")])
    ledger.refresh()
    assert log.reads == reads + 1


def test_a_daemon_waits_for_its_log_and_asks_nothing_meanwhile() -> None:
    """A daemon makes no request that it cannot count; a manual search ends instead."""
    log = _AwayLog()
    log.create(all_topics(PARTITIONS, "e"))
    desk = _desk(log, lambda _: answer(_brave()))
    log.away = 3
    summary = desk.run(QUERIES[:2])
    assert (summary.hits, summary.ended) == (4, "")
    assert desk.asked[0] == NOON + 15.0
    log.away = 1
    with pytest.raises(LogUnavailable):
        desk.run(QUERIES[:2], patience_s=60.0)


def test_queries_are_read_in_three_forms() -> None:
    """Queries are read from a list, CSV and JSONL; a query without an id is its own id; broken lines are named."""
    plain, bad = read_queries([b"garden  wall\n", b"# a remark\n", b"\n", b"how to, quickly\n"])
    assert ([query.id for query in plain], bad) == (["garden wall", "how to, quickly"], [])
    lines = [b"query_id;query;language;country\n", b"a;garden;de;AT\n", b"b;;;\n", b"c;x;no such!;\n", b"a;other;;\n"]
    table, bad = read_queries(lines)
    assert table == [Query("a", "garden", "de", "AT")]
    assert [line.number for line in bad] == [3, 4, 5]
    objects, bad = read_queries([b'{"query": "garden", "query_id": 7}\n', b'{"query": 5}\n', b"{\n"])
    assert (objects, [line.number for line in bad]) == ([Query("7", "garden")], [2, 3])


def test_sources_do_not_share_their_records(log: Log) -> None:
    """Sources do not share parks; an unreadable record counts as none."""
    desk = _desk(log, lambda _: SourceBusy("429"), tries=1)
    desk.run(QUERIES[:1])
    assert Ledger(log, "mojeek").usage.park_level == 0
    log.append([Output(CONTROL, 0, b"search/mojeek", b"\xc1"), Output(CONTROL, 0, b"other", b"x")])
    assert Ledger(log, "mojeek").usage.day_used == 0


def test_an_unexpected_redirect_or_refusal_leaves_hits_of_earlier_pages(log: Log) -> None:
    """If the first result page is answered and the second refused, the results of the first are kept."""
    script: list[SourceAnswer | Exception] = [answer(_brave()), SourceRefused("moved")]
    desk = _desk(log, lambda _: script.pop(0), pages=2)
    summary = desk.run(QUERIES[:1])
    assert (summary.ended, len(desk.hits())) == ("moved", 2)


def test_of_some_queries_twice_as_many_pages_are_asked_for(log: Log) -> None:
    """Twice as many of the queries named, never more than the source gives, and ranks continue."""
    desk = _desk(log, lambda _: answer(_brave()), pages=2)
    desk.run(QUERIES[:2], deeper={"q1"})
    assert [sum(hit.query_id == query for hit in desk.hits()) for query in ("q0", "q1")] == [4, 8]
    assert max(hit.rank for hit in desk.hits()) == 8
    capped = _desk(log, lambda _: answer(_brave()), pages=8)
    capped.run(QUERIES[2:3], deeper={"q2"})
    assert len(capped.asked) == capped.source.pages_cap
