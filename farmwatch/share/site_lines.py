"""The sites of a run as lists show them: the newest row of each, and what follows from all rows together."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from operator import attrgetter
from typing import Any, NamedTuple

from farmwatch.config.config import Config
from farmwatch.share.current_rate import read_sitemaps, reasons_without_page
from farmwatch.share.review_labels import read_review
from farmwatch.share.site_farm import SiteFarm
from farmwatch.share.site_operators import UNLINKED, SiteOperator, find_site_operators
from farmwatch.tables.columns import Column, columns_of, fields_of
from replay.rows.site_table import read_sites
from replay.runs.lookup import find_run
from scoring.errors import BadSiteNumbers, NoSiteTest
from scoring.estimate.definitions import SITES
from scoring.estimate.reviewed_share import Review
from scoring.rates.farm_signs import FarmSigns
from scoring.rates.site_rates import NEEDS_SCRIPT, is_hidden_by_script
from scoring.rates.split_rates import llm_probabilities
from scoring.rates.terms import counted_at, is_too_old
from scoring.sites.registry import SiteMethod, method_of_text, site_method
from scoring.sites.sprt import SiteTest
from scoring.sites.turn import MOST_BY_CHANCE, has_turned
from stream.log.contract import Log
from stream.schema.control import Control
from stream.schema.records import SiteState
from stream.schema.runs import LIVE
from stream.schema.vocabulary import DECIDED, SiteClass, Truth

DIFFER = "differ"
LABELS = (*Truth, DIFFER)


class SiteLabel(NamedTuple):
    """What people called a site: one of LABELS, or nothing; and how many called it llm and human."""

    label: str = ""
    llm: int = 0
    human: int = 0

    @property
    def dissent(self) -> int:
        """How many differ from most; of a tie, half of them."""
        return min(self.llm, self.human)

    @property
    def words(self) -> str:
        """It as a sentence; nothing without a label."""
        said = "people differ" if self.label == DIFFER else f"people called it {self.label}"
        return (f"{said} ({self.llm} llm, {self.human} human)" if self.dissent else said) if self.label else ""


@dataclass(frozen=True, slots=True)
class ListedSite:
    """A site: its row; its probability of being an LLM site; its label in the review; why it has no page."""

    row: SiteState
    p_llm: float | None
    called: SiteLabel
    no_page: str
    needs: int | None
    now_ms: int
    operator: SiteOperator = UNLINKED

    @property
    def verdict_words(self) -> str:
        """Its verdict for people."""
        return verdict_words(self.row.verdict, self.row.scored)

    @property
    def most_dropped_by(self) -> str:
        """The rule that failed most of its pages, or that they need JavaScript; of a site without a page, why."""
        if is_hidden_by_script(self.row):
            return NEEDS_SCRIPT
        return max(self.row.dropped_by, key=self.row.dropped_by.__getitem__, default=self.no_page)

    @property
    def earlier_verdict(self) -> str:
        """The verdict of the term before, which counts while this one has none."""
        return self.row.former.verdict if self.row.former is not None else ""

    @property
    def turned(self) -> bool:
        """Whether people wrote its articles before ChatGPT, and a model those since."""
        return has_turned(self.row.turn_p)

    @property
    def too_old(self) -> bool:
        """Whether its verdict counts in no share: its term has ended, and the site was not measured again."""
        return is_too_old(counted_at(self.row, self.now_ms))


def _turn_p_text(line: ListedSite) -> str:
    """The p of the test, with the digits that tell it from MOST_BY_CHANCE."""
    p = line.row.turn_p
    return "" if p is None else f"{p:.3f}" if p >= 0.001 else "< .001"


SITE_COLUMNS: list[Column[ListedSite]] = [
    *columns_of(
        SiteState,
        *("id", "former"),
        path="row.",
        verdict={
            **{"total": "count", "values": tuple(SiteClass), "said": lambda line: line.verdict_words},
            "words": ("decided llm", "decided human", "open", "not judged"),
        },
        pages={"total": "sum"},
        articles={"total": "sum"},
        scored={"total": "sum"},
        flagged={"total": "sum"},
        through_segments={"meaning": "scored articles that are none as a whole page: their segments count"},
        control_scored={"meaning": "scored articles of before ChatGPT"},
        before_scored={"meaning": "scored texts from before ChatGPT (2022-11-30), by trusted days of publication"},
        since_scored={"meaning": "and since"},
        turn_p={**{"meaning": "how often chance would make the scores of these differ so much", "said": _turn_p_text}},
        needs_script={"meaning": "pages that ask for JavaScript, and have no text without it"},
        signals={"meaning": "what pays for the site and what it is built with, with the number of pages"},
        pages_used={"meaning": "scored pages on which the verdict rests"},
        llr={"meaning": "their evidence, for llm above 0, for human below"},
    ),
    Column(
        "p_llm",
        "number",
        attrgetter("p_llm"),
        meaning="probability of an LLM site, by the flags of all sites; the verdict is stricter (it bounds how often a"
        " human site is called llm)",
        then_by=attrgetter("row.llr"),  # many are 1.00
    ),
    Column(
        *("label", "text", attrgetter("called.label"), "count"),
        meaning="what people called it in the review in force; differ: as many llm as human",
        values=LABELS,
    ),
    Column("dissent", "integer", attrgetter("called.dissent"), meaning="people who called it otherwise than most"),
    Column(
        "needs",
        "integer",
        attrgetter("needs"),
        meaning="further articles that would decide it, all flagged (llr above 0) or none",
    ),
    Column(
        "most_dropped_by",
        "text",
        attrgetter("most_dropped_by"),
        meaning="the rule that failed most of the site's pages, that they need JavaScript, or why it has none",
    ),
    Column(
        "turned",
        "truth",
        attrgetter("turned"),
        meaning=f"people wrote its articles before ChatGPT, and a model those since (turn_p below {MOST_BY_CHANCE})",
    ),
    Column("too_old", "truth", attrgetter("too_old"), meaning="its term has ended: it counts in no share"),
    Column("no_page", "text", attrgetter("no_page")),
    Column(
        *("operator", "text", attrgetter("operator.name")),
        meaning="the lowest domain of the sites that share an account or a domain with it",
    ),
    Column("operator_sites", "integer", attrgetter("operator.sites"), meaning="how many these are, itself included"),
    Column("operator_ids", "json", lambda line: list(line.operator.ids), meaning="the accounts that its domain shares"),
    Column(
        *("possible_operators", "json", lambda line: dict(line.operator.possible)),
        meaning="operators that share a container of Google Tag Manager with it, and no more",
    ),
    Column("earlier_verdict", "text", attrgetter("earlier_verdict"), meaning="counts until the site has a new one"),
]
SITES_SHOWN = (  # the last are left out first for width
    *("site", "verdict", "too_old", "p_llm", "label", "flagged", "scored", "needs", "articles", "pages"),
    *(
        "most_dropped_by",
        "llr",
        "mixed",
        "turned",
        "earlier_verdict",
        "pages_used",
        "ruleset",
        "digest",
        "detector",
        "epoch",
    ),
)
TURNS_SHOWN = (
    *("site", "before_scored", "before_flagged", "since_scored", "since_flagged", "turn_p", "verdict", "p_llm"),
    *("label", "articles", "digest", "detector"),
)


def site_lines(log: Log, config: Config, run: str, now_ms: int) -> list[ListedSite]:
    """The sites of a run (default: the live one), canaries included, by name. Raises NotFound."""
    rows = read_sites(log, run)
    return _lines_among(rows, rows, log, config, run, now_ms)


def one_site(log: Log, config: Config, run: str, now_ms: int, site: str) -> tuple[ListedSite, SiteFarm] | None:
    """A site of a run, and whether it is a farm; None if it has no row. Raises NotFound."""
    rows = read_sites(log, run)
    lines = _lines_among([row for row in rows if row.site == site], rows, log, config, run, now_ms)
    signs = FarmSigns.of(rows, read_sitemaps(log, site) if lines else {})
    return next(((line, SiteFarm.of(line.row, signs)) for line in lines), None)


def _lines_among(
    shown: Sequence[SiteState], rows: Sequence[SiteState], log: Log, config: Config, run: str, now_ms: int
) -> list[ListedSite]:
    labels, likely = site_labels(read_review(config.rate, now_ms)), llm_probabilities(rows, config.rate, now_ms)
    return lines_of(shown, log, config, now_ms, likely, labels, find_site_operators(rows), run)


def state_of(verdict: str, scored: int) -> str:
    """What a verdict says to people: llm, human, open or not judged."""
    return verdict if verdict in DECIDED else "open" if scored else "not judged"


def verdict_words(verdict: str, scored: int) -> str:
    """As `state_of`: `decided llm`, `decided human`, `open` or `not judged`."""
    return f"decided {verdict}" if verdict in DECIDED else state_of(verdict, scored)


def site_labels(review: Review | None) -> dict[str, SiteLabel]:
    """Site -> what people called it."""
    if review is None:
        return {}
    likely, _, tied = review.truths(SITES)
    labels = {site: str(Truth.LLM if chance >= 0.5 else Truth.HUMAN) for site, chance in likely.items()}
    return {site: SiteLabel(DIFFER if site in tied else label, *review.votes[site]) for site, label in labels.items()}


def lines_of(
    rows: Sequence[SiteState],
    log: Log,
    config: Config,
    now_ms: int,
    likely: Mapping[str, float],
    labels: Mapping[str, SiteLabel],
    operators: Mapping[str, SiteOperator],
    run: str = "",
) -> list[ListedSite]:
    """Some sites of a run; `likely` has the probabilities, which follow from all of its sites, as `operators` do."""
    methods = _methods(log, config, run, {row.detector for row in rows if _is_open(row)})
    no_page = reasons_without_page(log, config, rows, now_ms)
    return [
        ListedSite(
            row,
            likely.get(row.site),
            labels.get(row.site, SiteLabel()),
            no_page.get(row.site, ""),
            _needs(row, methods.get(row.detector)),
            now_ms,
            operators.get(row.site, UNLINKED),
        )
        for row in rows
    ]


def site_fields(line: ListedSite) -> dict[str, Any]:
    """A site as JSON."""
    return fields_of(SITE_COLUMNS, line)


def _methods(log: Log, config: Config, run: str, detectors: Collection[str]) -> dict[str, SiteMethod]:
    """The method of a run for page scores of each of these detectors, as far as it has one."""
    control, methods = Control(log) if detectors else None, dict[str, SiteMethod]()
    stored = find_run(control, run or LIVE).site_method if control is not None and control.runs else ""
    for detector in detectors:
        with suppress(NoSiteTest, BadSiteNumbers):
            methods[detector] = method_of_text(stored) if stored else site_method(config.tally, detector)
    return methods


def _is_open(row: SiteState) -> bool:
    return row.verdict not in DECIDED and row.scored > 0


def _needs(row: SiteState, method: SiteMethod | None) -> int | None:
    if not (_is_open(row) and isinstance(method, SiteTest)):
        return None
    if row.method_digest not in ("", method.digest):
        return None
    return method.needs(row.llr, row.pages_used)
