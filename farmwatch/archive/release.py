"""A citable bundle of a run: its sites, verdicts and scores, the ruleset and versions, and the numbers.

It has no text of pages. Its files give its share again: `farmwatch.archive.release_check`.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from importlib.metadata import version
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import msgspec

from farmwatch.archive.files import write_table
from farmwatch.archive.release_check import LABELS_FILE, RATE_FILE, SETTINGS_FILE, SITES_FILE, ReleaseSettings
from farmwatch.archive.release_texts import citation, readme
from farmwatch.archive.tables import COLUMNS, Column, ExportWindow, incomplete_before, rows_of, value_of
from farmwatch.config.config import Config
from farmwatch.share.review_labels import ReviewLabel, read_labels, review_of
from farmwatch.share.words import line_fields
from farmwatch.terminal.jsonl import encode_lines
from farmwatch.terminal.messages import program_version
from replay.rows.site_table import read_rows
from replay.runs.lookup import find_run
from scoring.rates.canary import is_canary
from scoring.rates.canary_counts import recent_canaries
from scoring.rates.split_rates import RateLine, RateQuery, rate_lines
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

_LIBRARIES = ("trafilatura", "justext", "lxml", "py3langid", "rensa", "resiliparse")  # packages on which texts depend
_SCORES = [
    *(Column(name, "text", name) for name in ("site", "page_id", "fetch_id", "text_digest", "detector")),
    Column("score", "number", "score"),
    Column("flag", "truth", "flag"),
    Column("fetched_at", "integer", "fetched_at"),
]


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
    columns = COLUMNS["sites"]
    write_table(folder / SITES_FILE, "jsonl", columns, ([value_of(row, of, config) for of in columns] for row in rows))
    if review is not None:
        (folder / LABELS_FILE).write_bytes(encode_lines(_without_names(labels, Forgotten(log))))
    scores = _scores(log, names.tally_store, rows)
    write_table(folder / "scores.jsonl", "jsonl", _SCORES, scores)
    kept = [column for column in COLUMNS["verdicts"] if column.name != "rules"]
    places = [COLUMNS["verdicts"].index(column) for column in kept]
    verdicts = rows_of(log, "verdicts", ExportWindow(), run, config)
    write_table(folder / "verdicts.jsonl", "jsonl", kept, ([row[place] for place in places] for row in verdicts))
    write_table(
        folder / "rates.jsonl", "jsonl", COLUMNS["rate"], rows_of(log, "rate", ExportWindow(), run or LIVE, config)
    )
    (folder / "ruleset.toml").write_text(control.ruleset_text(of), encoding="utf-8")
    _write_json(folder / RATE_FILE, {**line_fields(rate), "run": shown_run(rate.run)})
    shown = msgspec.structs.replace(config.rate, review=LABELS_FILE if review is not None else "")
    _write_json(folder / SETTINGS_FILE, ReleaseSettings(made_at=now_ms, rate=shown))
    _write_json(folder / "versions.json", _versions(of, now_ms))
    missing = incomplete_before(log, "verdicts", ExportWindow(), run, now_ms)
    (folder / "README.md").write_text(readme(rate, of, sites, config, now_ms, missing), encoding="utf-8")
    (folder / "CITATION.cff").write_text(citation(rate, now_ms), encoding="utf-8")
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
    return [*sites, *(row for of in canaries.values() for row in of)]


def _without_names(labels: Iterable[ReviewLabel], forgotten: Forgotten) -> Iterator[ReviewLabel]:
    """The labels; those of forgotten hosts count on, without name and address."""
    names: dict[str, str] = {}
    for label in labels:
        if forgotten.covers(label.site):
            hidden = (names.setdefault(named, f"forgotten-{len(names)}") for named in (label.site, label.fetch_id))
            label = msgspec.structs.replace(label, **dict(zip(("site", "fetch_id"), hidden, strict=True)))
        yield label


def _scores(log: Log, store: str, rows: Sequence[SiteState]) -> Iterator[list[Any]]:
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
                        yield [*ids, text.score, text.flag, page.fetched_at]


def _versions(run: Run, now_ms: int) -> dict[str, Any]:
    return {
        "made_at": now_ms,
        "farmwatch": program_version(),
        "python": ".".join(map(str, sys.version_info[:3])),
        "libraries": {name: version(name) for name in _LIBRARIES if find_spec(name)},
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
