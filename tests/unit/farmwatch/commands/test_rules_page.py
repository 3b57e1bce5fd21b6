"""The pages of rules say what the rules, the shipped rulesets and the labelled pages say."""

from __future__ import annotations

import pytest

from farmwatch.commands.reference import COMMAND as REFERENCE
from farmwatch.commands.rulesets.evaluate import COMMAND
from farmwatch.labels.evaluation_tables import document, report, tables_of
from farmwatch.labels.labelled_pages import LabelledPage
from farmwatch.terminal.generated import section
from filters.rules.catalogue import RULES
from filters.rules.evaluation import LabelledVerdict, evaluate
from filters.rules.judgement import judge
from filters.rules.ruleset import load_ruleset, shipped_rulesets
from tests.support.paths import DOCS
from tests.tools import choose_default

pytestmark = [pytest.mark.xdist_group("labelled"), pytest.mark.slow]

PAGE = (DOCS / "reference" / "rules.md").read_text(encoding="utf-8")


def test_every_rule_and_every_shipped_ruleset_is_described() -> None:
    """Each rule has a row that says what it measures and when a page passes; each ruleset says what it is."""
    rows = [[cell.strip() for cell in line.strip("|").split(" | ")] for line in section(PAGE, REFERENCE).splitlines()]
    described = {row[0].strip("| `"): row for row in rows[2:]}
    assert set(described) == set(RULES)
    assert all(row[1] and row[2] and row[3] for row in described.values())
    for name in shipped_rulesets():
        assert f"\n| `{name}` | " in PAGE


@pytest.mark.data
def test_the_tables_are_those_of_a_fresh_evaluation(labelled: list[LabelledPage]) -> None:
    """A changed rule, ruleset or measure fails: `rulesets evaluate --labels DIR --card docs/reference/rules.md`."""
    names = shipped_rulesets()
    rulesets = [load_ruleset(name) for name in names]
    evaluations = [
        evaluate(
            [
                LabelledVerdict(page.label.page_type, page.label.source, judge(page.features, ruleset))
                for page in labelled
            ]
        )
        for ruleset in rulesets
    ]
    tables = tables_of(report(names, rulesets, evaluations), details=True)
    assert section(PAGE, COMMAND) == document(tables)


@pytest.mark.data
def test_default_is_what_the_labels_favour(labelled: list[LabelledPage]) -> None:
    """The choice made anew is the one on the page, and `default` keeps the same pages of the second half as it does."""
    tables = choose_default.chosen(labelled)
    page = (DOCS / "explanation" / "rules.md").read_text(encoding="utf-8")
    assert section(page, choose_default.COMMAND) == document(tables)
    rows = {row[0]: row[1:] for row in tables[1].rows}
    assert rows["default"] == rows["the choice"]
    f1 = {name: float(row[0].split()[0]) for name, row in rows.items()}
    assert f1["default"] == max(f1.values())
