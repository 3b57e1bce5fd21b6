"""The numbers of the extractors in the docs, from their report: `python -m tests.tools.extraction_tables docs`.

The report docs/explanation/extraction.json is that of

    OMP_NUM_THREADS=1 python -m tests.bench.bench_extractors docs/explanation/extraction.json

and the model that ships, filters/extraction/learned/blocks.json, that of

    farmwatch lab train-extractor PAGES --out FOLDER --source SOURCE …

with each of aeb, cleaneval, cleanportaleval, readability, trafilatura_eval and wcxb; PAGES has the file LICENSE for the
sources with a known one.
"""

from __future__ import annotations

import statistics
import sys
from collections.abc import Mapping
from pathlib import Path

import msgspec

from farmwatch.labels.evaluation_tables import Table
from lab.extractor.errors import Errors
from tests.tools.generated import document, renewed

COMMAND = "python -m tests.tools.extraction_tables docs"
BARE = "bare Trafilatura, recall"


class Report(msgspec.Struct, frozen=True, kw_only=True):
    """F1 of extractors; `Errors.blocks` is that of the extractor, whatever its name."""

    model: str  # that ships
    card: str
    versions: dict[str, str]
    sources: dict[str, dict[str, Errors]]  # extractor -> source
    kinds: dict[str, dict[str, Errors]]
    left_out: dict[str, dict[str, Errors]]
    cpu: dict[str, float]  # beside one bare call of Trafilatura for recall


def report(docs: Path) -> Report:
    return msgspec.json.decode((docs / "explanation" / "extraction.json").read_bytes(), type=Report)


def tables(found: Report) -> list[Table]:
    """The tables of docs/explanation/extraction.md."""
    of_domains = {name: found.sources[name] for name in found.left_out}
    return [
        _beside("source", of_domains, "F1 by source, of pages whose domain was left out of the models", mean=True),
        _beside("kind", found.kinds, "F1 by kind of page, of the same texts; the labels of `wcxb` name kinds"),
        _beside("source left out", found.left_out, "F1 of sources whose domains were all left out of the models"),
        _every(found),
    ]


def _beside(what: str, of: Mapping[str, Mapping[str, Errors]], title: str, *, mean: bool = False) -> Table:
    """Rows of extractors' errors beside Trafilatura's."""
    headings, cells = [what, "pages", "domains", "trafilatura"], []
    for name in of:
        headings += [name, "difference"]
    for group, row in next(iter(of.values())).items():
        cells.append([group, str(row.pages), str(row.domains), f"{row.trafilatura:.3f}"])
        for rows in of.values():
            cells[-1] += [f"{rows[group].blocks:.3f}", _difference(rows[group])]
    if mean:
        theirs = [statistics.mean(row.trafilatura for row in rows.values()) for rows in of.values()]
        ours = [statistics.mean(row.blocks for row in rows.values()) for rows in of.values()]
        cells.append(["mean of sources", "", "", f"{theirs[0]:.3f}"])
        for their, our in zip(theirs, ours, strict=True):
            cells[-1] += [f"{our:.3f}", f"{our - their:+.3f}"]
    return Table(title, headings, cells)


def _every(found: Report) -> Table:
    names = next(iter(found.sources.values()))
    rows = []
    for tool, errors in found.sources.items():
        worst, row = min(errors.items(), key=lambda item: item[1].difference)
        rows.append([f"{tool} {found.versions.get(tool, '')}".strip()])
        rows[-1] += [f"{errors[name].blocks:.3f}" for name in names]
        rows[-1] += [f"{statistics.mean(row.blocks for row in errors.values()):.3f}"]
        rows[-1] += ["" if tool == "trafilatura" else f"{worst} {_difference(row)}"]
        rows[-1] += [f"{found.cpu[tool]:.2f}" if tool in found.cpu else ""]
    headings = ["extractor", *names, "mean", "worst beside trafilatura", "CPU of a bare recall call"]
    return Table("F1 by source of each extractor", headings, rows)


def _difference(row: Errors) -> str:
    ends = "too few domains" if row.low is None or row.high is None else f"{row.low:+.3f} to {row.high:+.3f}"
    return f"{row.difference:+.3f} ({ends})"


def main() -> None:
    """Renew the tables in the given folder of docs."""
    for docs in map(Path, sys.argv[1:]):
        page = docs / "explanation" / "extraction.md"
        text = renewed(page.read_text(encoding="utf-8"), COMMAND, document(tables(report(docs))))
        page.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
