"""The command `status`: roles, lag, share, disk and what is wrong, on one screen. Read-only."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator
from typing import Annotated, Any

import msgspec
from cyclopts import Parameter

from farmwatch.commands.options import DEFAULTS, AsJson, Common
from farmwatch.config.opening import opened
from farmwatch.doctor.check_result import CheckState
from farmwatch.doctor.status import DaemonStatus, StatusReader
from farmwatch.share.words import line_fields, text_of
from farmwatch.terminal.messages import put, put_json
from stream.text.user_errors import Exit
from stream.text.wording import lasting, moment, one_line, size

_WIDTH, _LINES = 80, 24  # of the screen that it fits
_EVERY_S = 2.0


def status(
    *,
    watch: Annotated[bool, Parameter(negative="", help="Renew it every 2 seconds until Ctrl-C.")] = False,
    json: AsJson = False,
    common: Common = DEFAULTS,
) -> int:
    """Is it well? Share, crawl, disk, roles that have records to read, and what is wrong, on one screen.

    The lag is in offsets, heartbeats included; the oldest is how long the next record waits where a role is furthest
    behind; the time left is at the rate of the last second, or, with --watch, since the last look. What is wrong are
    findings of `farmwatch doctor` on the log, which says all of them in full.

    JSON: one object, with --watch one a line. Exit code 1 if a finding is a FAIL.
    """
    config = common.load().config
    with opened(config) as log:
        reader = StatusReader(log, config)
        reader.wait()
        state = reader.read()
        if not watch:
            if json:
                put_json(_fields(state))
            else:
                put("\n".join(screen(state)))
            return Exit.PROBLEM if any(found.state is CheckState.FAIL for found in state.wrong) else Exit.OK
        if json or not sys.stdout.isatty():
            while True:
                put_json(_fields(state)) if json else put("\n".join([*screen(state), ""]))
                sys.stdout.flush()
                time.sleep(_EVERY_S)
                state = reader.read()
        from rich.live import Live
        from rich.text import Text

        with Live(auto_refresh=False, screen=True) as live:
            while True:
                live.update(Text("\n".join(screen(state))), refresh=True)
                time.sleep(_EVERY_S)
                state = reader.read()


def screen(daemon: DaemonStatus) -> list[str]:
    """The status as lines that fit a screen of 24 lines of 80 columns."""
    lines = [f"{daemon.log}, run {daemon.run}, {moment(daemon.at)}", "", *_facts(daemon)]
    busy = [state for state in daemon.roles if state.lag]
    if busy:
        lines += ["", "role     processes      lag      oldest  per second  left"]
    for state in busy:
        per_s = "" if state.per_s is None else f"{state.per_s:,.0f}"
        left = "unknown" if state.eta_s is None else lasting(state.eta_s)
        counts = f"{len(state.members):>9}{state.lag:>9,}{lasting(state.age_s):>12}{per_s:>12}"
        lines.append(f"{state.role:<9}{counts}  {left}")
    if idle := [f"{state.role} {len(state.members)}" for state in daemon.roles if not state.lag]:
        lines += ["", f"idle   {', '.join(idle)} processes"]
    lines.append("")
    room = _LINES - len(lines) - 1
    wrong = [f"{trouble.state}  {trouble.check}: {trouble.found}" for trouble in daemon.wrong]
    if len(wrong) > room:
        wrong = [*wrong[: room - 1], f"and {len(wrong) - room + 1} more"]
    lines += [*wrong, "In full, with the remedies: farmwatch doctor"] if wrong else ["Nothing is wrong."]
    shown = map(one_line, lines)
    return [line if len(line) <= _WIDTH else f"{line[: _WIDTH - 1]}…" for line in shown]


def _facts(state: DaemonStatus) -> Iterator[str]:
    if state.share is None:
        yield "share  no site yet"
    else:
        line = state.share
        interval = "" if line.low is None or line.high is None else f" ({line.low:.1%} to {line.high:.1%})"
        share = line.method if line.share is None else f"{line.share:.1%}"
        of = f"{share}{interval} of {line.scored_sites:,} sites with scored articles"
        yield f"share  {of if line.scored_sites else text_of(line.remarks)}"
        yield (
            f"       {line.llm:,} decided llm, {line.human:,} decided human, {line.open_of_scored:,} open,"
            f" {line.sites - line.scored_sites:,} not judged"
        )
    if state.crawl is not None:
        crawl = state.crawl
        yield f"crawl  {crawl.fetched:,} pages fetched, {crawl.queued:,} URLs queued"
        yield f"       {crawl.active:,} of {crawl.sites:,} sites active or parked, {crawl.stopped:,} stopped or decided"
    yield f"disk   log {size(state.log_bytes)}, {size(state.free_bytes)} free"


def _fields(state: DaemonStatus) -> dict[str, Any]:
    """As JSON, with the share under the names of `rate --json`."""
    return {**msgspec.to_builtins(state), "share": state.share and line_fields(state.share)}
