"""MEASURE in the loop: its outputs, memory and counts, and rollbacks."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import msgspec
import pytest
import zstandard

from filters.duplicates.lines import marked_lines
from filters.measure.workers import ExtractionPool
from filters.quality.measures import measure_main
from filters.quality.names import TEXTS
from filters.settings import MeasureSettings, SiteCaps
from filters.site_memory.measurer import Measurer
from filters.site_memory.memory import Likeness
from filters.stages.measure import MeasureStage
from filters.structure.tag_paths import PLACES
from stream.log.contract import Output
from stream.processing.metrics import Meter, Metrics
from stream.processing.stage import Context
from stream.processing.state import KeyedState
from stream.schema.records import Features, Page, Template, decode
from stream.schema.runs import features_of, names_of
from tests.support.logs.loops import count

NewState = Callable[[], KeyedState]
SITE = "a.example"
SETTINGS = MeasureSettings(workers=2)


def page(number: int, html: str, **fields: object) -> Page:
    body = zstandard.ZstdCompressor().compress(html.encode())
    url = f"https://{SITE}/page-{number}"
    defaults = {"id": f"f{number}", "site": SITE, "page_id": f"p{number}", "url": url, "body": body, "fetched_at": 5}
    return Page(**{**defaults, **fields})  # type: ignore[arg-type]


@pytest.fixture
def stage(pool: ExtractionPool) -> MeasureStage:
    """MEASURE on the shared worker processes."""
    return MeasureStage(SETTINGS, pool=pool, metrics=Metrics())


def run(stage: MeasureStage, pages: Sequence[Page], state: KeyedState) -> tuple[list[Features], Metrics]:
    context = Context(3, state, Meter(), now_ms=1234)
    for record, prepared in zip(pages, stage.prepare(pages), strict=True):
        stage.process(record, prepared, context)
    metrics = Metrics()
    context.meter.apply(metrics)
    features = [output for output in context.outputs if output.topic != "templates"]
    assert all(output.topic == "features" and output.partition == 3 for output in features)
    return [decode(Features, output.value or b"") for output in features], metrics


def test_features_are_what_the_pure_path_measures(stage: MeasureStage, article: str, new_state: NewState) -> None:
    """The stage's features equal the Measurer's for the same pages in the same order, repeats included."""
    htmls = [article, article.replace("boats", "cattle"), "", article, article]
    found, metrics = run(stage, [page(n, html) for n, html in enumerate(htmls)], new_state())
    measurer = Measurer(SETTINGS)
    for number, (features, html) in enumerate(zip(found, htmls, strict=True)):
        pure = measurer.measure(f"https://{SITE}/page-{number}", html, SITE)
        own = {"id": f"f{number}", "page_id": f"p{number}", "fetched_at": 5, "measured_at": 1234}
        assert features == msgspec.structs.replace(pure, **own)
    assert [features.measures["duplicate_share"] for features in found[::3]] == [0, 1]
    assert [marked_lines(features.template_lines) for features in found] == [[], [], [], [0], [0, 1, 2, 3, 4]]
    assert [features.measures["template_block_share"] for features in found[:3]] == [None, None, None]
    assert count(metrics, "page_template_block_ratio_count") == 2
    assert [set(features.quality) for features in found] == [{*TEXTS} - {"own"}] * 2 + [set()] + [{*TEXTS}] * 2
    without_first_line = found[3].text.partition("\n")[2]
    assert found[3].quality["own"] == measure_main(without_first_line)


def test_the_templates_of_a_site_have_rows(pool: ExtractionPool, article: str, new_state: NewState) -> None:
    """A template's first page appends its row, the last one removes it; a run has rows, a canary site none."""
    tags = "".join(f"<{tag}>" for tag in ("main", "article", "section", "header", "nav", "ul", "li", "a", "em", "b"))
    other = article.replace("<body>", f"<body>{tags}")
    pages = [page(1, other), page(2, article), page(3, other.replace("boats", "cattle")), page(4, other)]
    pages += [page(number, article.replace("boats", str(number))) for number in (5, 6)]

    def work(run: str = "live", **fields: object) -> tuple[list[Output], list[Features]]:
        names = names_of(run, "features" if run == "live" else features_of(run))
        stage = MeasureStage(SETTINGS, names=names, pool=pool, caps=SiteCaps(pages_per_site=2))
        context = Context(3, new_state(), Meter(), now_ms=1234)
        records = [msgspec.structs.replace(record, **fields) for record in pages]
        for record, prepared in zip(records, stage.prepare(records), strict=True):
            stage.process(record, prepared, context)
        features = [decode(Features, one.value or b"") for one in context.outputs if one.topic == names.features]
        return [output for output in context.outputs if output.topic != names.features], features

    rows, features = work()
    name = features[0].measures["template_id"]
    assert [found.measures["template_id"] for found in features] == [name, None, name, name, None, None]
    assert {(row.topic, row.key, row.partition) for row in rows} == {("templates", f"{SITE} {name}".encode(), 3)}
    added, removed = rows
    found = decode(Template, added.value or b"")
    assert (found.id, found.site, found.url, len(found.sketch)) == (name, SITE, pages[0].url, PLACES)
    assert removed.value is None
    of_run, same = work("r1")
    assert of_run == [msgspec.structs.replace(row, topic="templates.r1") for row in rows]
    assert same == features
    assert work(found_by="canary")[0] == []


def test_pages_that_were_not_fetched_have_no_features(stage: MeasureStage, article: str, new_state: NewState) -> None:
    """Refused and failed pages emit nothing and leave no row; the fetched page between them is measured."""
    state = new_state()
    pages = [page(1, article, outcome="refused"), page(2, article), page(3, article, outcome="failed")]
    found, metrics = run(stage, pages, state)
    assert [features.id for features in found] == ["f2"]
    assert [key for key, _ in state.scan(b"", 9)] == [f"{SITE}\0p2".encode()]
    assert count(metrics, "stage_records_total", run="first", ruleset="", stage="measure", result="skipped") == 2
    assert count(metrics, "stage_records_total", run="first", ruleset="", stage="measure", result="measured") == 1


def test_bad_page_has_features_with_its_error(stage: MeasureStage, article: str, new_state: NewState) -> None:
    """A page refused by a guard has features and a count under its error, and is not an earlier page of its site."""
    found, metrics = run(stage, [page(1, "<div>" * 5000), page(2, article)], new_state())
    assert [features.extract_error for features in found] == ["too_deep", ""]
    assert found[0].measures == {"url_path": "/page-1", "no_page": "ok", **Likeness().measures()}
    assert count(metrics, "extract_attempts_total", mode="none", outcome="too_deep") == 1
    assert count(metrics, "extract_attempts_total", mode="recall", outcome="ok") == 1
    assert count(metrics, "page_duplicate_ratio_count") == count(metrics, "page_template_ratio_count") == 1


def test_url_where_redirects_ended_is_judged(stage: MeasureStage, article: str, new_state: NewState) -> None:
    """The URL path is that of the final URL; the record keeps the requested URL."""
    (features,), _ = run(stage, [page(1, article, final_url=f"https://{SITE}/tag/x")], new_state())
    assert features.measures["url_path"] == "/tag/x"
    assert features.url == f"https://{SITE}/page-1"


def test_rolled_back_batch_is_measured_the_same_again(stage: MeasureStage, article: str, new_state: NewState) -> None:
    """After lost() the batch gives identical features over the same committed state."""
    state = new_state()
    run(stage, [page(0, article)], state)
    batch = [page(1, article.replace("boats", "cattle")), page(2, article), page(1, article)]
    first, _ = run(stage, batch, KeyedState(state))
    stage.lost([3])
    again, _ = run(stage, batch, KeyedState(state))
    assert first == again
    stage.lost([4])
    repeated, _ = run(stage, batch, KeyedState(state))
    assert repeated[0].measures["duplicate_share"] == first[0].measures["duplicate_share"]


def test_gauges_tell_what_is_in_memory(pool: ExtractionPool, article: str, new_state: NewState) -> None:
    """After a commit the gauges show the sites and bytes of the cache, without lost partitions."""
    metrics = Metrics()
    stage = MeasureStage(SETTINGS, pool=pool, metrics=metrics)
    run(stage, [page(1, article)], new_state())
    stage.committed()
    assert count(metrics, "site_memory_sites") == 1
    assert count(metrics, "site_memory_bytes") > 0
    stage.lost([3])
    stage.committed()
    assert count(metrics, "site_memory_sites") == 0
