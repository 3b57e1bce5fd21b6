"""The largest operators on the labelled pages, for a person to judge; docs/explanation/signals.md has the counts.

Run by `python -m tests.bench.studies.operator_clusters [SHOWN]`. A page's host is a site, with the union of the signals
of its pages; the host of a page without an address is that of its canonical link or `og:url`, else it is left out.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from typing import Any
from urllib.parse import urlsplit

from farmwatch.labels.labelled_pages import LabelledPages
from farmwatch.share.site_operators import find_site_operators, operator_groups
from filters.extraction.html_tree import ParseFailed, parse, readable
from filters.signals.page_signals import signals_of
from filters.structure.measures import by_tag
from stream.schema.records import SiteState
from stream.text.registrable_domain import registrable_domain
from tests.bench.timing import argument, json_lines, labelled_pages_folder
from tests.support.paths import data_root


def _pages() -> Iterator[tuple[str, str]]:
    """Address and HTML of the labelled pages and of those with a labelled date."""
    for label, html in LabelledPages(labelled_pages_folder()).htmls():
        yield label.url, html
    for page in json_lines(data_root() / "data" / "dates" / "pages.jsonl.zst"):
        yield page["url"], page["html"]


def _own_address(of: Mapping[str, Sequence[Any]]) -> str:
    """The address that a page states as its own, for collections without addresses."""
    canonical = [link.get("href", "") for link in of["link"] if link.get("rel", "").lower() == "canonical"]
    stated = [meta.get("content", "") for meta in of["meta"] if meta.get("property") == "og:url"]
    return next((url for url in (*canonical, *stated) if url.startswith(("http://", "https://"))), "")


def main() -> None:
    """Print the operators of several domains, then the domains that share a container alone."""
    signals: defaultdict[str, Counter[str]] = defaultdict(Counter)
    pages = 0
    for url, html in _pages():
        try:
            of = by_tag(list(parse(readable(html)).iter()))
            host = urlsplit(url).hostname or urlsplit(_own_address(of)).hostname or ""
        except (ParseFailed, ValueError):
            continue
        if "." in host:
            pages += 1
            signals[host].update(signals_of(of, url))
    rows = [SiteState(id=site, site=site, signals=dict(pages_of)) for site, pages_of in sorted(signals.items())]
    operators = find_site_operators(rows)
    groups = [group for group in operator_groups({}, operators) if group.domains > 1]
    print(f"{pages} pages, {len(rows)} sites, {len({registrable_domain(row.site) for row in rows})} domains")
    print(f"{len(groups)} operators of several domains, of {sum(group.domains for group in groups)} domains")
    for group in sorted(groups, key=lambda group: -group.domains)[: argument(1, 40)]:
        print(f"{group.domains} domains: {', '.join(group.names)}: {', '.join(group.ids)}")
    for site, of_site in operators.items():
        for container, names in of_site.possible.items():
            print(f"possible: {site} with {', '.join(names)}: {container}")


if __name__ == "__main__":
    main()
