"""The inputs of the block classifier: whole numbers 0..MOST for each block, its neighbours, its ancestors and its page.

Sums are of whole numbers and shares are divided with the rest dropped, so the inputs are the same on every processor.
Sizes are on a logarithmic scale, shares in 32nds, flags are FLAG.

The kinds of inputs are those of C. Kohlschütter et al., "Boilerplate detection using shallow text features", WSDM 2010,
M. Peters and D. Lecocq, "Content extraction using diverse feature sets", WWW 2013, and T. Vogels et al., "Web2Text",
ECIR 2018.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from functools import cache
from itertools import chain
from typing import Any

import numpy as np
from numpy.typing import NDArray

from filters.extraction.blocks import BlockKind
from filters.extraction.learned.page_blocks import LEVELS, Ints, PageBlocks

Inputs = NDArray[np.uint8]  # [inputs, blocks]

MOST = 127
_ASCII_END = 127
FLAG = 16
_SCALE_END = 1 << 16
_MOST_INPUTS = 256  # of a Columns
_LONG_WORDS = 15
_TAGS = ("p", "div", "h1", "h2", "h3", "li", "td", "pre", "dt", "dd", "blockquote", "figcaption", "article", "br")
_AROUND = (
    *(("nav",), ("header",), ("footer",), ("aside",), ("article",), ("main",), ("section",), ("form",), ("table",)),
    *(("ul", "ol"), ("dl",), ("figure",), ("blockquote",), ("pre",), ("button", "label"), ("li",), ("address",)),
    *(("h1", "h2", "h3", "h4", "h5", "h6"), ("p",), ("details", "summary")),
)
_ON_PAGE = ("article", "main", "nav", "p", "h1", "form", "li", "td", "pre")
_WORD = re.compile(r"\w+")
# Function words of seven languages
_FUNCTION_WORDS = frozenset(
    """
    the of and to a in is that it was for on with as be at by this from or have are not but they which you we he his
    an had were their has its will would can been if more when there who what so about into them than our my der die
    und das den von zu mit sich des auf für ist im dem nicht ein eine als auch es an werden aus er hat dass sie nach
    wird bei einer um am sind noch wie einem über einen so zum war haben nur oder aber vor zur bis le la les et des
    en un une du que est pour qui dans par plus pas au sur ne se ce il sont avec son cette aux ou el los las del por
    con para una su al lo como más pero sus ya este porque esta entre cuando muy sin sobre di che non della sono si
    da alla ha come anche più nel dei ma gli delle de het van ik te dat op zijn voor met niet aan er om ook als bij
    nog uit naar maar door over o os não uma com na no mais dos das foi ao ele tem à seu sua
    """.split()  # noqa: SIM905  # a list is no easier to read
)
# Classes of characters; all others count as letters.
_CLASSES: dict[str, str] = {
    "period": ".!?。！？…",
    "comma": ",;:，、；",
    "digit": "0123456789",
    "upper": "ABCDEFGHIJKLMNOPQRSTUVWXYZ",
    "bar": "|»«›‹•·→←>/\\–—-_+*#@",
    "quote": "\"'“”„’‘()[]",
    "sign": "©®™$€£%&",
}
_PERIOD, _DIGIT, _UPPER, _BAR = (list(_CLASSES).index(name) + 1 for name in ("period", "digit", "upper", "bar"))


@cache
def _scale() -> Inputs:
    """Size -> step of a logarithmic scale by a factor of about 1.25; built of whole numbers."""
    edges, edge = [], 1
    while edge < _SCALE_END:
        edges.append(edge)
        edge += max(1, edge // 4)
    return np.searchsorted(np.array(edges), np.arange(_SCALE_END), side="right").astype(np.uint8)


@cache
def _class_of() -> Inputs:
    table = np.zeros(_SCALE_END, np.uint8)
    for number, characters in enumerate(_CLASSES.values(), start=1):
        table[[ord(character) for character in characters]] = number
    return table


def size(numbers: Any) -> Inputs:
    """Sizes as inputs."""
    return np.asarray(_scale()[np.minimum(numbers, _SCALE_END - 1)])


def share(part: Any, whole: Any) -> Ints:
    """Shares as inputs."""
    return np.asarray(part * 32 // np.maximum(whole, 1))


def flag(mask: Any) -> Inputs:
    """Flags as inputs."""
    return np.asarray(mask).astype(np.uint8) * np.uint8(FLAG)


def inside(last: Ints, groups: Sequence[Sequence[int]]) -> NDArray[np.int32]:
    """For each group of elements and each element, the number of those that it is in, or is [groups, elements]."""
    edges = np.zeros((len(groups), len(last) + 1), np.int32)
    rows = np.repeat(np.arange(len(groups)), [len(group) for group in groups])
    places = np.fromiter(chain.from_iterable(groups), np.int64, len(rows))
    np.add.at(edges, (rows, places), 1)
    np.subtract.at(edges, (rows, last[places] + 1), 1)
    return np.cumsum(edges[:, :-1], axis=1, out=edges[:, :-1])


def near(columns: NDArray[Any], away: int) -> NDArray[Any]:
    """Columns [..., blocks] of the blocks `away` from each block; 0 beyond the page."""
    moved = np.zeros_like(columns)
    if away > 0:
        moved[..., :-away] = columns[..., away:]
    else:
        moved[..., -away:] = columns[..., :away]
    return moved


class Columns:
    """Inputs by name. A number for all blocks is a column, too. A byte for each: pages have up to 100,000 blocks."""

    def __init__(self, blocks: int) -> None:
        self.names: list[str] = []
        self._matrix = np.empty((_MOST_INPUTS, blocks), np.uint8)

    def add(self, name: str, column: Any) -> Inputs:
        """Add an input, whose numbers are not negative and are cut at MOST, and return it."""
        row: Inputs = self.add_all([name], column)[0]
        return row

    def add_all(self, names: Iterable[str], columns: Any) -> Inputs:
        """Add inputs [inputs, blocks], as `add` does, and return them."""
        first = len(self.names)
        self.names += names
        rows = self._matrix[first : len(self.names)]
        np.minimum(columns, MOST, out=rows, casting="unsafe")
        return rows

    def matrix(self) -> Inputs:
        """All inputs [inputs, blocks]."""
        return self._matrix[: len(self.names)]


def block_inputs(page: PageBlocks) -> Columns:
    """The inputs that need no learned words."""
    inputs = Columns(len(page.lines))
    own = _of_text(page, inputs)
    _of_page(page, own, inputs)
    _of_elements(page, own, inputs)
    _of_ancestors(page, own, inputs)
    _of_neighbours(page, own, inputs)
    return inputs


def _of_text(page: PageBlocks, inputs: Columns) -> dict[str, NDArray[Any]]:
    add, words, chars = inputs.add, page.words, page.chars
    lowered = [word.lower() for word in page.vocabulary]
    title = set(_WORD.findall(page.title.lower()))
    function, in_title = (
        page.in_words(np.array([word in known for word in lowered], np.int64)[page.word])
        for known in (_FUNCTION_WORDS, title)
    )
    own: dict[str, NDArray[Any]] = {"words": words, "chars": chars, "links": page.link_chars, "function": function}
    own["size"] = add("words", size(words))
    add("chars", size(chars))
    add("word_chars", chars * 4 // words)
    own["link_share"] = add("link_share", share(page.link_chars, chars))
    add("links", size(page.links))
    add("code_share", share(page.code_chars, chars))
    own["function_share"] = add("function_share", share(function, words))
    add("title_share", share(in_title, words))
    add("title_words", size(in_title))
    codes = np.frombuffer("".join(page.lines).encode("utf-32-le", "replace"), np.uint32)
    classes = _class_of()[np.minimum(codes, _SCALE_END - 1)]
    ends = np.cumsum(chars)
    starts = ends - chars
    kinds, of_block = len(_CLASSES) + 1, np.repeat(np.arange(len(chars)), chars)
    tally = np.bincount((of_block * 2 + (codes > _ASCII_END)) * kinds + classes, minlength=len(chars) * 2 * kinds)
    by_class = tally.reshape(len(chars), 2, kinds).T  # [class, whether it is beyond ASCII, block]
    for name, count in zip(_CLASSES, by_class[1:].sum(1), strict=True):
        add(f"{name}_share", share(count * 4, chars))
        if name in ("period", "comma"):
            add(f"{name}s", size(count))
    closing = classes == _PERIOD
    add("ends_sentence", flag(closing[ends - 1] | closing[np.maximum(ends - 2, starts)]))
    add("ends_colon", flag(codes[ends - 1] == ord(":")))
    for name, number in (("upper", _UPPER), ("digit", _DIGIT), ("bar", _BAR)):
        add(f"starts_{name}", flag(classes[starts] == number))
    add("non_ascii_share", share(by_class[:, 1].sum(0), chars))
    numbers: dict[str, int] = {}
    same = np.array([numbers.setdefault(line, len(numbers)) for line in page.lines])
    add("same_text", size(np.bincount(same)[same]))
    own["long"] = words * ((words >= _LONG_WORDS) & (own["link_share"] < 10))
    return own


def _of_page(page: PageBlocks, own: dict[str, NDArray[Any]], inputs: Columns) -> None:
    add, first, long, numbers = inputs.add, page.first_word, own["long"], np.arange(len(page.lines))
    total, all_long = first[-1], long.sum()
    add("place", share(first[:-1], total))
    add("words_so_far", size(first[:-1]))
    add("words_to_come", size(total - first[1:]))
    add("block_place", share(numbers, len(numbers)))
    add("page_words", size(total))
    add("page_blocks", size(len(numbers)))
    add("page_link_share", share(page.link_chars.sum(), page.chars.sum()))
    add("page_long_share", share(all_long, total))
    add("page_largest", size(long.max()))
    add("page_function_share", share(own["function"].sum(), total))
    add("long_so_far", share(np.cumsum(long) - long, all_long))
    longest = int(np.argmax(long))
    add("after_longest", flag(numbers > longest))
    add("to_longest", size(abs(numbers - longest)))
    add("from_heading", size(np.where(page.heading < 0, len(numbers), numbers - page.heading)))


def _of_elements(page: PageBlocks, own: dict[str, NDArray[Any]], inputs: Columns) -> None:
    add, holder = inputs.add, page.holder
    by_tag: dict[str, list[int]] = {}
    for place, tag in enumerate(page.tags):
        by_tag.setdefault(tag, []).append(place)
    numbers = {tag: number for number, tag in enumerate(by_tag)}
    held = np.array([numbers[tag] for tag in page.tags])[holder]
    tags = np.array([numbers.get(tag, -1) for tag in _TAGS])[:, np.newaxis]
    is_tag = inputs.add_all([f"is_{tag}" for tag in _TAGS], flag(held == tags))
    own.update(zip((f"is_{tag}" for tag in _TAGS), is_tag, strict=True))
    add("kind", page.kind * 4)
    add("depth", page.depth[holder])
    groups = [[place for tag in group for place in by_tag.get(tag, ())] for group in _AROUND]
    around = inside(page.last, [*groups, page.hidden])[:, holder]
    inputs.add_all([f"in_{group[0]}" for group in _AROUND], flag(around[:-1] > 0) + np.minimum(around[:-1], 8))
    on_page = np.array([len(by_tag.get(tag, ())) for tag in _ON_PAGE])
    inputs.add_all([f"page_{tag}" for tag in _ON_PAGE], size(on_page)[:, np.newaxis])
    add("hidden", flag(around[-1] > 0))
    order, titles = np.arange(len(holder)), np.flatnonzero(own["is_h1"])
    add("after_h1", flag(order > titles[0]) if len(titles) else 0)
    add("from_h1", size(abs(order - titles[0])) if len(titles) else 0)


def _of_ancestors(page: PageBlocks, own: dict[str, NDArray[Any]], inputs: Columns) -> None:
    """Sums over the subtrees of the element that holds a block and of its ancestors, and over those like it."""
    add, holder, alike = inputs.add, page.holder, page.alike
    counted = [own[name] for name in ("words", "chars", "links", "long", "function")]
    counted += [np.ones(len(holder), np.int64), page.kind == BlockKind.HEADING]
    subtree = np.stack([page.in_subtrees(column).astype(np.int64) for column in counted])
    everywhere = np.bincount(alike)
    _, group, counts = np.unique(page.parent * len(everywhere) + alike, return_inverse=True, return_counts=True)
    at = page.ancestors
    words, chars, links, long, function, blocks, heads = subtree[:, at]  # each [levels, blocks]
    of_all: dict[str, NDArray[Any]] = {
        "long": share(long, own["long"].sum()),
        "words": size(words),
        "link_share": share(links, chars),
        "twins": size(counts[group][at]),
    }
    of_outer: dict[str, NDArray[Any]] = {
        "part": share(own["words"], words),
        "blocks": size(blocks),
        "function": share(function, words),
        "mean_words": size(words // blocks),
        "heads": size(heads),
        "last": flag(page.last[at] == page.last[holder]),
    }
    for level in range(LEVELS):
        for name, columns in (of_all | of_outer if level else of_all).items():
            add(f"{name}_{level}", columns[level])
    mine = alike[holder]
    words, chars, links = (
        np.bincount(mine, own[name], len(everywhere)).astype(np.int64)[mine] for name in ("words", "chars", "links")
    )
    add("alike_words", share(words, page.first_word[-1]))
    add("alike_links", share(links, chars))
    add("alike_elements", size(everywhere[mine]))


def _of_neighbours(page: PageBlocks, own: dict[str, NDArray[Any]], inputs: Columns) -> None:
    alike = page.alike[page.holder] + 1
    names = ("size", "link_share", "function_share", "is_p", "is_li")
    copied = np.stack([own[name] for name in names])
    for away in (-2, -1, 1, 2):
        inputs.add_all([f"{name}{away:+d}" for name in names], near(copied, away))
        inputs.add(f"alike{away:+d}", flag(near(alike, away) == alike))
    summed = np.stack([own[name] for name in ("words", "links", "chars", "long")])
    for side, window in (("before", (-8, 0)), ("around", (-3, 4)), ("after", (1, 9))):
        words, links, chars, long = in_window(summed, *window)
        inputs.add(f"words_{side}", size(words))
        inputs.add(f"links_{side}", share(links, chars))
        inputs.add(f"long_{side}", share(long, words))


def in_window(columns: NDArray[Any], start: int, end: int) -> Ints:
    """Sums [..., blocks] of the blocks around each block, by their distance from `start` to before `end`."""
    count = columns.shape[-1]
    total = np.zeros((*columns.shape[:-1], count + 1), np.int64)
    np.cumsum(columns, axis=-1, out=total[..., 1:])
    first, last = (np.clip(np.arange(edge, edge + count), 0, count) for edge in (start, end))
    return np.asarray(total[..., last] - total[..., first])
