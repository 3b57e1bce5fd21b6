"""The methods of `farmwatch lab templates split`, and of the thesis, on pages that people have labelled.

    python -m tests.bench.studies.template_methods

A row is a method, with the pages that crosses.json gives, or that farmwatch finds by tag paths or positional tokens,
compared in pairs or chained. A text may be several nodes, as the compared pages cut it, so totals differ. An invalid
node counts as wrong among `all` nodes; the thesis counts the `valid` ones only. A text without a label, or with two, is
left out. docs/explanation/templates.md has the table.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator
from contextlib import closing
from itertools import product
from pathlib import Path
from typing import Any

from crawler.settings import CrawlSettings
from filters.settings import MeasureSettings
from lab.templates.archived import Archives
from lab.templates.classes import NodeClass
from lab.templates.learning import Method
from tests.bench.studies.labelled_crosses import LabelledArchives, LabelledCross, judged, read_lines, scores
from tests.support.paths import data_root

_NEIGHBOURS: dict[str, dict[str, Any]] = {
    "given": {},
    "tag paths": {"found": True},
    "positional": {"found": True, "positional": 0.6},
}


def labelled_crosses(folder: Path) -> dict[str, list[LabelledCross]]:
    """The crosses of a folder, with the pages that are given, or found in one of two ways."""
    now_ms = int(time.time() * 1000)
    files = [folder / name for name in dict.fromkeys(line.warc for line in read_lines(folder))]
    with closing(Archives(files, CrawlSettings(), now_ms)) as archives:
        assert not list(archives.scan(print))
        labelled = LabelledArchives(folder, archives, MeasureSettings(), now_ms)
        return {name: labelled.crosses(**options) for name, options in _NEIGHBOURS.items()}


def method_rows(crosses: dict[str, list[LabelledCross]]) -> Iterator[dict[str, Any]]:
    """The scores of every method, by node and by character."""
    for pages, compared in product(crosses, ("in pairs", "chained")):
        nodes = [(cross, cross.nodes(chained=compared == "chained")) for cross in crosses[pages]]
        for method in Method:
            judged_nodes = {"all": [node for pair in nodes for node in judged(*pair, method)]}
            judged_nodes["valid"] = [node for node in judged_nodes["all"] if node.result is not NodeClass.INVALID]
            if judged_nodes["valid"] == judged_nodes["all"]:
                del judged_nodes["valid"]
            for (which, chosen), by in product(judged_nodes.items(), ("node", "character")):
                row = {"by": by, "pages": pages, "compared": compared, "method": method.value, "nodes": which}
                yield row | scores(chosen, by_node=by == "node")._asdict()


def main() -> None:
    """Print the table."""
    folder = data_root() / "data" / "dbce"
    if not folder.is_dir():
        sys.exit(f"the labelled archives are not at {folder}: set FARMWATCH_TEST_DATA")
    for number, row in enumerate(method_rows(labelled_crosses(folder))):
        if not number:
            print("\t".join(row))
        print("\t".join(f"{value:.3f}" if isinstance(value, float) else str(value) for value in row.values()))


if __name__ == "__main__":
    main()
