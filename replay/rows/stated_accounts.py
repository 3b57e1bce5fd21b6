"""The accounts and owners that sites state in ads.txt, as signals that are on no page."""

from __future__ import annotations

from msgspec.structs import replace

from scoring.estimate.operators import ADSENSE, STATED_OWNER
from stream.log.contract import At, Log
from stream.processing.topic_reader import rows_of
from stream.schema.records import AdsTxt, SiteState
from stream.schema.topics import ADS_TXT


class StatedAccounts:
    """What the sites of a log state, keyed and divided as their rows are; `refresh` reads the changed partitions."""

    def __init__(self, log: Log) -> None:
        self._log = log
        self.ends: list[int] = []  # of the topic; none while the log has no such topic
        self._signals: dict[bytes, tuple[str, ...]] = {}

    def refresh(self) -> set[int]:
        """Read to the end of the topic; returns the partitions that were read."""
        if ADS_TXT not in self._log.topics():
            return set()
        ends = self._log.end(ADS_TXT)
        spans = zip(self._log.beginning(ADS_TXT), ends, self.ends or [0] * len(ends), strict=True)
        unread = {At(ADS_TXT, place): (first, end) for place, (first, end, old) in enumerate(spans) if end != old}
        for message, stated in rows_of(AdsTxt, self._log.read_all(unread) if unread else ()):
            self._signals[message.key] = () if stated is None else _signals_of(stated)
        self.ends = ends
        return {at.partition for at in unread}

    def added_to(self, row: SiteState) -> SiteState:
        """The row, with that of its former term, with these signals too: an account on some of its pages keeps them."""
        if not self._signals or not (stated := self._signals.get(row.site.encode())):
            return row
        signals = dict(sorted({**dict.fromkeys(stated, 0), **row.signals}.items()))
        return replace(row, signals=signals, former=row.former and self.added_to(row.former))


def _signals_of(stated: AdsTxt) -> tuple[str, ...]:
    accounts = (f"{ADSENSE}:{of_id.removeprefix('pub-')}" for of_id in stated.google_ids)
    return (*accounts, *([f"{STATED_OWNER}:{stated.owner_domain}"] if stated.owner_domain else []))
