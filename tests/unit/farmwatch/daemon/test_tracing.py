"""Traces: spans of committed records only, sent to a real collector on loopback, without delaying a stage."""

from __future__ import annotations

import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import closing

import pytest
import structlog

from farmwatch.daemon.roles import tracing
from stream.log.contract import At, Commit, Member, Output, Topic
from stream.memory.log import MemoryLog
from stream.processing.loop import StageLoop
from stream.schema.records import Hit, encode
from tests.support.logs.loops import Around, Copying, Transient, cycle, loop_on, refusing
from tests.support.paths import ROOT
from tests.support.waiting import wait_until
from tests.support.web.collector import Collector

ENDPOINT = "OTEL_EXPORTER_OTLP_ENDPOINT"
_URL = "https://a.example/private"


@pytest.fixture
def log() -> Iterator[MemoryLog]:
    with closing(MemoryLog()) as made:
        made.create([Topic(name, 2) for name in ("in", "out", "dead-letters")])
        yield made


def put(log: MemoryLog, *traces: int, **more: str) -> None:
    """A record of each trace; each fetch has the span 7."""
    for trace in traces:
        headers = {"traceparent": f"00-{trace:032x}-{7:016x}-01", **more}
        log.append([Output("in", 0, b"a.example", encode(Hit(id="1", site="a.example", url=_URL)), headers)])


def traced_loop(log: MemoryLog, trace: object, *faults: Exception) -> StageLoop:
    """A loop of a stage whose first commits fail."""
    stage = Copying()
    member = refusing(log.join("copies", ["in"], member="one"), *faults)
    return loop_on(log, stage, member=trace(stage, member, "copies"))  # type: ignore[operator]


def test_a_record_is_a_span_of_its_pages_trace(log: MemoryLog, monkeypatch: pytest.MonkeyPatch) -> None:
    """A record is a span below its fetch, with stage, run and place, and without content."""
    put(log, 1, run="first")
    with Collector() as collector:
        monkeypatch.setenv(ENDPOINT, collector.endpoint)
        monkeypatch.setenv("OTEL_EXPORTER_OTLP_HEADERS", "authorization=Bearer%20secret")
        with tracing("sqlite:log") as trace:
            cycle(traced_loop(log, trace))
        (span,) = collector.spans
        assert (span.trace, span.parent, span.name) == (f"{1:032x}", f"{7:016x}", "process in")
        assert span.id not in ("", span.parent) and span.start_ns <= span.end_ns
        expected = {
            "farmwatch.stage": "copying",
            "farmwatch.run": "first",
            "messaging.system": "sqlite",
            "messaging.consumer.group.name": "copies",
            "messaging.operation.name": "process",
            "messaging.operation.type": "process",
            "messaging.destination.name": "in",
            "messaging.destination.partition.id": "0",
            "messaging.kafka.offset": 0,
            "service.name": "farmwatch",
        }
        assert expected.items() <= span.attributes.items()
        assert not [body for body in collector.bodies if b"a.example" in body or b"secret" in body]


def test_what_is_rolled_back_is_not_exported(log: MemoryLog, monkeypatch: pytest.MonkeyPatch) -> None:
    """A batch whose commits fail exports no span; once committed, each record has one, whatever the retries."""
    put(log, 1, 2)
    with Collector() as collector:
        monkeypatch.setenv(ENDPOINT, collector.endpoint)
        with tracing("sqlite:log") as trace:
            cycle(traced_loop(log, trace, *[Transient("no")] * 99), 5)
        assert log.committed("copies", "in")[0] is None and collector.spans == []
        with tracing("sqlite:log") as trace:
            cycle(traced_loop(log, trace, Transient("no"), Transient("no")))
        assert log.committed("copies", "in")[0] == 2
        assert Counter(int(span.trace, 16) for span in collector.spans) == {1: 1, 2: 1}


def test_what_another_member_has_processed_is_not_exported(log: MemoryLog, monkeypatch: pytest.MonkeyPatch) -> None:
    """If a partition is lost and returns, spans of records that another member processed are not exported."""
    put(log, 1, 2, 3)
    epochs = {0: 1, 1: 1}
    member = Around(log.join("copies", ["in"], member="one"), assignment=lambda: dict(epochs))
    with Collector() as collector:
        monkeypatch.setenv(ENDPOINT, collector.endpoint)
        with tracing("sqlite:log") as trace:
            traced: Member = trace(Copying(), member, "copies")
            assert len(traced.poll(0, 2, 1_000_000)) == 2
            epochs[0] = 2
            assert len(traced.poll(0, 1, 1_000_000)) == 1
            traced.commit(Commit(offsets={At("in", 0): 3}))
        assert [int(span.trace, 16) for span in collector.spans] == [3]


@pytest.mark.parametrize("sampler", ["traceidratio", "parentbased_traceidratio"])
def test_stages_sample_the_same_traces(sampler: str, log: MemoryLog, monkeypatch: pytest.MonkeyPatch) -> None:
    """The standard samplers decide by trace: all spans of a page are kept, or none."""
    monkeypatch.setenv("OTEL_TRACES_SAMPLER", sampler)
    monkeypatch.setenv("OTEL_TRACES_SAMPLER_ARG", "0.5")
    traces = [number << 56 | number for number in range(256)]
    put(log, *traces[1:])
    put(log, *traces[1:])  # as by a second stage
    with Collector() as collector:
        monkeypatch.setenv(ENDPOINT, collector.endpoint)
        with tracing("sqlite:log") as trace:
            cycle(traced_loop(log, trace))
        assert Counter(int(span.trace, 16) for span in collector.spans) == dict.fromkeys(traces[1:128], 2)


def test_a_silent_collector_does_not_hold_up_a_role(log: MemoryLog, monkeypatch: pytest.MonkeyPatch) -> None:
    """While the collector is silent, records are committed, and the process ends long before the timeout."""
    put(log, *range(1, 1500))
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_TIMEOUT", "300")
    with structlog.testing.capture_logs() as said:
        with Collector(silent=True) as collector:
            monkeypatch.setenv(ENDPOINT, collector.endpoint)
            with tracing("sqlite:log") as trace:
                cycle(traced_loop(log, trace))
                assert log.committed("copies", "in")[0] == 1499
                began_s = time.monotonic()
            assert time.monotonic() - began_s < 25
        # the library's thread outlives the role, and must not log into another test
        wait_until(lambda: "traces_lost" in {one["event"] for one in said}, lambda: str(said))


def test_a_collector_that_is_away_is_named_once(
    log: MemoryLog, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    """An unavailable collector is one event with a remedy; the library logs nothing."""
    put(log, 1)
    with Collector() as away:
        monkeypatch.setenv(ENDPOINT, away.endpoint)
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_TIMEOUT", "0.5")
    with structlog.testing.capture_logs() as said, tracing("sqlite:log") as trace:
        cycle(traced_loop(log, trace))
    assert [one["event"] for one in said if "trace" in one["event"]] == ["traces_lost"]
    assert "opentelemetry" not in capfd.readouterr().err.lower()


@pytest.mark.parametrize(
    "variables", [{}, {ENDPOINT: ""}, {ENDPOINT: "http://127.0.0.1:9", "OTEL_SDK_DISABLED": "true"}]
)
def test_where_it_is_off_nothing_is_imported(variables: dict[str, str]) -> None:
    """Without the variable, or with the SDK disabled, nothing is imported."""
    code = (
        "import sys\nfrom farmwatch.daemon.roles import tracing\nwith tracing('sqlite:x') as trace:\n"
        " assert trace(None, 'member', '') == 'member'\nassert not [m for m in sys.modules if 'opentelemetry' in m]"
    )
    subprocess.run([sys.executable, "-c", code], env={"PYTHONPATH": str(ROOT), **variables}, check=True)


def test_without_the_extra_one_warning_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without the extra, one warning names it, and the role works without traces."""
    monkeypatch.setenv(ENDPOINT, "http://127.0.0.1:9")
    monkeypatch.delitem(sys.modules, "farmwatch.daemon.spans", raising=False)
    monkeypatch.setitem(sys.modules, "opentelemetry.sdk.trace", None)
    with structlog.testing.capture_logs() as said, tracing("sqlite:x") as trace:
        assert trace(Copying(), "member", "") == "member"  # type: ignore[arg-type, comparison-overlap]
    (warning,) = said
    assert (warning["log_level"], warning["mend"]) == ("warning", "pip install '.[otel]' in the checkout")
