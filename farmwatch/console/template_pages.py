"""The console's page on templates that several sites share. They are found off the requests."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

from farmwatch.console.jobs import Jobs
from farmwatch.share.template_groups import TemplateGroups, read_template_groups, read_verdicts
from replay.runs.lookup import names_to_read
from stream.log.contract import Log

_KEY, _KEPT_S = ("templates",), 30.0
_GROUPS_SHOWN, _SITES_SHOWN = 100, 500


class _Found(NamedTuple):
    groups: TemplateGroups
    verdict_of: Mapping[str, str]  # of the sites in groups


class TemplatePages:
    """Answers the requests for the page, and for the template that a site shares."""

    def __init__(self, log: Log, jobs: Jobs) -> None:
        self._log, self._jobs = log, jobs

    def groups(self, query: Mapping[str, str]) -> dict[str, Any]:
        """The groups, as `farmwatch templates groups` lists them; with `id` the one of a template. Raises Working."""
        template = query.get("id", "")[:16]
        templates = self._jobs.result((*_KEY, "verdicts"), "Grouping templates", lambda _: self._find(), _KEPT_S)
        groups = templates.groups.groups[:_GROUPS_SHOWN]
        if template:
            groups = [group for group in templates.groups.groups if group.template_id == template]
        names = sorted(groups[0].sites) if template and groups else []
        return {
            "template": template,
            "sites": templates.groups.sites,
            "is_whole": templates.groups.is_whole,
            "groups": [group.fields(templates.verdict_of) for group in groups],
            "names": {name: templates.verdict_of.get(name, "") for name in names[:_SITES_SHOWN]},
            "more": max(0, len(names) - _SITES_SHOWN),
        }

    def of_site(self, site: str) -> dict[str, Any] | None:
        """The template that a site shares with most others; None while it is not known, or if there is none."""
        groups = self._jobs.soon(_KEY, self._groups)
        group = None if groups is None else groups.of(site)
        return None if group is None else {"id": group.template_id, "other_sites": len(group.sites) - 1}

    def _groups(self) -> TemplateGroups:
        return read_template_groups(self._log, names_to_read(self._log).templates)

    def _find(self) -> _Found:
        groups = self._groups()
        return _Found(groups, read_verdicts(self._log, names_to_read(self._log).sites, groups))
