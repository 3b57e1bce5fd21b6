"""The Python API: the lists of a log as Arrow tables, and the stages as functions on values.

The functions read and give the lines of the pipes of the same names: structs with those fields. Where they take rows,
these are such structs, dicts, or a table with such columns, as Arrow, pandas or Polars.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Self

from farmwatch.archive.tables import ExportWindow, What, columns_of_table, incomplete_before, rows_of
from farmwatch.config.config import Config, load
from farmwatch.config.detector_config import caveats
from farmwatch.config.opening import open_checked
from farmwatch.pipes.lines import FeaturesLine, PageLine, VerdictLine, judge_features, measure_page
from farmwatch.pipes.rows import Row, each_of, rows_as
from farmwatch.pipes.score_lines import ScoreLine, ShareEstimate, flags_of, judge_sites, score_texts
from farmwatch.share.current_rate import current_rate
from farmwatch.share.page_lines import PAGE_COLUMNS, page_lines
from farmwatch.share.review_labels import read_review
from farmwatch.share.words import share_columns
from farmwatch.tables.arrow import arrow_table, load_pyarrow
from filters.rules.ruleset import load_ruleset
from filters.settings import MeasureSettings
from scoring.detectors.registry import load_detectors
from scoring.detectors.settings import ScoreSettings
from scoring.estimate.definitions import BY_LABELS, FARM, OF_RESULTS, OF_ROWS, SITES
from scoring.estimate.error_counts import ErrorCounts
from scoring.interface import name_of
from scoring.rates.canary import is_canary
from scoring.rates.groups import SPLITS
from scoring.rates.results import RESULT_SPLITS
from scoring.rates.settings import RateSettings
from scoring.sites.settings import TallySettings
from scoring.stages.pipes import FlagLine, SiteVerdictLine, TallyLine, TextLine, estimate_sites
from stream.log.contract import Log, wall_ms
from stream.processing.topic_reader import UnreadableCounter, reporting_to
from stream.text.user_errors import UsageError
from stream.text.wording import counted, moment

if TYPE_CHECKING:
    import pyarrow

_MEASURE, _SCORE, _TALLY = MeasureSettings(), ScoreSettings(), TallySettings()


def open_log(url: str, *, config: str | Path | None = None) -> OpenLog:
    """Open a log, sqlite:FOLDER or kafka:HOST:PORT, for reading; close it, or use it in a `with` block.

    `config` is the configuration file; by default the one that `farmwatch` would read here. Raises FarmwatchError if
    there is no log, and without pyarrow.
    """
    load_pyarrow()
    loaded = load(None if config is None else Path(config), [f"log.url={url}"])
    _warn(loaded.warnings)
    return OpenLog(open_checked(loaded.config), loaded.config)


class OpenLog:
    """The lists of a log, as they are at each call: Arrow tables with the columns of an export.

    `run` is the name of a run; by default the one that is live. Times are milliseconds since 1970, UTC; lists in cells
    are JSON text. What is missing or of doubtful worth is a Python warning.
    """

    def __init__(self, log: Log, config: Config) -> None:
        self.config = config
        self._log = log

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        self._log.close()

    def share(self, by: str = "", *, of: str = SITES, run: str = "") -> pyarrow.Table:
        """The share with its interval and denominators, a row per group of `by`, ruleset, detector and site method.

        `by` and `of` are those of `farmwatch rate`.
        """
        splits = RESULT_SPLITS if of in OF_RESULTS else SPLITS
        for name, value, known in (("by", by, ("", *splits)), ("of", of, (*OF_ROWS, *OF_RESULTS, *BY_LABELS, FARM))):
            if value not in known:
                raise UsageError(f"share({name}={value!r}): there are {', '.join(filter(None, known))}")
        with _unreadable():
            rate = current_rate(self._log, self.config, wall_ms(), by=by, of=of, run=run)
        said = caveats(self.config, (line.detector for line in rate.lines))
        return arrow_table(share_columns(said), rate.lines)

    def sites(self, *, run: str = "") -> pyarrow.Table:
        """A row per site: its verdict and the evidence."""
        return self._table("sites", run)

    def pages(self, site: str = "", *, run: str = "") -> pyarrow.Table:
        """A row per page, of all sites or of one host: an article or not, why, and its score."""
        with _unreadable():
            lines = page_lines(self._log, self.config, run, site)
            return arrow_table(PAGE_COLUMNS, (line for line in lines if site or not is_canary(line.site)))

    def verdicts(self, *, run: str = "") -> pyarrow.Table:
        """A row per verdict on a page, with each rule's outcome."""
        return self._table("verdicts", run)

    def scores(self) -> pyarrow.Table:
        """A row per score of a text, of all detectors and runs."""
        return self._table("scores")

    def hits(self) -> pyarrow.Table:
        """A row per search result."""
        return self._table("hits")

    def _table(self, what: What, run: str = "") -> pyarrow.Table:
        window, now_ms = ExportWindow(), wall_ms()
        if removed := incomplete_before(self._log, what, window, run, now_ms):
            _warn([f"retention has removed {what} from before {moment(removed)}: they are missing here"])
        with _unreadable():
            rows = rows_of(self._log, what, window, run, self.config, now_ms)
            return arrow_table(columns_of_table(what, self.config.measure.max_html_bytes), rows)


def measure(html: str, url: str, settings: MeasureSettings = _MEASURE, *, site: str = "") -> FeaturesLine:
    """The features of one page, as if it were the first of its site. Nothing bounds the time that a hostile page takes.

    Raises UnusableUrl, MissingExtra, BadModel.
    """
    return measure_page(PageLine(url=url, html=html, site=site), settings)


def judge(features: Row, ruleset: str | Path = "default") -> VerdictLine:
    """The verdict of a ruleset, a shipped one or a TOML file; `article` is the text to score, None of a dropped page.

    Raises BadRuleset, BadFeatures.
    """
    (line,) = rows_as(FeaturesLine, [features])
    return judge_features(line, load_ruleset(ruleset))


def score(texts: Iterable[str | Row], settings: ScoreSettings = _SCORE) -> list[ScoreLine]:
    """A score per text and detector; the id of a plain text is its place, from 0. Detectors are loaded in each call.

    Rows are articles of `judge`, or have id and text, perhaps site and url. Raises as `farmwatch lab score`.
    """
    if isinstance(texts, str):
        raise UsageError("score takes a list of texts, not one text")
    detectors = load_detectors(settings)
    _warn(f"{name_of(detector.identity)}: {detector.warning}" for detector in detectors)
    given = enumerate(each_of(texts))
    named = [TextLine(id=str(place), text=text) if isinstance(text, str) else text for place, text in given]
    return score_texts(list(rows_as(TextLine, named)), detectors)


def tally(scores: Iterable[Row], detector: str = "", settings: TallySettings = _TALLY) -> list[TallyLine]:
    """Site verdicts of page scores, in page order: rows with site, score, flag and perhaps detector.

    `detector` chooses one, by name or identity, where rows name several. Raises UsageError, NoSiteTest, BadSiteNumbers.
    """
    flags = flags_of(list(rows_as(FlagLine, scores)), detector)
    if flags.unnamed:
        raise UsageError(f"row {flags.unnamed[0]} names no detector, and others do: give detector=")
    if flags.others:
        _warn([f"{counted(flags.others, 'score')} of other detectors than {flags.detector} left out"])
    return judge_sites(flags, settings)


def estimate(
    sites: Iterable[Row], errors: ErrorCounts | None = None, confidence: float = 0.95, review: str | Path = ""
) -> ShareEstimate:
    """The share of sites: rows with verdict, perhaps site, scored, flagged, queries. `errors` correct the judged share.

    `review`: a file or folder of labels, as in rate.review.

    Raises PooledDetectors for rows of several runs, rulesets, detectors or site methods; BadParameters, UsageError.
    """
    labels = read_review(RateSettings(review=str(review)), wall_ms())
    return ShareEstimate.of_line(estimate_sites(rows_as(SiteVerdictLine, sites), errors, confidence, labels))


@contextmanager
def _unreadable() -> Iterator[None]:
    """Warn of records that could not be read."""
    counter = UnreadableCounter()
    with reporting_to(counter):
        yield
    _warn(counter.lines())


def _warn(said: Iterable[str]) -> None:
    for text in said:
        warnings.warn(text, stacklevel=3)
