"""Variants of `farmwatch lab templates` on the labelled crosses, and single-page extractors on the same nodes.

    python -m tests.bench.studies.template_variants

Each is t002, compared in pairs with the pages that the thesis chose, but for what its row says. docs/explanation/
templates.md has the table.
"""

from __future__ import annotations

import re
import sys
import time
from collections.abc import Callable, Sequence
from contextlib import closing
from functools import partial
from typing import Any

import justext
import numpy as np

from crawler.settings import CrawlSettings
from filters.measure.extractors import extract
from filters.settings import MeasureSettings
from lab.templates import diff
from lab.templates.archived import Archives
from lab.templates.classes import Node, NodeClass, bits_of, class_of, text_chars
from lab.templates.learning import Learner, Method, classes_of, nearest_neighbours, random_forest
from lab.templates.words import Words
from tests.bench.studies.labelled_crosses import Judged, LabelledArchives, LabelledCross, read_lines, scores
from tests.support.paths import data_root

CONTENT, BOILERPLATE, INVALID = NodeClass
Classify = Callable[[LabelledCross, list[Node]], list[NodeClass]]
_HIDING = re.compile(r"display\s*:\s*none|visibility\s*:\s*hidden")
_STOPLISTS = {"heise": "German", "wired": "English"}


def report(name: str, crosses: Sequence[LabelledCross], classify: Classify) -> None:
    """A row of the table."""
    found = []
    for cross in crosses:
        nodes = cross.nodes(chained=False)
        for node, of in zip(nodes, classify(cross, nodes), strict=True):
            if (label := cross.labels[node.run]) is not None:
                found.append(Judged(label, of, text_chars(cross.pages["cur"], node)))
    numbers = [*scores(found, by_node=True)[1:4], scores(found, by_node=False).accuracy]
    print(f"| {name} | " + " | ".join("-" if n is None else f"{n:.3f}".lstrip("0") for n in numbers) + " |")


def method(
    cross: LabelledCross, nodes: list[Node], of: Method = Method.T002, learner: Learner | None = None
) -> list[NodeClass]:
    """The classes of a method."""
    return classes_of(cross.pages["cur"], nodes, cross.mask, of, learner)


def by_neighbours(cross: LabelledCross, nodes: list[Node]) -> list[NodeClass]:
    """An invalid node gets the class that the valid nodes before and after it have; boilerplate if they differ."""
    classes = [class_of(node.bits, cross.mask) for node in nodes]
    after, nearest = BOILERPLATE, [BOILERPLATE] * len(nodes)
    for place in range(len(nodes) - 1, -1, -1):
        after = after if classes[place] is INVALID else classes[place]
        nearest[place] = after
    before, found = BOILERPLATE, []
    for of, following in zip(classes, nearest, strict=True):
        before = before if of is INVALID else of
        found.append(of if of is not INVALID else before if before is following else BOILERPLATE)
    return found


def without_hidden(cross: LabelledCross, nodes: list[Node]) -> list[NodeClass]:
    """Nodes in hidden elements are boilerplate."""
    words = cross.pages["cur"]

    def is_hidden(node: Node) -> bool:
        element = words.runs[node.run].element
        return any(
            "hidden" in around.keys() or _HIDING.search(around.get("style", "")) is not None  # noqa: SIM118  # of lxml
            for around in (element, *element.iterancestors())
        )

    classes = method(cross, nodes)
    return [BOILERPLATE if is_hidden(node) else of for node, of in zip(nodes, classes, strict=True)]


def balanced(learner: Learner, rows: Any, labels: Any, others: Any) -> Sequence[str]:
    """Train with each class repeated to the size of the larger one."""
    rows, labels = np.array(rows), np.array(labels)
    dice = np.random.default_rng(0)
    places = [np.flatnonzero(labels == label) for label in sorted(set(labels))]
    most = max(map(len, places))
    chosen = np.concatenate([np.concatenate([at, dice.choice(at, most - len(at))]) for at in places])
    return learner(rows[chosen], list(labels[chosen]), others)


def scaled(learner: Learner, rows: Any, labels: Any, others: Any) -> Sequence[str]:
    """Train on features with mean 0 and deviation 1."""
    rows, others = np.array(rows), np.array(others)
    mean, deviation = rows.mean(0), rows.std(0) + 1e-9
    return learner((rows - mean) / deviation, labels, (others - mean) / deviation)


def recurring(site: dict[str, list[Words]], least: int, cross: LabelledCross, nodes: list[Node]) -> list[NodeClass]:
    """Content that is also at this many other URLs is boilerplate: most of the node's words are."""
    page = cross.pages["cur"]
    on = np.zeros(len(page.words), int)
    for pages in site.values():
        if not any(other.tree is page.tree for other in pages):
            on += np.array(bits_of(page.words, {1: pages[0].words})) & 1
    often = on >= least
    classes = method(cross, nodes)
    return [
        BOILERPLATE if of is CONTENT and often[node.first : node.end].mean() > 0.5 else of
        for node, of in zip(nodes, classes, strict=True)
    ]


def extracted(
    of: Callable[[str, LabelledCross], str], html: dict[int, str], cross: LabelledCross, nodes: list[Node]
) -> list[NodeClass]:
    """Content is what an extractor takes: most of the node's words are in its text, in order."""
    page = cross.pages["cur"]
    text = of(html[id(page.tree)], cross).split()
    numbers: dict[str, int] = {}
    kept, own = ([numbers.setdefault(word, len(numbers)) for word in words] for words in (text, page.words))
    is_kept = np.zeros(len(own), bool)
    for _, first, size in diff.matches(kept, own):
        is_kept[first : first + size] = True
    return [CONTENT if is_kept[node.first : node.end].mean() > 0.5 else BOILERPLATE for node in nodes]


def main() -> None:
    """Print the table."""
    folder = data_root() / "data" / "dbce"
    if not folder.is_dir():
        sys.exit(f"the labelled archives are not at {folder}: set FARMWATCH_TEST_DATA")
    now_ms = int(time.time() * 1000)
    settings = MeasureSettings()
    files = [folder / name for name in dict.fromkeys(line.warc for line in read_lines(folder))]
    with closing(Archives(files, CrawlSettings(), now_ms)) as archives:
        assert not list(archives.scan(print))
        labelled = LabelledArchives(folder, archives, settings, now_ms)
        crosses = labelled.crosses()
        keys = {id(labelled.page(key).tree): key for site in archives.sites() for key in archives.pages(site)}
        html = {place: archives.body(key)[0].decode() for place, key in keys.items()}
        sites: dict[str, dict[str, list[Any]]] = {}
        for key in keys.values():
            sites.setdefault(key.site, {}).setdefault(key.url, []).append(key)
        print("| variant | accuracy by node | content precision | content recall | accuracy by character |")
        print("|---|---|---|---|---|")
        runs = partial(method, of=Method.RUNS)
        report("t002", crosses, method)
        report("invalid nodes as their neighbours", crosses, by_neighbours)
        report("a run has the class of most of it: `runs`", crosses, runs)
        report("hidden elements are boilerplate", crosses, without_hidden)
        site_of = {id(cross.pages["cur"].tree): keys[id(cross.pages["cur"].tree)].site for cross in crosses}
        words = {
            name: {url: [labelled.page(key) for key in of] for url, of in urls.items()} for name, urls in sites.items()
        }
        for least in (1, 3):

            def at_several(cross: LabelledCross, nodes: list[Node], least: int = least) -> list[NodeClass]:
                return recurring(words[site_of[id(cross.pages["cur"].tree)]], least, cross, nodes)

            report(f"content at {least} or more other URLs is boilerplate", crosses, at_several)
        for name, learner in ((Method.T005, nearest_neighbours), (Method.T006, random_forest)):
            report(f"{name}, balanced training", crosses, partial(method, of=name, learner=partial(balanced, learner)))
            if name is not Method.T006:
                report(f"{name}, scaled features", crosses, partial(method, of=name, learner=partial(scaled, learner)))
        for which, chosen in spans(crosses, labelled, sites, keys).items():
            report(f"nearest snapshots of {which}", chosen, method)
        report("pages by positional tokens", labelled.crosses(0.6, found=True), method)
        report("pages by tag paths", labelled.crosses(found=True), method)
        report("the same, with `runs`: the default", labelled.crosses(found=True), runs)
        for least in (4, 6):
            diff.LEAST_WORDS = least
            report(f"matches of {least} words or more", crosses, method)
        diff.LEAST_WORDS = 3
        for extractor in ("trafilatura", "resiliparse"):
            report(extractor.title(), crosses, partial(extracted, partial(by_extractor, extractor), html))
        report("jusText", crosses, partial(extracted, by_justext, html))


def by_extractor(name: Any, page: str, _: LabelledCross) -> str:
    """The main text."""
    return extract(page, "", MeasureSettings(extractor=name)).text


def by_justext(page: str, cross: LabelledCross) -> str:
    """The good paragraphs."""
    stoplist = justext.get_stoplist(_STOPLISTS[cross.name.partition("-")[0]])
    return "\n".join(part.text for part in justext.justext(page, stoplist) if not part.is_boilerplate)


def spans(
    crosses: Sequence[LabelledCross], labelled: LabelledArchives, sites: Any, keys: Any
) -> dict[str, list[LabelledCross]]:
    """The crosses with other snapshots of the same URL: the nearest that are this far away."""
    found: dict[str, list[LabelledCross]] = {}
    for name, span_ms in (
        ("all in the archive", 1),
        ("those at least an hour away", 3_600_000),
        ("those at least 20 days away", 20 * 86_400_000),
    ):
        found[name] = []
        for cross in crosses:
            key = keys[id(cross.pages["cur"].tree)]
            snapshots = sites[key.site][key.url]
            pages = {role: page for role, page in cross.pages.items() if role not in ("prev", "next")}
            earlier = [one for one in snapshots if one.at_ms <= key.at_ms - span_ms]
            later = [one for one in snapshots if one.at_ms >= key.at_ms + span_ms]
            if earlier:
                pages["prev"] = labelled.page(max(earlier, key=lambda one: one.at_ms))
            if later:
                pages["next"] = labelled.page(min(later, key=lambda one: one.at_ms))
            found[name].append(cross._replace(pages=pages))
    return found


if __name__ == "__main__":
    main()
