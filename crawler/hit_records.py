"""Hits and archived pages as records of the log.

An archived page and its hit go into one append. So an imported hit implies that its page is there (see `KnownHits`).
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
_OUTPUT_BYTES = 500  # memory of an output beside its key and value, about


def hit_output(hit: Hit, partitions: int) -> Output:
    """The hit in the partition of its site."""
    return Output(HITS, partition_of(hit.site, partitions), hit.site.encode(), encode(hit))


def page_outputs(archived: ArchivedPage, partitions: int) -> list[Output]:
    """An archived page and its hit; both topics have `partitions` partitions."""
    page = archived.page
    at = partition_of(page.site, partitions)
    return [
        hit_output(archived.hit, partitions),
        Output(PAGES, at, page.site.encode(), encode(page), page_headers(page)),
    ]


class OutputBatch:
    """Outputs that become visible together, bounded by bytes and number."""

    def __init__(self) -> None:
        self._outputs: list[tuple[str, Output]] = []
        self._bytes = 0

    def __len__(self) -> int:
        return len(self._outputs)

    def add(self, outputs: Iterable[Output], of: str = "") -> None:
        """Add outputs. `of` is the id of the hit that they make, for `take`."""
        for output in outputs:
            self._outputs.append((of, output))
            self._bytes += _OUTPUT_BYTES + len(output.key or b"") + len(output.value or b"")

    @property
    def is_full(self) -> bool:
        """Whether to append now: about 8 MiB, or 2,000 outputs."""
        return self._bytes >= _BATCH_BYTES or len(self._outputs) >= _BATCH_OUTPUTS

    def take(self, without: Collection[str] = ()) -> list[Output]:
        """Empty the batch and return its outputs, without those of the ids in `without`."""
        outputs, self._outputs, self._bytes = self._outputs, [], 0
        return [output for of, output in outputs if of not in without]
