"""The metrics of a process, used by several threads at once."""

from __future__ import annotations

from prometheus_client import generate_latest

from stream.processing.metrics import Metrics


class _Disturbed(str):
    """A name whose comparison lets another thread add a new label set."""

    __slots__ = ("metrics", "turns")
    metrics: Metrics
    turns: int

    def _disturb(self) -> None:
        self.turns += 1
        self.metrics.count("log_records", topic=f"t{self.turns}", direction="in")

    def __eq__(self, other: object) -> bool:
        self._disturb()
        return str.__eq__(self, other)

    def __ne__(self, other: object) -> bool:
        self._disturb()
        return str.__ne__(self, other)

    __hash__ = str.__hash__


def test_a_gauge_is_cleared_while_others_count() -> None:
    """While a gauge is cleared, new label sets of other metrics are kept."""
    metrics = Metrics()
    name = _Disturbed("live_run_info")
    name.metrics, name.turns = metrics, 0
    metrics.set("live_run_info", 1, run="a", epoch="e")
    metrics.count("log_records", topic="t", direction="in")
    metrics.clear(name)
    metrics.set("live_run_info", 1, run="b", epoch="e")
    page = generate_latest(metrics.registry).decode()
    assert 'farmwatch_live_run_info{epoch="e",run="b"} 1.0' in page and 'run="a"' not in page
    assert name.turns and all(f'topic="t{turn + 1}"}} 1.0' in page for turn in range(name.turns))
