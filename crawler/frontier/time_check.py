"""Goes through the rows of a partition that a clock ahead of this one has written, and limits their times.

A few sites in each call: the crawl of the others goes on. The progress is part of the state, so that it is committed
with the rows.
"""

from __future__ import annotations

import msgspec
import structlog

from crawler.frontier.rows import CLOCK_KEY, ClockRow, beyond_site, is_site_key, pack, revisit_prefix
from crawler.frontier.site_store import STEP, SiteStore, revisit_key, revisit_of_key
from crawler.frontier.stored_times import longest_revisit_s

_log = structlog.get_logger()

_SITES = 40  # checked in one call
_LAST_PAGE = b"\xff" * 16


def check_times(store: SiteStore, partition: int) -> bool:
    """Check the next sites, if the clock of the rows was ahead; returns whether some are still to be checked."""
    clock = store.clock
    if not clock.was_ahead:
        return False
    row = clock.row
    if not row.checked:
        ahead_s = (row.newest - store.now_ms) // 1000
        _log.warning("frontier_written_ahead", partition=partition, ahead_s=ahead_s)
    after = row.checked or CLOCK_KEY
    for _ in range(_SITES):
        rows = store.state.scan(b"", 1, after)
        if not rows:
            clock.confirm()
            return False
        key, value = rows[0]
        if is_site_key(key):
            _check_site(store, value)
        after = beyond_site(key)
    clock.put(ClockRow(row.newest, after))
    return True


def _check_site(store: SiteStore, value: bytes) -> None:
    try:
        row = store.read(value)
    except msgspec.DecodeError:  # its next claim reports it
        return
    latest = store.now_ms + int(1000 * longest_revisit_s(store.settings))  # of a revisit; later ones count from now on
    after = revisit_key(row.site, latest, _LAST_PAGE)
    while keys := store.state.scan(revisit_prefix(row.site), STEP, after):
        for key, _ in keys:
            _, page = revisit_of_key(row.site, key)
            store.schedule(row, store.stored_url(row.site, page), store.now_ms)
    if pack(row) != value:
        store.save(row)
