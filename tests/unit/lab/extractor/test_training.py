"""Labelled pages as training and test pages: their domains, the guards of MEASURE, and what a model learned from."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest
import xxhash
from numpy.typing import NDArray

from farmwatch.labels.labelled_pages import Label, LabelledPages
from filters.extraction.learned.model import sample_inputs
from filters.settings import MeasureSettings
from lab.extractor import errors as errors_module
from lab.extractor import training
from lab.extractor.errors import Text, errors_by, texts_of_other_domains
from lab.extractor.gold import GoldTexts
from lab.extractor.training import MainTextPage, learn, main_text_pages
from tests.support.pages.labelled_folder import add_page


def folder(root: Path, rows: Sequence[tuple[str, str, dict[str, object]]]) -> LabelledPages:
    """Labelled pages of (source, HTML, fields of the label)."""
    for source, html, fields in rows:
        add_page(root, source, html, **fields)
    return LabelledPages(root)


def test_pages_of_no_known_domain_are_one_and_pages_alike_join_domains(tmp_path: Path) -> None:
    """So no page is tested by a model of its site; a page without URL may state it."""
    html = "<html><head>{1}</head><body><p>Text {0} of a page"
    stated = "<link rel=canonical href='https://www.c.example/x'>"
    rows: list[tuple[str, str, dict[str, object]]] = [
        ("a", html.format(1, ""), {"articleBody": "one"}),
        ("a", html.format(2, ""), {"articleBody": "two"}),
        ("b", html.format(3, ""), {"articleBody": "three"}),
        ("b", html.format(4, stated), {"articleBody": "four"}),
        ("b", html.format(5, ""), {"articleBody": "five", "url": "https://blog.d.example/"}),
        ("b", html.format(6, ""), {"articleBody": "the same"}),
        ("c", html.format(7, ""), {"articleBody": "The  same!", "url": "https://e.example/1"}),
        ("c", html.format(8, ""), {"articleBody": "eight", "url": "https://e.example/2"}),
    ]
    pages = main_text_pages(folder(tmp_path, rows), MeasureSettings(), lambda _: None)
    found = [page.domain for page in pages]
    assert found[:5] == ["unknown:a", "unknown:a", "unknown:b", "c.example", "d.example"]
    assert found[5:] == ["unknown:b"] * 3


def test_nothing_is_learned_from_a_page_that_measure_refuses(tmp_path: Path) -> None:
    """The guards are those of the settings; the page stays a test page."""
    pages = folder(tmp_path, [("a", "<html><body>" + "<p>some words</p>" * 30, {"articleBody": "some words " * 30})])
    for most, is_learned in ((1_000, True), (20, False)):
        (page,) = main_text_pages(pages, MeasureSettings(max_elements=most), lambda _: None)
        assert (page.blocks is not None) == is_learned and page.truth.text


def _page(number: int, source: str, domain: str) -> MainTextPage:
    label = Label(source=source, id=f"{number:064x}", place="", gold="a b")
    return MainTextPage(label, domain, GoldTexts("a b"), None)


def test_the_second_network_learns_from_probabilities_of_unseen_pages(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Those of a page are by the first network of the other half of the domains; a network of all pages is kept."""
    rows: list[tuple[str, str, dict[str, object]]] = [
        ("a", f"<html><body><p>one two {n}<p>three", {"articleBody": f"one two {n}", "url": f"http://d{n}.example/"})
        for n in range(8)
    ]
    pages = main_text_pages(folder(tmp_path, rows), MeasureSettings(), lambda _: None)
    halves = [xxhash.xxh3_64_intdigest(page.domain.encode()) & 1 for page in pages for _ in range(2)]
    given: dict[int, NDArray[np.uint8]] = {}

    def fit_network(inputs: NDArray[np.uint8], *columns: object) -> list[tuple[NDArray[np.int16], NDArray[np.int32]]]:
        seed = columns[-1]
        assert isinstance(seed, int)
        given[seed] = inputs
        return [(np.zeros((inputs.shape[1], 1), np.int16), np.array([(-8_192, 8_192, 0, 0)[seed]], np.int32))]

    monkeypatch.setattr(training, "fit_network", fit_network)
    model = learn(pages)
    names = [name for columns in sample_inputs(model.marked) for name in columns.names]
    assert [len(given[seed]) for seed in (0, 1, 2, 3)] == [halves.count(0), halves.count(1), 16, 16]
    found = given[3][:, names.index("p")]
    low, high = 268 // 8, 731 // 8  # thousandths of the logits -1 and 1
    assert found.tolist() == [high if half == 0 else low for half in halves]


def test_no_page_is_tested_by_a_model_of_its_domain(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The domains of the tested pages are left out of all sources; only these pages are extracted, by that model."""
    pages = [_page(number, "ab"[number % 2], f"d{number // 3}.example") for number in range(36)]
    learned: list[set[str]] = []
    monkeypatch.setattr(errors_module, "learn", lambda some: learned.append({page.domain for page in some}))
    monkeypatch.setattr(errors_module, "write_model", lambda place, _: place)

    def texts_of(part: LabelledPages, settings: MeasureSettings) -> dict[Label, Text]:
        assert settings.extractor == "blocks" and settings.extractor_model
        return {label: Text("", "blocks") for label in part.labels}

    monkeypatch.setattr(errors_module, "texts_of", texts_of)
    (tmp_path / "a").mkdir()
    (tmp_path / "a" / "gold.jsonl").write_text("")
    folder_of = LabelledPages(tmp_path)
    folder_of.labels = [page.label for page in pages]
    found = texts_of_other_domains(folder_of, pages, pages[:4], MeasureSettings())
    assert list(found) == [page.label for page in pages[:4]] and len(folder_of.labels) == 36
    assert learned == [{f"d{number}.example" for number in range(2, 12)}]


def test_an_interval_needs_domains() -> None:
    """Below 20 domains there is none; equal differences have one without a width; texts of Trafilatura are counted."""
    for domains, is_known in ((19, False), (20, True)):
        pages = [_page(number, "a", f"d{number}.example") for number in range(domains)]
        theirs = {page.label: Text("a", "recall") for page in pages}
        ours = {page.label: Text("a b", "recall" if page is pages[0] else "blocks") for page in pages}
        found = errors_by(lambda label: label.source, pages, theirs, ours)["a"]
        assert (found.pages, found.domains, found.blocks, found.trafilatura_share) == (domains, domains, 1, 1 / domains)
        assert found.trafilatura == pytest.approx(2 / 3) and found.difference == pytest.approx(1 / 3)
        assert (found.low, found.high) == (pytest.approx((1 / 3,) * 2) if is_known else (None, None))


def test_the_interval_is_that_of_the_means_of_domains() -> None:
    """With a page a domain it is Student's for the mean of differences; pages of one domain are one observation."""
    texts = ("", "a", "a b") * 10
    singles = [_page(number, "a", f"d{number}.example") for number in range(30)]
    theirs = {page.label: Text("a", "recall") for page in singles}
    ours = {page.label: Text(text, "blocks") for page, text in zip(singles, texts, strict=True)}
    found = errors_by(lambda label: label.source, singles, theirs, ours)["a"]
    differences = np.array([{"": -2 / 3, "a": 0, "a b": 1 / 3}[text] for text in texts])
    error = differences.std(ddof=1) / np.sqrt(30)
    assert found.low is not None and found.difference == pytest.approx(differences.mean())
    assert found.difference - found.low == pytest.approx(2.045 * error, rel=0.01)  # Student's, 29 degrees of freedom
    twice = [*singles, *(_page(100 + number, "a", page.domain) for number, page in enumerate(singles))]
    theirs |= {page.label: Text("a", "recall") for page in twice[30:]}
    ours |= {page.label: Text(text, "blocks") for page, text in zip(twice[30:], texts, strict=True)}
    of_both = errors_by(lambda label: label.source, twice, theirs, ours)["a"]
    assert of_both.low == pytest.approx(found.low)
