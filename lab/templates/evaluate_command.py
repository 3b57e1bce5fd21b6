"""`farmwatch lab templates evaluate`: the methods on archived pages that people have labelled."""

from __future__ import annotations

import time
from contextlib import closing
from itertools import product, zip_longest
from pathlib import Path
from typing import Annotated, Any

from cyclopts import Parameter

from farmwatch.commands.options import JUST_CONFIGURED, AsJson, Configured
from farmwatch.terminal.messages import message, put, put_json, put_table
from lab.templates.archived import Archives
from lab.templates.classes import NodeClass
from lab.templates.evaluation import LabelledArchives, Scores, judged, read_lines, scores
from lab.templates.learning import Method, learner_of
from stream.text.user_errors import Exit
from stream.text.wording import counted, one_line

_PUBLISHED: dict[Method, tuple[float | None, ...]] = {  # Leśniak 2017, by node, over 16 crosses: as in `Scores`
    Method.T001: (5862, 0.883, 0.590, 0.918, 0.718, 0.982, 0.877, 0.926),
    Method.T002: (None, 0.899),
    Method.T003: (None, 0.819),
    Method.T004: (None, 0.865),
    Method.T005: (None, 0.873),
    Method.T006: (None, 0.896),
}
_NEIGHBOURS: dict[str, dict[str, Any]] = {
    "given": {},
    "tag paths": {"found": True},
    "positional": {"found": True, "positional": 0.6},
}


def evaluate_templates(
    folder: Annotated[Path, Parameter(help="Folder with crosses.json, WARC files, and files of labels.")],
    /,
    *,
    json: AsJson = False,
    common: Configured = JUST_CONFIGURED,
) -> int:
    """Evaluate the methods of `templates split` on archived pages that people have labelled, by node and by character.

    crosses.json is a list of {cross, warc, truth, cur, up, down, prev, next}; a page is {url, date} or null. A line of
    the file `truth` is `content` or `boilerplate`, a tab, and the path of a text.

    A row is a method, with the pages that crosses.json gives, or that farmwatch finds by tag paths or positional
    tokens, compared in pairs or chained. A text may be several nodes, as the compared pages cut it, so totals differ.
    An invalid node counts as wrong among `all` nodes; the thesis counts the `valid` ones only. The rows `published` are
    its own, over more pages. A text without a label, or with two, is left out. Needs the extra `train`.
    """
    config = common.load().config
    now_ms = int(time.time() * 1000)
    files = [folder / name for name in dict.fromkeys(line.warc for line in read_lines(folder))]
    learners = {method: learner_of(method) for method in Method}
    archives = Archives(files, config.crawl, now_ms)
    rows: dict[str, list[dict[str, Any]]] = {"node": [], "character": []}
    for method, shares in _PUBLISHED.items():
        row = {"pages": "published", "compared": "chained", "method": method.value, "nodes": "valid"}
        rows["node"].append(row | dict(zip_longest(Scores._fields, shares)))
    with closing(archives):
        for unread in archives.scan(message):
            message(f"{unread.archive}: offset {unread.offset}: {one_line(unread.reason)}")
        labelled = LabelledArchives(folder, archives, config.measure, now_ms)
        crosses = {name: labelled.crosses(**options) for name, options in _NEIGHBOURS.items()}
    for pages, compared in product(crosses, ("in pairs", "chained")):
        nodes = [(cross, cross.nodes(chained=compared == "chained")) for cross in crosses[pages]]
        for method in Method:
            judged_nodes = {"all": [node for pair in nodes for node in judged(*pair, method, learners[method])]}
            judged_nodes["valid"] = [node for node in judged_nodes["all"] if node.result is not NodeClass.INVALID]
            if judged_nodes["valid"] == judged_nodes["all"]:
                del judged_nodes["valid"]
            for which, chosen in judged_nodes.items():
                row = {"pages": pages, "compared": compared, "method": method.value, "nodes": which}
                rows["node"].append(row | scores(chosen, by_node=True)._asdict())
                rows["character"].append(row | scores(chosen, by_node=False)._asdict())
    for cross in crosses["given"]:
        if left_out := cross.labels.count(None):
            texts = counted(len(cross.labels), "text")
            message(f"{cross.name}: {left_out} of {texts} left out: no label, or two")
    if json:
        put_json(rows)
        return Exit.OK
    labels = sum(label is not None for cross in crosses["given"] for label in cross.labels)
    put(f"{counted(len(crosses['given']), 'labelled page')}, {counted(labels, 'labelled text')}\n")
    for by, of in rows.items():
        headings = [name.replace("_", " ") for name in of[0]]
        put_table(
            headings,
            [[f"{value:.3f}" if isinstance(value, float) else value for value in row.values()] for row in of],
            f"By {by}",
        )
        put("")
    return Exit.OK
