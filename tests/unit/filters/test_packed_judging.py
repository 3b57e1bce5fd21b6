"""JUDGE decides of packed features what the rules decide of whole ones, on real pages under every shipped ruleset."""

from __future__ import annotations

from itertools import islice
from pathlib import Path

import pytest
from msgspec.structs import replace

from filters.rules.judgement import judge_and_text
from filters.rules.ruleset import load_ruleset, shipped_rulesets
from filters.settings import MeasureSettings
from filters.site_memory.measurer import Measurer
from filters.stages.judge import JudgeStage, request_of
from stream.log.errors import BadRecord
from stream.processing.metrics import Meter
from stream.processing.stage import Context
from stream.schema.records import Features, decode, encode
from stream.schema.vocabulary import KEPT
from tests.support.web.webs import labelled_pages

PAGES, STEP = 24, 79


@pytest.fixture(scope="module")
def pages(shared: Path) -> list[Features]:
    """Features of real pages, and some as an older epoch or a failed extraction left them."""
    measurer = Measurer(MeasureSettings())
    hosts = labelled_pages(shared, every=STEP).hosts
    found = islice(((host, path, page) for host, paths in hosts.items() for path, page in paths.items()), PAGES)
    whole = [measurer.measure(f"http://{host}{path}", page.body, host, encoding="utf-8") for host, path, page in found]
    older = [replace(page, structure=[], segments=None, dates=None, quality={}) for page in whole[:4]]
    shorter = [replace(page, structure=page.structure[:30]) for page in whole[:4]]
    flat = [
        replace(page, extract_path="fallback", measures={**page.measures, "link_code_share": None})
        for page in whole[:4]
    ]
    no_text = [replace(page, text="", extract_error="no_text", structure=[1.0] * 54) for page in whole[:4]]
    return [*whole, *older, *shorter, *flat, *no_text]


@pytest.mark.data
@pytest.mark.parametrize("name", shipped_rulesets())
def test_verdicts_and_requests_are_those_of_whole_features(name: str, pages: list[Features]) -> None:
    """The bytes of each verdict and request equal those of whole features that are judged one by one."""
    stage = JudgeStage(load_ruleset(name))
    context = Context(0, None, Meter(), now_ms=5)
    records = [decode(stage.inputs["features"], encode(page)) for page in pages]
    for record, prepared in zip(records, stage.prepare(records), strict=True):
        assert isinstance(record, Features)
        stage.process(record, prepared, context)
    expected: list[bytes] = []
    for page in pages:
        verdict, text = judge_and_text(page, stage.ruleset, now_ms=5)
        expected.append(encode(verdict))
        if verdict.verdict in KEPT:
            expected.append(encode(request_of(page, verdict, text, "")))
    assert [output.value for output in context.outputs] == expected
    assert len(pages) < len(expected) < 2 * len(pages)


@pytest.mark.data
def test_a_kept_page_whose_text_is_no_text_is_a_bad_record(pages: list[Features]) -> None:
    """It has a dead letter of JUDGE, instead of a request that SCORE cannot read."""
    stage = JudgeStage(load_ruleset("default"))
    kept = next(page for page in pages if judge_and_text(page, stage.ruleset)[0].verdict in KEPT)
    damaged = encode(replace(kept, text="\x00mark\x00")).replace(b"\x00mark\x00", b"\xff" * 6)
    record = decode(stage.inputs["features"], damaged)
    assert isinstance(record, Features)
    (prepared,) = stage.prepare([record])
    with pytest.raises(BadRecord, match="not a Features record, text"):
        stage.process(record, prepared, Context(0, None, Meter(), now_ms=5))
