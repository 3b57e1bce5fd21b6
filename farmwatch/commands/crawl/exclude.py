"""The command `exclude`: hosts that are never visited."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from cyclopts import Parameter

from crawler.errors import UnusableUrl
from crawler.web.exclusions import exclusion_of, is_boundless, reach_of
from farmwatch.commands.options import DEFAULTS, AsJson, Common, Why
from farmwatch.config.config import Config
from farmwatch.config.opening import opened
from farmwatch.crawl.orders import order_exclusions
from farmwatch.terminal.messages import message, put_columns, put_json
from stream.schema.orders import Orders
from stream.text.user_errors import Exit, FarmwatchError, NotFound, UsageError
from stream.text.wording import counted, moment, one_line


def exclude(
    *names: Annotated[str, Parameter(help="Hosts, domains, or patterns with *.")],
    file: Annotated[
        Path | None, Parameter(help="File with one a line; text after # is the reason. Added to NAMES.")
    ] = None,
    remove: Annotated[bool, Parameter(negative="", help="Visit them again, from their next hit on.")] = False,
    list: Annotated[bool, Parameter(name="--list", negative="", help="List them: who, when, why.")] = False,
    why: Why = None,
    yes: Annotated[bool, Parameter(negative="", help="Also a pattern that reaches beyond one domain.")] = False,
    json: AsJson = False,
    common: Common = DEFAULTS,
) -> int:
    """Never visit a host, a domain or a pattern again. Running crawls follow within seconds.

    www.example.com is this host alone. example.com, a registrable domain, is all of its hosts. A pattern
    (*.blog.example.com) is each host that matches; * stands for any characters.

    A request under way finishes, and its page is not kept. Hits of an excluded host are refused with the reason
    `excluded`. What was measured before stays, and counts: `farmwatch crawl forget` removes it. The log keeps who
    excluded
    what, when and why, also after --remove.
    """
    if list:
        if names or file or remove or why or yes:
            raise UsageError("--list goes with --json and the log alone")
        return _list(common.load().config, as_json=json)
    if json:
        raise UsageError("--json goes with --list")
    said = " ".join(why or ())
    wanted = [(_exclusion(name), said) for name in names]
    if file is not None:
        wanted += [(_exclusion(name, where), reason or said) for name, reason, where in _lines(file)]
    if not wanted:
        raise UsageError("name a host, a domain or a pattern, or --file, or --list")
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
            raise NotFound(f"not excluded: {same}; `farmwatch crawl exclude --list` has the names as they were given")
        message(f"excluded already: {same}")
    return Exit.OK


def _list(config: Config, *, as_json: bool) -> int:
    with opened(config) as log:
        orders = Orders(log).exclusions
    if as_json:
        for name, order in sorted(orders.items()):
            changes = [{"on": each.on, "at": each.at, "by": each.by, "why": each.why} for each in order.changes]
            put_json({"name": name, "excluded": order.on, "changes": changes})
        return Exit.OK
    standing = [(name, order) for name, order in sorted(orders.items()) if order.on]
    if standing:
        put_columns(
            standing,
            {
                "excluded": lambda each: each[0],
                "covers": lambda each: reach_of(each[0]),
                "since": lambda each: moment(each[1].changes[-1].at),
                "by": lambda each: each[1].changes[-1].by,
                "why": lambda each: each[1].changes[-1].why,
            },
        )
    if ended := len(orders) - len(standing):
        message(f"{counted(ended, 'exclusion')} ended: --json lists them with their history")
    if not orders:
        message("nothing is excluded")
    return Exit.OK


def _exclusion(named: str, where: str = "") -> str:
    try:
        return exclusion_of(named)
    except UnusableUrl as error:
        raise UsageError(one_line(f"{where}{named[:100]!r}: no host, domain or pattern: {error}")) from error


def _lines(file: Path) -> list[tuple[str, str, str]]:
    """(name, reason, place) of each line of a file."""
    try:
        lines = file.read_text(encoding="utf-8-sig").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        raise FarmwatchError(one_line(f"{file}: cannot be read: {error}; give a text file in UTF-8")) from error
    named = []
    for number, line in enumerate(lines, 1):
        name, _, reason = line.partition("#")
        if name.strip():
            named.append((name.strip(), reason.strip(), f"{file}:{number}: "))
    return named
