"""The accounts and owners that sites state in ads.txt, as signals that are on no page."""

from __future__ import annotations

from msgspec.structs import replace

from scoring.estimate.operators import ADSENSE, STATED_OWNER
from stream.log.contract import At, Log
from stream.processing.topic_reader import rows_of
from stream.schema.records import AdsTxt, SiteState
from stream.schema.topics import ADS_TXT


class StatedAccounts:
    """What the sites of a log state; `refresh` reads what is new. It is keyed and divided as the rows of sites are."""

    def __init__(self, log: Log) -> None:
        self._log = log
        self._next: dict[int, int] = {}  # partition -> the offset to read from
        self._signals: dict[bytes, tuple[str, ...]] = {}

    def refresh(self) -> set[int]:
        """Read to the end of the topic; returns the partitions with new records."""
        if ADS_TXT not in self._log.topics():
            return set()
        spans = enumerate(zip(self._log.beginning(ADS_TXT), self._log.end(ADS_TXT), strict=True))
        starts = {place: (max(first, self._next.get(place, 0)), end) for place, (first, end) in spans}
        unread = {At(ADS_TXT, place): span for place, span in starts.items() if span[0] < span[1]}
        for message, stated in rows_of(AdsTxt, self._log.read_all(unread) if unread else ()):
            self._signals[message.key] = () if stated is None else _signals_of(stated)
        self._next |= {at.partition: end for at, (_, end) in unread.items()}
        return {at.partition for at in unread}

    def added_to(self, row: SiteState) -> SiteState:
        """The row with these signals too: an account that is on some of its pages is one that it has."""
        if not self._signals or not (stated := self._signals.get(row.site.encode())):
            return row
        return replace(row, signals=dict(sorted({**dict.fromkeys(stated, 0), **row.signals}.items())))


def _signals_of(stated: AdsTxt) -> tuple[str, ...]:
    accounts = (f"{ADSENSE}:{of_id.removeprefix('pub-')}" for of_id in stated.google_ids)
    return (*accounts, *([f"{STATED_OWNER}:{stated.owner_domain}"] if stated.owner_domain else []))
