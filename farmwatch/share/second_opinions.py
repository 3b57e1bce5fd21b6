"""What the detectors of runs beside the live one say of its sites, in numbers and in a sentence."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from farmwatch.share.words import short_share
from replay.runs.lookup import second_runs
from scoring.rates.second_opinion import SecondOpinion, second_opinion
from scoring.rates.settings import RateSettings
from scoring.rates.split_rates import RateLine, RateQuery, rate_lines
from stream.schema.control import Control
from stream.schema.records import SiteState
from stream.schema.runs import Run
from stream.text.wording import counted


def second_opinions(
    control: Control,
    first: RateLine,
    rows: Sequence[SiteState],
    rows_of: Callable[[Run], Sequence[SiteState]],
    settings: RateSettings,
    now_ms: int,
) -> Iterator[SecondOpinion]:
    """The opinion of each run beside the live one; `first` and `rows` are of the live one, `rows_of` gives a run's."""
    for run in second_runs(control):
        others = rows_of(run)
        query = RateQuery(settings=settings, now_ms=now_ms, run=run.name)
        lines = [
            line for line in rate_lines(others, query) if (line.digest, line.detector) == (first.digest, run.detector)
        ]
        if lines:  # of several site methods, that of most sites
            second = max(lines, key=lambda line: line.scored_sites)
            versions = [row for row in others if row.ruleset == "" or row.method_digest == second.site_method_digest]
            yield second_opinion(first, second, rows, versions, settings, now_ms)


def opinion_words(opinion: SecondOpinion) -> str:
    """The second detector's share and its difference from the judging one, in a line."""
    line = opinion.line
    said = f"second detector (run {line.run}): {short_share(line)}"
    if opinion.difference is not None:
        said += f"; of {counted(opinion.both, 'site')} the first flags {_points(opinion.difference)} more than it"
        if opinion.explained is not None and opinion.within is not None:
            said += f", known sites explain {_points(opinion.explained)}, give or take {100 * opinion.within:.1f}"
    return f"{said}; the two part" if opinion.parts else said


def _points(share: float) -> str:
    return f"{100 * share:+.1f} points"
