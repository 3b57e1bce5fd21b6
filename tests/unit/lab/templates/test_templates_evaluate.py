"""`farmwatch lab templates evaluate` on the labelled crosses, and the numbers it gives."""

from __future__ import annotations

import time
from collections import Counter
from contextlib import closing
from itertools import product
from pathlib import Path
from typing import Any

import pytest

from crawler.settings import CrawlSettings
from filters.settings import MeasureSettings
from lab.templates.archived import Archives
from lab.templates.classes import NodeClass
from lab.templates.evaluation import LabelledArchives, judged
from lab.templates.learning import Method
from tests.support.front_door import Runner

CONTENT, BOILERPLATE, INVALID = NodeClass
THESIS = {  # appendix D, t001: content found, content lost, boilerplate kept, boilerplate found; invalid nodes left out
    "heise-4929bee0": (30, 0, 17, 129),
    "heise-49cd031f": (30, 0, 17, 131),
    "heise-47346f56": (43, 0, 37, 118),
    "heise-a3c71aa6": (43, 0, 12, 118),
}
THESIS_ACCURACY = {  # appendix D, by node, over these eight crosses
    "t001": 0.910,
    "t002": 0.926,
    "t006": 0.922,
}
SCORES = {  # by node, with the given pages: accuracy, content precision and recall
    ("in pairs", "t001", "all"): (0.718, 0.707, 0.912),
    ("in pairs", "t001", "valid"): (0.926, 0.707, 0.985),
    ("in pairs", "joint", "all"): (0.875, 0.707, 0.912),
    ("in pairs", "t002", "all"): (0.932, 0.707, 0.912),
    ("in pairs", "t003", "all"): (0.906, 0.664, 0.733),
    ("in pairs", "t004", "all"): (0.908, 0.660, 0.774),
    ("in pairs", "t005", "all"): (0.910, 0.662, 0.794),
    ("in pairs", "t006", "all"): (0.924, 0.663, 0.983),
    ("in pairs", "runs", "all"): (0.941, 0.726, 0.959),
    ("chained", "t001", "valid"): (0.910, 0.665, 0.986),
    ("chained", "joint", "all"): (0.919, 0.665, 0.958),
    ("chained", "t002", "all"): (0.924, 0.665, 0.958),
    ("chained", "t003", "all"): (0.900, 0.626, 0.757),
    ("chained", "t006", "all"): (0.920, 0.647, 0.979),
}
CHARACTERS = {"given": 0.975, "tag paths": 0.987}  # of `runs`, in pairs


@pytest.mark.data
def test_the_labelled_crosses_have_these_scores(farmwatch: Runner, shared: Path) -> None:
    """Every label leads to a text of its page, and the methods have their accuracy, precision and recall, rounded."""
    ran = farmwatch("lab", "templates", "evaluate", shared / "data" / "dbce", "--json")
    assert ran.code == 0, ran.err
    assert "left out" not in ran.err
    rows: dict[str, list[dict[str, Any]]] = ran.json
    by = {
        (by, row["pages"], row["compared"], row["method"], row["nodes"]): row for by, of in rows.items() for row in of
    }
    for (compared, method, nodes), expected in SCORES.items():
        row = by["node", "given", compared, method, nodes]
        got = (row["accuracy"], row["content_precision"], row["content_recall"])
        assert got == pytest.approx(expected, abs=0.02 if "t003" <= method <= "t006" else 0.003), method
    for pages, expected_share in CHARACTERS.items():
        assert by["character", pages, "in pairs", "runs", "all"]["accuracy"] == pytest.approx(expected_share, abs=0.002)
    for method, accuracy in THESIS_ACCURACY.items():
        row = by["node", "given", "chained", method, "valid" if method == "t001" else "all"]
        assert row["accuracy"] == pytest.approx(accuracy, abs=0.01), method
        precision, recall = row["content_precision"], row["content_recall"]
        assert row["content_f1"] == pytest.approx(2 * precision * recall / (precision + recall))
    published = by["node", "published", "chained", "t001", "valid"]
    assert (published["content_precision"], published["content_recall"]) == (0.590, 0.918)
    assert by["node", "given", "in pairs", "t001", "all"]["total"] == pytest.approx(2013, rel=0.01)


@pytest.mark.data
def test_t001_is_that_of_the_thesis(shared: Path) -> None:
    """Chained, it has the thesis's counts of each cross of heise.de, and `joint` has others. A fifth is invalid."""
    folder = shared / "data" / "dbce"
    now_ms = int(time.time() * 1000)
    with closing(Archives(sorted(folder.glob("*.warc.gz")), CrawlSettings(), now_ms)) as archives:
        assert not list(archives.scan(pytest.fail))
        crosses = LabelledArchives(folder, archives, MeasureSettings(), now_ms).crosses()
    counts = {
        (method, cross.name): Counter((one.label, one.result) for one in judged(cross, nodes, method, None))
        for cross in crosses
        for nodes in [cross.nodes(chained=True)]
        for method in (Method.T001, Method.JOINT)
    }
    for name, expected in THESIS.items():
        strict, joint = counts[Method.T001, name], counts[Method.JOINT, name]
        assert [strict[of, to] for of, to in product((CONTENT, BOILERPLATE), repeat=2)] == list(expected)
        assert joint[BOILERPLATE, BOILERPLATE] > strict[BOILERPLATE, BOILERPLATE]
    invalid = {
        method: sum(counts[method, cross.name][label, INVALID] for cross in crosses for label in (CONTENT, BOILERPLATE))
        for method in (Method.T001, Method.JOINT)
    }
    assert invalid == {Method.T001: 404, Method.JOINT: 18}


@pytest.mark.data
def test_texts_without_one_label_are_left_out(farmwatch: Runner, shared: Path, tmp_path: Path) -> None:
    """Ten texts without a label and one with two are counted, and the other texts are evaluated."""
    for file in (shared / "data" / "dbce").iterdir():
        (tmp_path / file.name).symlink_to(file)
    truth = tmp_path / "heise-4929bee0.tsv"
    label_of = dict(line.split("\t")[::-1] for line in truth.read_text().splitlines()[10:])
    part = next(path for path in label_of if path.endswith("> dbce") and f"{path}:nth-child(3)" in label_of)
    label_of[part] = "content" if label_of[part] == "boilerplate" else "boilerplate"
    truth.unlink()
    truth.write_text("".join(f"{label}\t{path}\n" for path, label in label_of.items()))
    ran = farmwatch("lab", "templates", "evaluate", tmp_path)
    assert ran.code == 0, ran.err
    assert "heise-4929bee0: 11 of 206 texts left out" in ran.err
    assert "1,943 labelled texts" in ran.out


@pytest.mark.data
def test_no_page_of_the_archives_fails(farmwatch: Runner, shared: Path) -> None:
    """All 36 pages of both archives are split."""
    archives = sorted((shared / "data" / "dbce").glob("*.warc.gz"))
    ran = farmwatch("lab", "templates", "split", *archives, "--out", "out", "--json")
    found = ran.json
    assert ran.code == 0 and found["pages"] == 36 and found["sites"] == 2 and found["not_split"] == {}


@pytest.mark.parametrize(
    "text", ["", "{}", '[{"cross": "x"}]', '[{"cross": "x", "warc": "n.warc.gz", "truth": "t", "cur": {}, "up": {}}]']
)
def test_a_folder_of_another_form_is_refused(farmwatch: Runner, tmp_path: Path, text: str) -> None:
    """A folder without crosses.json, or with another one, is named with the fault."""
    if text:
        (tmp_path / "crosses.json").write_text(text)
    ran = farmwatch("lab", "templates", "evaluate", tmp_path)
    assert ran.code == 3 and "crosses.json" in ran.err
