"""Splits the pages of archives, site by site, into content and boilerplate.

Of a site, the tokens of all pages are in memory, and the words of a few. A page is read again when a cross needs it.
"""

from __future__ import annotations

import re
from collections import OrderedDict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import NamedTuple

import xxhash

from filters.extraction.html_tree import ParseFailed
from filters.settings import MeasureSettings
from lab.templates.archived import Archives, NoPage, PageKey
from lab.templates.classes import CUR, ROLES, Node, NodeClass, bits_of, nodes_of, text_chars
from lab.templates.crosses import Snapshot, crosses_of, positional_tokens, tag_paths
from lab.templates.learning import Method, classes_of
from lab.templates.words import Words, page_tree, words_of
from lab.templates.writing import Written, written

_HOST_CHARS = 100  # of a folder's name; the file's has a hash of the whole
_KEPT_BYTES = 8 << 20  # HTML of the pages whose words are kept: those of one URL and their neighbours are used again


class Refused(NamedTuple):
    """A page that is not split, and the reason."""

    key: PageKey
    reason: str


class Neighbours(NamedTuple):
    """A page, and the pages of its cross by role."""

    key: PageKey
    others: Mapping[str, PageKey]
    similarity: float


class Split(NamedTuple):
    """A page with the classes of its nodes, and the pages of its cross by role."""

    key: PageKey
    others: Mapping[str, PageKey]
    similarity: float
    words: Words
    nodes: list[Node]
    classes: list[NodeClass]

    @property
    def name(self) -> str:
        """The name of its files without ending: its host, and a hash."""
        host = re.sub(r"[^a-z0-9.-]|^\.+", "_", self.key.site)[:_HOST_CHARS]
        key = self.key._replace(at_ms=self.key.at_ms // 1000)  # an index has seconds
        return f"pages/{host}/{xxhash.xxh3_64_hexdigest(repr(key[1:]).encode())}"

    def written(self) -> Written:
        """Its files."""
        at = datetime.fromtimestamp(self.key.at_ms // 1000, UTC)
        return written(self.words, self.nodes, self.classes, f"{self.key.url} {at:%Y-%m-%d %H:%M:%S} UTC")

    def counts(self) -> dict[str, dict[str, int]]:
        """Nodes and characters of each class."""
        nodes = {one.value: self.classes.count(one) for one in NodeClass}
        chars = dict.fromkeys(nodes, 0)
        for node, kind in zip(self.nodes, self.classes, strict=True):
            chars[kind] += text_chars(self.words, node)
        return {"nodes": nodes, "characters": chars}


@dataclass(slots=True)
class SiteSplitter:
    """Splits the pages of one site.

    `positional`: the least similarity, by the tokens of the thesis; None for tag paths, and any similarity.
    """

    archives: Archives
    settings: MeasureSettings
    method: Method = Method.RUNS
    positional: float | None = None
    _words: OrderedDict[PageKey, tuple[Words, int]] = field(default_factory=OrderedDict)  # and bytes of HTML
    _kept_bytes: int = 0

    def split(self, site: str) -> Iterator[Split | Refused]:
        """Each page of a site. Raises FarmwatchError."""
        for cross in self.neighbours(site):
            if isinstance(cross, Refused):
                yield cross
                continue
            try:
                yield self.split_cross(*cross)
            except NoPage as why:  # the archive changed meanwhile
                yield Refused(cross.key, str(why))

    def neighbours(self, site: str) -> Iterator[Neighbours | Refused]:
        """The cross of each page of a site. Raises FarmwatchError."""
        tokens_of = tag_paths if self.positional is None else positional_tokens
        keys: list[PageKey] = []
        pages: list[Snapshot] = []
        known: dict[int, int] = {}
        for key in self.archives.pages(site):
            if keys and keys[-1][:3] == key[:3]:
                yield Refused(key, "same_time")
                continue
            try:
                page = self._words_of(key)
            except NoPage as why:
                yield Refused(key, str(why))
                continue
            # each number in memory once
            tokens = frozenset([known.setdefault(token, token) for token in tokens_of(page.tree)])
            text = xxhash.xxh3_64_intdigest("\0".join(page.words).encode())
            by_any_scheme = key.url.partition("://")[2]  # a page that is there by http and by https is one
            pages.append(Snapshot(by_any_scheme, key.at_ms, tokens, text))
            keys.append(key)
        alone = 1 in (len({page.url for page in pages}), len({page.text for page in pages}))
        for cross in crosses_of(pages, self.positional or 0.0):
            key = keys[cross.cur]
            others = {role: keys[number] for role in ROLES if (number := getattr(cross, role)) is not None}
            if cross.up is None:
                yield Refused(key, "no_other_url" if alone or self.positional is None else "no_similar_url")
            else:
                yield Neighbours(key, others, cross.similarity)

    def split_cross(self, key: PageKey, others: Mapping[str, PageKey], similarity: float) -> Split:
        """A page, compared with these pages. Raises NoPage and FarmwatchError."""
        page = self._words_of(key)
        words_of_others = {ROLES[role]: self._words_of(other).words for role, other in others.items()}
        nodes = nodes_of(page, bits_of(page.words, words_of_others))
        mask = CUR | sum(ROLES[role] for role in others)
        classes = classes_of(page, nodes, mask, self.method)
        return Split(key, others, similarity, page, nodes, classes)

    def _words_of(self, key: PageKey) -> Words:
        """The words of a page. Raises NoPage."""
        if key not in self._words:
            html, encoding = self.archives.body(key)
            try:
                words = words_of(page_tree(html, encoding, self.settings))
            except ParseFailed as error:
                raise NoPage(error.error.value) from error
            if not words.words:
                raise NoPage("no_text")
            self._words[key] = words, len(html)
            self._kept_bytes += len(html)
            while self._kept_bytes > _KEPT_BYTES and len(self._words) > 1:
                self._kept_bytes -= self._words.popitem(last=False)[1][1]
        self._words.move_to_end(key)
        return self._words[key][0]
