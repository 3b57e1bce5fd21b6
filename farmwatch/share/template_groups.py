"""The groups of sites that share a template, from a topic of templates.

Of a large log the first partitions are read, each with a random part of the sites, up to a number of templates.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Collection, Mapping
from typing import Any, NamedTuple

import numpy as np

from filters.structure.tag_paths import PLACES, SAME_TEMPLATE
from replay.rows.site_table import SiteTable
from stream.log.contract import Log
from stream.processing.topic_reader import rows_of
from stream.schema.records import Template
from stream.schema.vocabulary import SiteClass
from stream.text.registrable_domain import registrable_domain

_CAP = 50_000  # templates that are held; about 110 MB, twice that with the longest URLs, and some seconds

_ROWS = 4
"""Places of a band, and bytes of its number: of templates with a similarity of .6, 89% share a band, of .7 99%."""
_NEAREST = 8  # leaders of a band that are compared


class TemplateGroup(NamedTuple):
    """Sites that share a template; `url` is a page with it, `template_id` its measure of that name."""

    sites: frozenset[str]
    url: str
    template_id: str

    def fields(self, verdict_of: Mapping[str, str]) -> dict[str, Any]:
        """As the command has it: numbers of sites, registrable domains, and sites by verdict, if they have one yet."""
        counts = Counter(verdict_of.get(site, "") for site in self.sites)
        return {
            "sites": len(self.sites),
            "domains": len(set(map(registrable_domain, self.sites))),
            **{verdict: counts[verdict] for verdict in SiteClass},
            "template_id": self.template_id,
            "url": self.url,
        }


class TemplateGroups(NamedTuple):
    """The groups, the largest first, those of a single site left out, and the sites with a template."""

    groups: list[TemplateGroup]
    sites: int
    is_whole: bool  # all templates were read

    def of(self, site: str) -> TemplateGroup | None:
        """The largest group with a site; None if it shares no template."""
        return next((group for group in self.groups if site in group.sites), None)


def read_template_groups(log: Log, topic: str, cap: int = _CAP) -> TemplateGroups:
    """Read and group up to `cap` templates. An unreadable row changes nothing. Raises as `Log.read`."""
    rows: dict[bytes, Template] = {}
    partitions = log.topics().get(topic, 0)
    read, is_cut = 0, False
    while read < partitions and len(rows) < cap:
        for message, row in rows_of(Template, log.read(topic, read)):
            if row is None:
                rows.pop(message.key, None)
            elif len(row.sketch) == PLACES:
                if message.key in rows or len(rows) < cap:
                    rows[message.key] = row
                else:
                    is_cut = True
        read += 1
    first: dict[bytes, Template] = {}
    sites_of: defaultdict[bytes, set[str]] = defaultdict(set)
    for key in sorted(rows):
        row = rows[key]
        first.setdefault(row.sketch, row)
        sites_of[row.sketch].add(row.site)
    groups = []
    for sketches in alike(sites_of):
        sites = frozenset[str]().union(*(sites_of[sketch] for sketch in sketches))
        if len(sites) > 1:
            leader = first[sketches[0]]
            groups.append(TemplateGroup(sites, leader.url, leader.id))
    groups.sort(key=lambda group: (-len(group.sites), group.template_id))
    return TemplateGroups(groups, len(set[str]().union(*sites_of.values())), read == partitions and not is_cut)


def read_verdicts(log: Log, topic: str, groups: TemplateGroups) -> dict[str, str]:
    """The verdicts of the sites in groups, from a topic of rows of sites."""
    shared = frozenset[str]().union(*(group.sites for group in groups.groups))
    if not shared:
        return {}
    table = SiteTable(log, topic)
    table.refresh()
    return {row.site: row.verdict for row in table.rows() if row.site in shared}


def alike(sites_of: Mapping[bytes, Collection[str]]) -> list[list[bytes]]:
    """Group sketches that are alike, each with the sites that have it. The first of a group has the most sites.

    The most frequent sketch leads the first group. Each further one joins the most similar leader, or leads a group of
    its own. Only leaders with a band of equal places are compared, of each band the first few: time is linear.
    """
    order = sorted(sites_of, key=lambda sketch: (-len(sites_of[sketch]), sketch))
    places = np.frombuffer(b"".join(order), np.uint8).reshape(len(order), PLACES)
    bands = places.view("<u4") + (np.arange(PLACES // _ROWS, dtype=np.uint64) << np.uint64(32))  # unlike for each place
    _, band_of, frequency = np.unique(bands, return_inverse=True, return_counts=True)
    shared = (frequency[band_of] > 1).reshape(bands.shape)  # most bands are of one sketch, and lead to no other
    groups: dict[int, list[bytes]] = {}  # number of the leader -> sketches
    leaders_of: dict[int, list[int]] = {}  # of a band
    for number, sketch in enumerate(order):
        of_sketch = bands[number][shared[number]].tolist()
        leaders = sorted({leader for band in of_sketch for leader in leaders_of.get(band, ())})
        if leaders:
            equal = np.count_nonzero(places[leaders] == places[number], axis=1)
            nearest = int(np.argmax(equal))
            if equal[nearest] >= SAME_TEMPLATE * PLACES:
                groups[leaders[nearest]].append(sketch)
                continue
        groups[number] = [sketch]
        for band in of_sketch:
            known = leaders_of.setdefault(band, [])
            if len(known) < _NEAREST:
                known.append(number)
    return list(groups.values())
