"""The command `status`: roles, lag, share, disk and what is wrong, on one screen. Read-only."""

from __future__ import annotations

import sys
import textwrap
import time
from collections.abc import Iterator
from typing import Annotated

import msgspec
from cyclopts import Parameter

from farmwatch.commands.options import DEFAULTS, AsJson, Common
from farmwatch.config.opening import opened
from farmwatch.doctor.check_result import CheckState
from farmwatch.doctor.status import DaemonStatus, RoleState, StatusReader
from farmwatch.share.words import line_fields, text_of
from farmwatch.terminal.messages import put, put_json
from stream.text.user_errors import Exit
from stream.text.wording import lasting, moment, one_line, size

WIDTH, _LINES = 80, 24  # of the screen that it fits
_EVERY_S = 2.0
_UNBROKEN = "\xa0"


def status(
    *,
    watch: Annotated[bool, Parameter(negative="", help="Renew it every 2 seconds until Ctrl-C.")] = False,
    json: AsJson = False,
    common: Common = DEFAULTS,
) -> int:
    """Is it well? Share, crawl, disk, processes of each role, and what is wrong, on one screen.

    A role is behind by so many offsets, heartbeats included; the oldest is how long the next record waits where it is
    furthest behind; paces and the time left are those since the last look, without --watch of a moment. `farmwatch
    doctor` says in full what is wrong.

    JSON: one object, with --watch one a line. Exit code 1 if a finding is a FAIL.
    """
    config = common.load().config
    with opened(config) as log:
        reader = StatusReader(log, config)
        reader.wait()
        while True:
            state = reader.read()
            if json:
                put_json({**msgspec.to_builtins(state), "share": state.share and line_fields(state.share)})
            else:
                clear = "\x1b[H\x1b[2J" if watch and sys.stdout.isatty() else ""
                put(clear + "\n".join(screen(state)))
            if not watch:
                break
            time.sleep(_EVERY_S)
    return Exit.PROBLEM if any(found.state is CheckState.FAIL for found in state.wrong) else Exit.OK


def screen(daemon: DaemonStatus) -> list[str]:
    """The status as lines that fit a screen of 24 lines of 80 columns."""
    lines = [f"{daemon.log}, run {daemon.run}, {moment(daemon.at)}", *_facts(daemon)]
    room = _LINES - len(lines) - 1
    wrong = [f"{trouble.state}  {trouble.check}: {trouble.found}" for trouble in daemon.wrong]
    if len(wrong) > room:
        wrong = [*wrong[: room - 1], f"and {len(wrong) - room + 1} more"]
    lines += [*wrong, "In full, with the remedies: farmwatch doctor"] if wrong else ["Nothing is wrong."]
    shown = map(one_line, lines)
    return [line if len(line) <= WIDTH else f"{line[: WIDTH - 1]}…" for line in shown]


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
        pace = "" if crawl.per_s is None else f", {crawl.per_s:.1f} a second"
        yield f"crawl  {crawl.fetched:,} pages fetched{pace}, {crawl.queued:,} URLs queued"
        rest = crawl.sites - crawl.active - crawl.stopped
        yield f"       sites: {crawl.active:,} active or parked, {crawl.stopped:,} stopped or decided, {rest:,} resting"
    yield f"disk   log {size(state.log_bytes)}, {size(state.free_bytes)} free"
    roles = ", ".join(_role(role).replace(" ", _UNBROKEN) for role in state.roles)
    for text in textwrap.wrap(roles, WIDTH, initial_indent="roles  ", subsequent_indent=" " * 7):
        yield text.replace(_UNBROKEN, " ")


def _role(state: RoleState) -> str:
    """Its processes, and what it has to read."""
    said = f"{state.role} {len(state.members)}"
    if not state.lag:
        return said
    pace = "" if state.per_s is None else f", {state.per_s:,.0f} a second"
    left = "" if state.eta_s is None else f", {lasting(state.eta_s)} left"
    return f"{said} ({state.lag:,} behind, oldest {lasting(state.age_s)}{pace}{left})"
