"""`farmwatch templates evaluate` on the labelled crosses, and the numbers it gives."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.support.front_door import Runner

SCORES = {  # by node, with the given pages: accuracy, content precision and recall
    ("in pairs", "t001"): (0.875, 0.707, 0.912),
    ("in pairs", "t002"): (0.932, 0.707, 0.912),
    ("in pairs", "t003"): (0.910, 0.687, 0.713),
    ("in pairs", "t004"): (0.914, 0.696, 0.733),
    ("in pairs", "t005"): (0.914, 0.677, 0.794),
    ("in pairs", "t006"): (0.934, 0.712, 0.926),
    ("in pairs", "runs"): (0.941, 0.726, 0.959),
    ("chained", "t001"): (0.919, 0.665, 0.958),
    ("chained", "t002"): (0.924, 0.665, 0.958),
}
CHARACTERS = {"given": 0.975, "tag paths": 0.987}  # of `runs`, in pairs


@pytest.mark.data
def test_the_labelled_crosses_have_these_scores(farmwatch: Runner, shared: Path) -> None:
    """Every label leads to a text of its page, and the methods have their accuracy, precision and recall, rounded."""
    ran = farmwatch("templates", "evaluate", shared / "data" / "dbce", "--json")
    assert ran.code == 0, ran.err
    rows: dict[str, list[dict[str, Any]]] = json.loads(ran.out)
    by = {(by, row["pages"], row["compared"], row["method"]): row for by, of in rows.items() for row in of}
    for (compared, method), expected in SCORES.items():
        row = by["node", "given", compared, method]
        got = (row["accuracy"], row["content_precision"], row["content_recall"])
        assert got == pytest.approx(expected, abs=0.003 if method < "t003" or method == "runs" else 0.02), method
    for pages, expected_share in CHARACTERS.items():
        assert by["character", pages, "in pairs", "runs"]["accuracy"] == pytest.approx(expected_share, abs=0.002)
    published = by["node", "published", "chained", "t001"]
    assert (published["content_precision"], published["content_recall"]) == (0.590, 0.918)
    assert by["node", "given", "in pairs", "t001"]["total"] == pytest.approx(2013, rel=0.01)


@pytest.mark.data
def test_no_page_of_the_archives_fails(farmwatch: Runner, shared: Path) -> None:
    """All 36 pages of both archives are split."""
    archives = sorted((shared / "data" / "dbce").glob("*.warc.gz"))
    ran = farmwatch("templates", "split", *archives, "--out", "out", "--json")
    found = json.loads(ran.out)
    assert ran.code == 0 and found["pages"] == 36 and found["sites"] == 2 and found["not_split"] == {}


@pytest.mark.parametrize(
    "text", ["", "{}", '[{"cross": "x"}]', '[{"cross": "x", "warc": "n.warc.gz", "truth": "t", "cur": {}, "up": {}}]']
)
def test_a_folder_of_another_form_is_refused(farmwatch: Runner, tmp_path: Path, text: str) -> None:
    """A folder without crosses.json, or with another one, is named with the fault."""
    if text:
        (tmp_path / "crosses.json").write_text(text)
    ran = farmwatch("templates", "evaluate", tmp_path)
    assert ran.code == 3 and "crosses.json" in ran.err
