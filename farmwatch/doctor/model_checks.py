"""Checks of the parts that the roles load: extractor, ruleset, detectors, site method, canaries."""

from __future__ import annotations

from contextlib import closing

import msgspec

from farmwatch.canaries.file import read_canaries
from farmwatch.config.config import Config
from farmwatch.config.opening import log_exists, open_configured
from farmwatch.doctor.check_result import Results, Subject, fail, ok, warn
from farmwatch.terminal.remedies import in_full
from filters.errors import BadRuleset
from filters.measure.epoch import epoch_settings
from filters.perplexity.names import PerplexityMeasure
from filters.rules.catalogue import RULES
from replay.runs.configured import (
    configured_site_method,
    load_configured_ruleset,
    refuse_perplexity,
    site_test_of,
    tally_identity,
)
from scoring.detectors.model_check import refuse_unfit
from scoring.detectors.registry import detector_identities
from scoring.interface import name_of, refuse_uncalibrated
from scoring.sites.registry import SiteMethod
from scoring.sites.sprt import SiteTest, fewest_pages, is_measured
from stream.log.errors import StreamError
from stream.schema.control import Control
from stream.schema.vocabulary import Truth
from stream.text.wording import counted, one_line

_GIB = 1024**3
_PLAIN_PAGE = "<html><body><article><p>" + "One sentence of text. " * 20 + "</p></article></body></html>"


def extractor(at: Subject) -> Results:
    """The extractor finds the text of a plain page, with models that are there. Raises FarmwatchError."""
    from filters.measure.extractors import extract
    from filters.measure.worker_process import first_frame

    first_frame(at.config.measure)
    name = at.config.measure.extractor
    if error := extract(_PLAIN_PAGE, "", at.config.measure).error:
        mend = f"reinstall {name}, or set measure.extractor to another one"
        yield fail(f"{name} extracts nothing from a plain page: {error}", mend)
    else:
        model = epoch_settings(at.config.measure).get("measure.extractor_model")
        yield ok(f"{name}, model {model}" if model else name)


def ruleset(at: Subject) -> Results:
    """The ruleset loads, if only from the log, and fits detectors and measures. Raises BadRuleset, RunRefused."""
    try:
        configured = load_configured_ruleset(at.config)
    except BadRuleset as error:
        continues = _continued_rules(at.config)
        if not continues:
            raise
        yield warn(one_line(f"judge.ruleset: {in_full(error)}; {continues}"))
    else:
        refuse_perplexity(configured, at.config.score.detectors)
        rules = (rule for table in configured.tables.values() for rule in table.rules if rule.threshold is not None)
        unknown = [rule.name for rule in rules if RULES[rule.name].of in list(PerplexityMeasure)]
        if unknown and not at.config.measure.perplexity_model:
            yield warn(f"{', '.join(unknown)}: unknown of every page", 'set measure.perplexity_model = "english"')
        yield ok(f"{configured.name} {configured.digest}")


def _continued_rules(config: Config) -> str:
    if not log_exists(config):
        return ""
    try:
        with closing(open_configured(config, read_only=True)) as log:
            control = Control(log)
    except StreamError as error:
        if not error.retriable:
            return ""
        return "the log does not answer: a live run continues with the rules in the log"
    live = control.live
    if live is None or not control.ruleset_text(live):
        return ""
    return f"the live run {live.shown} continues with {live.ruleset} {live.digest} from the log"


def detectors(at: Subject) -> Results:
    """Each configured detector exists, with its thresholds. Raises ScoringError."""
    for name in at.config.score.detectors:
        identities = detector_identities(msgspec.structs.replace(at.config.score, detectors=[name]))
        refuse_uncalibrated(identities)
        yield ok(identities[0])
    used = {*at.config.score.detectors, name_of(at.config.tally.detector)}
    for name in sorted(at.config.score.thresholds.keys() - used):
        yield warn(
            f"score.thresholds has a set for {name}, which is not in score.detectors: SCORE does not read it",
            f"add {name} to score.detectors, or remove it from score.thresholds",
        )


def models(at: Subject) -> Results:
    """Libraries, tokenizers, device and memory of the language models, without their weights. Raises ScoringError."""
    for settings in at.config.score.models:
        found = refuse_unfit(settings)
        said = f"{settings.table}: {found.libraries}; on {found.device}; weights {found.weight_bytes / _GIB:.1f} GiB"
        if found.device != "cpu":
            said = f"{said}, {found.free_bytes / _GIB:.1f} GiB free"
        if found.device != "cpu" and found.free_bytes < found.weight_bytes:
            yield warn(said, "end what else runs on the card (SCORE itself may), or take another")
        else:
            yield ok(said)


def sites(at: Subject) -> Results:
    """The detector and the method of site verdicts have their numbers. Raises ConfigError, ScoringError."""
    identity = tally_identity(at.config)
    refuse_uncalibrated([identity])
    chosen = at.config.tally.sprt or site_test_of(at.config, identity)
    if at.config.tally.method == "sprt" and chosen is None and not is_measured(identity):
        yield warn(
            f"sites are judged from scores of {identity} by the default site test: its own was not measured",
            "run `farmwatch lab calibrate` on labelled pages that name their sites, or set p0 and p1 in [tally.sprt]",
        )
    elif said := _undecidable(configured_site_method(at.config), at.config.tally.enough_articles):
        yield warn(said, "raise tally.enough_articles, or calibrate at another --fpr")
    else:
        yield ok(f"judged by {at.config.tally.method} from scores of {identity}")


def _undecidable(method: SiteMethod, enough_articles: int) -> str:
    """The verdict that a sequential test cannot reach before the crawl of a site stops; "" if it can reach both."""
    if not isinstance(method, SiteTest):
        return ""
    least = fewest_pages(method.params)._asdict()
    late = [f"{pages} pages at least to say {word}" for word, pages in least.items() if pages > enough_articles]
    if not late:
        return ""
    return (
        f"the site test (p0 {method.params.p0:g}, p1 {method.params.p1:g}) takes {' and '.join(late)}, and a site is"
        f" left at {enough_articles} usable ones"
    )


def canaries(at: Subject) -> Results:
    """The canary file. Raises ConfigError."""
    if not at.config.canary.file:
        yield ok("none are sent: canary.file is not set")
        return
    sites = read_canaries(at.config.canary)
    of = [counted(sum(site.truth == truth for site in sites), f"{truth} site") for truth in Truth]
    yield ok(f"{at.config.canary.file}: {' and '.join(of)} a round")
