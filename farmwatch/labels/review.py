"""The sample of a review: sites drawn at random, and some articles of each to label."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import xxhash

from replay.compare.flips import texts_of
from replay.rows.site_table import read_sites
from replay.runs.lookup import names_to_read
from scoring.estimate.reviewed_share import FEWEST_LABELS
from scoring.rates.settings import RateSettings
from scoring.rates.split_rates import llm_probabilities
from stream.log.contract import Log, partition_of
from stream.processing.topic_reader import records_of
from stream.schema.records import SiteState, Verdict
from stream.schema.runs import RunNames
from stream.schema.vocabulary import KEPT
from stream.text.user_errors import FarmwatchError
from stream.text.wording import counted


class DrawnReview(NamedTuple):
    """The pages of a sample; from how many sites it was drawn, and how many were drawn."""

    lines: list[dict[str, Any]]
    of: int
    sites: int


def draw_review(
    log: Log, settings: RateSettings, sites: int, pages: int, now_ms: int, seed: int = 0, run: str = ""
) -> DrawnReview:
    """Draw this many sites of a run with `pages` articles of each.

    Raises FarmwatchError for a log that has fewer than a review needs.
    """
    rows = {row.site: row for row in read_sites(log, run)}
    likely = llm_probabilities(list(rows.values()), settings, now_ms)
    if len(likely) < FEWEST_LABELS:
        raise FarmwatchError(f"{counted(len(likely), 'site')} with a scored article: a review needs {FEWEST_LABELS}")
    chosen = [rows[site] for site in drawn_sites(rows, likely, sites, seed)]
    lines = list(sample_lines(log, names_to_read(log, run), chosen, pages, seed, now_ms))
    return DrawnReview(lines, len(likely), len(chosen))


def drawn_sites(rows: Mapping[str, SiteState], likely: Mapping[str, float], number: int, seed: int) -> list[str]:
    """This many of the sites of `likely` in random order, each with the same chance.

    The draw is systematic along probability, then number of scored articles: every kind of site is represented in
    proportion.
    """
    order = sorted(likely, key=lambda site: (likely[site], rows[site].scored, _place(site, seed)))
    number = min(number, len(order))
    start = _place("", seed) / 2**64
    chosen = [order[int((place + start) * len(order) / number)] for place in range(number)]
    return sorted(chosen, key=lambda site: _place(site, seed))


def sample_lines(
    log: Log, names: RunNames, rows: Sequence[SiteState], pages: int, seed: int, drawn_at: int
) -> Iterator[dict[str, Any]]:
    """The pages to label, for `farmwatch review label`: at most `pages` articles of each site, drawn at random.

    Verdicts and probabilities, which would bias the labels, are left out. Each line has the number of drawn sites, the
    time of the draw (ms) and the place of its site among them.
    """
    partitions = log.topics().get(names.verdicts, 0)
    digests = {row.site: row.digest for row in rows}
    articles: dict[str, dict[str, Verdict]] = {site: {} for site in digests}  # site -> page -> newest verdict
    for partition in sorted({partition_of(site, partitions) for site in digests}) if partitions else ():
        for _, verdict in records_of(Verdict, log.read(names.verdicts, partition)):
            if verdict.digest == digests.get(verdict.site):
                articles[verdict.site].pop(verdict.page_id, None)
                if verdict.verdict in KEPT:
                    articles[verdict.site][verdict.page_id] = verdict
    chosen = [
        verdict
        for site in digests
        for verdict in sorted(articles[site].values(), key=lambda verdict: _place(verdict.page_id, seed))[:pages]
    ]
    texts = texts_of(log, names.features, chosen)
    places = {site: place for place, site in enumerate(digests, 1)}
    for verdict in chosen:
        text = texts.get(verdict.id)
        if text is not None:
            yield {
                "fetch_id": verdict.id,
                "url": verdict.url,
                "site": verdict.site,
                "page_id": verdict.page_id,
                "text": text.text,
                "text_cut": text.cut,
                "text_digest": text.digest,
                "fetched_at": verdict.fetched_at,
                "drawn": len(rows),
                "drawn_at": drawn_at,
                "place": places[verdict.site],
            }


def _place(name: str, seed: int) -> int:
    return xxhash.xxh3_64_intdigest(name.encode(), seed)
