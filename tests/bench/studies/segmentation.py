"""How well segments find the parts of a page, beside three simple ways, by the text nodes of pages with known parts.

Each visible text node gets two signs that nothing else has, so each character of MEASURE's segments says where it is
from. Extended BCubed (Amigó et al. 2009) is over characters: of a segment, the share of its part (precision); of a
part, the share in one segment (recall), 0 for characters in no segment. A border is between two text nodes of a page in
a row; text of no part is left out, and text in no segment belongs to the segment before it.
"""

from __future__ import annotations

import random
import re
from collections import Counter
from collections.abc import Callable, Hashable, Iterator, Sequence
from itertools import pairwise
from statistics import fmean
from typing import Any, NamedTuple

from lxml import etree

from farmwatch.labels.labelled_pages import LabelledPages
from filters.extraction.html_tree import ParseFailed, parse, readable
from filters.measure.page_measures import measure
from filters.segments.segments import segment_text
from filters.settings import MeasureSettings
from filters.structure.names import UNSEEN
from filters.structure.page_lines import INLINE
from tests.support.pages.spliced import TEMPLATES, UNSIGNED, URL, spliced

Part = Hashable | None

_FIRST_SIGN, _SIGNS = 0x2801, 255  # Braille: visible, no letters, in no labelled page
_SIGNED = re.compile(f"[{chr(_FIRST_SIGN)}-{chr(_FIRST_SIGN + _SIGNS - 1)}]{{2}}")
_UNREAD = {"head", *UNSEEN} - {"noscript"}  # Discourse has its posts for readers without scripts
_HEADING = re.compile("h[1-6]")
_HAS = "contains(concat(' ', normalize-space(@class), ' '), ' {} ')"
FORUMS = {  # containers of posts
    "Discourse": f"//*[{_HAS.format('crawler-post')} or {_HAS.format('topic-post')}]",
    "XenForo": f"//article[{_HAS.format('message--post')}] | //li[{_HAS.format('message')}]",
    "phpBB": f"//div[{_HAS.format('post')} and starts-with(@id, 'p') and not(starts-with(@id, 'post'))]",
    "vBulletin": f"//li[{_HAS.format('postcontainer')} or {_HAS.format('b-post')}] | //table[starts-with(@id, 'post')]",
}


class Node(NamedTuple):
    """A text node: its characters, its block element, the headings before it, and the part that it is of."""

    chars: int
    block: Any
    headings: int
    part: Part


class Fit(NamedTuple):
    """BCubed, and the same with the rest of the page; F1 of borders."""

    precision: float
    recall: float
    f1: float
    f1_of_page: float
    borders: float


def bcubed(nodes: Sequence[Node], found: Sequence[Part]) -> tuple[float, float, float]:
    """Precision, recall and F1 by characters."""
    both, parts, segments = Counter[Any](), Counter[Any](), Counter[Any]()
    for node, segment in zip(nodes, found, strict=True):
        if node.part is not None:
            parts[node.part] += node.chars
        if segment is not None:
            segments[segment] += node.chars
            if node.part is not None:
                both[node.part, segment] += node.chars
    precision = sum(n * n / segments[segment] for (_, segment), n in both.items()) / max(segments.total(), 1)
    recall = sum(n * n / parts[part] for (part, _), n in both.items()) / max(parts.total(), 1)
    return precision, recall, _f1(precision, recall)


def borders(nodes: Sequence[Node], found: Sequence[Part]) -> float:
    """F1 of the borders between text nodes."""
    filled: list[Part] = []
    for segment in found:
        filled.append(segment if segment is not None or not filled else filled[-1])
    true = {place for place, (one, other) in enumerate(pairwise(nodes)) if one.part != other.part}
    seen = {place for place, (one, other) in enumerate(pairwise(filled)) if one != other}
    right = len(true & seen)
    return _f1(right / len(seen) if seen else 1.0, right / len(true) if true else 1.0)


def _f1(precision: float, recall: float) -> float:
    return 2 * precision * recall / (precision + recall) if precision + recall else 0.0


def fit(nodes: Sequence[Node], found: Sequence[Part]) -> Fit:
    of_parts = [place for place, node in enumerate(nodes) if node.part is not None]
    inside, there = [nodes[place] for place in of_parts], [found[place] for place in of_parts]
    return Fit(*bcubed(inside, there), bcubed(nodes, found)[2], borders(inside, there))


def signed(html: str, containers: Callable[[Any], Sequence[Any]]) -> tuple[list[Node], str] | None:
    """The text nodes of a page, and the page with signs; None for one with fewer than two parts, or that is no HTML."""
    try:
        tree = parse(readable(html))
    except ParseFailed:
        return None
    part_of = {element: number for number, element in enumerate(containers(tree))}
    nodes: list[Node] = []
    headings = 0

    def sign(text: str | None, element: Any) -> str | None:
        if not text or not text.strip() or len(nodes) >= _SIGNS**2:
            return text
        around = [element, *element.iterancestors()]
        if any(of.tag in _UNREAD for of in around):
            return text
        block = next((of for of in around if of.tag not in INLINE), element)
        part = next((part_of[of] for of in around if of in part_of), None)
        body = text.rstrip()
        high, low = divmod(len(nodes), _SIGNS)
        nodes.append(Node(len(text.strip()), block, headings, part))
        return f"{body}{chr(_FIRST_SIGN + high)}{chr(_FIRST_SIGN + low)}{text[len(body) :]}"

    for event, element in list(etree.iterwalk(tree, events=("start", "end"))):
        if not isinstance(element.tag, str):
            if event == "end":
                element.tail = sign(element.tail, element.getparent())
        elif event == "start":
            headings += bool(_HEADING.fullmatch(element.tag))
            element.text = sign(element.text, element)
        elif element.getparent() is not None:
            element.tail = sign(element.tail, element.getparent())
    if len({node.part for node in nodes} - {None}) < 2:
        return None
    return nodes, etree.tostring(tree, encoding="unicode", method="html")


def by_segments(html: str, nodes: Sequence[Node], url: str) -> list[Part]:
    """The segment of each node, as MEASURE has them."""
    measured = measure(url, html, "", MeasureSettings())
    found: list[Part] = [None] * len(nodes)
    for of_kind in measured.segments:
        for number, text in enumerate(of_kind.texts or [segment_text(measured.text, of_kind)]):
            for of_node in _SIGNED.findall(text):
                place = (ord(of_node[0]) - _FIRST_SIGN) * _SIGNS + ord(of_node[1]) - _FIRST_SIGN
                if place < len(nodes):
                    found[place] = (of_kind.kind, number)
    return found


def fits(html: str, url: str, containers: Callable[[Any], Sequence[Any]]) -> dict[str, Fit] | None:
    """Each way on a page; None for a page without known parts."""
    if (page := signed(html, containers)) is None:
        return None
    nodes, with_signs = page
    ways: dict[str, list[Part]] = {
        "segments": by_segments(with_signs, nodes, url),
        "leaves of blocks": [node.block for node in nodes],
        "one segment": [0] * len(nodes),
        "headings": [node.headings for node in nodes],
    }
    return {way: fit(nodes, found) for way, found in ways.items()}


def threads(pages: LabelledPages, every: int) -> Iterator[tuple[str, dict[str, Fit]]]:
    """Labelled pages of known forum software."""
    pages.narrow(lambda label: label.page_type == "forum")
    pages.labels = pages.labels[::every]
    for label, html in pages.htmls():
        for software, path in FORUMS.items():
            if found := fits(html, label.url or URL, etree.XPath(path)):
                yield software, found
                break


def splices(pages: LabelledPages, number: int) -> Iterator[tuple[str, dict[str, Fit]]]:
    """Pages of two to six labelled texts, by template."""
    texts = [
        lines
        for label in pages.labels
        if (lines := [line for line in (label.gold or "").split("\n") if line.strip()][:20])
        and 300 <= sum(map(len, lines)) <= 5000
    ]
    rng = random.Random(1)  # reproducible, no secret
    for turn in range(number):
        name, template = list({**TEMPLATES, **UNSIGNED}.items())[turn % (len(TEMPLATES) + len(UNSIGNED))]
        chosen = rng.sample(texts, rng.randint(2, 6))
        found = fits(spliced(chosen, template), URL, lambda tree: tree.xpath("//*[@data-text]"))
        if found:
            yield name, found


def print_fits(title: str, found: Sequence[tuple[str, dict[str, Fit]]]) -> None:
    """The means of each way over all pages, then of segments by group of pages."""
    print(f"\n{title}: {len(found)} pages, means over pages\n")
    print("| way | precision | recall | F1 | F1 with the rest of the page | borders F1 |\n|---|---|---|---|---|---|")
    for way in found[0][1] if found else ():
        _print_row(way, [of[way] for _, of in found])
    for group in dict.fromkeys(group for group, _ in found):
        rows = [of["segments"] for name, of in found if name == group]
        _print_row(f"segments: {group}, {len(rows)}", rows)


def _print_row(name: str, fits_of: Sequence[Fit]) -> None:
    print(f"| {name} | " + " | ".join(f"{fmean(column):.3f}" for column in zip(*fits_of, strict=True)) + " |")
