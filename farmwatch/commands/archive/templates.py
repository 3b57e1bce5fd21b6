"""The commands on templates: each is in a module of its own."""

from __future__ import annotations

from cyclopts import App

templates = App(name="templates")
templates.command(
    "lab.templates.split_command:split_archives",
    name="split",
    help="Split the pages of web archives into content and boilerplate.",
)
templates.command(
    "lab.templates.evaluate_command:evaluate_templates",
    name="evaluate",
    help="Evaluate the methods on archived pages that people have labelled.",
)
templates.command(
    "farmwatch.commands.archive.template_groups:template_groups",
    name="groups",
    help="List the templates that most sites share.",
)
