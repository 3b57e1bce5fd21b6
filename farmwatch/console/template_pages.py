"""The console's page on templates that several sites share. They are found off the requests."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

from farmwatch.console.jobs import Jobs
from farmwatch.daemon.template_groups import TemplateGroups, read_template_groups
from replay.runs.lookup import names_to_read
from replay.runs.site_columns import SiteColumns
from stream.log.contract import Log

_KEY, _KEPT_S = ("templates",), 30.0
_GROUPS_SHOWN, _SITES_SHOWN = 100, 500


class _Found(NamedTuple):
    groups: TemplateGroups
    verdict_of: Mapping[str, str]  # of the sites in groups


class TemplatePages:
    """Answers the requests for the page, and for the number of sites that share a template with one."""

    def __init__(self, log: Log, jobs: Jobs) -> None:
        self._log, self._jobs = log, jobs

    def templates(self, query: Mapping[str, str]) -> dict[str, Any]:
        """The groups, as `farmwatch templates groups` has them; with `site` its largest one. Raises Working."""
        site = query.get("site", "")[:253]
        found = self._jobs.result(_KEY, "Grouping templates", lambda _: self._find(), _KEPT_S)
        group = found.groups.of(site) if site else None
        shown = found.groups.groups[:_GROUPS_SHOWN] if not site else [] if group is None else [group]
        names = [] if group is None else sorted(group.sites)
        return {
            "site": site,
            "sites": found.groups.sites,
            "is_whole": found.groups.is_whole,
            "groups": [one.fields(found.verdict_of) | {"first": min(one.sites)} for one in shown],
            "names": names[:_SITES_SHOWN],
            "more": max(0, len(names) - _SITES_SHOWN),
        }

    def sharing(self, site: str) -> int:
        """How many other sites share a template with this one; 0 while it is not known."""
        found = self._jobs.soon(_KEY, self._find)
        group = None if found is None else found.groups.of(site)
        return 0 if group is None else len(group.sites) - 1

    def _find(self) -> _Found:
        groups = read_template_groups(self._log)
        shared = frozenset[str]().union(*(group.sites for group in groups.groups))
        topic = names_to_read(self._log).sites
        if not shared or topic not in self._log.topics():
            return _Found(groups, {})
        table = SiteColumns(self._log, topic)  # rows of their own would take three times the memory
        table.refresh()
        return _Found(groups, {row.site: row.verdict for row in table.rows() if row.site in shared})
