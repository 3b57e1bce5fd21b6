"""Compare two runs of a log: everything that `Comparison` holds, found by reading each topic once."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import Any, NamedTuple

from replay.compare.comparison import SITES_NAMED, Comparison, JudgedShare, RuleChange, Side
from replay.compare.flips import sample_of
from replay.compare.run_pair import Chosen, choose
from replay.compare.site_changes import DirectFit, DirectPair, Drawing, PairedSites
from replay.compare.site_rows import SiteRows, read_site_rows
from replay.compare.verdict_join import Joined, join
from replay.runs.overview import LIVE_NOW
from replay.runs.window import run_window
from scoring.rates.canary import HUMAN_TRUTH, LLM_TRUTH
from scoring.rates.canary_counts import CanarySummary, Correction, errors_in_force, recent_canaries
from scoring.rates.direct_share import direct_share, known_sites
from scoring.rates.error_counts import ErrorCounts
from scoring.rates.paired_bootstrap import RunErrors
from scoring.rates.settings import RateSettings
from scoring.rates.share_change import NO_CELL, PairedCells
from scoring.rates.site_rates import SiteRate, site_rate
from stream.log.contract import Log
from stream.schema.control import Control
from stream.schema.records import RuleOutcome
from stream.schema.vocabulary import HUMAN, LLM, UNCLASSIFIABLE, UNDECIDED
from stream.text.wording import counted

NO_THRESHOLD = "no threshold"  # the condition of a rule that is disabled
_MANY = 0.01  # share of fetches judged by one run only, above which differences also come from the windows
CHANGES = ("share", "site_rate", "site_rate_decided", "article_share", "flagged_share")


class ComparisonRequest(NamedTuple):
    """What is asked of a comparison beside the two runs."""

    sample: int
    seed: int
    resamples: int


class _Rated(NamedTuple):
    """A run's sites, and the rate that `farmwatch rate` gives of them."""

    found: SiteRows
    direct: DirectFit
    judged: SiteRate
    canaries: CanarySummary
    correction: Correction


def compare(log: Log, a: str, b: str, asked: ComparisonRequest, settings: RateSettings, now_ms: int) -> Comparison:
    """What the runs `a` and `b` say of the same pages and sites, and what that does to the rate.

    Raises NotFound for a run that is not there or has judged nothing, and as `Log.read`.
    """
    control = Control(log)
    runs = choose(log, control, a), choose(log, control, b)
    joined = join(log, runs, seed=asked.seed, sample=asked.sample)
    rated = _rated(log, runs[0], settings, now_ms), _rated(log, runs[1], settings, now_ms)
    direct = DirectPair(rated[0].direct, rated[1].direct, *_known_pairs(rated[0].canaries, rated[1].canaries))
    sites = PairedSites(rated[0].found.rows, rated[1].found.rows)
    apart = joined.flips or joined.changed_reasons or joined.pages.only_in_a or joined.pages.only_in_b
    identical = _one_by_construction(runs, rated) and not apart and sites.equal
    drawing = Drawing(asked.seed, asked.resamples, settings.confidence, identical)
    of_a, of_b = (one.correction.errors for one in rated)
    errors = None if of_a is None or of_b is None else RunErrors(of_a, of_b, shared=settings.errors is not None)
    names = [*CHANGES[:2], *(["site_rate_corrected"] if errors is not None else []), *CHANGES[2:]]
    strata, sample = sample_of(log, joined, runs, asked.sample)
    first = _side(runs[0], rated[0], sites, 0, joined)
    second = _side(runs[1], rated[1], sites, 1, joined)
    return Comparison(
        at=now_ms,
        a=first,
        b=second,
        identical=identical,
        pages=joined.pages,
        sites=sites.cells,
        rules=_rules(runs, joined),
        only_in_a=_only(runs[0].newest.rules, runs[1].newest.rules),
        only_in_b=_only(runs[1].newest.rules, runs[0].newest.rules),
        changes=sites.changes(names, drawing, direct, errors),
        groups=sites.groups(drawing, direct),
        strata=strata,
        sample=sample,
        sample_size=asked.sample,
        seed=asked.seed,
        resamples=asked.resamples,
        confidence=settings.confidence,
        notes=[*_notes(first, second, runs, joined), *_correction_notes(rated)],
        other_windows=_other_windows(runs, joined),
        changed_sites=sites.changed(SITES_NAMED),
    )


def _rated(log: Log, run: Chosen, settings: RateSettings, now_ms: int) -> _Rated:
    found = read_site_rows(log, run.names.sites, run.newest.digest, run.run.detector)
    correction = errors_in_force(settings, found.canaries, now_ms, found.rows.values())
    canaries = recent_canaries(settings, found.canaries, now_ms)
    cells = Counter((row.scored, row.flagged) for row in found.rows.values() if row.scored)
    direct = direct_share(cells, known_sites(canaries), settings.confidence)
    without_pages = sum(row.verdict == UNCLASSIFIABLE and row.pages == 0 for row in found.rows.values())
    judged = site_rate(
        (row.verdict for row in found.rows.values()),
        correction.errors,
        settings.confidence,
        without_pages,
        settings.half_width,
    )
    return _Rated(found, direct, judged, canaries, correction)


def _known_pairs(a: CanarySummary, b: CanarySummary) -> list[PairedCells]:
    """Of human and of LLM canaries, what both runs found of each."""
    pairs: list[PairedCells] = []
    for truth in (HUMAN_TRUTH, LLM_TRUTH):
        of_a, of_b = ({row.site: (row.scored, row.flagged) for row in run.rounds[truth]} for run in (a, b))
        pairs.append(Counter((of_a.get(site, NO_CELL), of_b.get(site, NO_CELL)) for site in of_a | of_b))
    return pairs


def _one_by_construction(runs: tuple[Chosen, Chosen], rated: tuple[_Rated, _Rated]) -> bool:
    """Whether the same features were judged by the same rules, the sites by the same scores and method, and the rates
    are corrected alike: each run has its own canaries.
    """
    a, b = (
        (run.newest.digest, run.names.features, one.found.detector, one.found.site_method, one.correction.errors)
        for run, one in zip(runs, rated, strict=True)
    )
    return a == b


def _side(run: Chosen, rated: _Rated, sites: PairedSites, number: int, joined: Joined) -> Side:
    kinds = dict.fromkeys((LLM, HUMAN, UNDECIDED, UNCLASSIFIABLE), 0)
    for row in rated.found.rows.values():
        kinds[row.verdict] += 1
    judged = rated.judged
    return Side(
        run=run.run.shown,
        ruleset=run.newest.ruleset,
        digest=run.newest.digest,
        detector=rated.found.detector or run.run.detector,
        epoch=run.newest.epoch,
        site_method=rated.found.site_method,
        state=run.state,
        progress=run.progress,
        from_at=run.run.from_at,
        to_at=run.run.to_at,
        verdicts=joined.verdicts[number],
        other_verdicts=joined.other_verdicts[number],
        sites=len(rated.found.rows),
        **kinds,
        other_sites=rated.found.left_out,
        **sites.totals(number),
        estimate=rated.direct[0],
        judged=JudgedShare(share=judged.rate, low=judged.low, high=judged.high, method=judged.method, text=judged.text),
    )


def _rules(runs: tuple[Chosen, Chosen], joined: Joined) -> list[RuleChange]:
    of_a, of_b = ({rule.name: rule for rule in run.newest.rules} for run in runs)
    return [
        RuleChange(
            rule=rule,
            threshold_a=condition(of_a.get(rule)),
            threshold_b=condition(of_b.get(rule)),
            **joined.let_in.of(rule, "let_in"),
            **joined.thrown_out.of(rule, "thrown"),
        )
        for rule in dict.fromkeys((*of_b, *of_a))
    ]


def condition(rule: RuleOutcome | None) -> str:
    """What a page must meet, such as ">= 50"; "" where there is no such rule."""
    if rule is None:
        return ""
    return NO_THRESHOLD if rule.threshold is None else f"{rule.op} {value_text(rule.threshold)}"


def value_text(value: Any) -> str:
    """A value or a threshold as people read it."""
    if isinstance(value, list):
        return ", ".join(map(str, value))
    return f"{value:.6g}" if isinstance(value, float) else str(value)


def _only(rules: list[RuleOutcome], others: list[RuleOutcome]) -> list[str]:
    there = {rule.name for rule in others if rule.threshold is not None}
    return [rule.name for rule in rules if rule.threshold is not None and rule.name not in there]


def _notes(a: Side, b: Side, runs: tuple[Chosen, Chosen], joined: Joined) -> Iterator[str]:
    for name, side in (("A", a), ("B", b)):
        if side.progress:
            yield f"{name}, the run {side.run}, is not done: {side.progress}; its numbers will change"
    for name, side in (("A", a), ("B", b)):
        if side.unscored:
            yield (
                f"{name} has {side.unscored:,} of {counted(side.articles, 'article')} without a score so far"
                f" ({side.unscored / side.articles:.1%}): they count neither as llm nor as human, and its site verdicts"
                " and its rate change when their scores come"
            )
    if joined.pages.only_in_a or joined.pages.only_in_b:
        yield (
            f"{joined.pages.only_in_a:,} fetches were judged in A only and {joined.pages.only_in_b:,} in B only"
            f" (windows {run_window(runs[0].run)} and {run_window(runs[1].run)}): no table of pages has them, and site"
            " verdicts and rates rest on all pages of each run"
            f"{_one_window(runs, joined) if _other_windows(runs, joined) else ''}"
        )
    if a.detector != b.detector:
        yield (
            f"two detectors, {a.detector or '-'} and {b.detector or '-'}: their scores are not pooled, and sites may"
            " have changed by the detector alone"
        )
    if a.site_method != b.site_method:
        yield f"two site methods, {a.site_method or '-'} and {b.site_method or '-'}: sites may have changed by it alone"
    if a.epoch != b.epoch:
        yield f"two feature epochs, {a.epoch} and {b.epoch}: pages may have changed by what was measured alone"
    for name, side in (("A", a), ("B", b)):
        if side.other_verdicts or side.other_sites:
            yield (
                f"left out of {name}, since they are of another ruleset, detector or site method than {side.ruleset}"
                f" {side.digest}: {counted(side.other_verdicts, 'verdict')}, {counted(side.other_sites, 'site')}"
            )
    if not joined.pages.common:
        yield "no fetch was judged by both runs: there is nothing to compare page by page"


def _other_windows(runs: tuple[Chosen, Chosen], joined: Joined) -> bool:
    """Whether the runs were asked for other windows, and much of what one has judged the other has not."""
    pages = joined.pages
    alone = pages.only_in_a + pages.only_in_b
    return run_window(runs[0].run) != run_window(runs[1].run) and alone > _MANY * (pages.common + alone)


def _one_window(runs: tuple[Chosen, Chosen], joined: Joined) -> str:
    """The commands after which the same fetches are compared: the run of more fetches once more, on the other's."""
    more, fewer = runs if joined.pages.only_in_a >= joined.pages.only_in_b else runs[::-1]
    rules, first = "", ""
    if more.state != LIVE_NOW:  # a replay has the ruleset of the live run by default
        first = f"`farmwatch runs show {more.run.shown} --ruleset-text > {more.run.shown}.toml`, "
        rules = f" --ruleset {more.run.shown}.toml"
    return (
        f". To compare the same fetches: {first}`farmwatch replay{rules} --detector {more.run.detector}"
        f" --from {fewer.run.shown} --name NEW`, `farmwatch compare NEW {fewer.run.shown}`"
    )


def _correction_notes(rated: tuple[_Rated, _Rated]) -> Iterator[str]:
    for name, one in zip("AB", rated, strict=True):
        if one.correction.remark:
            yield f"{name}: {one.correction.remark}"
    corrected: list[ErrorCounts | None] = [one.correction.errors for one in rated]
    if (corrected[0] is None) != (corrected[1] is None):
        yield "only one of the rates is corrected: they are compared uncorrected"
