"""The command `exclude`: hosts that are never visited."""

from __future__ import annotations

from operator import itemgetter
from pathlib import Path
from typing import Annotated

from cyclopts import Parameter

from crawler.errors import UnusableUrl
from crawler.web.exclusions import exclusion_of, is_boundless, reach_of
from farmwatch.commands.options import DEFAULTS, Common, Why
from farmwatch.config.opening import opened
from farmwatch.crawl.orders import order_exclusions
from farmwatch.tables.columns import Column
from farmwatch.tables.listing import LISTING, Listing
from farmwatch.terminal.messages import message
from stream.schema.orders import Order, Orders
from stream.text.user_errors import Exit, FarmwatchError, NotFound, UsageError
from stream.text.wording import one_line

_Exclusion = tuple[str, Order]
_COLUMNS: list[Column[_Exclusion]] = [
    Column("name", "text", itemgetter(0)),
    Column("covers", "text", lambda each: reach_of(each[0])),
    Column("excluded", "truth", lambda each: each[1].on, meaning="now"),
    Column("since", "time", lambda each: each[1].changes[-1].at),
    Column("by", "text", lambda each: each[1].changes[-1].by),
    Column("why", "text", lambda each: each[1].changes[-1].why),
    Column("changes", "json", lambda each: each[1].changes),
]
_SHOWN = ("name", "covers", "excluded", "since", "by", "why")


def exclude(
    *names: Annotated[str, Parameter(help="Hosts, domains, or patterns with *.")],
    file: Annotated[
        Path | None, Parameter(help="File with one a line; text after # is the reason. Added to NAMES.")
    ] = None,
    remove: Annotated[bool, Parameter(negative="", help="Visit them again, from their next hit on.")] = False,
    why: Why = None,
    yes: Annotated[bool, Parameter(negative="", help="Also a pattern that reaches beyond one domain.")] = False,
    listing: Listing = LISTING,
    common: Common = DEFAULTS,
) -> int:
    """Never visit a host, a domain or a pattern again; without a name, list the exclusions: who, when, why.

    Running crawls follow within seconds.

    www.example.com is this host alone. example.com, a registrable domain, is all of its hosts. A pattern
    (*.blog.example.com) is each host that matches; * stands for any characters.

    A request under way finishes, and its page is not kept. Hits of an excluded host are refused with the reason
    `excluded`. What was measured before stays, and counts: `farmwatch crawl forget` removes it. The log keeps who
    excluded what, when and why, also after --remove.
    """
    if not (names or file):
        if remove or why or yes:
            raise UsageError("name a host, a domain or a pattern, or --file")
        selection = listing.of(_COLUMNS)
        with opened(common.load().config) as log:
            selection.put(sorted(Orders(log).exclusions.items()), "exclusion", _SHOWN)
        return Exit.OK
    if listing != LISTING:
        raise UsageError("the options of lists go without a name and --file")
    said = " ".join(why or ())
    wanted = [(_exclusion(name, is_new=not remove), said) for name in names]
    if file is not None:
        wanted += [(_exclusion(name, where, is_new=not remove), reason or said) for name, reason, where in _lines(file)]
    for name, _ in wanted:
        if not (remove or yes) and is_boundless(name):
            raise UsageError(
                f"{name} reaches beyond one domain: add --yes if you mean that (`farmwatch crawl pause` stops all)"
            )
    changed = order_exclusions(common.load().config, wanted, on=not remove)
    for name in changed:
        message(f"{'no longer excluded' if remove else 'excluded'}: {name} ({reach_of(name)})")
    if changed and not remove:
        message("what was measured before stays, and counts; `farmwatch crawl forget` removes it")
    if same := ", ".join(dict.fromkeys(name for name, _ in wanted if name not in changed)):
        if remove:
            raise NotFound(f"not excluded: {same}; `farmwatch crawl exclude` has the names as they were given")
        message(f"excluded already: {same}")
    return Exit.OK


def _exclusion(named: str, where: str = "", *, is_new: bool) -> str:
    try:
        return exclusion_of(named, is_new=is_new)
    except UnusableUrl as error:
        raise UsageError(one_line(f"{where}{named[:100]!r}: no host, domain or pattern: {error}")) from error


def _lines(file: Path) -> list[tuple[str, str, str]]:
    """(name, reason, place) of each line of a file."""
    try:
        lines = file.read_text(encoding="utf-8-sig").splitlines()
    except UnicodeDecodeError as error:
        raise FarmwatchError(f"{file}: cannot be read: give a text file in UTF-8") from error
    named = []
    for number, line in enumerate(lines, 1):
        name, _, reason = line.partition("#")
        if name.strip():
            named.append((name.strip(), reason.strip(), f"{file}:{number}: "))
    return named
