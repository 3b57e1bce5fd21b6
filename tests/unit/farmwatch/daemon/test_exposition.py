"""/metrics also shows the metrics of the process, and the role on every series."""

from __future__ import annotations

import time
import urllib.request
from contextlib import ExitStack
from pathlib import Path

import pytest
from prometheus_client import Metric
from prometheus_client.exposition import choose_encoder
from prometheus_client.openmetrics.parser import text_string_to_metric_families as openmetrics
from prometheus_client.parser import text_string_to_metric_families as text

from farmwatch.commands.runs.replay import _Process
from farmwatch.config.config import load
from farmwatch.daemon.endpoints import ROLE, Exposition
from farmwatch.metrics import ALL
from stream.processing.metrics import DEAD_LETTERS, STAGE_DURATION_SECONDS, Metrics


def _shown(metrics: Metrics, accept: str = "") -> dict[str, Metric]:
    """The families of a page, read back as a scraper reads them."""
    encoder, content_type = choose_encoder(accept)
    page = encoder(Exposition(metrics.registry, "crawl")).decode()
    read = openmetrics if "openmetrics" in content_type else text
    return {family.name: family for family in read(page)}


def _value(shown: dict[str, Metric], name: str) -> float:
    (sample,) = shown[name].samples
    return sample.value


@pytest.mark.parametrize("accept", ["", "application/openmetrics-text; version=1.0.0"])
def test_every_series_has_the_role_and_none_is_created(accept: str) -> None:
    """In both formats, counters, gauges, histograms and process metrics have the label; `_created` is left out."""
    metrics = Metrics()
    metrics.count(DEAD_LETTERS, 3, stage="crawl", reason="BadRecord")
    metrics.observe(STAGE_DURATION_SECONDS, 1, stage="crawl")
    shown = _shown(metrics, accept)
    samples = [sample for family in shown.values() for sample in family.samples]
    assert {sample.labels[ROLE] for sample in samples} == {"crawl"}
    assert [sample.name for sample in samples if sample.name.endswith("_created")] == []
    (died,) = (sample for sample in samples if sample.name == "farmwatch_dead_letters_total")
    assert (died.labels, died.value) == ({"role": "crawl", "stage": "crawl", "reason": "BadRecord"}, 3)
    assert "farmwatch_stage_duration_seconds_bucket" in {sample.name for sample in samples}


def test_no_metric_has_a_role_of_its_own() -> None:
    """The label of the process would overwrite a label of that name."""
    assert [metric.name for metric in ALL if ROLE in metric.labels] == []


def test_the_process_and_its_python_are_shown() -> None:
    """Memory, CPU, open files, start time and garbage collection are those of this process."""
    shown = _shown(Metrics())
    assert _value(shown, "process_resident_memory_bytes") > 10 * 1024**2
    assert _value(shown, "process_cpu_seconds") > 0
    assert 0 < _value(shown, "process_open_fds") < _value(shown, "process_max_fds")
    assert 0 < _value(shown, "process_start_time_seconds") <= time.time() + 1
    assert len(shown["python_gc_collections"].samples) == 3
    assert shown["python_info"].samples[0].labels["implementation"]


def test_a_replay_is_a_role_of_its_own(tmp_path: Path) -> None:
    """The label of a replay's process differs from those of the live roles."""
    with ExitStack() as held:
        process = _Process(load(None, [f"log.url=sqlite:{tmp_path}"], {}).config, "r1", 0, held)
        page = held.enter_context(urllib.request.urlopen(process.url, timeout=10)).read().decode()
    assert 'farmwatch_log_rebalances_total{role="replay"} 0.0' in page
