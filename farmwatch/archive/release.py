"""A citable bundle of a run: its sites, verdicts and scores, the ruleset and versions, and the numbers.

It has no text of pages. Its files give its share again: `farmwatch.archive.release_check`.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from importlib.metadata import version
from importlib.util import find_spec
from pathlib import Path
from typing import Any, NamedTuple

import msgspec

from farmwatch.archive.release_check import LABELS_FILE, RATE_FILE, SETTINGS_FILE, SITES_FILE
from farmwatch.archive.tables import ExportWindow, What, columns_of_table, incomplete_before, rows_of
from farmwatch.config.config import Config
from farmwatch.share.review_labels import ReviewLabel, read_labels, review_of
from farmwatch.share.site_lines import SITE_COLUMNS, lines_of, site_labels
from farmwatch.share.site_operators import find_site_operators
from farmwatch.share.words import line_fields, text_of
from farmwatch.tables.columns import columns_of
from farmwatch.tables.files import write_table
from farmwatch.terminal.jsonl import encode_lines
from farmwatch.terminal.messages import program_version
from filters.measure.golden import VERIFIED
from filters.rules.ruleset import without_paths
from replay.live.epoch_change import seams
from replay.rows.site_table import read_rows
from replay.runs.lookup import find_run
from scoring.rates.canary import is_canary
from scoring.rates.canary_counts import recent_canaries
from scoring.rates.controls import archived
from scoring.rates.split_rates import RateLine, RateQuery, llm_probabilities, rate_lines
from scoring.rates.terms import counted_at
from scoring.rates.versions import comparable
from scoring.stages.site_tally import SiteTally
from stream.log.contract import Log, partition_of
from stream.schema.control import Control
from stream.schema.forgotten import Forgotten
from stream.schema.records import SiteState
from stream.schema.runs import LIVE, Run, shown_run
from stream.text.checksums import digest_of, write_sums
from stream.text.user_errors import NotFound
from stream.text.wording import moment


class _ScoreRow(NamedTuple):
    site: str
    page_id: str
    fetch_id: str
    text_digest: str
    detector: str
    score: float | None
    flag: bool
    fetched_at: int


_SCORES = columns_of(_ScoreRow)


@dataclass(frozen=True, slots=True)
class Release:
    """The data of a bundle. `left_out`: sites of another ruleset, detector or site method than the run's."""

    rate: RateLine
    sites: int
    left_out: int


def write_release(log: Log, config: Config, folder: Path, run: str, now_ms: int) -> Release:
    """Write the bundle of a run (default: live) into an empty folder. Raises NotFound without judged sites; OSError."""
    control = Control(log)
    of = find_run(control, run or LIVE)
    names = of.names(is_live=of.name == control.alias.run)
    everything = read_rows(log, names.sites)
    rows = _rows_of_run(everything, of, config, now_ms)
    sites = [row for row in rows if not is_canary(row.site)]
    labels = read_labels(config.rate)
    review = review_of(labels, config.rate, now_ms) if config.rate.review else None
    (rate,) = rate_lines(rows, RateQuery(settings=config.rate, now_ms=now_ms, review=review))
    likely = llm_probabilities(everything, config.rate, now_ms)
    write_table(
        folder / SITES_FILE,
        "jsonl",
        SITE_COLUMNS,
        lines_of(rows, log, config, now_ms, likely, site_labels(review), find_site_operators(everything), run),
    )
    if review is not None:
        (folder / LABELS_FILE).write_bytes(encode_lines(_without_names(labels, Forgotten(log))))
    scores = _scores(log, names.tally_store, rows)
    write_table(folder / "scores.jsonl", "jsonl", _SCORES, scores)
    tables: list[tuple[What, str, str]] = [("verdicts", "verdicts.jsonl", run), ("rate", "rates.jsonl", run or LIVE)]
    for what, name, of_run in tables:
        columns = [column for column in columns_of_table(what, 0) if column.name != "rules"]
        write_table(folder / name, "jsonl", columns, rows_of(log, what, ExportWindow(), of_run, config, now_ms))
    (folder / "ruleset.toml").write_text(without_paths(control.ruleset_text(of)), encoding="utf-8")
    _write_json(folder / RATE_FILE, {**line_fields(rate), "run": shown_run(rate.run)})
    shown = msgspec.structs.replace(config.rate, review=LABELS_FILE if review is not None else "")
    _write_json(folder / SETTINGS_FILE, {"made_at": now_ms, "rate": shown})
    _write_json(folder / "versions.json", _versions(of, now_ms))
    missing = incomplete_before(log, "verdicts", ExportWindow(), run, now_ms)
    (folder / "README.md").write_text(_readme(rate, of, sites, config, now_ms, missing), encoding="utf-8")
    (folder / "CITATION.cff").write_text(_citation(rate, now_ms), encoding="utf-8")
    write_sums(folder, {file.name: digest_of(file) for file in folder.iterdir()})
    return Release(rate, len(sites), len(everything) - len(rows))


def _rows_of_run(rows: Sequence[SiteState], run: Run, config: Config, now_ms: int) -> list[SiteState]:
    """The rows of the run's ruleset, detector and most frequent site method, with the canaries that count now."""
    kinds = [alike for of, alike in comparable(rows) if of.digest == run.digest and run.detector in ("", of.detector)]
    alike = max(kinds, key=len, default=[])
    if not any(row.ruleset for row in alike):
        raise NotFound(f"run {run.shown} has no judged site yet: nothing to release")
    canaries = recent_canaries(config.rate, alike, now_ms).rounds
    sites = (counted_at(row, now_ms) for row in alike if not is_canary(row.site))
    return [*sites, *(row for of in canaries.values() for row in of), *archived(alike)]


def _without_names(labels: Sequence[ReviewLabel], forgotten: Forgotten) -> Iterator[ReviewLabel]:
    """The labels without names of people; those of forgotten hosts count on, without name and address."""
    names: dict[str, str] = {}
    everyone = sorted({label.by for label in labels} - {""})  # in their order, on which draws of the truth depend
    people = {"": ""} | {name: f"labeller-{number:03}" for number, name in enumerate(everyone, 1)}
    for label in labels:
        label = msgspec.structs.replace(label, by=people[label.by])
        if forgotten.covers(label.site) or label.fetch_id in names:  # a retraction has no site
            hidden = (
                named and names.setdefault(named, f"forgotten-{len(names)}") for named in (label.site, label.fetch_id)
            )
            label = msgspec.structs.replace(label, **dict(zip(("site", "fetch_id"), hidden, strict=True)))
        yield label


def _scores(log: Log, store: str, rows: Sequence[SiteState]) -> Iterator[_ScoreRow]:
    """The scored articles of the sites, as their rows count them, in the order in which TALLY reads them."""
    partitions = log.topics().get(f"state.{store}", 0)
    wanted: dict[int, list[SiteState]] = {}
    for row in rows:
        if row.scored:
            wanted.setdefault(partition_of(row.site, partitions), []).append(row)
    for partition, of_partition in sorted(wanted.items()):
        with log.read_state(store, partition) as state:
            for row in of_partition:
                tally = SiteTally.load(state.get(row.site.encode()), row.term_end - row.term_start)
                said = tally.scores.get(row.detector, {})
                pages = [
                    (page_id, page)
                    for page_id, page in tally.of_term(row.term).pages.items()
                    if page.digest == row.digest and page.article
                ]
                pages.sort(key=lambda named: ((named[1].evidence or named[1]).fetched_at, named[0]))
                for page_id, page in pages:
                    text = said.get(page.text_digest)
                    if text is not None and text.flag is not None:
                        ids = (row.site, page_id, page.fetch_id, page.text_digest, row.detector)
                        yield _ScoreRow(*ids, text.score, text.flag, page.fetched_at)


def _versions(run: Run, now_ms: int) -> dict[str, Any]:
    return {
        "made_at": now_ms,
        "farmwatch": program_version(),
        "python": ".".join(map(str, sys.version_info[:3])),
        "libraries": {name: version(name) for name in VERIFIED if find_spec(name)},
        "run": run.shown,
        "ruleset": run.ruleset,
        "ruleset_digest": run.digest,
        "detector": run.detector,
        "feature_epoch": run.epoch,
        "earlier_epochs": run.earlier_epochs,
        "epoch_settings": run.measured_by,
        "site_method": msgspec.json.decode(run.site_method) if run.site_method else None,
    }


def _write_json(file: Path, value: Any) -> None:
    file.write_bytes(msgspec.json.format(msgspec.json.encode(value), indent=2) + b"\n")


_README = """\
# A measurement by farmwatch {version}, {day}

Share of LLM sites: {text}

{sites:,} sites that search engines returned were measured under ruleset {ruleset} `{digest}` and detector
`{detector}`.{seams}

| file | content |
|---|---|
| `rate.json` | the share, as `farmwatch rate --json` without what only the crawl knows |
| `rates.jsonl` | the share as it was over time |
| `sites.jsonl` | a row per site: verdict and evidence; sites that end in `.canary.invalid` are pages of known truth |
{labels}| `settings.json` | the settings of the share, and the time of this bundle |
| `scores.jsonl` | the score of each article that a row counts, by the digest of its text |
| `verdicts.jsonl` | the ruleset's verdict on each page, once for each feature epoch{missing} |
| `ruleset.toml` | the ruleset |
| `versions.json` | farmwatch, libraries, ruleset, detector, feature epoch, site method |
| `SHA256SUMS` | checksums: `sha256sum -c SHA256SUMS` |

Columns are described in farmwatch's `docs/reference/formats.md`. Times are milliseconds since 1970, UTC. Texts are
named by the xxh3-128 of their UTF-8; the bundle holds none.

## Compute it again

With farmwatch {version}:

```sh
farmwatch doctor audit .                                  # rate.json again
farmwatch lab estimate{confidence} sites.jsonl         # the share by flags{alone}
farmwatch lab tally scores.jsonl | farmwatch lab estimate{confidence}
```

The first line reads {files}. The last one leaves out sites without a scored article,
which are not part of the share. The site verdicts are those of `sites.jsonl`: TALLY reads a text that is on several
pages once.
"""

_LABELS = (
    "| `labels.jsonl` | the labels of the review, by fetch id and site, without names of people and forgotten hosts |\n"
)


def _readme(rate: RateLine, run: Run, sites: Sequence[SiteState], config: Config, now_ms: int, missing_ms: int) -> str:
    """`missing_ms`: retention has removed verdicts before this time; 0 = none."""
    level, review = config.rate.confidence, config.rate.review
    return _README.format(
        version=program_version(),
        day=_day(now_ms),
        text=text_of(rate.remarks),
        sites=len(sites),
        ruleset=run.ruleset,
        digest=run.digest,
        detector=run.detector,
        seams="".join(f" {seam[0].upper()}{seam[1:]}." for seam in seams(run)),
        missing=f"; those from before {moment(missing_ms)} were no longer kept" if missing_ms else "",
        labels=_LABELS if review else "",
        files=f"`sites.jsonl`, {'`labels.jsonl` ' if review else ''}and `settings.json`",
        alone=" alone" if review else "",
        confidence="" if level == 0.95 else f" --confidence {level}",
    )


_CITATION = """\
cff-version: 1.2.0
message: "If you use these data, cite them with the date and the digests in versions.json."
type: dataset
title: "Share of sites written by language models among sites that search engines return, {day}"
abstract: {abstract}
authors:
  - name: "Name of the people who measured"
date-released: "{day}"
references:
  - type: software
    title: farmwatch
    version: "{version}"
    authors:
      - name: "The farmwatch developers"
"""


def _citation(rate: RateLine, now_ms: int) -> str:
    abstract = msgspec.json.encode(text_of(rate.remarks)).decode()
    return _CITATION.format(day=_day(now_ms), abstract=abstract, version=program_version())


def _day(now_ms: int) -> str:
    return datetime.fromtimestamp(now_ms / 1000, UTC).strftime("%Y-%m-%d")
