"""The series of shares by day of publication, and what to say beside it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import NamedTuple

from farmwatch.config.config import Config
from farmwatch.tables.columns import Column, columns_of
from replay.rows.site_table import read_rows
from replay.runs.lookup import names_to_read
from scoring.rates.canary import is_canary
from scoring.rates.cuts import Cut
from scoring.rates.published import CONTROLS, FEWEST_CONTROLS, PublishedLine, published_lines
from scoring.rates.split_rates import RateQuery
from stream.log.contract import Log
from stream.schema.dates import CHATGPT
from stream.text.wording import counted

_MEANINGS = {
    "share": "of the period's articles by a language model",
    "site_share": "LLM sites among the period's sites, by these articles",
    "p0": "flagged part of human articles",
    "se": "flagged part of a model's",
}
PUBLISHED_SHOWN = (
    *("group", "share", "low", "high", "articles", "flagged", "sites", "domains"),
    *("site_share", "site_low", "site_high", "p0", "p0_by", "se", "ruleset", "digest", "detector"),
)


class PublishedRate(NamedTuple):
    """The periods, with the scored articles behind them."""

    lines: list[PublishedLine]
    scored: int  # articles
    dated: int  # different texts of them with a trusted day

    def notes(self) -> Iterator[str]:
        """What a reader must know of the series."""
        if not self.scored:
            yield "no scored article yet"
            return
        yield (
            f"{counted(self.dated, 'different text')} with a trusted day of publication, of"
            f" {counted(self.scored, 'scored article')}: no random sample of them"
        )
        yield (
            "an old article is one that is still online and ranked, and one that was dated anew counts at its new day:"
            " docs/explanation/dates.md"
        )
        if any(line.p0_by == CONTROLS for line in self.lines):
            yield (
                f"before {CHATGPT} the share is about 0 by construction, because p0 is of control pages, which are"
                " such articles: only differences between these periods tell of the detector"
            )
        if any(line.p0_by != CONTROLS for line in self.lines):
            yield f"fewer than {FEWEST_CONTROLS} sites with control pages: p0 is that of the mixture of all sites"


def published_rate(log: Log, config: Config, now_ms: int, *, by: str, cut: Cut, run: str, least: int) -> PublishedRate:
    """The series of a run (default: the live one). Raises NotFound."""
    rows = read_rows(log, names_to_read(log, run).sites)
    lines = list(published_lines(rows, RateQuery(by=by, settings=config.rate, now_ms=now_ms, cut=cut, run=run), least))
    named = [row for row in cut.of(rows, config.rate.groups) if not is_canary(row.site)]
    dated = sum(scored for row in named for scored, _ in row.quarters.values())
    return PublishedRate(lines, sum(row.scored for row in named), dated)


def published_columns(warnings: Mapping[str, str]) -> list[Column[PublishedLine]]:
    """The columns of the series: `warnings` are those of the detectors, by identity."""
    warning: Column[PublishedLine] = Column("warning", "text", lambda line: warnings[line.detector])
    columns: list[Column[PublishedLine]] = columns_of(PublishedLine)
    return [*(replace(column, meaning=_MEANINGS.get(column.name, "")) for column in columns), warning]
