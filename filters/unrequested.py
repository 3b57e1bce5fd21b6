"""Articles of a run that have no score, and whose text nobody has asked for: found from keys and digests alone.

A run that was judged while SCORE ran another detector has such articles. A text is asked for while it stands in a
request that SCORE has not dealt with; a text that SCORE left without a score is unasked again. Some sixteen bytes are
held for each article that is unasked, of the partitions at hand.
"""

from __future__ import annotations

from array import array
from collections.abc import Callable, Iterable
from typing import NamedTuple

import xxhash

from filters.known_scores import KnownScores, SortedDigests


class ArticleText(NamedTuple):
    """An article's text, as its verdict has it."""

    site: str
    text_digest: str
    fetch_id: str


Articles = Callable[[int], Iterable[ArticleText]]
"""partition -> the articles in it"""


class _Found(NamedTuple):
    """Digests of one partition."""

    fetches: SortedDigests
    texts: SortedDigests
    taken: bytearray  # of each text, whether it was


class UnrequestedTexts:
    """Texts to ask for, each once a site, by partition; and the fetches at which they stand."""

    def __init__(self, articles: Articles, known: Callable[[], KnownScores]) -> None:
        """Of `articles` those that are not in `known`: texts that have a score, or are asked for, as it stands now."""
        self._articles = articles
        self._known = known
        self._found: dict[int, _Found] = {}

    def count(self, partition: int) -> int:
        """Texts to ask for in the partition. Raises what `articles` and `known` raise."""
        return len(self._of(partition).texts)

    def stands_at(self, partition: int, fetch_id: str) -> bool:
        """Whether a text to ask for stands at this fetch. Raises as `count`."""
        return self._of(partition).fetches.place(_digest(fetch_id)) is not None

    def take(self, partition: int, site: str, text_digest: str) -> bool:
        """Whether this text is to be asked for; it is not any more then. Raises as `count`."""
        found = self._of(partition)
        place = found.texts.place(_digest(f"{site} {text_digest}"))
        if place is None or found.taken[place]:
            return False
        found.taken[place] = True
        return True

    def forget(self, partitions: Iterable[int]) -> None:
        """Find out anew what is unasked in these partitions when they are looked at next."""
        for partition in partitions:
            self._found.pop(partition, None)

    def _of(self, partition: int) -> _Found:
        if partition not in self._found:
            known = self._known()
            texts, fetches = array("Q"), array("Q")
            for article in self._articles(partition):
                if not known.has(partition, article.site, article.text_digest):
                    texts.append(_digest(f"{article.site} {article.text_digest}"))
                    fetches.append(_digest(article.fetch_id))
            different = SortedDigests(texts)
            self._found[partition] = _Found(SortedDigests(fetches), different, bytearray(len(different)))
        return self._found[partition]


def _digest(text: str) -> int:
    return xxhash.xxh3_64_intdigest(text.encode())
