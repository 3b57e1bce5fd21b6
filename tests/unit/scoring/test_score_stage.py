"""SCORE: one score per request, one run of the detector per text."""

from __future__ import annotations

from collections.abc import Sequence

from scoring.score_stage import ScoreStage
from scoring.testing import FakeDetector
from stream.metrics import Meter, Metrics
from stream.records import Score, ScoreRequest, decode
from stream.stage import Context


def request(number: int, digest: str, text: str) -> ScoreRequest:
    """An article's text."""
    return ScoreRequest(
        id=f"f{number}",
        site="a.example",
        page_id=f"p{number}",
        url="",
        text_digest=digest,
        text=text,
        fetched_at=number,
    )


def run(requests: Sequence[ScoreRequest]) -> tuple[list[Score], list[bytes], Metrics, FakeDetector]:
    """Prepare and process a batch; scores, keys, metrics and the detector."""
    detector = FakeDetector()
    ticks = iter([10.0, 10.25])
    stage = ScoreStage(detector, clock=lambda: next(ticks))
    prepared = stage.prepare(requests)
    assert len(prepared) == len(requests)
    ctx = Context(5, None, Meter(), 77)
    for record, ready in zip(requests, prepared, strict=True):
        stage.process(record, ready, ctx)
    metrics = Metrics()
    ctx.meter.apply(metrics)
    assert all(output.topic == "scores" and output.partition == 5 for output in ctx.outputs)
    values = [decode(Score, output.value or b"") for output in ctx.outputs]
    return values, [output.key for output in ctx.outputs], metrics, detector


def test_each_request_gets_its_score_under_text_and_detector() -> None:
    """Every request has one score, named by text and detector, keyed by site besides, with its own fetch."""
    scores, keys, _, _ = run([request(1, "d1", "LLM text"), request(2, "d2", "text"), request(3, "d3", "")])
    assert keys == [b"a.example d1:fake/1", b"a.example d2:fake/1", b"a.example d3:fake/1"]
    assert [s.id for s in scores] == ["d1:fake/1", "d2:fake/1", "d3:fake/1"]
    assert [(s.fetch_id, s.page_id, s.flag, s.score, s.abstain) for s in scores] == [
        ("f1", "p1", True, 1.0, ""),
        ("f2", "p2", False, 0.0, ""),
        ("f3", "p3", None, None, "too_short"),
    ]
    assert {(s.detector, s.scored_at, s.site) for s in scores} == {("fake/1", 77, "a.example")}
    assert [s.fetched_at for s in scores] == [1, 2, 3]


def test_a_text_is_scored_once_a_batch() -> None:
    """Two requests for one text run the detector once and both get its score."""
    scores, _, _, detector = run([request(1, "d1", "LLM"), request(2, "d1", "LLM"), request(3, "d2", "y")])
    assert detector.given == [["LLM", "y"]]
    assert [s.flag for s in scores] == [True, True, False]


def test_metrics_count_texts_once_and_the_batch_once() -> None:
    """Tokens of a text count once, its batch's time is observed once, results are counted per request."""
    _, _, metrics, _ = run([request(1, "d1", "xxxx"), request(2, "d1", "xxxx"), request(3, "d3", "")])
    value = metrics.registry.get_sample_value
    assert value("farmwatch_score_tokens_total", {"kind": "text"}) == 4
    assert value("farmwatch_score_batch_duration_seconds_count") == 1
    assert value("farmwatch_score_batch_duration_seconds_sum") == 0.25
    labels = {"run": "live", "ruleset": "", "stage": "score"}
    assert value("farmwatch_stage_records_total", {**labels, "result": "scored"}) == 2
    assert value("farmwatch_stage_records_total", {**labels, "result": "abstained"}) == 1
    assert value("farmwatch_page_score_count", {"run": "live", "detector": "fake/1"}) == 2


def test_an_empty_batch_is_nothing() -> None:
    """No records, no scores."""
    assert list(ScoreStage(FakeDetector()).prepare([])) == []
