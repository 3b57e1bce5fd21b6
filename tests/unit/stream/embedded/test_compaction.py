"""Compaction of the embedded log, compared with a dict, and the conditions that delay it."""

from __future__ import annotations

from contextlib import closing

from hypothesis import given, settings
from hypothesis import strategies as st

from stream.log.contract import CleanupPolicy, Output, Topic
from stream.memory.log import MemoryLog

DAY_MS = 86_400_000
writes = st.lists(
    st.tuples(st.sampled_from([b"a", b"b", b"c"]), st.one_of(st.none(), st.binary(max_size=3))), max_size=8
)


@given(st.lists(st.tuples(writes, st.integers(0, 2 * DAY_MS)), max_size=5))
@settings(max_examples=25)
def test_what_compaction_leaves_means_the_same(rounds: list[tuple[list[tuple[bytes, bytes | None]], int]]) -> None:
    """After any writes, waits and compactions, reading the topic gives the same dict, one record per key."""
    now = [0]
    with closing(MemoryLog(clock=lambda: now[0])) as log:
        log.create([Topic("t", 1, CleanupPolicy.COMPACT)])
        model: dict[bytes, bytes | None] = {}
        for batch, pause_ms in rounds:
            log.append([Output("t", 0, key, value) for key, value in batch])
            model.update(batch)
            now[0] += pause_ms
            log.expire(now[0])
            found = [(m.key, m.value) for m in log.read("t", 0)]
            assert len({key for key, _ in found}) == len(found)
            assert {k: v for k, v in found if v is not None} == {k: v for k, v in model.items() if v is not None}
            assert log.end("t") == [log.beginning("t")[0]] or found


def test_a_large_partition_is_compacted_when_enough_is_new() -> None:
    """With more than 10,000 records, compaction waits until new records are a tenth of them."""
    with closing(MemoryLog()) as log:
        log.create([Topic("t", 1, CleanupPolicy.COMPACT)])
        log.append([Output("t", 0, b"%d" % n, b"1") for n in range(10_100)])
        log.expire(0)
        log.append([Output("t", 0, b"%d" % n, b"2") for n in range(500)])
        assert log.expire(0) == 0
        assert sum(1 for _ in log.read("t", 0)) == 10_600
        log.append([Output("t", 0, b"%d" % n, b"3") for n in range(800)])
        assert log.expire(0) > 0
        assert sum(1 for _ in log.read("t", 0)) == 10_100
