"""The measures of one page, and the feature epoch that makes records comparable."""

from __future__ import annotations

import hashlib
import subprocess
import sys
from importlib.metadata import PackageNotFoundError
from typing import get_args, get_type_hints

import msgspec
import pytest
import zstandard

from filters.duplicates.lines import lines_of
from filters.duplicates.shingles import outline
from filters.errors import BadModel
from filters.extraction.html_tree import parse
from filters.extraction.learned.model_name import model_digest
from filters.measure.epoch import MEASURES_VERSION, epoch_settings, feature_epoch
from filters.measure.extractors import EXTRACTORS
from filters.measure.golden import OUTPUTS, VERIFIED, golden_outputs, golden_pages
from filters.measure.page_measures import RawPage, measure, measure_raw, url_path
from filters.measure.worker_process import first_frame
from filters.quality.measures import measure_quality
from filters.quality.names import MEASURES, PAGE_MEASURES
from filters.rules.judgement import judge
from filters.rules.ruleset import parse_ruleset
from filters.settings import SITE_CAPS, MeasureSettings
from filters.site_memory.measurer import Measurer
from filters.site_memory.memory import Likeness
from filters.structure import names as structure_names
from filters.structure.page_lines import characters_of, page_lines, visible_text

SETTINGS = MeasureSettings()
LIBRARIES = {"py3langid rensa": [True, True], "trafilatura justext lxml": [True, False], "resiliparse": [False, True]}


def zipped(html: str) -> bytes:
    """A body in the format of a page record."""
    return zstandard.ZstdCompressor().compress(html.encode())


def test_measures_of_an_article(article: str) -> None:
    """Words, characters, language and URL path are measured; chunks cover the text; the digest is of the text."""
    found = measure_raw(RawPage("https://a.example/river?x=1", "utf-8", zipped(article)), SETTINGS)
    assert found.measures == {
        "tokens": float(len(found.text.split())),
        "chars": float(len(found.text)),
        "link_code_share": 0.0,
        "language": "en",
        "language_probability": pytest.approx(1, abs=0.01),
        "url_path": "/river?x=1",
        "no_page": "ok",
        "simhash": f"{found.outline.simhash:016x}",
    }
    assert {*found.measures, *Likeness().measures()} == PAGE_MEASURES
    assert found.outline == outline(found.text, SITE_CAPS.shingles_per_site)
    assert found.lines == lines_of(
        found.text, page_lines(characters_of(visible_text(parse(article)))), SITE_CAPS.lines_per_site
    )
    assert int(found.chunks().lengths.sum()) == len(found.text.encode())
    assert len(found.text_digest) == 32
    assert found.quality == measure_quality(found.text)


def test_another_set_of_measures_is_another_epoch() -> None:
    """All measure names are pinned to MEASURES_VERSION: a new measure raises it, so that pages are measured again."""
    names = " ".join([*sorted(PAGE_MEASURES), *MEASURES, *structure_names.MEASURES])
    assert {MEASURES_VERSION: hashlib.sha256(names.encode()).hexdigest()[:16]} == {9: "6122ccfa2f6b18f5"}


def test_measuring_is_a_function_of_the_page(article: str) -> None:
    """A page measured twice, or as bytes and as text, has identical features."""
    once = measure_raw(RawPage("u", "utf-8", zipped(article)), SETTINGS)
    assert once == measure_raw(RawPage("u", "", zipped(article)), SETTINGS) == measure("u", article, "", SETTINGS)


def test_a_body_is_inflated_under_the_cap() -> None:
    """Of 33 KB that inflate to 1 GiB, only the cap is read; broken zstd is an error of the page."""
    compressor = zstandard.ZstdCompressor(level=1).compressobj()
    bomb = b"".join(compressor.compress(bytes(1 << 20)) for _ in range(1024)) + compressor.flush()
    found = measure_raw(RawPage("u", "", bomb), SETTINGS)
    assert (found.error, found.measures["html_cut"]) == ("not_html", 1.0)
    assert measure_raw(RawPage("u", "", b"no zstd"), SETTINGS).error == "failed"
    assert measure_raw(RawPage("u", "", b""), SETTINGS).error == "empty"


@pytest.mark.parametrize("has_size", [True, False])
def test_a_page_above_the_cap_is_marked(article: str, has_size: bool) -> None:
    """Of a page above the cap the first part is measured, and the features say so."""
    html = article.replace("</body>", "<p>" + "And so on. " * 300_000 + "</body>").encode()
    body = zstandard.ZstdCompressor(write_content_size=has_size).compress(html)
    found, whole = (measure_raw(RawPage("u", "", part), SETTINGS) for part in (body, zipped(article)))
    assert (found.error, found.measures["html_cut"]) == ("", 1.0)
    assert found.text.startswith(whole.text) and "html_cut" not in whole.measures


@pytest.mark.parametrize(
    ("url", "path"),
    [("https://a.example", "/"), ("https://a.example/b?page=2#c", "/b?page=2"), ("http://[bad", ""), ("", None)],
)
def test_url_path(url: str, path: str | None) -> None:
    """The path includes the query but not the fragment; it is "" for a malformed URL and unknown without a URL."""
    assert url_path(url) == path


def test_features_of_a_page_without_url(article: str) -> None:
    """A page without a URL has features, and its URL path is unknown, not "/"."""
    for html in (article, ""):
        features = Measurer(SETTINGS).measure("", html, "", page_id="p")
        assert (features.url, features.measures["url_path"], features.id) == ("", None, "p")


def test_epoch_changes_with_what_features_mean() -> None:
    """Each setting that changes features changes the epoch; numbers of processes and time limits do not."""
    others = {"extractor": "blocks", "tokenizer": "words", "perplexity_model": "english"}
    kept = set()
    for field in set(MeasureSettings.__struct_fields__) - {"extractor_model"}:
        value = others.get(field) or getattr(SETTINGS, field) + 1
        if feature_epoch(msgspec.structs.replace(SETTINGS, **{field: value})) == feature_epoch(SETTINGS):
            kept.add(field)
    assert kept == {"workers", "time_limit_s", "memory_bytes"}


def test_unlikely_sentences_are_measured_where_a_model_is_set() -> None:
    """Their share, and the median of the bits a word; without a model a page has neither, and the rules are n/a."""
    lines = [f"There were {number} people in the house on that day." for number in range(9)]
    text = "".join(f"<p>{line}</p>" for line in [*lines, "Zxqv kwrt plumbago vvv qqx yyt plimth."])
    html = f"<html><body><article>{text}</article></body></html>"
    settings = msgspec.structs.replace(SETTINGS, perplexity_model="english")
    with_model, without = (Measurer(of).measure("https://a.example/", html, "a.example") for of in (settings, SETTINGS))
    assert with_model.measures["unlikely_share"] == 0.1
    assert 5 < float(with_model.measures["surprisal_median"] or 0) < 10
    assert "unlikely_share" not in without.measures
    rules = '[rules.extracted]\nthreshold = "ok"\n[rules.max_unlikely_share]\nthreshold = 0.05\n'
    ruleset = parse_ruleset(f"{rules}[rules.max_surprisal_median]\nthreshold = 10\n", "mine")
    assert judge(with_model, ruleset).failed == ["max_unlikely_share"]
    assert [outcome.outcome for outcome in judge(without, ruleset).rules] == ["pass", "n/a", "n/a"]
    assert epoch_settings(settings) == {"measure.perplexity_model": "english"}


def test_a_model_of_perplexity_that_is_not_there_ends_measure() -> None:
    """It is refused in words before a page is measured."""
    settings = msgspec.structs.replace(SETTINGS, perplexity_model="models/0123456789abcdef.ngrams")
    feature_epoch(settings)  # a role other than MEASURE needs no file
    with pytest.raises(BadModel, match=r"0123456789abcdef\.ngrams: the model cannot be read: No such file"):
        first_frame(settings)


def test_the_epoch_has_the_model_of_blocks_and_needs_no_file() -> None:
    """The name of the file is the model's digest; the shipped model has the same epoch by its name, and is named."""
    shipped = MeasureSettings(extractor="blocks")
    name = f"{model_digest('')}.json"
    assert epoch_settings(shipped) == {"measure.extractor": "blocks", "measure.extractor_model": name}
    named = msgspec.structs.replace(shipped, extractor_model=name)
    other = msgspec.structs.replace(shipped, extractor_model="models/0123456789abcdef.json")
    assert feature_epoch(named) == feature_epoch(shipped) != feature_epoch(other)
    assert epoch_settings(other)["measure.extractor_model"] == "models/0123456789abcdef.json"
    with pytest.raises(BadModel, match=r"'mine\.json': its file has the name of its digest"):
        feature_epoch(msgspec.structs.replace(shipped, extractor_model="mine.json"))


def test_an_update_of_trafilatura_is_seen_under_blocks() -> None:
    """`blocks` calls Trafilatura for some pages, so both outputs have to be those of the verified versions."""
    settings = MeasureSettings(extractor="blocks")

    def epoch(**changed: str) -> str:
        return feature_epoch(settings, version_of=lambda _: "99", outputs=lambda name: {**OUTPUTS, **changed}[name])

    assert epoch() == feature_epoch(settings, version_of=VERIFIED.__getitem__)
    assert epoch() != epoch(trafilatura="other") and epoch() != epoch(blocks="other")


def test_epoch_has_the_libraries_in_use() -> None:
    """Other outputs of a library in use change the epoch; an extractor without its package still has an epoch."""
    other = msgspec.structs.replace(SETTINGS, extractor="resiliparse")

    def epochs(**versions: str) -> tuple[str, str]:
        def version_of(name: str) -> str:
            if versions.get(name) == "missing":
                raise PackageNotFoundError(name)
            return versions.get(name, "1")

        own, others = (feature_epoch(each, version_of=version_of, outputs=str) for each in (SETTINGS, other))
        return own, others

    before = epochs()
    for names, changed in LIBRARIES.items():
        for name in names.split():
            assert [a != b for a, b in zip(before, epochs(**{name: "2"}), strict=True)] == changed
    assert epochs(resiliparse="missing")[0] == before[0]


def test_a_version_with_the_same_outputs_is_no_other_epoch() -> None:
    """An update of a library keeps the epoch if it measures the golden pages as the verified version does."""
    asked = []

    def outputs(extractor: str) -> str:
        asked.append(extractor)
        return OUTPUTS[extractor]

    now = feature_epoch(SETTINGS, version_of=VERIFIED.__getitem__, outputs=outputs)
    assert asked == []
    assert feature_epoch(SETTINGS, version_of=lambda _: "99", outputs=outputs) == now
    assert feature_epoch(SETTINGS, version_of=lambda _: "99", outputs=lambda _: "other") != now
    assert asked == ["trafilatura"]


def test_an_extractor_is_whole() -> None:
    """Each extractor has a value of the setting, the digest of its golden pages, and versions of its libraries."""
    assert set(EXTRACTORS) == set(OUTPUTS) == set(get_args(get_type_hints(MeasureSettings)["extractor"]))
    assert {library for row in EXTRACTORS.values() for library in row.libraries} <= set(VERIFIED)


@pytest.mark.parametrize("extractor", OUTPUTS)
def test_the_installed_versions_measure_the_golden_pages_as_stored(extractor: str) -> None:
    """If this fails: for a change of the code raise MEASURES_VERSION; for a library renew VERIFIED and OUTPUTS."""
    if extractor == "resiliparse":
        pytest.importorskip(extractor)
    assert golden_outputs(extractor) == OUTPUTS[extractor]


def test_the_golden_pages_show_a_change() -> None:
    """The golden pages have several languages and lengths, pages without an article, and every extraction path."""
    found = [measure(url, body, charset, SETTINGS) for url, body, charset in golden_pages()]
    assert {page.measures["language"] for page in found} >= {"en", "de", "fr"}
    assert {page.path for page in found} >= {"recall", "fallback"}
    assert len({page.text_digest for page in found}) == len(found)
    assert max(len(page.text) for page in found) > 1000 > 100 > min(len(page.text) for page in found)


def test_importing_the_package_loads_no_extractor() -> None:
    """Judging, the epoch and the pool import neither Trafilatura, lxml nor the language model."""
    code = (
        "import sys, filters.stages.judge, filters.measure.workers\n"
        "from filters.measure.epoch import feature_epoch\n"
        "from filters.settings import SITE_CAPS, MeasureSettings\n"
        "feature_epoch(MeasureSettings())\n"
        "print([name for name in ('trafilatura', 'lxml', 'py3langid', 'resiliparse') if name in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
