"""The command `hits list`."""

from __future__ import annotations

from farmwatch.commands.options import DEFAULTS, Common
from farmwatch.config.opening import opened
from farmwatch.share.hit_lines import HIT_COLUMNS, HITS_SHOWN, hit_lines
from farmwatch.tables.listing import LISTING, Listing
from stream.text.user_errors import Exit


def list_hits(*, listing: Listing = LISTING, common: Common = DEFAULTS) -> int:
    """One row per search result in the log, those of a site together."""
    selection = listing.of(HIT_COLUMNS)
    config = common.load().config
    with opened(config) as log:
        selection.put(hit_lines(log), "hit", HITS_SHOWN)
    return Exit.OK
