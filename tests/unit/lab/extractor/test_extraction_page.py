"""The page of the extractor `blocks` agrees with the report of the model that ships."""

from __future__ import annotations

from filters.extraction.learned.model import load_model
from filters.extraction.learned.model_name import model_digest
from tests.support.paths import DOCS
from tests.tools.extraction_tables import COMMAND, report, tables
from tests.tools.generated import section


def test_the_tables_are_those_of_the_report_of_the_shipped_model() -> None:
    """If this fails, a model was trained: commit its report, and run `python -m tests.tools.extraction_tables docs`."""
    page = (DOCS / "explanation" / "extraction.md").read_text(encoding="utf-8")
    assert section(page, COMMAND) == tables(DOCS)
    assert report(DOCS).model == f"{model_digest('')}.json"
    assert report(DOCS).card == load_model("").card
    assert "dragnet" not in load_model("").card
    with_agpl, shown = report(DOCS, "extraction_agpl.json"), report(DOCS).sources
    assert "dragnet: 951 pages, licence AGPL-3.0" in with_agpl.card
    assert {name: row.trafilatura for name, row in with_agpl.sources.items() if name in shown} == {
        name: row.trafilatura for name, row in shown.items()
    }
