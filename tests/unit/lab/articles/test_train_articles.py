"""`farmwatch lab train-articles`, on small folders of labelled pages."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from filters.articles.model import load_model
from filters.rules.ruleset import load_ruleset
from lab.articles import additive
from stream.schema.vocabulary import PageClass
from stream.text.user_errors import Exit
from tests.support.front_door import Runner, article_html
from tests.support.pages.extraction_here import extract_here
from tests.support.pages.labelled_folder import add_page

pytestmark = pytest.mark.slow


@pytest.fixture(autouse=True)
def short_fits(monkeypatch: pytest.MonkeyPatch) -> None:
    """Few and large steps: the pages here are easy. They are measured in this process, and once."""
    extract_here(monkeypatch)
    monkeypatch.setattr(additive, "FITS", 1)
    monkeypatch.setattr(additive, "STUMPS", 40)
    monkeypatch.setattr(additive, "RATE", 0.3)
    monkeypatch.setattr(additive, "LEAST_PAGES", 2)


def forum_html(words: int) -> str:
    """A page of short posts with a form."""
    posts = "".join(
        f"<div class='post'><a href='/u/{number}'>user {number}</a><p>{'well yes ' * 6}</p></div>"
        for number in range(words // 12)
    )
    return f"<html><head><title>Thread</title></head><body><form><input name='q'></form>{posts}</body></html>"


@pytest.fixture
def labels(tmp_path: Path) -> Path:
    """Twelve articles and twelve threads on as many sites, a page without a text, and a source without labels."""
    folder = tmp_path / "pages"
    for number in range(12):
        add_page(folder, "web", article_html(300 + 10 * number), page_type="article", url=f"http://a{number}.example/x")
        add_page(folder, "web", forum_html(300 + 12 * number), page_type="forum", url=f"http://f{number}.example/x")
    add_page(folder, "web", "<p></p>", page_type="forum", url="http://empty.example/")
    add_page(folder, "news", article_html(500), url="http://n.example/long")
    add_page(folder, "news", article_html(100), url="http://n.example/short")
    return folder


def test_a_model_is_learned_shown_and_read(farmwatch: Runner, labels: Path, tmp_path: Path) -> None:
    """The file is a model that a ruleset names; the tables have each kind, and the page without a text as dropped."""
    out = tmp_path / "mine.json"
    ran = farmwatch("lab", "train-articles", labels, "--out", out, "--jobs", "1")
    assert (ran.code, ran.err) == (Exit.OK, "")
    rows = [line.split("\t") for line in ran.out.splitlines()]
    assert [row[0] for row in rows if len(row) == 5][1:] == ["0.1", "0.2", "0.3", "0.4", "0.5", "0.6", "0.7"]
    assert ["forum", "13", "0"] in [row[:3] for row in rows] and ["article", "12", "12"] in [row[:3] for row in rows]
    assert ["label", "article", "forum", "no text"] in rows and ["forum", "0", "12", "1"] in rows
    model = load_model(str(out))
    assert model.kinds == (PageClass.ARTICLE, "forum") and model.digest in ran.out
    assert model.card == "web: 24 labelled pages (article 12, forum 12)"
    mine = tmp_path / "mine.toml"
    rule = f'[rules.article_probability]\nthreshold = 0.5\nmodel = "{out}"\n'
    mine.write_text(f'[rules.extracted]\nthreshold = "ok"\n\n{rule}')
    assert load_ruleset(str(mine)).rules[1].model == model


def test_a_second_training_writes_the_same_bytes(farmwatch: Runner, labels: Path, tmp_path: Path) -> None:
    """The model depends on the pages only; a file that is there is kept without --force."""
    file = tmp_path / "mine.json"
    arguments = ("lab", "train-articles", labels, "--out", file, "--jobs", "1")
    first = farmwatch(*arguments)
    before = file.read_bytes()
    refused = farmwatch(*arguments)
    assert (refused.code, refused.out) == (Exit.USAGE, "") and "--force to write over" in refused.err
    file.write_text("{}")
    assert farmwatch(*arguments, "--force").out == first.out
    assert file.read_bytes() == before


def test_pages_of_an_article_source_count_and_damaged_ones_do_not(
    farmwatch: Runner, labels: Path, tmp_path: Path
) -> None:
    """Those of at least 150 words are learned from, and their kept share is shown; damage gives the exit code 1."""
    ident = add_page(labels, "web", article_html(900), page_type="article")
    (labels / "web" / "html" / f"{ident}.html.zst").write_bytes(b"no zstd")
    out = tmp_path / "mine.json"
    ran = farmwatch("lab", "train-articles", labels, "--out", out, "--articles", "news=0.3", "--jobs", "1")
    assert ran.code == Exit.PROBLEM and ident in ran.err
    rows = [line.split("\t")[:3] for line in ran.out.splitlines()]
    assert ["news", "1", "1"] in rows and ["article", "12", "12"] in rows
    assert "news: 1 page taken for articles, weight 0.3" in load_model(str(out)).card


@pytest.mark.parametrize(
    ("name", "arguments", "said"),
    [
        ("mine.json", ("--articles", "news"), "--articles 'news': give SOURCE=WEIGHT"),
        ("mine.json", ("--articles", "news=0"), "with a weight above 0"),
        ("mine.json", ("--articles", "news=nan"), "with a weight above 0"),
        ("mine.json", ("--articles", "=1"), "give SOURCE=WEIGHT"),
        ("mine.json", ("--articles", "newz=1"), "no source 'newz'; there are news, web"),
        ("mine.bin", (), "ends in .json"),
    ],
)
def test_a_wrong_option_is_refused(
    farmwatch: Runner, labels: Path, tmp_path: Path, name: str, arguments: tuple[str, ...], said: str
) -> None:
    """Before a page is measured, and nothing is written."""
    out = tmp_path / name
    ran = farmwatch("lab", "train-articles", labels, "--out", out, *arguments)
    assert (ran.code, ran.out, out.exists()) == (Exit.USAGE, "", False) and said in ran.err


def test_too_few_labels_are_refused_in_words(farmwatch: Runner, tmp_path: Path) -> None:
    """Exit code 1, and nothing is written."""
    add_page(tmp_path / "p", "my", article_html(300), page_type="article")
    add_page(tmp_path / "p", "my", forum_html(300), page_type="forum")
    out = tmp_path / "mine.json"
    ran = farmwatch("lab", "train-articles", tmp_path / "p", "--out", out, "--jobs", "1")
    assert (ran.code, ran.out, out.exists()) == (Exit.PROBLEM, "", False)
    assert "pages of 2 domains are too few to test on: label pages of at least 8" in ran.err


def test_a_file_of_labels_has_no_sources(farmwatch: Runner, finished: str, tmp_path: Path) -> None:
    """--articles names a source of a folder; a file of `farmwatch review label` has none."""
    file = tmp_path / "labels.jsonl"
    line = {"fetch_id": "f1", "site": "a.example", "url": "http://a.example/", "page_type": "article"}
    file.write_text(json.dumps(line) + "\n")
    ran = farmwatch("lab", "train-articles", file, "--out", tmp_path / "m.json", "--articles", "x=1", "--log", finished)
    assert ran.code == Exit.USAGE and "--articles is for a folder of labelled pages" in ran.err
