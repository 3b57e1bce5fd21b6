"""The console's page of networks: the sites that share an operator, beside those that share a template."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from farmwatch.config.config import Config
from farmwatch.console.jobs import Jobs
from farmwatch.console.read_model import ReadModel
from farmwatch.console.site_filter import Likely
from farmwatch.share.site_operators import (
    OPERATOR_COLUMNS,
    UNLINKED,
    OperatorGroup,
    SiteOperator,
    find_site_operators,
    operator_groups,
)
from farmwatch.share.template_groups import TemplateGroups, read_template_groups, read_verdicts
from farmwatch.tables.columns import fields_of
from replay.rows.site_table import SiteTable
from replay.rows.stated_accounts import StatedAccounts
from replay.runs.lookup import names_to_read
from scoring.rates.farm_signs import FarmSigns
from scoring.rates.split_rates import llm_probabilities
from stream.log.contract import Clock, Log
from stream.schema.records import SiteState
from stream.text.user_errors import NotFound

_SITES, _TEMPLATES = ("sites",), ("templates",)  # keys of their work
_SLOW_S = 30.0  # for which the networks are shown again
_GROUPS_SHOWN, _NAMES_SHOWN = 100, 500


class AllSites(NamedTuple):
    """What follows from all sites together."""

    likely: Likely
    operators: Mapping[str, SiteOperator]
    groups: Sequence[OperatorGroup]
    signs: FarmSigns | None = None  # without sitemaps
    stated: StatedAccounts | None = None


@dataclass(frozen=True, slots=True)
class Networks:
    """Finds what sites share, and answers the requests for the page."""

    _log: Log
    _config: Config
    _model: ReadModel
    _jobs: Jobs
    _clock: Clock

    def networks(self, query: Mapping[str, str]) -> dict[str, Any]:
        """The operators of `farmwatch sites --by operator` and the groups of `farmwatch lab templates groups`.

        With `operator`, or `id` of a template, that one alone, with its sites. Raises NotFound, Working.
        """
        operator, template = query.get("operator", "")[:253], query.get("id", "")[:16]

        def with_verdicts() -> tuple[TemplateGroups, Mapping[str, str]]:
            groups = self._find_templates()
            return groups, read_verdicts(self._log, names_to_read(self._log).sites, groups)

        of_all = self._jobs.result(_SITES, "Finding the operators", self._find_sites, _SLOW_S)
        templates, verdict_of = self._jobs.result(
            (*_TEMPLATES, "verdicts"), "Grouping templates", with_verdicts, _SLOW_S
        )
        operators = [] if template else [of for of in of_all.groups if operator in ("", of.operator)]
        groups = [] if operator else [of for of in templates.groups if template in ("", of.template_id)]
        if operator and not operators:
            raise NotFound(f"no operator of several sites is called {operator!r} now: `farmwatch sites --by operator`")
        if template and not groups:
            raise NotFound(
                f"no template that several sites share is {template!r} now: `farmwatch lab templates groups`"
            )
        names: Sequence[str] = ()
        if operator:
            names = operators[0].names
        elif template:
            names = sorted(groups[0].sites)
        return {
            "operator": operator,
            "template": template,
            "operators": [fields_of(OPERATOR_COLUMNS[:-1], of) for of in operators[:_GROUPS_SHOWN]],
            "more_operators": max(0, len(operators) - _GROUPS_SHOWN),
            "sites": templates.sites,
            "is_whole": templates.is_whole,
            "groups": [of.fields(verdict_of) for of in groups[:_GROUPS_SHOWN]],
            "operators_of": [
                len({of_all.operators.get(site, UNLINKED).name or site for site in of.sites})
                for of in groups[:_GROUPS_SHOWN]
            ],
            "names": {name: row.verdict for name in names[:_NAMES_SHOWN] if (row := self._model.site(name))},
            "more": max(0, len(names) - _NAMES_SHOWN),
        }

    def all_sites(self, patience_s: float = 2.0) -> AllSites:
        """What follows from all sites; nothing while it is found for the first time, after this time."""
        return self._jobs.soon(_SITES, self._find_sites, patience_s) or AllSites(Likely({}), {}, [])

    def template_groups(self) -> TemplateGroups | None:
        """The groups of sites that share a template; None while they are found for the first time."""
        return self._jobs.soon(_TEMPLATES, self._find_templates)

    def _find_templates(self) -> TemplateGroups:
        return read_template_groups(self._log, names_to_read(self._log).templates)

    def _find_sites(self) -> AllSites:
        rows, stated = list[SiteState](), None
        if (topic := names_to_read(self._log).sites) in self._log.topics():
            table = SiteTable(self._log, topic)  # rows of their own would take three times the memory
            table.refresh()
            rows, stated = list(table.rows()), table.stated
        operators = find_site_operators(rows)
        groups = operator_groups({row.site: row.verdict for row in rows if row.site in operators}, operators)
        likely = Likely(llm_probabilities(rows, self._config.rate, self._clock()))
        return AllSites(likely, operators, groups, FarmSigns.of(rows, {}), stated)
