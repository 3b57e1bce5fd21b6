"""The console's pages on sites: the list with its totals, a site with its test, and the pages of all sites."""

from __future__ import annotations

import io
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from operator import itemgetter
from typing import Any

import msgspec

from farmwatch.config.config import Config
from farmwatch.config.detector_config import caveats
from farmwatch.console.jobs import WALK, Jobs
from farmwatch.console.networks import AllSites, Networks
from farmwatch.console.read_model import JUDGED, ReadModel
from farmwatch.console.site_filter import DECIDED, SORTS, STATES, SiteFilter, SiteSums
from farmwatch.explain.report import threshold_of
from farmwatch.share.page_lines import PAGE_COLUMNS
from farmwatch.share.review_labels import read_review
from farmwatch.share.site_farm import SiteFarm
from farmwatch.share.site_lines import LABELS, SITE_COLUMNS, ListedSite, SiteLabel, lines_of, site_fields, site_labels
from farmwatch.share.words import share_columns
from farmwatch.tables.columns import Column, fields_of
from farmwatch.tables.files import write_rows
from replay.live.live_run import find_rules
from replay.runs.configured import tally_identity
from scoring.sites.registry import method_of_text, site_method
from scoring.sites.sprt import SiteTest
from scoring.stages.site_tally import SiteTally
from stream.log.contract import Clock, Log, partition_of
from stream.schema.records import SiteState
from stream.schema.vocabulary import KEPT, SiteClass
from stream.text.user_errors import NotFound, UsageError

Query = Mapping[str, str]
Data = dict[str, Any]
SITES_SHOWN, PAGES_SHOWN, ALL = 50, 100, 1_000_000  # of a list on a screen, and in a file
_VERDICTS = ("", *STATES, DECIDED, *(kind for kind in SiteClass if kind not in STATES))
_SUMS = SiteSums._fields[2:]
_SOON_S = 0.01  # that a list waits for its totals
_DIGITS = 9
_DATED = [column for column in PAGE_COLUMNS if column.name in ("page_id", "published", "p_llm", "flag")]
_WHOLE_S = 50.0  # that a file waits for the probabilities


@dataclass(frozen=True, slots=True)
class SiteLists:
    """Answers the requests for these pages."""

    _log: Log
    _config: Config
    _model: ReadModel
    _jobs: Jobs
    _networks: Networks
    _clock: Clock

    def sites(self, query: Query, limit: int = SITES_SHOWN) -> Data:
        """Sites that match, one screen of them; `after` names the last site of the screen before."""
        patience_s = 2.0 if limit < ALL else _WHOLE_S  # a file lacks no value
        labels = self._jobs.soon(("labels",), self._labels, patience_s) or {}
        of_all = self._networks.all_sites(patience_s)
        matching = SiteFilter(
            search=query.get("search", "").strip()[:253],
            verdict=one_of(query, "verdict", _VERDICTS),
            source=query.get("source", "")[:100],
            least=number_in(query, "least") or 0,
        )
        label, sort = one_of(query, "label", ("", *LABELS)), one_of(query, "sort", tuple(SORTS))
        reverse = one_of(query, "reverse", ("", "1"))
        chosen = matching._asdict() | {"label": label, "sort": sort, "reverse": reverse}
        del chosen["names"]
        if label:
            matching = matching._replace(names=tuple(site for site in labels if labels[site].label == label))
        after = query.get("after", "")[:253]
        rows = self._model.sites(
            matching, sort=sort, is_reversed=bool(reverse), after=after, limit=limit + 1, likely=of_all.likely
        )
        shown = rows[:limit]
        lines = self._lines(shown, of_all, labels)
        return {
            "still_reads": self._model.rebuilding,
            "filter": chosen,
            "facets": self._facets(matching, labels, shown if len(rows) <= limit and not after else None),
            "sites": [site_fields(line) for line in lines],
            "called": {line.row.site: line.called.words for line in lines if line.called.label},
            "next": shown[-1].site if len(rows) > limit else "",
        }

    def site(self, query: Query) -> Data:
        """A site: its row, and its pages in the order of their fetch. Raises NotFound."""
        name = query.get("site", "")
        row = self._model.site(name)
        if row is None:
            raise NotFound(f"{name[:80]}: no such site in the log, or it is not judged")
        after = query.get("after", "")[:64]
        pages = self._model.pages(row.site, row.detector, after=after, limit=PAGES_SHOWN + 1)
        test = self._jobs.soon((WALK, row.site), lambda: self._test(row))
        steps = {step["page_id"]: step for step in test["steps"]} if test else {}
        articles = [page for page in self._model.pages(row.site, row.detector, limit=ALL) if page.result in KEPT]
        dated = [fields_of(_DATED, page) for page in articles if page.dates and page.dates.trusted]
        shown = [{**fields_of(PAGE_COLUMNS, page), "walk": steps.get(page.page_id)} for page in pages[:PAGES_SHOWN]]
        groups = self._networks.template_groups()
        group = None if groups is None else groups.of(row.site)  # that it shares with most others
        template = None if group is None else {"id": group.template_id, "other_sites": len(group.sites) - 1}
        of_all, sitemaps = self._networks.all_sites(), self._model.sitemaps(row.site)
        line = self._lines([row], of_all, self._labels())[0]
        of_site = {} if sitemaps is None else {row.site: sitemaps}
        farm = None if of_all.signs is None else SiteFarm.of(row, replace(of_all.signs, sitemaps=of_site))
        return {
            "site": site_fields(line),
            "called": line.called.words,
            "operator": line.operator.words,
            "content_farm": farm and {**farm.fields(), "words": farm.words},
            "still_reads": self._model.rebuilding,
            "after": after,
            "pages": shown,
            "next": shown[-1]["page_id"] if len(pages) > PAGES_SHOWN else "",
            "evidence": test["evidence"] if test else "",
            "test": test,
            "articles": len(articles),
            "dated": sorted(dated, key=itemgetter("published", "page_id")),
            "warning": caveats(self._config, [row.detector])[row.detector],
            "template": template,
            "sitemaps": None if sitemaps is None else msgspec.structs.asdict(sitemaps),
        }

    def pages(self, query: Query, limit: int = PAGES_SHOWN) -> Data:
        """Pages of all sites of one kind, one screen of them; `after` names the last page of the screen before."""
        kind, why = query.get("kind", "")[:40], query.get("why")
        site, _, page_id = query.get("after", "").rpartition(" ")
        detector = find_rules(self._log, self._config).run.detector or tally_identity(self._config)
        pages = self._model.pages_of_kind(kind, why, detector, after=(site, page_id), limit=limit + 1)
        shown = pages[:limit]
        return {
            "still_reads": self._model.rebuilding,
            "filter": {"kind": kind, "why": why},
            "kinds": ["", JUDGED, *dict.fromkeys(kind for kind, _, _ in self._model.outcomes())],
            "pages": [fields_of(PAGE_COLUMNS, page) for page in shown],
            "next": f"{shown[-1].site} {shown[-1].page_id}" if len(pages) > limit else "",
        }

    def _facets(
        self, of: SiteFilter, labels: Mapping[str, SiteLabel], matching_rows: Sequence[SiteState] | None
    ) -> Data | None:
        """The sums of the sites that match, and how many each value of a field would leave.

        `matching_rows` are all of them if they are few. Otherwise None until the sums are found.
        """
        wider = of._replace(verdict="")
        if of == wider and matching_rows is not None:
            every: list[SiteSums] | None = [SiteSums.of(row) for row in matching_rows]
        else:
            kind = "sums of a search" if of.search else "sums"  # which would displace those that many ask for
            every = self._jobs.soon((kind, wider), partial(self._model.site_sums, wider), _SOON_S)
        if every is None:
            return None

        def has_verdict(sums: SiteSums) -> bool:
            return sums.is_decided if of.verdict == DECIDED else of.verdict in ("", sums.state, sums.verdict)

        matching = [sums for sums in every if has_verdict(sums)]
        return {
            "total": {name: sum(getattr(sums, name) for sums in matching) for name in _SUMS},
            "verdict": _counts((sums.state, sums.sites) for sums in every),
            "source": self._jobs.soon(("sources",), self._model.sources, _SOON_S) or {},
            "label": _counts((called.label, 1) for called in labels.values()),
        }

    def _labels(self) -> dict[str, SiteLabel]:
        return site_labels(read_review(self._config.rate, self._clock()))

    def _lines(self, rows: Sequence[SiteState], of_all: AllSites, labels: Mapping[str, SiteLabel]) -> list[ListedSite]:
        likely = of_all.likely.by_site
        rows = rows if of_all.stated is None else [*map(of_all.stated.added_to, rows)]
        return lines_of(rows, self._log, self._config, self._clock(), likely, labels, of_all.operators)

    def _test(self, row: SiteState) -> Data | None:
        """A site's test after each of its pages, its bounds and its evidence; None if TALLY does not hold it."""
        rules = find_rules(self._log, self._config)
        kept, store = rules.run.site_method, rules.names.tally_store
        method = method_of_text(kept) if kept else site_method(self._config.tally, row.detector)
        partitions = self._log.topics().get(f"state.{store}", 0)
        if not partitions:
            return None
        with self._log.read_state(store, partition_of(row.site, partitions)) as state:
            data = state.get(row.site.encode())
        if data is None:
            return None
        evidence = SiteTally.load(data, self._config.tally.term_ms).evidence(row.detector, row.term)
        p_llm = {page.page_id: page.p_llm for page in self._model.pages(row.site, row.detector, limit=ALL)}
        scores, steps = list(evidence.values()), list[Data]()
        for number, (page, score) in enumerate(evidence.items(), 1):
            said = method.decide(scores[:number])
            step = {"page_id": page, "number": number, "p_llm": p_llm.get(page), "flag": score.flag}
            steps.append({**step, "llr": said.llr, "verdict": said.verdict})
        bounds = dict(zip(("human", "llm"), method.bounds, strict=True)) if isinstance(method, SiteTest) else {}
        threshold = threshold_of(row.detector)
        return {
            "bounds": bounds,
            "threshold": float(threshold) if threshold else None,
            "steps": steps,
            "evidence": method.evidence(method.decide(scores)),
        }


FILES: dict[str, tuple[str, list[Column[Any]]]] = {  # page -> its list that is a file, and the columns
    "answer": ("lines", share_columns({})),
    "sites": ("sites", SITE_COLUMNS),
    "pages": ("pages", PAGE_COLUMNS),
}


def csv_of(name: str, data: Data) -> str:
    """The list of a page as CSV, with the columns of its command. Raises UsageError for one that is not whole."""
    if data.get("next"):
        raise UsageError(f"more than {ALL:,} {name}: filter them, or take `farmwatch {name} --format csv`")
    file, (part, columns) = io.BytesIO(), FILES[name]
    write_rows(file, "csv", [replace(column, of=itemgetter(column.name)) for column in columns], data[part])
    return file.getvalue().decode()


def _counts(pairs: Iterable[tuple[str, int]]) -> dict[str, int]:
    counts = Counter[str]()
    for name, number in pairs:
        counts[name] += number
    return dict(sorted(counts.items()))


def number_in(query: Query, name: str) -> int | None:
    """The whole number in a field of the address; None without one. Raises UsageError."""
    value = query.get(name, "")
    if value and not (value.isdecimal() and len(value) <= _DIGITS):
        raise UsageError(f"{name}={value[:40]!r}: a whole number of up to {_DIGITS} digits")
    return int(value) if value else None


def one_of(query: Query, name: str, allowed: tuple[str, ...]) -> str:
    """The value of a field of the address, the first of these without one. Raises UsageError."""
    value = query.get(name, allowed[0])
    if value not in allowed:
        words = ", ".join(filter(None, allowed))
        raise UsageError(f"{name}={value[:40]!r}: {f'one of {words}' if words else 'leave it out'}")
    return value
