"""The numbers of the extractor `blocks` in the docs, from its reports: `python -m tests.tools.extraction_tables docs`.

The model and its report are those of

    farmwatch lab train-extractor PAGES --out FOLDER --source SOURCE …

with each of aeb, cleaneval, cleanportaleval, readability, trafilatura_eval and wcxb; PAGES has the file LICENSE for the
sources with a known one. The model is filters/extraction/learned/blocks.json, its report
docs/explanation/extraction.json. With the source dragnet as well, the report is docs/explanation/extraction_agpl.json.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping
from pathlib import Path

import msgspec

from farmwatch.labels.evaluation_tables import Table
from lab.extractor.command import Report, table
from lab.extractor.errors import Errors
from tests.tools.generated import document, renewed

COMMAND = "python -m tests.tools.extraction_tables docs"


def report(docs: Path, name: str = "extraction.json") -> Report:
    """The report of the shipped model, or another."""
    return msgspec.json.decode((docs / "explanation" / name).read_bytes(), type=Report)


def tables(docs: Path) -> str:
    """The tables of docs/explanation/extraction.md, as Markdown."""
    found, with_agpl = report(docs), report(docs, "extraction_agpl.json")
    left_out = {**found.left_out, "dragnet": with_agpl.left_out["dragnet"]}  # by a model of the six sources
    return document(
        [
            _by("source", found.sources, "F1 by source, of pages whose domain was left out of the model", mean=True),
            _by("kind", found.kinds, "F1 by kind of page, of the same texts; the labels of `wcxb` name kinds"),
            _by("source left out", left_out, "F1 of sources whose domains were left out of the model"),
            _by("source", with_agpl.sources, "F1 by source, of models that also learned from `dragnet`", mean=True),
        ]
    )


def _by(what: str, rows: Mapping[str, Errors], title: str, *, mean: bool = False) -> Table:
    headings, cells = table(what, rows)
    if mean:
        theirs, ours = (sum(getattr(row, of) for row in rows.values()) / len(rows) for of in ("trafilatura", "blocks"))
        cells.append(["mean of sources", "", "", f"{theirs:.3f}", f"{ours:.3f}", f"{ours - theirs:+.3f}", ""])
    return Table(title, headings, cells)


def main() -> None:
    """Renew the tables in the given folder of docs."""
    for docs in map(Path, sys.argv[1:]):
        page = docs / "explanation" / "extraction.md"
        page.write_text(renewed(page.read_text(encoding="utf-8"), COMMAND, tables(docs)), encoding="utf-8")


if __name__ == "__main__":
    main()
