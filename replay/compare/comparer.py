"""Compares two runs of a log; each topic is read once."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np

from replay.compare.comparison import (
    DISAGREEMENTS_NAMED,
    SITES_NAMED,
    Comparison,
    JudgedShare,
    RuleChange,
    Side,
    TextFlags,
)
from replay.compare.flips import sample_of
from replay.compare.run_pair import ComparedRun, RunPair, SiteRows, find_compared_run, in_same_terms, read_site_rows
from replay.compare.site_changes import BootstrapSettings, DirectFit, DirectPair, PairedSites, share_of_run
from replay.compare.text_flags import text_flags
from replay.compare.verdict_join import SharedTexts, VerdictJoin, join
from replay.runs.window import run_window
from scoring.estimate.fit import Cell
from scoring.estimate.reviewed_share import Review
from scoring.estimate.share_change import NO_CELL
from scoring.rates.canary_counts import CanarySummary, Correction, by_canaries, recent_canaries
from scoring.rates.controls import archived
from scoring.rates.direct_share import known_sites
from scoring.rates.settings import RateSettings
from scoring.rates.site_rates import SiteRate, site_rate, without_a_page
from stream.log.contract import Log
from stream.schema.control import Control
from stream.schema.records import RuleOutcome, SiteState
from stream.schema.vocabulary import SiteClass, Truth

NO_THRESHOLD = "no threshold"  # the condition of a disabled rule
_OTHER_WINDOW_SHARE = 0.01  # of fetches judged by one run only; above it the windows cause differences too


class ComparisonRequest(NamedTuple):
    """The parameters of a comparison besides the two runs."""

    sample: int
    seed: int
    resamples: int = 2000


class _Rated(NamedTuple):
    """The site rows of a run, with the rate that `farmwatch rate` computes from them."""

    sites: SiteRows
    direct: DirectFit
    judged: SiteRate
    canaries: CanarySummary
    correction: Correction
    controls: Mapping[str, SiteState]  # sites, and control sites of archives, with control pages


def compare(
    log: Log,
    a: str,
    b: str,
    request: ComparisonRequest,
    settings: RateSettings,
    now_ms: int,
    review: Review | None = None,
) -> Comparison:
    """Compare the verdicts and the rates of the runs `a` and `b`; with a `review` the shares use its labels."""
    control = Control(log)
    runs = find_compared_run(log, control, a), find_compared_run(log, control, b)
    newest = (read_site_rows(log, r.names.sites, r.newest.digest, r.run.detector) for r in runs)
    rows_a, rows_b = in_same_terms(log, runs, *newest)
    rated = _rated(rows_a, settings, now_ms, review), _rated(rows_b, settings, now_ms, review)
    detectors = rows_a.detector or runs[0].run.detector, rows_b.detector or runs[1].run.detector
    is_apart = detectors[0] != detectors[1]
    joined = join(log, runs, seed=request.seed, sample=request.sample, with_texts=is_apart)
    strata, sample = sample_of(log, joined, runs, request.sample)
    alone = joined.pages.only_in_a + joined.pages.only_in_b
    differ = joined.flips or joined.changed_reasons or joined.other_class or joined.other_text or alone
    is_many = alone > _OTHER_WINDOW_SHARE * (joined.pages.common + alone)
    sites = PairedSites(rows_a.rows, rows_b.rows)
    rules, only_in_a, only_in_b = _rule_changes(runs, joined)
    identical = _same_inputs(runs, rated) and not differ and sites.equal
    verdicts = zip(joined.verdicts, joined.other_verdicts, strict=True)
    side_a, side_b = (_side(*of_run) for of_run in zip(runs, rated, sites.totals(), verdicts, strict=True))
    human, llm = _canary_pairs(rated[0].canaries, rated[1].canaries)
    human += _control_pairs(rated[0].controls, rated[1].controls)
    bootstrap = BootstrapSettings(request.seed, request.resamples, settings.confidence, identical)
    direct = DirectPair(rated[0].direct, rated[1].direct, human, llm, review)
    return Comparison(
        at=now_ms,
        a=side_a,
        b=side_b,
        identical=identical,
        pages=joined.pages,
        sites=sites.cells,
        rules=rules,
        only_in_a=only_in_a,
        only_in_b=only_in_b,
        changes=sites.changes(bootstrap, direct),
        strata=strata,
        sample=sample,
        sample_size=request.sample,
        seed=request.seed,
        resamples=request.resamples,
        confidence=settings.confidence,
        corrections=[each.correction for each in rated],
        other_windows=is_many and run_window(runs[0].run) != run_window(runs[1].run),
        changed_sites=sites.changed(SITES_NAMED),
        flags=_flags(log, joined, detectors, runs[1].names.verdicts) if is_apart else None,
    )


def _flags(log: Log, joined: VerdictJoin, detectors: tuple[str, str], verdicts: str) -> TextFlags:
    shared = SharedTexts(*map(np.concatenate, zip(*joined.shared_texts, strict=True)))
    return text_flags(log, shared, detectors, verdicts, DISAGREEMENTS_NAMED)


def _rule_changes(runs: RunPair, joined: VerdictJoin) -> tuple[list[RuleChange], list[str], list[str]]:
    """Each rule with the pages that it let in and threw out; the rules in force in one run only."""
    of_a, of_b = ({rule.name: rule for rule in run.newest.rules} for run in runs)
    changes = [
        RuleChange(
            rule=rule,
            threshold_a=condition(of_a.get(rule)),
            threshold_b=condition(of_b.get(rule)),
            **joined.let_in.of(rule, "let_in"),
            **joined.thrown_out.of(rule, "thrown"),
        )
        for rule in of_b | of_a
    ]
    in_a, in_b = ([name for name, rule in of.items() if rule.threshold is not None] for of in (of_a, of_b))
    return changes, [name for name in in_a if name not in in_b], [name for name in in_b if name not in in_a]


def _rated(sites: SiteRows, settings: RateSettings, now_ms: int, review: Review | None) -> _Rated:
    canaries = recent_canaries(settings, sites.canaries, now_ms)
    correction = by_canaries(canaries, sites.rows.values())
    rows = [sites.rows[site] for site in sorted(sites.rows)]
    controls = {row.site: row for row in (*rows, *archived(sites.canaries)) if row.control_scored}
    direct = share_of_run(rows, settings.confidence, review, known_sites(canaries, controls.values()))
    verdicts = Counter(row.verdict for row in rows)
    judged = site_rate(verdicts, correction.errors, settings.confidence, sum(map(without_a_page, rows)))
    return _Rated(sites, direct, judged, canaries, correction, controls)


def _control_pairs(a: Mapping[str, SiteState], b: Mapping[str, SiteState]) -> Counter[tuple[Cell, Cell]]:
    """The control pages of each site in both runs."""
    of_a, of_b = ({site: (row.control_scored, row.control_flagged) for site, row in of.items()} for of in (a, b))
    return Counter((of_a.get(site, NO_CELL), of_b.get(site, NO_CELL)) for site in of_a | of_b)


def _canary_pairs(a: CanarySummary, b: CanarySummary) -> list[Counter[tuple[Cell, Cell]]]:
    """The cells of both runs for each canary: human canaries, then LLM canaries."""
    pairs: list[Counter[tuple[Cell, Cell]]] = []
    for truth in Truth:
        of_a, of_b = ({row.site: (row.scored, row.flagged) for row in run.rounds[truth]} for run in (a, b))
        pairs.append(Counter((of_a.get(site, NO_CELL), of_b.get(site, NO_CELL)) for site in of_a | of_b))
    return pairs


def _same_inputs(runs: RunPair, rated: tuple[_Rated, _Rated]) -> bool:
    """Whether features, rules, detector, site method and correction (each run has its own canaries) are the same."""
    a, b = (
        (run.newest.digest, run.names.features, one.sites.detector, one.sites.site_method, one.correction.errors)
        for run, one in zip(runs, rated, strict=True)
    )
    return a == b


def _side(run: ComparedRun, rated: _Rated, totals: Mapping[str, int], verdicts: tuple[int, int]) -> Side:
    kinds = Counter(row.verdict for row in rated.sites.rows.values())
    judged = rated.judged
    return Side(
        run=run.run.shown,
        ruleset=run.newest.ruleset,
        digest=run.newest.digest,
        detector=rated.sites.detector or run.run.detector,
        epoch=run.newest.epoch,
        site_method=rated.sites.site_method,
        state=run.state,
        progress=run.progress,
        from_at=run.run.from_at,
        to_at=run.run.to_at,
        verdicts=verdicts[0],
        other_verdicts=verdicts[1],
        sites=len(rated.sites.rows),
        **{kind: kinds[kind] for kind in SiteClass},
        other_sites=rated.sites.left_out,
        **totals,
        estimate=rated.direct[0],
        judged=JudgedShare(
            share=judged.rate, low=judged.low, high=judged.high, method=judged.method, remarks=judged.remarks
        ),
    )


def condition(rule: RuleOutcome | None) -> str:
    """The condition that a page must meet, such as ">= 50"; "" without the rule."""
    if rule is None:
        return ""
    return NO_THRESHOLD if rule.threshold is None else f"{rule.op} {value_text(rule.threshold)}"


def value_text(value: Any) -> str:
    """A value or a threshold as text."""
    if isinstance(value, list):
        return ", ".join(map(str, value))
    return f"{value:.6g}" if isinstance(value, float) else str(value)
