"""The command `review controls`: what the detector flags of pages that are surely human by their dates."""

from __future__ import annotations

from collections.abc import Callable
from typing import Annotated, Any

from cyclopts import Parameter

from farmwatch.commands.options import DEFAULTS, Common
from farmwatch.config.detector_config import caveats, print_caveats
from farmwatch.config.opening import opened
from farmwatch.share.control_registers import ALL, Register, missing_registers, registers, worst_register
from farmwatch.share.scored_articles import scored_articles
from farmwatch.tables.columns import Column
from farmwatch.tables.listing import LISTING, Listing
from farmwatch.terminal.messages import message
from replay.runs.configured import tally_identity
from replay.runs.lookup import find_run
from scoring.detectors.registry import stated_flags
from scoring.rates.controls import FEWEST_SITES
from stream.schema.control import Control
from stream.schema.runs import LIVE
from stream.text.user_errors import Exit
from stream.text.wording import counted, one_line


def _count(name: str, kind: str = "integer", meaning: str = "") -> Column[Register]:
    none = None if kind == "share" else 0
    of: Callable[[Register], Any] = lambda row: getattr(row.counts, name) if row.counts else none  # noqa: E731
    return Column(name, kind, of, meaning=meaning)  # type: ignore[arg-type]


_COLUMNS: list[Column[Register]] = [
    Column("age", "text", lambda row: row.age, meaning="control: surely human by its dates; declared: perhaps changed"),
    Column("by", "text", lambda row: row.by),
    Column("register", "text", lambda row: row.register),
    _count("sites"),
    _count("pages"),
    _count("flagged"),
    _count("share", "share", "of the pages that is flagged; in its interval whole sites vary"),
    _count("low", "share"),
    _count("high", "share"),
    Column("articles", "integer", lambda row: row.articles, meaning="scored articles of the register of any age"),
]


def controls(
    *,
    run: Annotated[str, Parameter(help="Of this run; default: the one that is live.")] = "",
    listing: Listing = LISTING,
    common: Common = DEFAULTS,
) -> int:
    """Control pages, surely human by their dates, and what the detector flags of them: its errors on these sites.

    One row for all and for each kind of page, length and language. Which register is worst, and of which controls are
    missing, is said below.
    """
    selection = listing.of(_COLUMNS)
    config = common.load().config
    with opened(config) as log:
        control = Control(log)
        detector = "" if not control.runs else find_run(control, run or LIVE).detector or tally_identity(config)
        rows = registers(scored_articles(log, detector, run))
    selection.put(rows, "row", [column.name for column in _COLUMNS])
    if listing.is_table:
        for text in _advice(rows):
            message(text)
        if any(row.counts for row in rows):
            message(_stated(stated_flags(config.score, detector)))
        print_caveats(caveats(config, [detector]), short=True)
    return Exit.OK


def _stated(flags: float | None) -> str:
    if flags is None:
        return "the detector has no card that states what it flags of human pages: no alert compares them with it"
    return f"stated by the detector's card: {flags:.1%} of human pages"


def _advice(rows: list[Register]) -> list[str]:
    """The worst register, and what to add."""
    of_all = next((row.counts for row in rows if row.by == ALL), None)
    sites = of_all.sites if of_all else 0
    said = []
    if (worst := worst_register(rows)) is not None and worst.counts is not None and worst.counts.flagged:
        of = worst.counts
        said.append(f"worst: {worst.by} {worst.register or 'unknown'}, {of.share:.1%} ({of.low:.1%} to {of.high:.1%})")
    if rows and sites < FEWEST_SITES:
        said.append(f"{counted(sites, 'control site')}: the interval of the share needs {FEWEST_SITES}")
    if missing := missing_registers(rows) if sites else []:
        named = (f"{row.by} {row.register or 'unknown'} ({counted(row.articles, 'article')})" for row in missing)
        said.append(f"few controls, add some: {', '.join(named)}")
    return [one_line(text) for text in said]
