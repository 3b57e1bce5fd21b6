"""`farmwatch rulesets evaluate`, on a small folder of labelled pages."""

from __future__ import annotations

from pathlib import Path

import pytest

from stream.text.user_errors import Exit
from tests.support.front_door import Runner, article_html
from tests.support.pages.extraction_here import extract_here
from tests.support.pages.labelled_folder import add_page

pytestmark = pytest.mark.slow

MINE = """
description = "long pages"

[rules.extracted]
threshold = "ok"

[rules.min_tokens]
threshold = 300

[rules.url_kind]
"""


@pytest.fixture(autouse=True)
def _extraction_here(monkeypatch: pytest.MonkeyPatch) -> None:
    extract_here(monkeypatch)


@pytest.fixture
def labels(tmp_path: Path) -> Path:
    """Two articles and two other pages with a page type, one page without; three of them have 300 words."""
    folder = tmp_path / "pages"
    add_page(folder, "news", article_html(400), page_type="article", url="http://a.example/one")
    add_page(folder, "news", article_html(250), page_type="article", url="http://b.example/two")
    add_page(folder, "news", article_html(500), page_type="forum", url="http://c.example/three")
    add_page(folder, "news", article_html(100), page_type="listing", url="http://d.example/four")
    add_page(folder, "other", article_html(600))
    return folder


@pytest.fixture
def mine(tmp_path: Path) -> Path:
    file = tmp_path / "mine.toml"
    file.write_text(MINE)
    return file


def test_one_ruleset_is_shown_whole(farmwatch: Runner, labels: Path, mine: Path) -> None:
    """Precision and recall, pass rates by page type and source with intervals, and the drops of each rule."""
    ran = farmwatch("rulesets", "evaluate", mine, "--labels", labels, "--jobs", "1")
    assert (ran.code, ran.err) == (Exit.OK, "")
    rows = [line.split("\t") for line in ran.out.splitlines()]
    assert ["mine", "3 of 5", "1 of 2", "1 of 2", "0.500", "0.500", "0.500"] in rows
    assert ["article", "2", "50 (3-97)"] in rows and ["listing", "1", "0 (0-95)"] in rows
    assert ["news", "4", "50 (9-91)"] in rows and ["other", "1", "100 (5-100)"] in rows
    assert ["min_tokens", "2", "2", "2", "1", "1", "0"] in rows
    assert ["url_kind", "disabled", "-", "-", "-", "-", "-"] in rows


def test_several_rulesets_are_compared_and_details_are_for_the_asking(
    farmwatch: Runner, labels: Path, mine: Path
) -> None:
    """Each ruleset has a row in the summary and a column in the pass rates; --verbose adds the rules."""
    arguments = ("rulesets", "evaluate", mine, "notes", "--labels", labels, "--jobs", "1", "--source", "news")
    ran = farmwatch(*arguments)
    rows = [line.split("\t") for line in ran.out.splitlines()]
    assert ["page type", "pages", "mine", "notes"] in rows and ["source", "pages", "mine", "notes"] in rows
    assert ["news", "4", "50 (9-91)", "75 (22-99)"] in rows
    assert "other\t" not in ran.out and "min_tokens" not in ran.out
    assert farmwatch(*arguments, "--verbose").out.count("min_tokens\t") == 2


@pytest.mark.parametrize(
    ("types", "summary", "said"),
    [
        ((None,), ["1 of 1", "0 of 0", "0 of 0", "-", "-", "-"], "no page has a page_type"),
        (("article",), ["1 of 1", "1 of 1", "0 of 0", "-", "1.000", "-"], "every page_type is 'article'"),
        (("Article", "shop"), ["2 of 2", "0 of 0", "2 of 2", "-", "-", "-"], "articles are 'article', so written"),
        (("Article", "shop"), ["2 of 2", "0 of 0", "2 of 2", "-", "-", "-"], "there are 'Article', 'shop'"),
    ],
)
def test_what_the_labels_cannot_say_is_left_open(
    farmwatch: Runner, tmp_path: Path, mine: Path, types: tuple[str | None, ...], summary: list[str], said: str
) -> None:
    """If every page is an article, precision is empty, and stderr has the reason."""
    for number, kind in enumerate(types):
        add_page(tmp_path / "p", "my", article_html(400 + number), **({"page_type": kind} if kind else {}))
    ran = farmwatch("rulesets", "evaluate", mine, "--labels", tmp_path / "p", "--jobs", "1")
    assert ["mine", *summary] in [line.split("\t") for line in ran.out.splitlines()]
    assert ran.code == Exit.OK and said in ran.err


@pytest.mark.parametrize("more", [(), ("--json",)])
def test_nothing_to_evaluate_is_an_error(farmwatch: Runner, tmp_path: Path, mine: Path, more: tuple[str, ...]) -> None:
    """Without a usable label, each is reported, there is no table or document, and the exit code is 3."""
    (tmp_path / "p" / "my").mkdir(parents=True)
    (tmp_path / "p" / "my" / "gold.jsonl").write_text("{\n")
    ran = farmwatch("rulesets", "evaluate", mine, "--labels", tmp_path / "p", "--jobs", "1", *more)
    assert (ran.code, ran.out) == (Exit.UNAVAILABLE, "")
    assert "line 1: no JSON: " in ran.err
    assert ran.err.endswith(f"{tmp_path / 'p'}: no usable page\n")


def test_settings_are_obeyed(farmwatch: Runner, labels: Path, mine: Path) -> None:
    """--set applies to the [measure] table: pages above the cap have no text; a misspelt path is refused."""
    arguments = ("rulesets", "evaluate", mine, "--labels", labels, "--jobs", "1", "--json", "--set")
    found = farmwatch(*arguments, "measure.max_html_bytes=10").json
    assert (found["rulesets"][0]["kept"], found["rulesets"][0]["pages"]) == (0, 5)
    assert farmwatch(*arguments, "measure.max_html=10").code == Exit.USAGE


def test_json_has_every_count(farmwatch: Runner, labels: Path, mine: Path) -> None:
    """JSON has, per ruleset, the digest, counts with intervals, precision, recall, F1, and the drops by label."""
    add_page(labels, "news", article_html(90))
    (labels / "news" / "gold.jsonl").open("a").write("no json\n")
    ran = farmwatch("rulesets", "evaluate", mine, mine, "--labels", labels, "--json", "--jobs", "1")
    assert ran.code == Exit.PROBLEM and f"{labels / 'news' / 'gold.jsonl'}: line 6: " in ran.err
    found = ran.json
    assert found["skipped"] == 1 and [row["ruleset"] for row in found["rulesets"]] == [str(mine)] * 2
    first = found["rulesets"][0]
    assert (first["kept"], first["pages"], first["articles"]["kept"], first["f1"]) == (3, 6, 1, 0.5)
    assert first["page_types"]["article"]["low"] == pytest.approx(0.0267, abs=1e-4)
    (rule,) = [rule for rule in first["rules"] if rule["rule"] == "min_tokens"]
    assert rule["sole"] == {"articles": 1, "others": 1, "unlabelled": 1, "all": 3}
    assert rule["unknown"]["all"] == 0 and not rule["disabled"]


def test_what_cannot_be_done_is_said_before_anything_is_measured(
    farmwatch: Runner, labels: Path, tmp_path: Path
) -> None:
    """A wrong ruleset, source, folder or number of processes is refused before any page is measured."""
    evaluate = ("rulesets", "evaluate", "--labels")
    assert farmwatch(*evaluate, labels, "nots").code == Exit.USAGE
    assert farmwatch(*evaluate, labels, "--source", "nws").code == Exit.USAGE
    assert farmwatch(*evaluate, labels, "--jobs", "-1").code == Exit.USAGE
    assert farmwatch(*evaluate, tmp_path / "nowhere").code == Exit.UNAVAILABLE
