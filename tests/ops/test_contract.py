"""Dashboards and rules against the series of a real run, scraped by a real Prometheus."""

from __future__ import annotations

import re
import time
from collections.abc import Iterator
from typing import Any

import pytest
import yaml

from dashboards.alerts import ALERTS, RECORDINGS
from dashboards.grafana_json import query
from dashboards.panels import ANNOTATIONS, ROWS
from farmwatch.metrics import ALL
from tests.ops.promql import flipped, renamed, tokens, wrong_names
from tests.ops.promtool import promtool
from tests.ops.real_run import PACE, RealRun, few_are_enough, real_run
from tests.support.paths import ROOT

pytestmark = pytest.mark.slow

# Windows in which a busy machine starts a process anew
_GRAFANA = {"$__rate_interval": "30s", "$source": "file", "$run": ".*", "[1h]": "[30s]"}


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RealRun]:
    with real_run(tmp_path_factory.mktemp("real")) as seen:
        yield seen


def panel_queries() -> dict[str, str]:
    """Query -> legend of each panel and annotation, as Grafana sends them, with short windows."""
    found = {query(text): legend for row in ROWS for panel in row.panels for text, legend in panel.queries}
    found |= {query(text): "" for _, _, text in ANNOTATIONS}
    for variable, value in _GRAFANA.items():
        found = {text.replace(variable, value): legend for text, legend in found.items()}
    return found


def rule_queries() -> list[str]:
    """Queries of each recording rule and each alert's signal, which a silent alert has too."""
    rules = [PACE.query(text) for text in (*(one.query for one in RECORDINGS), *(alert.signal for alert in ALERTS))]
    return rules + [trigger["metadata"]["query"] for one in _scaled() for trigger in one["spec"]["triggers"]]


def _scaled() -> Iterator[dict[str, Any]]:
    yield from yaml.safe_load_all((ROOT / "deploy/kubernetes/overlays/cluster/scaling.yaml").read_text())


def test_every_query_returns_data(run: RealRun) -> None:
    """Each panel, annotation, recording and signal of an alert has a value, and a legend's labels exist."""
    empty = [text for text in map(few_are_enough, rule_queries()) if not run.prometheus.history(text)]
    for text, legend in panel_queries().items():
        labels = {label for one in run.prometheus.history(text) for label in one["metric"]}
        if not run.prometheus.history(text) or not set(re.findall(r"{{(\w+)}}", legend)) <= labels:
            empty.append(f"{text} # {legend}")
    assert not empty, "\n".join(empty)


def test_every_name_exists(run: RealRun) -> None:
    """Metrics, labels and values of all queries and variables occur in the series of the run."""
    series = run.prometheus.series()
    wrong = {text: wrong_names(text, series) for text in [*panel_queries(), *rule_queries()]}
    assert {text: names for text, names in wrong.items() if names} == {}
    for metric, label in (("farmwatch_live_run_info", "run"), ("farmwatch_share", "source")):
        assert any(label in one for one in series if one["__name__"] == metric)


def test_a_wrong_name_in_a_query_is_seen(run: RealRun) -> None:
    """If any metric, label or value in a panel, annotation or rule is renamed, the checks fail."""
    series = run.prometheus.series()
    wrong = [text for right in [*panel_queries(), *rule_queries()] for text in renamed(right)]
    assert len(wrong) > 300 and [text for text in wrong if not wrong_names(text, series)] == []


def test_a_wrong_comparison_in_a_panel_is_seen(run: RealRun) -> None:
    """A reversed comparison, or a changed join with the live run, gives no data or other data."""
    now_s = time.time()
    for right in panel_queries():
        for wrong in flipped(right):
            assert run.prometheus.history(wrong, now_s) != run.prometheus.history(right, now_s), wrong


def test_every_metric_is_shown_or_left_out_on_purpose() -> None:
    """Metrics without a panel or alert are a cost; only the listed ones, for debugging, have none."""
    used = {token.text for text in [*panel_queries(), *rule_queries()] for token in tokens(text)}
    used = {re.sub(r"_(total|bucket|sum|count)$", "", name).removeprefix("farmwatch_") for name in used}
    closer = {
        *("search_queries", "search_quota_left", "search_unresponsive_engines", "search_round_timestamp_seconds"),
        *("warc_records", "site_memory_sites", "cutovers", "farm_rate"),
    }
    unshown = {metric.name for metric in ALL} - used
    assert unshown == closer, "show it in dashboards/panels.py, or add it to `closer`; or remove it from there"


def test_promtool_finds_no_fault_with_any_page(run: RealRun) -> None:
    """promtool's linter accepts /metrics of each role, of the search and of a replay."""
    assert set(run.pages) == set(run.targets)
    for role, page in run.pages.items():
        checked = promtool("check", "metrics", given=page)
        assert (checked.returncode, checked.stdout) == (0, ""), role
