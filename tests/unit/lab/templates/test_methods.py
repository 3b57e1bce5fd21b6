"""The methods of the thesis on the labelled crosses, and the numbers they give."""

from __future__ import annotations

from collections import Counter
from itertools import product
from pathlib import Path

import pytest

from lab.templates.classes import NodeClass
from lab.templates.learning import Method
from tests.bench.studies.labelled_crosses import LabelledCross, judged
from tests.bench.studies.template_methods import labelled_crosses, method_rows
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


@pytest.fixture(scope="module")
def crosses(shared: Path) -> dict[str, list[LabelledCross]]:
    """The labelled crosses, with given and with found pages."""
    return labelled_crosses(shared / "data" / "dbce")


@pytest.mark.data
def test_the_labelled_crosses_have_these_scores(crosses: dict[str, list[LabelledCross]]) -> None:
    """Every label leads to a text of its page, and the methods have their accuracy, precision and recall, rounded."""
    labels = [label for cross in crosses["given"] for label in cross.labels]
    assert len(labels) == 1954 and None not in labels
    by = {(row["by"], row["pages"], row["compared"], row["method"], row["nodes"]): row for row in method_rows(crosses)}
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
    assert by["node", "given", "in pairs", "t001", "all"]["total"] == pytest.approx(2013, rel=0.01)


@pytest.mark.data
def test_t001_is_that_of_the_thesis(crosses: dict[str, list[LabelledCross]]) -> None:
    """Chained, it has the thesis's counts of each cross of heise.de, and `joint` has others. A fifth is invalid."""
    given = crosses["given"]
    counts = {
        (method, cross.name): Counter((one.label, one.result) for one in judged(cross, nodes, method))
        for cross in given
        for nodes in [cross.nodes(chained=True)]
        for method in (Method.T001, Method.JOINT)
    }
    for name, expected in THESIS.items():
        strict, joint = counts[Method.T001, name], counts[Method.JOINT, name]
        assert [strict[of, to] for of, to in product((CONTENT, BOILERPLATE), repeat=2)] == list(expected)
        assert joint[BOILERPLATE, BOILERPLATE] > strict[BOILERPLATE, BOILERPLATE]
    invalid = {
        method: sum(counts[method, cross.name][label, INVALID] for cross in given for label in (CONTENT, BOILERPLATE))
        for method in (Method.T001, Method.JOINT)
    }
    assert invalid == {Method.T001: 404, Method.JOINT: 18}


@pytest.mark.data
def test_no_page_of_the_archives_fails(farmwatch: Runner, shared: Path) -> None:
    """All 36 pages of both archives are split."""
    archives = sorted((shared / "data" / "dbce").glob("*.warc.gz"))
    ran = farmwatch("lab", "templates", "split", *archives, "--out", "out", "--json")
    found = ran.json
    assert ran.code == 0 and found["pages"] == 36 and found["sites"] == 2 and found["not_split"] == {}
