"""The metrics of a process."""

from __future__ import annotations

from prometheus_client import generate_latest

from stream.processing.metrics import LOG_LAG_SECONDS, LOG_RECORDS, STAGE_DURATION_SECONDS, Count, Meter, Metrics


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


def test_what_is_counted_one_by_one_adds_up() -> None:
    """Counts that were made before and those that are not add up by labels; what came after a mark can be undone."""
    meter, metrics = Meter(), Metrics()
    read: Count = (LOG_RECORDS, 2, {"topic": "a", "direction": "in"})
    meter.extend([read, read])
    meter.count(LOG_RECORDS, topic="a", direction="in")
    meter.count(LOG_RECORDS, topic="b", direction="in")
    mark = meter.mark()
    meter.extend([read])
    meter.count(LOG_RECORDS, 7, topic="c", direction="in")
    meter.observe(STAGE_DURATION_SECONDS, 1.0, stage="judge")
    meter.undo(mark)
    meter.extend([read])
    meter.apply(metrics)
    samples = (sample for family in metrics.registry.collect() for sample in family.samples)
    found = {(s.labels["topic"], s.value) for s in samples if s.name == "farmwatch_log_records_total"}
    assert found == {("a", 7), ("b", 1)}
    assert "stage_duration" not in generate_latest(metrics.registry).decode()
