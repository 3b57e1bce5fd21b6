"""`farmwatch lab train-extractor`, on a small folder of labelled pages."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from filters.extraction.learned.model_name import model_digest
from filters.measure.extractors import extract
from filters.model_file import digest_of
from filters.settings import MeasureSettings
from stream.text.user_errors import Exit
from tests.support.front_door import Runner
from tests.support.pages.extraction_here import extract_here
from tests.support.pages.labelled_folder import add_page

pytestmark = [pytest.mark.slow, pytest.mark.xdist_group("torch")]

SENTENCES = (
    "The river rose slowly during the night, and nobody in the village was asleep.",
    "Two of the boats were moved to higher ground before the bridge was closed.",
    "In the morning the baker counted his loaves, and gave half of them away.",
    "She wrote down the level of the water every hour, as her father had done.",
)


def page_html(number: int) -> tuple[str, str]:
    """A page with a menu, an article and a footer; and its main text."""
    paragraphs = [" ".join(SENTENCES[(number + place + part) % 4] for part in range(3)) for place in range(6)]
    menu = "".join(f"<li><a href='/{part}'>Section {part}</a></li>" for part in range(12))
    text = "".join(f"<p>{paragraph}</p>" for paragraph in paragraphs)
    html = (
        f"<html><head><title>Story {number}</title></head><body><ul class='menu'>{menu}</ul>"
        f"<div class='post'><h1>Story {number}</h1>{text}</div><div class='foot'>Copyright <a href='/t'>Terms</a></div>"
    )
    return html, "\n".join([f"Story {number}", *paragraphs])


@pytest.fixture(autouse=True)
def _extracts_here(monkeypatch: pytest.MonkeyPatch) -> None:
    extract_here(monkeypatch)


@pytest.fixture
def labels(tmp_path: Path) -> Path:
    """Twelve pages with main texts, four with segments, an empty one, and one without either."""
    folder = tmp_path / "pages"
    for number in range(12):
        html, text = page_html(number)
        add_page(folder, "web", html, url=f"http://a{number}.example/x", articleBody=text, page_type="article")
    for number in range(20, 24):
        html, text = page_html(number)
        parts = {"with": [text.split("\n")[2]], "without": ["Section 3"]}
        add_page(folder, "parts", html, url=f"http://b{number}.example/x", **parts)
    add_page(folder, "parts", "<p></p>", url="http://empty.example/", **{"with": ["nothing"]})
    add_page(folder, "parts", "<p>no label</p>", url="http://none.example/")
    return folder


def test_a_model_is_learned_tested_and_used(farmwatch: Runner, labels: Path, tmp_path: Path) -> None:
    """The tables have each source, kind and source left out; MEASURE takes the model; damage is reported once."""
    (labels / "web" / "LICENSE").write_text("CC0-1.0\nmore")
    out = tmp_path / "new" / "models"
    ran = farmwatch("lab", "train-extractor", labels, "--out", out, "--jobs", "1")
    assert (ran.code, ran.err) == (Exit.OK, "")
    assert "not trained on: 1 page, refused by MEASURE" in ran.out
    rows = [line.split("\t") for line in ran.out.splitlines()]
    few = [row for row in rows if len(row) == 7 and "too few domains" in row[5]]
    assert [row[:3] for row in few] == [
        *(["parts", "5", "5"], ["web", "12", "12"], ["article", "12", "12"]),
        *(["parts", "5", "5"], ["web", "12", "12"]),
    ]
    (report,) = out.glob("*.report.json")
    found = json.loads(report.read_bytes())
    assert found["card"] == "parts: 4 pages, licence unknown; web: 12 pages, licence CC0-1.0"
    web = found["sources"]["web"]
    assert web["blocks"] > 0.9 and web["trafilatura_share"] < 0.5 and web["low"] is None
    file = out / found["model"]
    assert model_digest(str(file)) == digest_of(file.read_bytes()) and str(file) in ran.out
    settings = MeasureSettings(extractor="blocks", extractor_model=str(file))
    text = extract(page_html(50)[0], "", settings)
    assert (text.path, text.error) == ("blocks", "") and page_html(50)[1].split("\n")[1] in text.text
    next((labels / "web" / "html").iterdir()).write_bytes(b"x")
    again = farmwatch("lab", "train-extractor", labels, "--out", out, "--source", "web", "--jobs", "1")
    assert again.code == Exit.PROBLEM and again.err.count("no zstd file") == 1
    assert "trained on web: 11 pages, licence CC0-1.0" in again.out
    assert file.exists() and len(list(out.glob("*.report.json"))) == 2


def test_too_few_labels_and_no_folder_are_refused_in_words(farmwatch: Runner, tmp_path: Path) -> None:
    """Exit code 1 for pages of too few domains; labels without main texts, and a file of labels, are none."""
    html, text = page_html(1)
    add_page(tmp_path / "p", "my", html, articleBody=text)
    ran = farmwatch("lab", "train-extractor", tmp_path / "p", "--out", tmp_path, "--jobs", "1")
    assert (ran.code, ran.out) == (Exit.PROBLEM, "") and "too few to train on: 1 domain; label pages of more" in ran.err
    add_page(tmp_path / "without", "my", html, url="http://a.example/")
    ran = farmwatch("lab", "train-extractor", tmp_path / "without", "--out", tmp_path)
    assert ran.code == Exit.USAGE and "of 1 label none has `articleBody`, or `with` and `without`" in ran.err
    (tmp_path / "labels.jsonl").write_text("")
    ran = farmwatch("lab", "train-extractor", tmp_path / "labels.jsonl", "--out", tmp_path)
    assert ran.code == Exit.USAGE and "labels.jsonl: no folder; labelled pages are in one" in ran.err
