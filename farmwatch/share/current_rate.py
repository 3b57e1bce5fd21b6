"""The share and the sites now, as `farmwatch rate`, `farmwatch sites` and the console show them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple, Protocol

import msgspec

from crawler.frontier.report import frontier_now, why_no_page
from farmwatch.config.config import Config
from farmwatch.share.rate_cache import read_cached_rate
from farmwatch.share.result_counts import read_results
from farmwatch.share.review_labels import read_review
from farmwatch.share.topic_records import topic_records
from filters.perplexity.names import DANGER
from filters.quality.names import TextName
from replay.live.epoch_change import seams_of
from replay.rows.site_table import Counts, counts_of, read_rows
from replay.runs.lookup import names_to_read
from replay.runs.topology import records_behind
from scoring.estimate.definitions import FARM, OF_RESULTS, SITES
from scoring.rates.canary import is_canary
from scoring.rates.cuts import Cut
from scoring.rates.farm_signs import ListedUrls
from scoring.rates.groups import WINDOWS
from scoring.rates.split_rates import RateLine, RateQuery, rate_lines
from stream.log.contract import Log, partition_of
from stream.schema.control import Control
from stream.schema.records import SiteState
from stream.schema.topics import DECISIONS, FRONTIER_STORE, HITS, SITEMAPS
from stream.text.toml import read_toml
from stream.text.user_errors import UsageError
from stream.text.wording import one_line

_WHOLE = Cut()
_NAMES_SHOWN = 20
_LOOKED_UP = 2_000  # sites in the frontier: about a second


class CurrentRate(NamedTuple):
    """The lines of `farmwatch rate`, with the counts and the notes that it prints after them."""

    lines: list[RateLine]
    counts: Counts  # of the rows that the lines are of
    kept_at: int  # ms; when TALLY's process found it; 0 = found now
    notes: list[str]  # on seams, and on texts without unlikely sentences
    undated: int  # sites without a known search day, which a cut by days leaves out
    waiting: int  # hits that the crawl has not read, where there is no row yet
    rulesets: Mapping[str, str]  # digest -> stored text


class Judged(Protocol):
    """What was judged by one ruleset."""

    @property
    def digest(self) -> str: ...


def current_rate(
    log: Log, config: Config, now_ms: int, *, by: str, of: str = SITES, cut: Cut = _WHOLE, run: str = ""
) -> CurrentRate:
    """The share of a run (default: the live one), split and cut. Raises NotFound, UsageError for an unknown source."""
    names = names_to_read(log, run)
    topics, crawling, preferring, waiting = log.topics(), None, None, 0
    if HITS in topics and DECISIONS in topics:
        waiting = records_behind(log, {"crawl": (HITS,)})["crawl"]
        left = frontier_now(log, topics[HITS])
        crawling, preferring = left.active, left.preferring
    if of == SITES and cut == _WHOLE and (kept := read_cached_rate(log, names.sites, config.rate, now_ms, by)):
        lines, counts, at, undated, waiting = kept.lines, kept.counts, kept.at, 0, 0
    else:
        rows = read_rows(log, names.sites)
        sources = sorted({name for row in rows for name in row.sources}) if cut.source else []
        if sources and cut.source not in sources:
            more = f", and {len(sources) - _NAMES_SHOWN} more" if len(sources) > _NAMES_SHOWN else ""
            shown = f"{', '.join(sources[:_NAMES_SHOWN])}{more}"
            raise UsageError(one_line(f"--source {cut.source!r}: the sources of the sites are {shown}"))
        query = RateQuery(
            by=by,
            settings=config.rate,
            now_ms=now_ms,
            cut=cut,
            review=read_review(config.rate, now_ms),
            definition=of,
            no_page=reasons_without_page(log, config, rows, now_ms),
            earlier=read_rows(log, names.terms) if by in WINDOWS else [],
            sitemaps=read_sitemaps(log) if of == FARM else {},
            results=read_results(log, by, cut, config.rate.groups) if of in OF_RESULTS else None,
        )
        lines, counts, at = rate_lines(rows, query), counts_of(query.chosen(rows)), 0
        undated, waiting = query.undated(rows), 0 if rows else waiting
    of_all = {"crawling": crawling, "preferring": preferring}
    lines = [line if line.by else msgspec.structs.replace(line, **of_all) for line in lines]
    control = Control(log)
    notes = [*seams_of(control, run), *dangers(control.rulesets, lines)]
    return CurrentRate(lines, counts, at, notes, undated, waiting, control.rulesets)


def read_sitemaps(log: Log, site: str = "") -> dict[str, ListedUrls]:
    """Site -> what its sitemaps list, of all sites or of one, of which a partition is read."""
    partitions = log.topics().get(SITEMAPS, 0)
    wanted = [partition_of(site, partitions)] if site and partitions else None
    return {row.site: row for row in topic_records(log, ListedUrls, SITEMAPS, wanted) if site in ("", row.site)}


def dangers(rulesets: Mapping[str, str], judged: Iterable[Judged]) -> list[str]:
    """What to say of texts that are scored without their unlikely sentences, if there are any."""
    is_fluent = any(field_of_ruleset(rulesets, each.digest, "scores") == TextName.FLUENT for each in judged)
    return [DANGER] if is_fluent else []


def field_of_ruleset(rulesets: Mapping[str, str], digest: str, field: str) -> Any:
    """A field of a stored ruleset; () without one."""
    ruleset = rulesets.get(digest, "")
    return read_toml(ruleset, len(ruleset.encode())).get(field, ())


def reasons_without_page(log: Log, config: Config, rows: Iterable[SiteState], now_ms: int) -> dict[str, str]:
    """Site -> why it has no page; looked up for the first sites, and on a broker for none."""
    every = [row.site for row in rows if not row.pages and not is_canary(row.site)]
    sites = every[:_LOOKED_UP]
    topic = f"state.{FRONTIER_STORE}"
    partitions = log.topics().get(topic, 0) if config.log.url.startswith("sqlite:") else 0
    reasons = dict.fromkeys(every[_LOOKED_UP:] if partitions else (), "no page, reason not looked up")
    for partition in range(partitions if sites else 0):
        with log.read_state(FRONTIER_STORE, partition) as state:
            for site in sites:
                if partition_of(site, partitions) == partition:
                    reasons[site] = why_no_page(state, config.crawl, site, now_ms)
    return reasons
