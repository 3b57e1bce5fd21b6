"""The commands on templates: those of the lab, and the sites that share one."""

from __future__ import annotations

from operator import itemgetter
from typing import Any

from cyclopts import App

from farmwatch.commands.options import DEFAULTS, Common
from farmwatch.config.opening import opened
from farmwatch.share.template_groups import read_template_groups, read_verdicts
from farmwatch.tables.columns import Column
from farmwatch.tables.listing import LISTING, Listing
from farmwatch.terminal.messages import message
from replay.runs.lookup import names_to_read
from stream.schema.vocabulary import SiteClass
from stream.text.user_errors import Exit
from stream.text.wording import counted

templates = App(name="templates")
templates.command(
    "lab.templates.split_command:split_archives",
    name="split",
    help="Split the pages of web archives into content and boilerplate.",
)


_Group = dict[str, Any]


def _number(name: str) -> Column[_Group]:
    return Column(name, "integer", itemgetter(name))


_COLUMNS: list[Column[_Group]] = [
    *map(_number, ("sites", "domains", *SiteClass)),
    Column("template_id", "text", itemgetter("template_id")),
    Column("url", "text", itemgetter("url"), meaning="a page with it"),
    Column("names", "json", itemgetter("names"), meaning="the sites"),
]


@templates.command(name="groups")
def template_groups(*, listing: Listing = LISTING, common: Common = DEFAULTS) -> int:
    """One row per template that several sites share: sites, registrable domains, and sites by verdict.

    Mass-produced sites share one, and so do honest sites of one system or publisher: a shared template is no sign of a
    language model. A site that shares two counts in two groups.
    """
    selection = listing.of(_COLUMNS)
    config = common.load().config
    with opened(config) as log:
        names = names_to_read(log)
        groups = read_template_groups(log, names.templates)
        verdict_of = read_verdicts(log, names.sites, groups)
    rows = (group.fields(verdict_of) | {"names": sorted(group.sites)} for group in groups.groups)
    selection.put(rows, "template", [column.name for column in _COLUMNS[:-1]])
    part = "" if groups.is_whole else ", a random part of the log's"
    message(f"among {counted(groups.sites, 'site')} with a template{part}")
    return Exit.OK
