"""The page of the extractors agrees with the report of the model that ships."""

from __future__ import annotations

from filters.extraction.learned.model import load_model
from filters.extraction.learned.model_name import model_digest
from tests.support.paths import DOCS
from tests.tools.extraction_tables import COMMAND, report, tables
from tests.tools.generated import document, section


def test_the_tables_are_those_of_the_report_of_the_shipped_model() -> None:
    """If this fails, a model was trained, or the report is new: see tests/tools/extraction_tables.py."""
    page = (DOCS / "explanation" / "extraction.md").read_text(encoding="utf-8")
    found = report(DOCS)
    assert section(page, COMMAND) == document(tables(found))
    assert found.model == f"{model_digest('')}.json"
    assert found.card == load_model("").card
    assert "dragnet" not in found.card and "dragnet" in found.sources["auto"]
