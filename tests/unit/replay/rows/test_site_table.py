"""The newest row of every site: rows in columns read like the rows of the log, in a fraction of the memory."""

from __future__ import annotations

import random
import tracemalloc
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

import msgspec
import pytest
import structlog
from hypothesis import given, settings
from hypothesis import strategies as st

from replay.rows.site_table import SiteTable, ends_of, read_rows
from scoring.rates.split_rates import RateQuery, rate_lines
from scoring.rates.terms import counted_at
from stream.log.contract import At, CleanupPolicy, Message, Output, Topic, partition_of
from stream.memory.log import MemoryLog
from stream.schema.forgotten import Forgotten, ForgottenHost
from stream.schema.records import AdsTxt, SiteState, encode
from stream.schema.topics import ADS_TXT, CONTROL, SITES

PARTITIONS = 3
FIELDS = [field.name for field in msgspec.structs.fields(SiteState)]
_TEXTS = st.sampled_from(["", "a", "llm", "human", "lite-ngram/1"])
_FORMER = st.none() | st.builds(SiteState, id=st.just("x"), site=st.just("x"), verdict=_TEXTS, pages=st.integers(0, 3))
_ROWS = st.builds(
    SiteState,
    id=st.just(""),
    site=st.sampled_from([f"{name}.example" for name in "abcdéfgh"]),
    verdict=_TEXTS,
    pages=st.sampled_from([0, 1, 127, 128, 2**15, 2**31 - 1, 2**31]),
    scored=st.integers(0, 40),
    llr=st.floats(allow_nan=False),
    dropped_by=st.dictionaries(_TEXTS, st.integers(1, 3)),
    queries=st.lists(_TEXTS),
    updated_at=st.integers(0, 2**53),
    mixed=st.booleans(),
    days=st.lists(st.integers(0, 30_000), max_size=3),
    former=_FORMER,
)


class _Marked(MemoryLog):
    """A log with a transaction marker after the last records; remembers the partitions that are read."""

    def __init__(self) -> None:
        super().__init__()
        self.create([Topic(name, PARTITIONS, CleanupPolicy.COMPACT) for name in (SITES, ADS_TXT, CONTROL)])
        self.read_partitions: list[int] = []
        self.unreadable = ""  # topic whose read fails

    def end(self, topic: str) -> list[int]:
        return [end + 1 for end in super().end(topic)]

    def read_all(self, ranges: Mapping[At, tuple[int, int]]) -> Iterator[Message]:
        self.read_partitions += [at.partition for at in ranges]
        if any(at.topic == self.unreadable for at in ranges):
            raise ConnectionError
        return super().read_all(ranges)


def _put(log: MemoryLog, *rows: SiteState | str) -> None:
    """Append rows; a name alone is a tombstone."""
    log.append(
        [
            Output(SITES, partition_of(site, PARTITIONS), site.encode(), None if isinstance(row, str) else encode(row))
            for row in rows
            for site in [row if isinstance(row, str) else row.site]
        ]
    )


def _fields(rows: Iterable[SiteState]) -> list[list[Any]]:
    return [
        [getattr(row, name) for name in FIELDS if name != "former"] + (_fields([row.former]) if row.former else [None])
        for row in rows
    ]


@settings(max_examples=50, deadline=None)
@given(looks=st.lists(st.lists(_ROWS, max_size=8), max_size=3))
def test_rows_read_like_those_of_the_log(looks: list[list[SiteState]]) -> None:
    """Every field of every row is equal, for any content, after each refresh and in the same order."""
    log = _Marked()
    table = SiteTable(log, SITES)
    for rows in looks:
        _put(log, *(msgspec.structs.replace(row, id=row.site) for row in rows))
        table.refresh()
        expected = read_rows(log, SITES)
        assert _fields(table.rows()) == _fields(expected)
        assert (len(table), table.ends) == (len(expected), ends_of(log, SITES))


def test_rates_of_a_table_are_those_of_its_rows() -> None:
    """Also where the row of the term before counts, or a verdict is too old."""
    log = _Marked()
    row = SiteState(
        id="", site="", verdict="llm", detector="d", pages=9, articles=9, scored=9, term_start=1, term_end=9
    )
    names = [f"{number}.example" for number in range(12)]
    for number, name in enumerate(names):
        named = msgspec.structs.replace(row, id=name, site=name, flagged=number % 9, term_end=9 if number % 4 else 90)
        later = msgspec.structs.replace(named, verdict="unclassifiable", scored=0, term=1, former=named)
        _put(log, later if number % 3 else named)
    table = SiteTable(log, SITES)
    table.refresh()
    assert rate_lines(list(table.rows()), RateQuery(now_ms=50)) == rate_lines(
        read_rows(log, SITES), RateQuery(now_ms=50)
    )


def test_only_partitions_with_new_records_are_read() -> None:
    """A refresh without a change reads nothing; a new row or tombstone makes its partition be read."""
    log = _Marked()
    names = [f"{n}.example" for n in range(20)]
    _put(log, *(SiteState(id=name, site=name) for name in names))
    table = SiteTable(log, SITES)
    table.refresh()
    log.read_partitions.clear()
    table.refresh()
    assert log.read_partitions == []
    _put(log, names[0])
    table.refresh()
    assert log.read_partitions == [partition_of(names[0], PARTITIONS)]
    assert [row.site for row in table.rows()] == sorted(names[1:])


def test_a_forgotten_site_leaves_a_table_that_has_read_it() -> None:
    """A long-running process drops the row of a host that was forgotten meanwhile."""
    log = _Marked()
    _put(log, *(SiteState(id=site, site=site) for site in ("a", "b")))
    table = SiteTable(log, SITES)
    table.refresh()
    log.append(Forgotten(log).outputs("a", ForgottenHost(at=1)))
    log.erase(["a"])
    table.refresh()
    assert [row.site for row in table.rows()] == ["b"]


def test_an_unreadable_row_changes_nothing_and_is_told_once() -> None:
    """The row before an unreadable one stays; a refresh that reads the partition again does not repeat the warning."""
    log = _Marked()
    _put(log, SiteState(id="a", site="a", pages=7))
    log.append([Output(SITES, partition_of("a", PARTITIONS), b"a", b"no row")])
    table = SiteTable(log, SITES)
    with structlog.testing.capture_logs() as told:
        table.refresh()
        log.append([Output(SITES, partition_of("a", PARTITIONS), b"b", encode(SiteState(id="b", site="b")))])
        table.refresh()
    assert [row.pages for row in table.rows()] == [7, 0]
    assert [event["event"] for event in told] == ["record_unreadable"]


def test_a_site_takes_a_fraction_of_its_row() -> None:
    """Rows of different pages, queries and days take less than 200 bytes per site, and above 1,200 as structs."""
    chance = random.Random(1)
    log = _Marked()
    names = [f"{chance.randbytes(6).hex()}.example" for _ in range(4000)]
    _put(
        log,
        *(
            SiteState(
                id=name,
                site=name,
                verdict="human",
                detector="lite-ngram/904c6e35/p0.95",
                digest="7ccf76a2abe7e03a",
                ruleset="default",
                pages=chance.randint(0, 40),
                llr=chance.gauss(0, 3),
                dropped_by={"language": chance.randint(1, 5)},
                sources=["searxng"],
                queries=[f"q{chance.randint(0, 200)}"],
                updated_at=1_700_000_000_000 + number,
                days=[20_000 + chance.randint(0, 100)],
            )
            for number, name in enumerate(names)
        ),
    )
    tracemalloc.start()
    table = SiteTable(log, SITES)
    table.refresh()
    in_columns = tracemalloc.get_traced_memory()[0]
    rows = read_rows(log, SITES)
    as_structs = tracemalloc.get_traced_memory()[0] - in_columns
    tracemalloc.stop()
    assert in_columns / len(rows) < 200 < 1200 < as_structs / len(rows)


def test_what_ads_txt_states_is_on_the_rows_of_all_readers() -> None:
    """An account or an owner on no page has 0 pages; one on pages keeps them. A later statement replaces it."""
    log = _Marked()
    on_page, stated, owner = "ads:adsense:1111111111", "ads:adsense:2222222222", "ads-txt:owner:owner.example"
    _put(log, SiteState(id="a", site="a", signals={on_page: 3}), SiteState(id="b", site="b"))
    table = SiteTable(log, SITES)
    for ids, domain, signals in (
        ([], "", {on_page: 3}),
        (["pub-1111111111", "pub-2222222222"], "owner.example", {owner: 0, on_page: 3, stated: 0}),
        ([], "", {on_page: 3}),
    ):
        record = AdsTxt(id="a", site="a", owner_domain=domain, google_ids=ids)
        log.append([Output(ADS_TXT, partition_of("a", PARTITIONS), b"a", encode(record))])
        table.refresh()
        assert [row.signals for row in table.rows()] == [row.signals for row in read_rows(log, SITES)] == [signals, {}]


def test_a_statement_is_not_lost_by_a_refresh_that_failed() -> None:
    """The next refresh adds it, though no row has changed since; until then the table is not at the log's end."""
    log, owner = _Marked(), "ads-txt:owner:owner.example"
    _put(log, SiteState(id="a", site="a"))
    table = SiteTable(log, SITES)
    table.refresh()
    before = table.ends
    record = AdsTxt(id="a", site="a", owner_domain="owner.example")
    log.append([Output(ADS_TXT, partition_of("a", PARTITIONS), b"a", encode(record))])
    assert before != ends_of(log, SITES)
    log.unreadable = SITES
    with pytest.raises(ConnectionError):
        table.refresh()
    log.unreadable = ""
    table.refresh()
    assert [row.signals for row in table.rows()] == [{owner: 0}] and table.ends == ends_of(log, SITES)


def test_a_statement_counts_while_the_term_before_does() -> None:
    """A site whose new term has no verdict counts by its former row: an operator stays one when a term begins."""
    log = _Marked()
    row = SiteState(id="a", site="a", verdict="llm", scored=9, flagged=9, term_start=1, term_end=9)
    _put(log, msgspec.structs.replace(row, verdict="unclassifiable", scored=0, flagged=0, term=1, former=row))
    record = AdsTxt(id="a", site="a", owner_domain="owner.example")
    log.append([Output(ADS_TXT, partition_of("a", PARTITIONS), b"a", encode(record))])
    table = SiteTable(log, SITES)
    table.refresh()
    for (read,) in (read_rows(log, SITES), list(table.rows())):
        counted = counted_at(read, 9)
        assert (counted.verdict, counted.signals) == ("llm", {"ads-txt:owner:owner.example": 0})


def test_a_log_of_before_ads_txt_was_read_has_its_rows() -> None:
    """Without the topic nothing is stated; a process that runs when the topic is created reads it from then on."""
    log = MemoryLog()
    log.create([Topic(name, PARTITIONS, CleanupPolicy.COMPACT) for name in (SITES, CONTROL)])
    _put(log, SiteState(id="a", site="a"))
    table = SiteTable(log, SITES)
    table.refresh()
    assert [row.signals for row in table.rows()] == [row.signals for row in read_rows(log, SITES)] == [{}]
    assert table.ends == ends_of(log, SITES) == log.end(SITES)
    log.create([Topic(ADS_TXT, PARTITIONS, CleanupPolicy.COMPACT)])
    record = AdsTxt(id="a", site="a", owner_domain="owner.example")
    log.append([Output(ADS_TXT, partition_of("a", PARTITIONS), b"a", encode(record))])
    table.refresh()
    assert [row.signals for row in table.rows()] == [{"ads-txt:owner:owner.example": 0}]
