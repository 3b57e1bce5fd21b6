r"""The share of articles by language models, by their day of publication: back to the first articles still online.

Of the articles of a period the detector flags the part f. Of human articles it flags p0, of those by a model Se, so

    share = (f - p0) / (Se - p0).

p0 is measured on the control pages of the same sites: human by their dates. With too few of them it is that of a
mixture, and so is Se always. The mixture is of the years of sites since ChatGPT: a site that turned has texts of both
kinds, and as a whole it would make a model's texts look seldom flagged. The interval draws f and p0 from the Beta
distribution of as many independent texts as their registrable domains are worth (`scoring.statistics.shares`, with
Jeffreys' prior), and Se from the uncertainty of the mixture. A plain bootstrap over domains has no width where nothing
is flagged.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, NamedTuple

import msgspec

from scoring.rates.canary_counts import recent_canaries
from scoring.rates.controls import archived
from scoring.rates.cuts import cut_rows
from scoring.rates.direct_share import WIDEST, cells_of, known_sites, share_of_rows
from scoring.rates.split_rates import RateQuery
from scoring.rates.terms import changed_row
from scoring.rates.versions import Versions, comparable
from stream.schema.control_sites import real_host
from stream.schema.records import SiteState

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from scoring.estimate.fit import Fit

QUARTER, YEAR = PUBLISHED_SPLITS = ("published", "published-year")
FEWEST_CONTROLS = 15  # sites with control pages: with as many the beta-binomial of sites covers .91
CONTROLS, MIXTURE = "controls", "mixture"  # sources of p0
_FIRST_YEAR = "2023"  # after ChatGPT
_DRAWS = 4000
_SEED = 1
_PLACES = 6


class PublishedLine(msgspec.Struct, frozen=True, kw_only=True):
    """The articles of one period, of sites of the same versions."""

    by: str  # one of PUBLISHED_SPLITS
    group: str  # 2021-Q3 or 2021
    share: (
        float | None
    )  # of these articles that is by a model; None: too wide an interval, or the detector does not tell
    low: float | None
    high: float | None
    articles: int  # scored texts with a trusted day of publication in the period
    flagged: int
    sites: int
    domains: int
    site_share: float | None  # of these sites, by these articles alone; None: too few, or too wide an interval
    site_low: float | None
    site_high: float | None
    p0: float  # flagged part of human articles
    p0_by: str  # CONTROLS or MIXTURE
    se: float  # flagged part of a model's
    confidence: float
    run: str
    ruleset: str
    digest: str
    detector: str
    site_method: str
    site_method_digest: str


class Dated(NamedTuple):
    """A row with its scored and flagged texts of a period, and its registrable domain."""

    row: SiteState
    scored: int
    flagged: int
    domain: str


class Errors(NamedTuple):
    """How often the detector flags articles by people and by a model, with draws of both."""

    p0: float
    p0_by: str
    se: float
    drawn_p0: NDArray[np.float64]
    drawn_se: NDArray[np.float64]


class Period(NamedTuple):
    """The articles of a period, with the share by a model and its interval; None as in `PublishedLine`."""

    name: str
    members: Sequence[Dated]
    versions: Versions
    errors: Errors
    fit: Fit
    share: float | None
    low: float | None
    high: float | None


def published_lines(rows: Sequence[SiteState], query: RateQuery, least: int = 1) -> Iterator[PublishedLine]:
    """The periods of `query.by`, of sites that have at least `least` articles of the period, per versions."""
    return (_line(period, query) for period in published_periods(rows, query, least))


def published_periods(rows: Sequence[SiteState], query: RateQuery, least: int = 1) -> Iterator[Period]:
    """As `published_lines`, without the shares of sites, which take longer."""
    confidence = query.settings.confidence
    for versions, of_versions in comparable(rows, query.run):
        counted, _ = cut_rows(of_versions, "", query.cut, query.settings.groups, query.now_ms)
        if not any(row.quarters for row in counted):
            continue
        from scoring.estimate.clusters import domains_of
        from scoring.estimate.fit import WIDE
        from scoring.estimate.mixture import estimate_share

        with_controls = [*counted, *archived(of_versions)]
        known = known_sites(recent_canaries(query.settings, of_versions, query.now_ms), with_controls)
        fit = estimate_share(_site_years(counted), WIDE, known, confidence)
        hosts = [real_host(row.site) for row in with_controls]
        domains = dict(zip((row.site for row in with_controls), domains_of(hosts.__iter__), strict=True))
        assert fit is not None  # a site with a quarter has a scored text
        errors = _errors(with_controls, domains, fit)
        for name, every in sorted(_periods(counted, domains, query.by == YEAR).items()):
            members = [dated for dated in every if dated.scored >= least]
            if members:
                yield Period(name, members, versions, errors, fit, *_share(name, members, errors, fit, confidence))


def _site_years(rows: Sequence[SiteState]) -> Counter[tuple[int, int]]:
    """Years of sites since ChatGPT by their scored and flagged texts; whole sites if no text is so new."""
    cells: Counter[tuple[int, int]] = Counter()
    for row in rows:
        years = Counter[str](), Counter[str]()
        for quarter, counts in row.quarters.items():
            for of, number in zip(years, counts, strict=True):
                of[quarter[:4]] += number
        cells.update((scored, years[1][year]) for year, scored in years[0].items() if year >= _FIRST_YEAR)
    return cells or cells_of(rows)


def _periods(rows: Sequence[SiteState], domains: Mapping[str, str], by_year: bool) -> dict[str, list[Dated]]:
    periods: dict[str, list[Dated]] = {}
    for row in rows:
        counts: dict[str, list[int]] = {}
        for quarter, (scored, flagged) in row.quarters.items():
            of = counts.setdefault(quarter[:4] if by_year else quarter, [0, 0])
            of[0] += scored
            of[1] += flagged
        for period, (scored, flagged) in counts.items():
            periods.setdefault(period, []).append(Dated(row, scored, flagged, domains[row.site]))
    return periods


def _errors(rows: Sequence[SiteState], domains: Mapping[str, str], fit: Fit) -> Errors:
    import numpy as np

    rng = np.random.default_rng(_SEED)
    mean, precision = fit.components
    spread = np.linalg.solve(np.linalg.cholesky(precision).T, rng.standard_normal((len(mean), _DRAWS)))
    a, b, c, d = np.exp(mean[:, None] + spread)
    p0, se = fit.components.flagged
    controls = [
        Dated(row, row.control_scored, row.control_flagged, domains[row.site]) for row in rows if row.control_scored
    ]
    if len(controls) < FEWEST_CONTROLS:
        return Errors(p0, MIXTURE, se, a / (a + b), c / (c + d))
    p0, drawn = _flagged(controls, rng)
    return Errors(p0, CONTROLS, se, drawn, c / (c + d))


def _flagged(parts: Sequence[Dated], rng: np.random.Generator) -> tuple[float, NDArray[np.float64]]:
    """The flagged part of these texts, and draws of it in which whole domains vary."""
    import numpy as np

    from scoring.statistics.shares import effective_number

    _, codes = np.unique([part.domain for part in parts], return_inverse=True)
    texts = np.repeat(codes, [part.scored for part in parts])
    hits = np.concatenate([np.arange(part.scored) < part.flagged for part in parts])
    share = float(hits.mean())
    number = effective_number(hits, share, texts, np.ones(len(hits)))
    return share, rng.beta(number * share + 0.5, number * (1 - share) + 0.5, _DRAWS)


def _share(
    name: str, members: Sequence[Dated], errors: Errors, fit: Fit, confidence: float
) -> tuple[float | None, float | None, float | None]:
    import numpy as np

    from scoring.estimate.doubts import kinds_not_told_apart

    if kinds_not_told_apart(fit) or errors.se <= errors.p0:
        return None, None, None
    part, drawn = _flagged(members, np.random.default_rng([_SEED, *name.encode()]))
    share = min(max((part - errors.p0) / (errors.se - errors.p0), 0.0), 1.0)
    apart = np.maximum(errors.drawn_se - errors.drawn_p0, 1e-9)
    tail = (1 - confidence) / 2
    low, high = np.quantile(np.clip((drawn - errors.drawn_p0) / apart, 0, 1), [tail, 1 - tail]).tolist()
    low, high = round(min(low, share), _PLACES), round(max(high, share), _PLACES)
    return (round(share, _PLACES) if high - low <= WIDEST else None), low, high


def _line(period: Period, query: RateQuery) -> PublishedLine:
    of_period = [changed_row(of.row, {"scored": of.scored, "flagged": of.flagged}) for of in period.members]
    of_sites, _ = share_of_rows(of_period, None, query.settings.confidence, period.fit)
    return PublishedLine(
        by=query.by,
        group=period.name,
        share=period.share,
        low=period.low,
        high=period.high,
        articles=sum(of.scored for of in period.members),
        flagged=sum(of.flagged for of in period.members),
        sites=len(period.members),
        domains=len({of.domain for of in period.members}),
        site_share=of_sites.share,
        site_low=of_sites.low,
        site_high=of_sites.high,
        p0=round(period.errors.p0, _PLACES),
        p0_by=period.errors.p0_by,
        se=round(period.errors.se, _PLACES),
        confidence=query.settings.confidence,
        **period.versions._asdict(),
    )
