"""The commands on templates: those of the lab, and the sites that share one."""

from __future__ import annotations

from typing import Annotated

from cyclopts import App, Parameter

from farmwatch.commands.options import AT_LEAST_0, DEFAULTS, AsJson, Common
from farmwatch.config.opening import opened
from farmwatch.share.template_groups import read_template_groups, read_verdicts
from farmwatch.terminal.messages import message, put_json, put_table
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


@templates.command(name="groups")
def template_groups(
    *,
    limit: Annotated[int, Parameter(help="Groups at most; 0 = all.", validator=AT_LEAST_0)] = 20,
    json: AsJson = False,
    common: Common = DEFAULTS,
) -> int:
    """List the templates that most sites share: sites, registrable domains, sites by verdict, and a page with it.

    Mass-produced sites share one, and so do honest sites of one system or publisher: a shared template is no sign of a
    language model. A site that shares two counts in two groups. JSON: one object a line, with the names of the sites.
    """
    config = common.load().config
    with opened(config) as log:
        names = names_to_read(log)
        groups = read_template_groups(log, names.templates)
        verdict_of = read_verdicts(log, names.sites, groups)
    rows = [group.fields(verdict_of) | {"names": sorted(group.sites)} for group in groups.groups[: limit or None]]
    if json:
        for row in rows:
            put_json(row)
    else:
        put_table(("sites", "domains", *SiteClass, "template", "page"), [list(row.values())[:-1] for row in rows])
    part = "" if groups.is_whole else ", a random part of the log's"
    count, among = counted(len(groups.groups), "template"), counted(groups.sites, "site")
    hint = "" if json or not rows else "; --json has their names"
    message(f"{count} of several sites, among {among} with a template{part}{hint}")
    return Exit.OK
