"""A page's way through all stages is one trace."""

from __future__ import annotations

import json
from collections import defaultdict
from pathlib import Path

import pytest

from farmwatch.demo.server import LoopbackWeb
from stream.processing.heartbeat import is_heartbeat
from stream.schema.records import Page, Verdict, decode
from stream.schema.topics import PAGES, VERDICTS
from tests.ops.endless_web import EndlessWeb
from tests.support.processes.farm import PARTITIONS, Farm
from tests.support.web.collector import Collector, Received

pytestmark = pytest.mark.slow


def test_each_page_is_one_trace_from_its_fetch_to_its_site(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The roles export each record of a page once, below the fetch; an article passes all stages."""
    web = EndlessWeb()
    hits = tmp_path / "hits.jsonl"
    wanted = [hit for hit in web.hits() if hit["query"] in ("q1", "q2")]
    hits.write_text("".join(json.dumps(hit) + "\n" for hit in wanted))
    with Collector() as collector, LoopbackWeb(web.hosts) as served:
        monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", collector.endpoint)
        with Farm(tmp_path, f"sqlite:{tmp_path / 'log'}", served, {"crawl.page_budget": "3"}) as farm:
            farm.work_here(hits, 120)
            with farm.log() as log:
                read = [m for topic in (PAGES, VERDICTS) for p in range(PARTITIONS) for m in log.read(topic, p)]
        found = [m for m in read if m.value and not is_heartbeat(m)]
        pages = [decode(Page, m.value or b"") for m in found if m.topic == PAGES]
        verdicts = [decode(Verdict, m.value or b"") for m in found if m.topic == VERDICTS]
        articles = {verdict.id for verdict in verdicts if verdict.verdict == "article"}
        traces: dict[str, list[Received]] = defaultdict(list)
        for span in collector.spans:
            traces[span.trace].append(span)
        assert traces.keys() == {page.id for page in pages}
        assert articles
        for page in pages:
            (root,) = [span for span in traces[page.id] if not span.parent]
            told = (root.id, root.stage, root.attributes["farmwatch.outcome"])
            assert told == (page.page_id[:16], "crawl", page.outcome)
            assert root.end_ns - root.start_ns == page.duration_ms * 1_000_000
            below = [span for span in traces[page.id] if span.parent]
            assert {span.parent for span in below} == {root.id}
            at = ("destination.name", "destination.partition.id", "kafka.offset")
            places = [(span.stage, *(span.attributes[f"messaging.{name}"] for name in at)) for span in below]
            assert len(set(places)) == len(places)
            passed = {span.stage for span in below}
            assert {"measure", "judge"} <= passed
            assert page.id not in articles or {"score", "tally"} <= passed
        assert not [body for body in collector.bodies if b".example/" in body]
