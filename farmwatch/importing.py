"""Pages of archives onto the log, each once: the page goes onto `pages`, its hit onto `hits`, in one append.

So a hit tells that its page is there. What the log's hits say is read before the first file, and nothing they name is
appended again: an import that was interrupted is simply made again. That costs one pass over the topic `hits`, and
about 150 bytes of memory for each page that was ever imported. It holds as long as the log keeps its hits.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import BinaryIO

from crawler.appending import Batch, page_outputs
from crawler.warc_in import ArchivedPage, Skipped
from stream.log import Log
from stream.topics import HITS

_MIB = 2**20


@dataclass(slots=True)
class Imported:
    """How many pages were appended, why others were not, and how many records of the archive are broken."""

    pages: int = 0
    skipped: Counter[str] = field(default_factory=Counter)
    broken: int = 0


def import_pages(
    log: Log, found: Iterable[ArchivedPage | Skipped], known: set[str], told: Callable[[Skipped], None]
) -> Imported:
    """Append the pages of an archive; `told` hears of each broken record.

    `known` is `KnownImports.ids`; it grows by what is appended. Raises as `Log.append`, and OSError where the
    archive cannot be read on; what was appended by then stays, and is known to the next import.
    """
    partitions = log.topics()[HITS]
    so_far = Imported()
    batch = Batch()
    ids: set[str] = set()

    def flush() -> None:
        if batch:
            log.append(batch.take())
        known.update(ids)
        so_far.pages += len(ids)
        ids.clear()

    for one in found:
        if isinstance(one, Skipped):
            if one.is_fault:
                so_far.broken += 1
                told(one)
            else:
                so_far.skipped[one.reason] += 1
        elif one.hit.id in ids or one.hit.id in known:  # the archive holds the record twice
            so_far.skipped["known"] += 1
        else:
            batch.add(page_outputs(one, partitions))
            ids.add(one.hit.id)
            if batch.is_full:
                flush()
    flush()
    return so_far


class Watched:
    """A stream that tells how many MiB were read of it since it told last."""

    def __init__(self, stream: BinaryIO, told: Callable[[int], None]) -> None:
        """Read `stream`."""
        self._stream = stream
        self._told = told
        self._untold_bytes = 0

    def read(self, size: int = -1) -> bytes:
        """As the stream's own."""
        piece = self._stream.read(size)
        self._untold_bytes += len(piece)
        if self._untold_bytes >= _MIB:
            self._told(self._untold_bytes // _MIB)
            self._untold_bytes %= _MIB
        return piece
