"""Hits and archived pages as they go onto the log: `hits`, and `pages` beside them where a page is there already.

Whatever appends them (a file of hits, a search, an import) makes them here. A page of an archive and its hit go in one
append, so a hit tells that its page is there: what `KnownHits` names is not to be appended again.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable

from crawler.frontier.page_log import page_headers
from crawler.warc.pages import ArchivedPage
from stream.log.contract import Output, partition_of
from stream.schema.records import Hit, encode
from stream.schema.topics import HITS, PAGES

_BATCH_BYTES = 8 * 1024 * 1024
_BATCH_OUTPUTS = 2000
_OUTPUT_BYTES = 500  # that an output takes beside its key and value, about


def hit_output(hit: Hit, partitions: int) -> Output:
    """The hit in its site's partition of `hits`."""
    return Output(HITS, partition_of(hit.site, partitions), hit.site.encode(), encode(hit))


def page_outputs(archived: ArchivedPage, partitions: int) -> list[Output]:
    """An archived page and its hit; both topics have that many partitions."""
    page = archived.page
    at = partition_of(page.site, partitions)
    return [
        hit_output(archived.hit, partitions),
        Output(PAGES, at, page.site.encode(), encode(page), page_headers(page)),
    ]


class OutputBatch:
    """Outputs that are to become visible together, within bounds of bytes and of number."""

    def __init__(self) -> None:
        """Empty."""
        self._outputs: list[tuple[str, Output]] = []
        self._bytes = 0

    def __len__(self) -> int:
        return len(self._outputs)

    def add(self, outputs: Iterable[Output], of: str = "") -> None:
        """Hold these, too. `of` is the id of what they make together, if it may turn out to be there already."""
        for output in outputs:
            self._outputs.append((of, output))
            self._bytes += _OUTPUT_BYTES + len(output.key or b"") + len(output.value or b"")

    @property
    def is_full(self) -> bool:
        """Whether it is time to append: about 8 MiB, or 2,000 outputs."""
        return self._bytes >= _BATCH_BYTES or len(self._outputs) >= _BATCH_OUTPUTS

    def take(self, without: Collection[str] = ()) -> list[Output]:
        """What is held, but for these ids; the batch is empty then."""
        outputs, self._outputs, self._bytes = self._outputs, [], 0
        return [output for of, output in outputs if of not in without]
