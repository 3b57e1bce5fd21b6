"""`rate --why`: the change of the share since a day, split into its causes."""

from __future__ import annotations

import time

from farmwatch.config.config import Config
from farmwatch.config.detector_config import print_caveats
from farmwatch.config.opening import opened
from farmwatch.share.change_since import ChangeSince, change_since, day_time, in_points
from farmwatch.share.words import short_share
from farmwatch.terminal.messages import put, put_json, put_wrapped
from stream.text.user_errors import Exit
from stream.text.wording import counted, one_line


def show_change(config: Config, since: str, run: str, *, as_json: bool) -> Exit:
    """Print the parts of the change. Raises NotFound if no share was kept since then, or there is none now."""
    with opened(config) as log:
        change = change_since(log, config, since, run, int(time.time() * 1000))
    if as_json:
        put_json(change.fields())
        return Exit.OK
    _put(change)
    print_caveats({change.now.detector: change.warning}, short=True)
    return Exit.OK


def _put(change: ChangeSince) -> None:
    parts = change.parts
    put_wrapped(one_line(f"now {short_share(change.now)}"), "  ")
    interval = ""
    if parts.before_low is not None and parts.before_high is not None:
        ends = f"{parts.before_low:.1%} to {parts.before_high:.1%}"
        interval = f" ({parts.before_confidence:.0%} interval {ends})"
    put_wrapped(
        f"{parts.before:.1%}{interval} of {counted(parts.before_sites, 'site')} at {day_time(parts.since)}:"
        f" {in_points(parts.after - parts.before)} points since",
        "  ",
    )
    for points, what in change.causes():
        put(f"  {points:>6}  {what}")
