"""SCORE: one score per request and detector, one reading per text; its readiness, refusals and metrics."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from typing import Any

import msgspec
import pytest

from scoring.errors import CannotScore, DeviceLost, PoisonText
from scoring.interface import Detector, DetectorCounts, TextScore
from scoring.pair.detector import PairDetector
from scoring.pair.scores import PairReading
from scoring.pair.settings import MEASURES
from scoring.stages.score import ScoreStage
from scoring.thresholds.threshold_set import Curve, ThresholdSet
from stream.processing.metrics import Meter, Metrics
from stream.processing.stage import Context
from stream.schema.records import Score, ScoreRequest, decode
from tests.support.fake_detector import FakeDetector
from tests.support.waiting import wait_until


def request(number: int, digest: str, text: str, site: str = "a.example", run: str = "live") -> ScoreRequest:
    """An article's text."""
    return ScoreRequest(
        id=f"f{number}",
        site=site,
        page_id=f"p{number}",
        url="",
        text_digest=digest,
        text=text,
        fetched_at=number,
        run=run,
    )


class Held(FakeDetector):
    """Waits for `release` at the text "shared", then raises the next given error, if any."""

    def __init__(self, *faults: Exception) -> None:
        super().__init__()
        self.faults = list(faults)
        self.begun, self.release = threading.Event(), threading.Event()

    def score(self, texts: Sequence[str]) -> list[TextScore]:
        if "shared" in texts and not self.release.is_set():
            self.begun.set()
            assert self.release.wait(20)
            if self.faults:
                raise self.faults.pop()
        return super().score(texts)


class Batch(threading.Thread):
    """A batch that is prepared in a thread; `found` has its results, or its error."""

    def __init__(self, stage: ScoreStage, *requests: ScoreRequest, name: str | None = None) -> None:
        super().__init__(name=name)
        self.stage, self.requests = stage, requests
        self.found: Any = None
        self.start()

    def run(self) -> None:
        try:
            self.found = self.stage.prepare(self.requests)
        except (DeviceLost, CannotScore) as error:
            self.found = error

    def result(self) -> Any:
        self.join(20)
        return self.found


BASE = "a+b@12345678/float32/512"


class FakeEngine:
    """An engine that reads any text except "bad", which fails on any device; a token is a character."""

    def __init__(self) -> None:
        self.read_texts: list[list[str]] = []
        self.lost = 0
        self.loaded = True

    def read(self, texts: Sequence[str]) -> list[Any]:
        self.read_texts.append(list(texts))
        return [
            PoisonText("too much") if text == "bad" else [PairReading(0.875, 2.5, 0.0, 0.0, len(text))]
            for text in texts
        ]

    def warm_up(self) -> None:
        self.warm = True

    def close(self) -> None:
        self.closed = True

    @property
    def batches(self) -> int:
        return len(self.read_texts)

    @property
    def work(self) -> DetectorCounts:
        tokens = sum(len(text) for texts in self.read_texts for text in texts)
        return DetectorCounts(
            tokens=tokens, padding=3 * self.batches, lost=self.lost, batch_tokens=2048, peak_bytes=2000
        )


def pair_detectors(engine: Any) -> list[PairDetector]:
    """Both measures of a pair on one engine, calibrated."""

    def thresholds(base: str) -> ThresholdSet:
        curve = Curve(slope=0.0, offset=0.0)
        return ThresholdSet(name="mine", detector=base, threshold=0.9, llm_below=True, curve=curve)

    return [
        PairDetector(engine, base, measure, thresholds(base)) for measure in MEASURES for base in [f"{measure}/{BASE}"]
    ]


class Desk:
    """A ready stage, and what it emitted and counted."""

    def __init__(self, *detectors: Any, **settings: Any) -> None:
        self.metrics = Metrics()
        self.detectors = detectors or (FakeDetector(),)
        self.stage = ScoreStage(lambda: self.detectors, metrics=self.metrics, **settings)
        wait_until(lambda: not self.stage.starting(), "the detectors")
        for detector in self.detectors:
            if isinstance(detector, FakeDetector):
                detector.given.clear()  # texts of the warm-up
        self.scores: list[Score] = []
        self.keys: list[bytes] = []
        self.buried: list[Exception] = []

    def run(self, *requests: ScoreRequest) -> None:
        """Prepare, process and commit a batch."""
        prepared = self.stage.prepare(requests)
        assert len(prepared) == len(requests)
        ctx = Context(5, None, Meter(), 77)
        for record, ready in zip(requests, prepared, strict=True):
            try:
                self.stage.process(record, ready, ctx)
            except PoisonText as error:
                self.buried.append(error)
        self.stage.tick({5: ctx})
        ctx.meter.apply(self.metrics)
        assert all(output.topic == "scores" and output.partition == 5 for output in ctx.outputs)
        self.scores += [decode(Score, output.value or b"") for output in ctx.outputs]
        self.keys += [output.key for output in ctx.outputs]

    def value(self, name: str, **labels: str) -> float | None:
        """A metric."""
        return self.metrics.registry.get_sample_value(f"farmwatch_{name}", labels)


def test_each_request_gets_its_score_under_text_and_detector() -> None:
    """Every request has one score, keyed by site, text and detector, with its own fetch."""
    desk = Desk()
    desk.run(request(1, "d1", "LLM text"), request(2, "d2", "text"), request(3, "d3", ""))
    assert desk.keys == [b"a.example d1:fake/1", b"a.example d2:fake/1", b"a.example d3:fake/1"]
    assert [s.id for s in desk.scores] == ["d1:fake/1", "d2:fake/1", "d3:fake/1"]
    assert [(s.fetch_id, s.page_id, s.flag, s.score, s.abstain) for s in desk.scores] == [
        ("f1", "p1", True, 1.0, ""),
        ("f2", "p2", False, 0.0, ""),
        ("f3", "p3", None, None, "too_short"),
    ]
    assert {(s.detector, s.scored_at, s.site) for s in desk.scores} == {("fake/1", 77, "a.example")}
    assert [s.fetched_at for s in desk.scores] == [1, 2, 3]


def test_a_text_is_read_once_in_a_batch_and_over_time() -> None:
    """A text is read once for all requests on any site, in a batch and in later batches."""
    desk = Desk()
    desk.run(request(1, "d1", "LLM"), request(2, "d1", "LLM", "b.example"), request(3, "d2", "y"))
    desk.run(request(4, "d1", "LLM"), request(5, "d3", "z"))
    assert desk.detectors[0].given == [["LLM", "y"], ["z"]]
    assert [s.flag for s in desk.scores] == [True, True, False, True, False]
    assert desk.value("score_cache_lookups_total", result="hit") == 2
    assert desk.value("score_cache_lookups_total", result="miss") == 3


def test_what_is_remembered_is_bounded() -> None:
    """Beyond remembered_texts the least recently used text is read again; 0 remembers none."""
    desk = Desk(remembered_texts=2)
    for number, digest in enumerate(["d1", "d2", "d1", "d3", "d1", "d2"]):
        desk.run(request(number, digest, digest))
    assert desk.detectors[0].given == [["d1"], ["d2"], ["d3"], ["d2"]]
    desk = Desk(remembered_texts=0)
    desk.run(request(1, "d1", "x"))
    desk.run(request(2, "d1", "x"))
    assert desk.detectors[0].given == [["x"], ["x"]]


def test_a_text_in_two_batches_at_once_is_read_once() -> None:
    """The second batch in flight waits for a text that the first one reads, and reads only its own."""
    held = Held()
    desk = Desk(held)
    first = Batch(desk.stage, request(1, "d1", "shared"))
    assert held.begun.wait(20)
    second = Batch(desk.stage, request(2, "d1", "shared"), request(3, "d2", "own"))
    wait_until(lambda: ["own"] in held.given, "the second batch's own text")
    assert first.found is second.found is None
    held.release.set()
    assert [len(batch.result()) for batch in (first, second)] == [1, 2]
    assert sorted(held.given) == [["own"], ["shared"]]


def test_when_the_first_batch_fails_the_second_reads_the_text_itself() -> None:
    """A device lost in the first batch does not fail the second batch."""
    held = Held(DeviceLost("the card fell off the bus"))
    desk = Desk(held)
    first = Batch(desk.stage, request(1, "d1", "shared"))
    assert held.begun.wait(20)
    second = Batch(desk.stage, request(2, "d1", "shared"))
    held.release.set()
    assert isinstance(first.result(), DeviceLost), "the loop gets it, and tries the batch again"
    assert second.result()[0].scores[0].score == 0.0


def test_canary_pages_are_always_read_anew() -> None:
    """Canary pages are always read, even if the text is cached or repeated, because they measure the live path."""
    desk = Desk()
    site = "novels.5f0c2a91d3b7e604.12.20405.human.canary.invalid"
    desk.run(request(1, "d1", "x"))
    desk.run(request(2, "d1", "x", site), request(3, "d1", "x"))
    desk.run(request(4, "d1", "x", site))
    assert desk.detectors[0].given == [["x"], ["x"], ["x"]]
    assert len(desk.scores) == 4


def test_a_poison_text_is_buried_alone() -> None:
    """An engine's exception is the error of that record alone and is not cached; the other records are scored."""
    desk = Desk(*pair_detectors(FakeEngine()), FakeDetector())
    desk.run(request(1, "d1", "x"), request(2, "d2", "bad"), request(3, "d3", "y"))
    desk.run(request(4, "d2", "bad"))
    assert [s.fetch_id for s in desk.scores] == ["f1"] * 3 + ["f3"] * 3
    assert len(desk.buried) == 2
    assert desk.value("score_device_errors_total", kind="poison") == 2


def test_what_the_device_does_is_told_even_of_batches_that_are_rolled_back() -> None:
    """Padding, memory and losses are counted at each round, and also if the batch is rolled back."""
    engine = FakeEngine()
    desk = Desk(*pair_detectors(engine))
    desk.run(request(1, "d1", "four"))
    assert desk.value("score_tokens_total", kind="text") == 4
    assert desk.value("score_tokens_total", kind="padding") == 3
    assert desk.value("score_device_memory_bytes", kind="peak") == 2000
    assert desk.value("score_batch_tokens") == 2048
    assert desk.value("score_device_errors_total", kind="lost") == 0
    engine.lost = 1
    desk.stage.lost([5])
    assert desk.value("score_device_errors_total", kind="lost") == 1
    desk.stage.lost([5])
    assert desk.value("score_device_errors_total", kind="lost") == 1


def test_the_number_shown_is_the_one_that_the_threshold_is_compared_with() -> None:
    """page_score is the number that the threshold applies to: a pair's score, even if it has a p_llm."""
    desk = Desk(*pair_detectors(FakeEngine()))
    desk.run(request(1, "d1", "x"))
    assert [round(s.p_llm or 0, 3) for s in desk.scores] == [0.5, 0.5]

    def up_to(bound: str) -> list[float | None]:
        return [desk.value("page_score_bucket", run="first", detector=s.detector, le=bound) for s in desk.scores]

    assert [up_to(bound) for bound in ("0.8536432310785527", "0.875", "2.0", "3.0")] == [[0, 0], [1, 0], [1, 0], [1, 1]]


def test_metrics_count_texts_once_and_the_batch_once() -> None:
    """A text's tokens and a batch's time count once; results count per request."""
    ticks = iter([10.0, 10.25, 11.0, 11.5])
    desk = Desk(clock=lambda: next(ticks))
    desk.stage.tick({})
    before = desk.value("score_tokens_total", kind="text") or 0  # texts of the warm-up
    desk.run(request(1, "d1", "xxxx"), request(2, "d1", "xxxx"), request(3, "d3", ""))
    desk.run(request(4, "d1", "xxxx"))  # nothing is read, so no time is counted
    assert desk.value("score_tokens_total", kind="text") == before + 4
    assert desk.value("score_tokens_total", kind="padding") == 0
    assert desk.value("score_batch_duration_seconds_count") == 1
    assert desk.value("score_batch_duration_seconds_sum") == 0.25
    labels = {"run": "first", "ruleset": "", "stage": "score"}
    assert desk.value("stage_records_total", **labels, result="scored") == 3
    assert desk.value("stage_records_total", **labels, result="abstained") == 1
    assert desk.value("page_score_count", run="first", detector="fake/1") == 3


def test_a_batch_does_not_count_its_wait_for_the_one_before() -> None:
    """Two batches that begin together and take .5 s each, one after the other, are observed as .5 s each."""
    clocks: dict[str, list[float]] = {"first": [0.0, 0.5], "second": [0.0, 1.0]}
    desk = Desk(clock=lambda: clocks[threading.current_thread().name].pop(0))
    found = [Batch(desk.stage, request(n, f"d{n}", "x"), name=name).result() for n, name in enumerate(clocks)]
    assert [one.batch_s for (one,) in found] == [0.5, 0.5]


def test_work_that_moves_and_models_that_are_loaded_again_show() -> None:
    """Batches and calls count for each detector; from a loss to the reload, the stage is loading and not ready."""
    engine = FakeEngine()
    desk = Desk(*pair_detectors(engine), FakeDetector())
    before = desk.stage.advanced()
    desk.run(request(1, "d1", "x"))
    assert desk.stage.advanced() == before + 2
    assert (desk.stage.ready(), desk.stage.starting()) == (True, False)
    engine.loaded = False
    assert (desk.stage.ready(), desk.stage.starting()) == (False, True)


def test_a_replay_counts_under_its_own_run() -> None:
    """The records of a replay never feed the live series."""
    desk = Desk()
    desk.run(request(1, "d1", "x", run="r7"))
    labels = {"ruleset": "", "stage": "score", "result": "scored"}
    assert desk.value("stage_records_total", run="r7", **labels) == 1
    assert desk.value("stage_records_total", run="first", **labels) is None
    assert desk.value("page_score_count", run="r7", detector="fake/1") == 1


def test_a_request_for_a_detector_that_is_not_there_is_left_unanswered() -> None:
    """A request for a missing detector is not read but counted; without a name, a request gets all scores."""
    desk = Desk(FakeDetector(), FakeDetector("x", "other/2"))
    named = [
        msgspec.structs.replace(request(number, f"d{number}", f"text {number}", run="mine"), detector=detector)
        for number, detector in enumerate(["gone/3", "other/2", "", "gone/3"])
    ]
    desk.run(*named)
    assert desk.keys == [f"a.example d{n}:{by}".encode() for n in (1, 2) for by in ("fake/1", "other/2")]
    assert [detector.given for detector in desk.detectors] == [[["text 1", "text 2"]]] * 2
    labels = {"run": "mine", "ruleset": "", "stage": "score"}
    assert desk.value("stage_records_total", **labels, result="unanswered") == 2
    assert desk.value("stage_records_total", **labels, result="scored") == 2
    desk.run(named[0])
    assert len(desk.keys) == 4


def test_it_is_ready_when_every_detector_has_scored_something() -> None:
    """While a detector is loaded or warms up, the stage is starting and not ready."""
    release, loaded = threading.Event(), threading.Event()

    class Cold(FakeDetector):
        def score(self, texts: Sequence[str]) -> list[TextScore]:
            loaded.set()
            assert release.wait(20)
            return super().score(texts)

    stage = ScoreStage(lambda: [Cold()])
    assert loaded.wait(20)
    assert (stage.starting(), stage.ready()) == (True, False)
    release.set()
    wait_until(stage.ready, "the stage to be ready")
    assert not stage.starting()


def _broken() -> list[Detector]:
    raise OSError("the model folder is empty")


@pytest.mark.parametrize(
    ("load", "said"),
    [
        (_broken, "the model folder is empty"),
        (lambda: [FakeDetector(identity="binoculars/a+b@12345678/float32/512/uncalibrated")], "no thresholds"),
        (lambda: [FakeDetector(), FakeDetector()], "fake/1"),
        (lambda: [], "no detector"),
    ],
)
def test_detectors_that_cannot_be_had_end_the_process(load: Any, said: str) -> None:
    """If detectors cannot be loaded, `prepare` and `tick` raise a fatal error with the cause.

    No record is dead-lettered.
    """
    stage = ScoreStage(load)
    wait_until(lambda: not stage.starting(), "the end of loading")
    assert not stage.ready()
    for call in (lambda: stage.tick({}), lambda: stage.prepare([request(1, "d1", "x")])):
        with pytest.raises(CannotScore, match=said) as raised:
            call()
        assert raised.value.fatal


def test_closing_lets_go_of_whoever_waits_for_the_detectors() -> None:
    """A process stopped while large models load does not wait for them."""
    release = threading.Event()

    def load() -> list[Detector]:
        assert release.wait(20)
        return [FakeDetector()]

    stage = ScoreStage(load)
    waiting = Batch(stage, request(1, "d1", "x"))
    stage.close()
    assert isinstance(waiting.result(), CannotScore)
    release.set()
