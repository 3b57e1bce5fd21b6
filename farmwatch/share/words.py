"""The sentences of a share: remarks as text, for the terminal, the console, exports and JSON lines."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from datetime import UTC, datetime
from functools import cache
from operator import attrgetter
from typing import Any

import msgspec

from farmwatch.tables.columns import Column, columns_of, fields_of
from scoring.estimate.definitions import ANY_ARTICLE, DOMAINS, EVERY_ARTICLE, RANKED_RESULTS, RESULTS
from scoring.estimate.remarks import REASONS, Remark, RemarkKind
from scoring.rates.controls import FEWEST_SITES, ControlCounts
from scoring.rates.results import PARTS, ResultPart
from scoring.rates.site_rates import UNCORRECTED, EstimateLine
from scoring.rates.split_rates import RateLine
from stream.text.wording import counted

_OF_SITES = (
    RemarkKind.SHARE,
    RemarkKind.TOO_FEW,
    RemarkKind.TOO_WIDE,
    RemarkKind.KINDS_NOT_TOLD_APART,
    RemarkKind.FARMS,
)
_UNITS = {DOMAINS: "registrable domain", RESULTS: "search result", RANKED_RESULTS: "search result"}
_LABELLED = {
    ANY_ARTICLE: " have an article by a language model",
    EVERY_ARTICLE: " have only articles by language models",
}
_INTERVAL = "{confidence:.0%} interval {low:.1%} to {high:.1%}"
_MISFIT = (
    "the counts do not fit the measured errors: {called:.1%} are called llm, BOUND; the rate is not known so exactly,"
    " and the errors must be measured on sites like these"
)
_WORDS = {
    RemarkKind.SHARE: "{percent} (" + _INTERVAL + ") of {of}{labelled}",
    RemarkKind.TOO_FEW: "too few for a share: {of} (" + _INTERVAL + ")",
    RemarkKind.TOO_WIDE: "too wide an interval for a share: {low:.1%} to {high:.1%} of {of}",
    RemarkKind.KINDS_NOT_TOLD_APART: "no share of {of}",
    RemarkKind.NO_SCORES: "no share yet: no site has a scored article",
    RemarkKind.NO_SHARE: "no share",
    RemarkKind.NO_THRESHOLD: "the detector has no threshold, so that its scores flag no article",
    RemarkKind.NO_LABELS: "only labelled sites tell any from every article (`farmwatch review draw`)",
    RemarkKind.NO_SITEMAPS: "whether any site publishes in mass is unknown: a sitemap of {number:,} of {sites:,} sites"
    " was read (crawl.use_sitemaps)",
    RemarkKind.NO_SIGNALS: "whether any site is monetised is unknown: {number:,} of {sites:,} sites have a page with"
    " a signal",
    RemarkKind.FLAGGED_ALIKE: "the detector flags known human and LLM sites alike ({human:.0%} and {llm:.0%} of their"
    " articles)",
    RemarkKind.SELDOM_FLAGGED: "no kind of sites is flagged in more than {flagged:.0%} of its articles, which human"
    " sites may be too",
    RemarkKind.OFTEN_FLAGGED: "every kind of sites is flagged often, which human sites may be too",
    RemarkKind.KNOWN_WOULD_TELL: "known {kind} sites would tell (`farmwatch review canaries`)",
    RemarkKind.SET_A_THRESHOLD: "set one (`farmwatch lab calibrate`)",
    RemarkKind.OTHER_DETECTOR: "use another detector or threshold, or label a sample (`farmwatch review draw`)",
    RemarkKind.CLUSTERS_NEEDED: "the sites are of {clusters} {unit}: more of these are needed",
    RemarkKind.NONE_KNOWN: "no known {kinds} sites: add some (`farmwatch review canaries make`)",
    RemarkKind.ONE_ARTICLE_EACH: "each site has one scored article: more articles tell the kinds apart",
    RemarkKind.SITES_NEEDED: "more sites are needed, or labels of some (`farmwatch review draw`)",
    RemarkKind.FEW_CLUSTERS: "it rests on {clusters} {unit}",
    RemarkKind.FEW_FOR_A_CHANGE: "fewer than {fewest}: too few for a change to show",
    RemarkKind.UNLIKE_KNOWN: "{kind} sites are flagged in {here:.0%} of articles, known ones in {known:.0%}: label a"
    " sample",
    RemarkKind.MIXED_SITES: "{share:.0%} of longer sites may be mixed, which the interval leaves out: label a sample",
    RemarkKind.SCATTER: "sites scatter more than two kinds would, so the interval is wider",
    RemarkKind.FARMS: "content farms: {percent} ("
    + _INTERVAL
    + ") of {of}: by a language model, {urls} article URLs or"
    " more in their sitemaps, and monetised",
    RemarkKind.FARM_SIGNS: "{yes:,} publish in mass and are monetised, whoever writes them; {unknown:,} more may: of"
    " {unknown_mass:,} the mass is unknown, of {unknown_money:,} whether they are monetised",
    RemarkKind.FARMS_OF: "with {urls} article URLs or more: {percent}",
    RemarkKind.FARMS_NOT_MEASURED: "not measurable from the pages of a site: revenue, how much it publishes without"
    " a sitemap, editing by people, intent",
    RemarkKind.FEW_LABELS: "no review: {number} of these sites {have}, {needed} are needed",
    RemarkKind.LABELS_TOO_OLD: "labels of {labels} are too old",
    RemarkKind.CONTRADICTION: "labels and flags contradict each other: the detector does not fit these sites",
    RemarkKind.REVIEWED_SHARE: "the review says {percent} (" + _INTERVAL + "): too wide to replace it",
    RemarkKind.LABELLED: "by {number:,} labelled site{s} of {day} ({who}), to renew by {until}",
    RemarkKind.LABELLERS_DIFFER: "labellers differ, which makes the interval {times:.1f} times as wide",
    RemarkKind.FEW_TWICE: "labels are taken as true: {twice} sites have two labellers, {needed} tell who errs",
    RemarkKind.WIDER: "a wider interval than by flags alone, which take the detector's errors as known",
    RemarkKind.AGAINST_FLAGS: "{against} of {number} labels contradict the flags: each widens the interval",
    RemarkKind.UNLABELLED: "{labelled} of {drawn} drawn sites labelled: the others may be of either kind",
    RemarkKind.NO_RATE: "no rate: no site could be classified",
    RemarkKind.FEW_FOR_A_RATE: "too few sites for a rate: {llm} of {number} classifiable site{s} called llm ("
    + _INTERVAL
    + ", {method})",
    RemarkKind.RATE: "{point:.1%} (" + _INTERVAL + ", {method}): {llm} of {number} classifiable sites",
    RemarkKind.UNDECIDED: "{undecided} undecided of them counted as not llm, up to {at_most:.1%} if the undecided were"
    " llm",
    RemarkKind.FEW_SITES: "fewer than {fewest} sites: too few for a change to show",
    RemarkKind.BELOW_FALSE_ALARMS: _MISFIT.replace(
        "BOUND", "fewer than the {bound:.1%} that false alarms alone would be"
    ),
    RemarkKind.ABOVE_FOUND: _MISFIT.replace("BOUND", "more than the {bound:.1%} that are found of LLM sites"),
    RemarkKind.UNCLASSIFIABLE: "{unclassifiable} of {sites} sites unclassifiable",
    RemarkKind.NOT_CORRECTED: "not corrected by canaries: {reason}",
    RemarkKind.FEW_CANARIES: "not corrected by canaries: {llm_sites} LLM and {human_sites} human ones could be"
    " classified, {least} of each are needed",
    RemarkKind.CORRECTED: "corrected by {llm_sites} LLM canary sites, of which {llm_found} were found, and"
    " {human_sites} human ones, of which {called} were called llm",
}


def sentence(remark: Remark) -> str:
    """One remark as text."""
    facts: dict[str, Any] = dict(remark.facts)
    addition = ", had they as few articles as the sites" if facts.get("shortened") else ""
    match remark.kind:
        case RemarkKind.WITHOUT_LABELS | RemarkKind.WITHOUT_SIGNS:
            of = "without these" if remark.kind == RemarkKind.WITHOUT_LABELS else "of LLM sites, farms or not:"
            return f"{of} {sentence(Remark(RemarkKind(facts.pop('headline')), facts))}"
        case RemarkKind.FARMS | RemarkKind.FARMS_OF:
            ends = dict.fromkeys(f"{facts[name]:.1%}" for name in ("share", "at_most"))
            facts["percent"] = " to ".join(ends)
        case RemarkKind.FARM_SIGNS if facts["a_year"] >= 0:
            addition = f"; half of the former with known dates publish {facts['a_year']:,.0f} articles a year or more"
        case RemarkKind.SHARE | RemarkKind.REVIEWED_SHARE:
            share = facts["share"]
            facts["percent"] = f"{share:.1%}" if share >= 0.0005 else f"below {facts['high']:.1%}"
            facts["labelled"] = _LABELLED.get(facts.get("definition", ""), "")
        case RemarkKind.LABELLED:
            facts["day"], facts["until"] = (
                datetime.fromtimestamp(facts[name] / 1000, UTC).date() for name in ("at_ms", "until_ms")
            )
            facts["who"] = _labellers(facts)
    if remark.kind in _OF_SITES:
        of = f"{counted(facts['sites'], 'site')} with scored articles"
        if unit := facts.get("unit"):
            by_rank = " by rank" if unit == RANKED_RESULTS else ""
            of = f"{counted(facts['units'], _UNITS[unit])}{by_rank} of {of}"
        facts["of"] = f"{of}, all of one query" if facts.get("one_query") else of
    if largest := facts.get("largest"):
        addition = f"; the largest, {largest}, has {counted(facts['largest_sites'], 'site')}"
    facts["s"], facts["have"] = ("", "has a label") if facts.get("number") == 1 else ("s", "have labels")
    if remark.kind == RemarkKind.RATE and facts["method"] != UNCORRECTED:
        addition = f" called llm, {facts['llm'] / facts['number']:.1%} before the correction"
    if remark.kind == RemarkKind.UNCLASSIFIABLE and "without_pages" in facts:
        few = facts["unclassifiable"] - facts["without_pages"]
        addition = f" ({facts['without_pages']} without a page so far, {few} with too few scored articles)"
    return _WORDS[remark.kind].format_map(facts) + addition


def _labellers(facts: Mapping[str, Any]) -> str:
    if facts.get("labellers", 1) == 1:
        return "one labeller"
    agreement = f", alpha {facts['alpha']:.2f}" if "alpha" in facts else ""
    agreement += ": they differ, see `farmwatch sites --where 'dissent>0'`" if facts.get("alpha", 1) < 1 else ""
    return f"{facts['labellers']} labellers, {counted(facts['twice'], 'site')} by more than one{agreement}"


def sentences(remarks: Iterable[Remark]) -> list[str]:
    """Remarks as text, of which a result's first is its headline."""
    said: list[str] = []
    reasons = 0
    for remark in remarks:
        reasons = reasons + 1 if remark.kind in REASONS else 0
        if reasons and said:
            said[-1] += f"{': ' if reasons == 1 else '; '}{sentence(remark)}"
        else:
            said.append(sentence(remark))
    return said


def text_of(remarks: Iterable[Remark]) -> str:
    """All remarks in one line."""
    return "; ".join(sentences(remarks))


def controls_text(of: ControlCounts) -> str:
    """What the detector flags of articles that are surely human by their dates."""
    said = f"{of.share:.1%} of articles of before ChatGPT flagged ({of.low:.1%} to {of.high:.1%}): {of.flagged:,} of"
    said += f" {of.pages:,}, of {counted(of.sites, 'site')}"
    said += f", too few: the share's interval needs {FEWEST_SITES}" if of.sites < FEWEST_SITES else ""
    if not of.control_sites:
        return said
    return f"{said}; called llm: {of.called_llm:,} of {counted(of.control_sites, 'site')} that have no other articles"


def short_share(line: RateLine) -> str:
    """The share with its interval, its sites and its versions, for a line among others."""
    if not line.scored_sites:
        return "none yet"
    of = f"{counted(line.scored_sites, 'site')}, ruleset {line.ruleset or '-'} {line.digest[:8]}".rstrip()
    of += f", detector {line.detector or '-'}"
    if line.share is None or line.low is None or line.high is None:
        return f"none ({line.method}) of {of}"
    return f"{line.share:.1%} ({line.confidence:.0%} interval {line.low:.1%} to {line.high:.1%}) of {of}"


def part_text(part: ResultPart | None) -> str:
    """The share of a part of results with its interval and its results, for a cell of a table."""
    if part is None:
        return ""
    if part.share is None or part.low is None or part.high is None:
        return f"none ({part.method}) of {part.results:,}"
    return f"{part.share:.1%} ({part.low:.1%} to {part.high:.1%}) of {part.results:,}"


def short_judged(line: EstimateLine) -> str:
    """The judged share with its interval and its number of sites."""
    counts = f"{line.llm:,} llm of {line.classifiable:,} classifiable"
    if line.judged_share is None or line.judged_low is None or line.judged_high is None:
        return f"no share, {counts}"
    return f"{line.judged_share:.1%} ({line.judged_low:.1%} to {line.judged_high:.1%}), {counts}"


@cache
def line_columns(kind: type[EstimateLine]) -> list[Column[Any]]:
    """The columns of a kind of line: its fields, with remarks as text."""
    of_open: Column[Any] = Column("open", "integer", attrgetter("open_of_scored"))
    return [*(_in_words(column) for column in columns_of(kind, "design_effect")), of_open]


def _in_words(column: Column[Any]) -> Column[Any]:
    name, value_of = column.name, column.of
    if name in ("remarks", "judged_remarks"):
        return Column(name.replace("remarks", "text"), "text", lambda line: text_of(value_of(line)))
    if name == "canary_remark":
        return Column("correction", "text", lambda line: "" if (said := value_of(line)) is None else sentence(said))
    if name in PARTS:
        column = replace(column, said=lambda line: part_text(value_of(line)))
    return replace(column, of=lambda line: msgspec.to_builtins(value_of(line)))


def line_fields(line: EstimateLine) -> dict[str, Any]:
    """A line as JSON: remarks as text."""
    return fields_of(line_columns(type(line)), line)


def share_columns(warnings: Mapping[str, str]) -> list[Column[RateLine]]:
    """The columns of `farmwatch rate`: `warnings` are those of the detectors, by identity."""
    return [*line_columns(RateLine), Column("warning", "text", lambda line: warnings[line.detector])]
