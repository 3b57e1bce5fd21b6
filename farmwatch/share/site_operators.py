"""The operators of sites, as lists show them: sites that share an account or a domain, and the ids that link them."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping
from operator import attrgetter
from typing import NamedTuple

from farmwatch.tables.columns import Column
from scoring.estimate.clusters import SiteOperators
from scoring.rates.canary import is_canary
from stream.schema.records import SiteState
from stream.schema.vocabulary import SiteClass
from stream.text.registrable_domain import registrable_domain
from stream.text.wording import counted

_NAMES_SAID = 3  # of operators with which it is possibly one


class SiteOperator(NamedTuple):
    """What is known of a site's operator. Without a name, the site is its operator's only one."""

    name: str = ""  # its lowest domain
    sites: int = 1
    ids: tuple[str, ...] = ()  # that link the site's domain to others
    possible: Mapping[str, list[str]] = {}  # container of Google Tag Manager -> operators that share it, and no more

    @property
    def words(self) -> list[str]:
        """It in sentences, such as `a.example, 3 sites, by analytics:google:123456`."""
        said = []
        if self.name:
            by = f"by {', '.join(self.ids)}" if self.ids else "under one domain"
            said.append(f"{self.name}, {counted(self.sites, 'site')}, {by}")
        for container, names in self.possible.items():
            more = f" and {len(names) - _NAMES_SAID} more" if len(names) > _NAMES_SAID else ""
            said.append(f"possibly also {', '.join(names[:_NAMES_SAID])}{more}, by {container} alone")
        return said


UNLINKED = SiteOperator()


def find_site_operators(rows: Iterable[SiteState]) -> dict[str, SiteOperator]:
    """Site -> its operator, of sites with more to tell than UNLINKED; from all rows of a run, without canaries."""
    rows = [row for row in rows if not is_canary(row.site)]
    domains, keys, found = SiteOperators.of(rows)
    sites = Counter(keys)
    in_container = {domain for _, of in found.possible for domain in of}
    lowest: dict[str, str] = {}  # operator -> its lowest domain; domains of single sites may lack a label
    for row, domain, key in zip(rows, domains, keys, strict=True):
        if sites[key] > 1 or domain in in_container:
            name = registrable_domain(row.site)
            lowest[key] = min(name, lowest.get(key, name))
    possible: defaultdict[str, dict[str, list[str]]] = defaultdict(dict)
    for container, of in found.possible:
        names = {domain: lowest[found.of.get(domain, domain)] for domain in of}
        for domain, own in names.items():
            possible[domain][container] = sorted(set(names.values()) - {own})
    ids = {domain: tuple(sorted(linking)) for domain, linking in found.links.items()}
    return {
        row.site: SiteOperator(
            lowest[key] if sites[key] > 1 else "", sites[key], ids.get(domain, ()), possible.get(domain, {})
        )
        for row, domain, key in zip(rows, domains, keys, strict=True)
        if sites[key] > 1 or domain in in_container
    }


class OperatorGroup(NamedTuple):
    """An operator with several sites."""

    operator: str  # its lowest domain
    sites: int
    domains: int
    verdicts: Counter[str]
    ids: list[str]
    names: list[str]  # of its sites


def operator_groups(verdict_of: Mapping[str, str], operators: Mapping[str, SiteOperator]) -> list[OperatorGroup]:
    """The operators with several sites, the largest first, by the verdicts of all sites."""
    members: defaultdict[str, list[str]] = defaultdict(list)
    for site, of in operators.items():
        if of.name:
            members[of.name].append(site)
    groups = [
        OperatorGroup(
            name,
            len(sites),
            len(set(map(registrable_domain, sites))),
            Counter(verdict_of.get(site, "") for site in sites),
            sorted({of_id for site in sites for of_id in operators[site].ids}),
            sorted(sites),
        )
        for name, sites in members.items()
    ]
    return sorted(groups, key=lambda group: (-group.sites, group.operator))


def _verdict(verdict: str) -> Column[OperatorGroup]:
    return Column(verdict, "integer", lambda group: group.verdicts[verdict])


OPERATOR_COLUMNS: list[Column[OperatorGroup]] = [
    Column("operator", "text", attrgetter("operator"), meaning="the lowest of its domains"),
    Column("sites", "integer", attrgetter("sites"), "sum"),
    Column("domains", "integer", attrgetter("domains")),
    *map(_verdict, SiteClass),
    Column("ids", "json", attrgetter("ids"), meaning="the accounts that link its domains"),
    Column("names", "json", attrgetter("names"), meaning="its sites"),
]
