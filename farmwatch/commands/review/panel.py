"""The commands `panel`: draw a fixed sample of sites, and show how its verdicts change from term to term."""

from __future__ import annotations

import random
import secrets
import time
from datetime import UTC, datetime
from typing import Annotated

import msgspec
from cyclopts import App, Parameter
from cyclopts.validators import Number

from farmwatch.commands.options import DEFAULTS, AsJson, Common
from farmwatch.config.opening import opened
from farmwatch.share.words import text_of
from farmwatch.terminal.messages import message, put, put_json, put_wrapped
from replay.rows.site_table import read_rows
from replay.runs.control_update import operator
from replay.runs.lookup import names_to_read
from scoring.rates.canary import is_canary
from scoring.rates.panel_change import PanelChange, panel_change
from scoring.rates.split_rates import RateQuery, rate_lines
from scoring.rates.terms import counted_at
from stream.log.contract import Log
from stream.schema.panel import SitePanel, read_panels, write_panel
from stream.schema.records import SiteState
from stream.text.user_errors import Exit, NotFound, UsageError
from stream.text.wording import counted

panel = App(name="panel")
_NAMED = 20  # sites that turned


@panel.command
def make(
    *,
    sites: Annotated[int, Parameter(help="Sites to draw.", validator=Number(gte=1))] = 500,
    seed: Annotated[int | None, Parameter(help="Draw by this seed; default: by chance.")] = None,
    follow_turns: Annotated[
        bool,
        Parameter(negative="", help="Crawl its sites as crawl.follow_turns does all; from the next start of TALLY on."),
    ] = False,
    json: AsJson = False,
    common: Common = DEFAULTS,
) -> int:
    """Draw a panel: a random sample of the sites that have a scored article now. The log keeps it.

    The crawl measures its sites once a term, as all others. `farmwatch review panel show` compares their verdicts then
    and later, site by site. A new panel is a new version and leaves the others as they are.
    """
    config = common.load().config
    seed = secrets.randbelow(2**32) if seed is None else seed
    now_ms = int(time.time() * 1000)
    with opened(config, write=True) as log:
        known = sorted(row.site for row in _crawled(log, "") if counted_at(row, now_ms).scored)
        if len(known) < sites:
            raise UsageError(f"--sites {sites}: {counted(len(known), 'crawled site')} with a scored article so far")
        made = SitePanel(
            version=max(read_panels(log), default=0) + 1,
            made_at=now_ms,
            made_by=operator(),
            seed=seed,
            drawn_from=len(known),
            sites=sorted(random.Random(seed).sample(known, sites)),  # noqa: S311  # a sample, no secret
            follow_turns=follow_turns,
        )
        write_panel(log, made)
    if json:
        put_json(msgspec.to_builtins(made))
        return Exit.OK
    message(f"panel {made.version}: {counted(sites, 'site')} of {len(known):,}, seed {seed}")
    message(f"next: `farmwatch review panel show` after their terms (tally.term_days = {config.tally.term_days:g})")
    return Exit.OK


@panel.command
def show(
    *,
    version: Annotated[int | None, Parameter(help="Of this panel; default: the newest.")] = None,
    run: Annotated[str, Parameter(help="By the verdicts of this run; default: the one that is live.")] = "",
    json: AsJson = False,
    common: Common = DEFAULTS,
) -> int:
    """How the verdicts of a panel have changed since it was made, site by site, with the interval of the change.

    Only sites count that have a verdict in the term of that time and in a later one; the others are named with the
    reason. Sites that the crawl has met since are shown apart: they are no part of the change.
    """
    config, now_ms = common.load().config, int(time.time() * 1000)
    with opened(config) as log:
        panels = read_panels(log)
        if not panels:
            raise NotFound("no panel yet: `farmwatch review panel make` draws one")
        chosen = panels.get(max(panels) if version is None else version)
        if chosen is None:
            raise NotFound(f"--version {version}: the panels of this log are {', '.join(map(str, panels))}")
        rows = _crawled(log, run)
        earlier = read_rows(log, names_to_read(log, run).terms)
    change = panel_change(chosen.sites, chosen.made_at, rows, earlier, now_ms, config.rate.confidence)
    first_at = {row.site: row.term_start - row.term * (row.term_end - row.term_start) for row in rows}  # of its pages
    entrants = [row for row in rows if first_at[row.site] > chosen.made_at]
    lines = rate_lines(entrants, RateQuery(settings=config.rate, now_ms=now_ms, run=run))
    if json:
        panel_fields = {name: getattr(chosen, name) for name in ("version", "made_at", "made_by", "seed", "drawn_from")}
        new = [{"sites": line.sites, "share": line.share, "low": line.low, "high": line.high} for line in lines]
        put_json({**panel_fields, **msgspec.to_builtins(change), "new_sites": new})
        return Exit.OK
    made = datetime.fromtimestamp(chosen.made_at / 1000, UTC)
    put(f"panel {chosen.version} of {made:%Y-%m-%d}: {counted(change.sites, 'site')} of {chosen.drawn_from:,}")
    for text in _texts(change, config.rate.confidence):
        put_wrapped(f"  {text}", "    ")
    put_wrapped(
        f"  new since then: {counted(len(entrants), 'site')}{f'; {text_of(lines[0].remarks)}' if entrants else ''}",
        "    ",
    )
    return Exit.OK


def _crawled(log: Log, run: str) -> list[SiteState]:
    """The rows of sites that are measured every term."""
    rows = read_rows(log, names_to_read(log, run).sites)
    return [row for row in rows if row.term_end and not is_canary(row.site)]


def _texts(panel: PanelChange, confidence: float) -> list[str]:
    """The change, and what became of the sites that are no part of it."""
    if panel.change is None or panel.low is None or panel.high is None:
        said = ["no change yet: no site has a verdict in a later term"]
    else:
        before, now = panel.llm_before / panel.pairs, panel.llm_now / panel.pairs
        interval = f"{confidence:.0%} interval {100 * panel.low:+.1f} to {100 * panel.high:+.1f}"
        chance = "" if panel.p is None else f"; McNemar p = {panel.p:.2g}"
        said = [
            f"{100 * panel.change:+.1f} points ({interval}): {now:.1%} llm now, {before:.1%} then, of"
            f" {counted(panel.pairs, 'site')} with both verdicts; {panel.turned} turned to llm, {panel.turned_back}"
            f" back{chance}"
        ]
    left = {
        "not measured in a later term yet": panel.not_yet,
        "without a verdict in one of the terms": panel.unclassified,
        "verdict too old": panel.too_old,
        "judged by another ruleset, detector or method then": panel.other_versions,
    }
    why = [f"{sites} {reason}" for reason, sites in left.items() if sites]
    moved = {"turned to llm": panel.turned_sites, "turned back": panel.turned_back_sites}
    for how, sites in moved.items():
        more = f", and {len(sites) - _NAMED} more (--json)" if len(sites) > _NAMED else ""
        said += [f"{how}: {', '.join(sites[:_NAMED])}{more}"] if sites else []
    return [*said, *([f"not compared: {', '.join(why)}"] if why else [])]
