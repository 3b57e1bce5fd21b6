"""The methods on archived pages whose text people have labelled.

A folder has `crosses.json` (a list of {cross, warc, truth, cur, up, down, prev, next}, each page {url, date} or null),
the WARC files, and the files of labels (`tests.bench.studies.node_labels`).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import pairwise
from pathlib import Path
from typing import NamedTuple

import msgspec

from crawler.errors import UnusableUrl
from crawler.web.urls import normalise
from filters.extraction.html_tree import ParseFailed
from filters.settings import MeasureSettings
from lab.templates.archived import Archives, NoPage, PageKey
from lab.templates.classes import CUR, ROLES, Node, NodeClass, bits_of, nodes_of, text_chars
from lab.templates.diff import matches
from lab.templates.learning import Method, classes_of
from lab.templates.splitting import Neighbours, SiteSplitter
from lab.templates.words import Words, page_tree, words_of
from stream.text.times import read_time
from stream.text.user_errors import FarmwatchError
from tests.bench.studies.node_labels import TruthMismatch, read_truth, run_labels


class _Page(msgspec.Struct, frozen=True):
    url: str
    date: str


class _Line(msgspec.Struct, frozen=True):
    cross: str
    warc: str
    truth: str
    cur: _Page
    up: _Page
    down: _Page | None = None
    prev: _Page | None = None
    next: _Page | None = None


class LabelledCross(NamedTuple):
    """A cross: the words of its pages by role, and the label of each run of `cur`, if it has one."""

    name: str
    pages: dict[str, Words]
    labels: list[NodeClass | None]

    def nodes(self, *, chained: bool) -> list[Node]:
        """The nodes of `cur`."""
        others = {ROLES[role]: page.words for role, page in self.pages.items() if role != "cur"}
        compared = chained_bits_of if chained else bits_of
        return nodes_of(self.pages["cur"], compared(self.pages["cur"].words, others))

    @property
    def mask(self) -> int:
        """The bits of the pages that there are."""
        return CUR | sum(ROLES[role] for role in self.pages if role != "cur")


def chained_bits_of(page: Sequence[str], others: Mapping[int, Sequence[str]]) -> list[int]:
    """As `bits_of`, but as in the thesis's code: each page is compared with the one before it in the order up, down,
    prev, next, page. A word has the bits of all pages since the first that has it.
    """
    numbers: dict[str, int] = {}
    numbered = {
        bit: [numbers.setdefault(word, len(numbers)) for word in words]
        for bit, words in [*sorted(others.items(), reverse=True), (CUR, page)]
    }
    order = list(numbered)
    since = [0] * len(numbered[order[0]])  # word -> place in `order` of the first page that has it
    for place, (before, after) in enumerate(pairwise(order), start=1):
        last, since = since, [place] * len(numbered[after])
        for old, new, size in matches(numbered[before], numbered[after]):
            since[new : new + size] = last[old : old + size]
    return [CUR | sum(set(order[place:]) - {CUR}) for place in since]


class Scores(NamedTuple):
    """Of the nodes, or of their characters. None: nothing has that class."""

    total: int
    accuracy: float | None
    content_precision: float | None
    content_recall: float | None
    content_f1: float | None
    boilerplate_precision: float | None
    boilerplate_recall: float | None
    boilerplate_f1: float | None


class Judged(NamedTuple):
    """A node: its label, its class, and its characters."""

    label: NodeClass
    result: NodeClass
    chars: int


class LabelledArchives:
    """The pages of a folder, parsed once."""

    def __init__(self, folder: Path, archives: Archives, settings: MeasureSettings, now_ms: int) -> None:
        """`archives` is listed already. Raises FarmwatchError."""
        self._folder = folder
        self._archives = archives
        self._settings = settings
        self._now_ms = now_ms
        self._lines = read_lines(folder)
        keys = (key for site in archives.sites() for key in archives.pages(site))
        self._keys = {(key.url, key.at_ms // 1000): key for key in keys}  # an index has seconds
        self._words: dict[PageKey, Words] = {}

    def crosses(self, positional: float | None = None, *, found: bool = False) -> list[LabelledCross]:
        """The crosses of the folder; with `found`, the pages beside `cur` are those that farmwatch finds.

        `positional`: see `SiteSplitter`. Raises FarmwatchError.
        """
        chosen: dict[PageKey, Mapping[str, PageKey]] = {}  # the pages beside each page that has some, by role
        if found:
            splitter = SiteSplitter(self._archives, self._settings, positional=positional)
            of_sites = (cross for site in self._archives.sites() for cross in splitter.neighbours(site))
            chosen = {cross.key: cross.others for cross in of_sites if isinstance(cross, Neighbours)}
        crosses = []
        for line in self._lines:
            cur = self._key(line.cur)
            given = {role: page for role in ROLES if (page := getattr(line, role)) is not None}
            others = chosen.get(cur, {}) if found else {role: self._key(page) for role, page in given.items()}
            if not others:
                continue  # `templates split` does not split it
            words = {role: self.page(key) for role, key in {"cur": cur, **others}.items()}
            file = self._folder / line.truth
            try:
                with file.open(encoding="utf-8") as lines:
                    labels = run_labels(words["cur"], read_truth(lines))
            except (OSError, UnicodeDecodeError, TruthMismatch) as error:
                raise FarmwatchError(f"{file}: no labels of {line.cur.url}: {error}") from error
            crosses.append(LabelledCross(line.cross, words, labels))
        return crosses

    def _key(self, page: _Page) -> PageKey:
        try:
            return self._keys[normalise(page.url), read_time(page.date, self._now_ms) // 1000]
        except (KeyError, ValueError, UnusableUrl) as error:
            raise FarmwatchError(f"{self._folder}: no page {page.url} of {page.date} in the archives") from error

    def page(self, key: PageKey) -> Words:
        """The words of a page. Raises FarmwatchError."""
        if key not in self._words:
            try:
                self._words[key] = words_of(page_tree(*self._archives.body(key), self._settings))
            except (NoPage, ParseFailed) as error:
                raise FarmwatchError(f"{key.url}: cannot be read: {error}") from error
        return self._words[key]


def read_lines(folder: Path) -> list[_Line]:
    """The crosses of a folder. Raises FarmwatchError."""
    file = folder / "crosses.json"
    try:
        return msgspec.json.decode(file.read_bytes(), type=list[_Line])
    except OSError as error:
        raise FarmwatchError(f"{file}: cannot be read: {error.strerror}") from error
    except msgspec.MsgspecError as error:
        raise FarmwatchError(f"{file}: no list of crosses: {error}") from error


def judged(cross: LabelledCross, nodes: list[Node], method: Method) -> list[Judged]:
    """The labelled nodes of a cross by a method."""
    words = cross.pages["cur"]
    classes = classes_of(words, nodes, cross.mask, method)
    return [
        Judged(label, kind, text_chars(words, node))
        for node, kind in zip(nodes, classes, strict=True)
        if (label := cross.labels[node.run]) is not None
    ]


def scores(nodes: Sequence[Judged], *, by_node: bool) -> Scores:
    """Accuracy, precision and recall, by node or by character. An invalid node is wrong."""

    def weight(label: NodeClass | None = None, result: NodeClass | None = None) -> int:
        chosen = [one for one in nodes if label in (None, one.label) and result in (None, one.result)]
        return len(chosen) if by_node else sum(one.chars for one in chosen)

    total = weight()
    rights = 0
    shares: list[float | None] = []
    for one in (NodeClass.CONTENT, NodeClass.BOILERPLATE):
        right, given, labelled = weight(one, one), weight(None, one), weight(one, None)
        rights += right
        shares += [
            right / given if given else None,
            right / labelled if labelled else None,
            2 * right / (given + labelled) if given + labelled else None,
        ]
    return Scores(total, rights / total if total else None, *shares)
