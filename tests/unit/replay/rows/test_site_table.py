"""The newest row of every site: each record is read once."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from replay.rows.site_table import SiteTable
from stream.log.contract import At, CleanupPolicy, Message, Output, Topic
from stream.memory.log import MemoryLog
from stream.schema.forgotten import Forgotten, ForgottenHost
from stream.schema.records import SiteState, encode
from stream.schema.topics import CONTROL, SITES


class _Marked(MemoryLog):
    """A log with a transaction marker after the last record."""

    def __init__(self) -> None:
        super().__init__()
        self.looks: list[dict[At, tuple[int, int]]] = []  # records per refresh

    def end(self, topic: str) -> list[int]:
        return [end + 1 for end in super().end(topic)]

    def read_all(self, ranges: Mapping[At, tuple[int, int]]) -> Iterator[Message]:
        self.looks.append(dict(ranges))
        return super().read_all(ranges)


def test_a_refresh_without_new_records_reads_nothing() -> None:
    """Even with a transaction marker after the last row."""
    log = _Marked()
    log.create([Topic(SITES, 1, CleanupPolicy.COMPACT)])
    table = SiteTable(log)
    log.append([Output(SITES, 0, b"a", encode(SiteState(id="a", site="a")))])
    table.refresh()
    table.refresh()
    assert [row.site for row in table.rows()] == ["a"]
    assert log.looks == [{At(SITES, 0): (0, 2)}, {}]


def test_a_forgotten_site_leaves_a_table_that_has_read_it() -> None:
    """A long-running process drops the row of a host that was forgotten meanwhile."""
    log = MemoryLog()
    log.create([Topic(SITES, 1, CleanupPolicy.COMPACT), Topic(CONTROL, 1, CleanupPolicy.COMPACT)])
    log.append([Output(SITES, 0, site.encode(), encode(SiteState(id=site, site=site))) for site in ("a", "b")])
    table = SiteTable(log)
    table.refresh()
    log.append(Forgotten(log).outputs("a", ForgottenHost(at=1)))
    log.erase(["a"])
    table.refresh()
    assert [row.site for row in table.rows()] == ["b"]
