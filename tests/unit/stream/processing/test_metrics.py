"""The metrics of a process."""

from __future__ import annotations

from prometheus_client import generate_latest

from stream.processing.metrics import LOG_LAG_SECONDS, LOG_RECORDS, Metrics


def test_a_cleared_gauge_loses_its_series() -> None:
    """Only the series of the cleared gauge go, and it can be set again."""
    metrics = Metrics()
    metrics.set(LOG_LAG_SECONDS, 1, topic="a")
    metrics.count(LOG_RECORDS, topic="t", direction="in")
    metrics.clear(LOG_LAG_SECONDS)
    metrics.set(LOG_LAG_SECONDS, 1, topic="b")
    page = generate_latest(metrics.registry).decode()
    assert 'farmwatch_log_lag_seconds{topic="b"} 1.0' in page and 'topic="a"' not in page
    assert 'topic="t"} 1.0' in page
