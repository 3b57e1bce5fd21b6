"""Removes forgotten sites from a partition of the frontier, and from its totals."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import suppress

import msgspec

from crawler.frontier.rows import CLOCK_KEY, beyond_site, is_site_key, site_of_key
from crawler.frontier.site_store import SiteStore
from crawler.settings import CrawlSettings
from stream.log.contract import Clock, StateChange, StateReader, wall_ms
from stream.masked import keys_of
from stream.processing.state import KeyedState


def forget_sites(
    settings: CrawlSettings, state: StateReader, is_forgotten: Callable[[str], bool], clock: Clock = wall_ms
) -> Sequence[StateChange]:
    """The changes that remove the forgotten sites of a partition: a `Sweep`, once `settings` are given."""
    staged = KeyedState(state)
    store = SiteStore(staged, settings, clock())
    after = CLOCK_KEY
    while rows := state.scan(b"", 1, after):
        key, value = rows[0]
        site = site_of_key(key)
        if is_forgotten(site):
            if is_site_key(key):
                with suppress(msgspec.DecodeError):  # a row that cannot be read was never counted again
                    store.forget_site(store.read(value))
            for row in keys_of(state, site):
                staged.delete(row)
        after = beyond_site(key)
    return staged.changes()
