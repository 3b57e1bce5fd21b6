"""What no restart mends, found once before any role starts: settings that name nothing, models, the log and its layout.

The roles find the same faults by themselves, but under a supervisor each would be started again for ever.
"""

from __future__ import annotations

import os
import tempfile
from collections import Counter
from collections.abc import Collection, Sequence
from contextlib import closing, suppress
from pathlib import Path
from typing import TYPE_CHECKING

import structlog

from farmwatch.config.config import Config
from farmwatch.config.opening import check_log_url, create_topics, log_exists, open_configured
from farmwatch.daemon.canaries import read_canaries
from farmwatch.daemon.deleted_groups import groups_starting_over, remedy
from farmwatch.terminal.messages import message
from filters.errors import BadRuleset
from replay.live.fitness import require_live
from replay.live.live_run import differences, live_or_begun
from replay.runs.configured import configured_site_method, load_configured_ruleset, tally_identity
from replay.runs.site_table import read_sites, ruleset_of, short_ruleset
from scoring.rates.canary import is_canary
from stream.log.errors import StreamError
from stream.log.private_folders import make_private
from stream.schema.control import Control
from stream.schema.records import SiteState
from stream.schema.roles import Role
from stream.schema.topics import site_memory
from stream.text.user_errors import FarmwatchError
from stream.text.wording import counted, one_line

if TYPE_CHECKING:
    from filters.rules.ruleset import Ruleset

NEVER_SAID_REMEDY = "raise tally.enough_articles, or calibrate at another --fpr"

_log = structlog.get_logger()


def check_models(config: Config, roles: Sequence[Role]) -> None:
    """Look at what the roles will load: ruleset, detectors, extractor. Nothing is made on disk.

    A configured ruleset that does not load is only told where the live run judges by a text of its own.
    Raises BadRuleset, MissingExtra, MissingExtractor, BadCanaries, and as `check_detectors`.
    """
    if Role.MEASURE in roles:
        from filters.extraction.extractor import extractor

        extractor(config.measure.extractor)
    if Role.JUDGE in roles or Role.TALLY in roles:
        _check_ruleset(config)
    if Role.SCORE in roles or Role.TALLY in roles:
        check_detectors(config, roles)
    if Role.TALLY in roles and (said := never_said(config)):
        message(f"{said}: {NEVER_SAID_REMEDY}")
    if Role.TALLY in roles:
        read_canaries(config.canary)


def _check_ruleset(config: Config) -> None:
    try:
        load_configured_ruleset(config)
    except BadRuleset as error:
        goes_on = _live_as_it_is(config)
        if not goes_on:
            raise
        message(one_line(f"warning: judge.ruleset: {error}; {goes_on}"))


def _live_as_it_is(config: Config) -> str:
    """How the live run goes on by the text that the log has; "" where it has none. Raises StreamError, ConfigError."""
    if not log_exists(config):
        return ""
    try:
        with closing(open_configured(config, read_only=True)) as log:
            control = Control(log)
    except StreamError as error:
        if not error.retriable:
            raise
        return "the log does not answer: the live run, if one has begun, goes on with the rules that it has there"
    live = control.live
    if live is None or not control.ruleset_text(live):
        return ""
    return f"the live run {live.shown} goes on with {live.ruleset} {live.digest}, which the log has"


def check_detectors(config: Config, roles: Sequence[Role]) -> None:
    """What SCORE would refuse at its start, and TALLY too: found without loading a language model.

    Raises UnknownDetector, BadWeights, BadThresholds, Uncalibrated, NoSiteTest, BadSiteNumbers, ConfigError, and as
    `refuse_unfit_pair`.
    """
    from scoring.detectors.registry import detector_identities
    from scoring.interface import refuse_uncalibrated

    if Role.SCORE in roles:
        refuse_uncalibrated(detector_identities(config.score))
        if config.score.uses_pair:
            from scoring.pair.check import refuse_unfit_pair

            refuse_unfit_pair(config.score.pair)
    if Role.TALLY in roles:
        refuse_uncalibrated([tally_identity(config)])
        configured_site_method(config)


def never_said(config: Config) -> str:
    """What the configured test cannot say of any site before its crawl stops; "" where it can say both.

    Only of the method `sprt`. Raises as `configured_site_method`.
    """
    from scoring.sites.sprt import SiteTest, fewest_pages

    method = configured_site_method(config)
    if not isinstance(method, SiteTest):
        return ""
    enough = config.tally.enough_articles
    late = {word: pages for word, pages in fewest_pages(method.params)._asdict().items() if pages > enough}
    if not late:
        return ""
    needed = " and ".join(f"{pages} pages at least to say {word}" for word, pages in late.items())
    return (
        f"the site test (p0 {method.params.p0:g}, p1 {method.params.p1:g}) takes {needed}, and a site is left at"
        f" {enough} usable ones"
    )


def check_log(config: Config, roles: Sequence[Role]) -> None:
    """Open the log and lay it out, as each role does; begin the live run where JUDGE or TALLY will be the first ever.

    Where they will run, say what is configured otherwise than the live run has it, and what other rulesets have judged.
    Say which topics were gone, and which groups would read a topic again from its beginning.

    Raises StreamError (a URL of no form, TopicMismatch, no Kafka client), and FarmwatchError for a folder that cannot
    be written, or a live run that cannot go on. A broker that is away is no fault of the configuration: the roles wait
    for it.
    """
    _require_writable(config)
    try:
        with closing(open_configured(config)) as log:
            known = log.topics()
            create_topics(log, config)
            if known:
                _tell_missing(log.topics().keys() - known)
            if Role.JUDGE in roles or Role.TALLY in roles:
                live = live_or_begun(log, config)
                control = Control(log)
                require_live(control, config, live, roles)
                with suppress(BadRuleset):  # `check_models` has told
                    for difference in differences(live, config, control):
                        message(one_line(difference))
                with suppress(StreamError):  # it is there to be told, and stops nothing
                    _tell_other_rulesets(read_sites(log), live.ruleset)
            with suppress(StreamError):  # the same
                for found in groups_starting_over(log, roles):
                    _log.warning("group_starts_over", group=found.group, **found.records)
                    message(f"warning: {found.said}; {remedy(log, config.log.prefix, found)}")
    except StreamError as error:
        if not (error.retriable and config.log.url.startswith("kafka:")):
            raise
        _log.warning("broker_away", url=config.log.url, error=str(error)[:300])


def _tell_missing(created: Collection[str]) -> None:
    """One line of topics that the log lacked. The memory of sites is left out: each feature epoch has its own."""
    missing = sorted(topic for topic in created if not topic.startswith(f"state.{site_memory('')}"))
    if missing:
        _log.warning("topics_were_missing", topics=missing)
        message(
            f"warning: the log had no {', '.join(missing)}: made anew, empty. Where it was deleted, the records that"
            " nobody had read are lost, and of a topic `state.…` all that a stage remembered; a log of an earlier"
            " version may not have had it yet"
        )


def _tell_other_rulesets(rows: Sequence[SiteState], in_force: Ruleset) -> None:
    """One line of the sites whose rows are of another ruleset: they are not judged anew by themselves."""
    judged = (row for row in rows if row.ruleset and not is_canary(row.site))
    others = Counter(ruleset_of(row) for row in judged if row.digest != in_force.digest)
    if not others:
        return
    sites = ", ".join(f"{counted(count, 'site')} by {ruleset}" for ruleset, count in others.most_common())
    message(
        one_line(
            f"judged before: {sites}; each keeps its row until a page of it is judged by"
            f" {short_ruleset(in_force.name, in_force.digest)}"
        )
    )


def _require_writable(config: Config) -> None:
    check_log_url(config)
    scheme, _, place = config.log.url.partition(":")
    folder = Path(place).expanduser() if scheme == "sqlite" else Path(config.log.state_folder)
    try:
        make_private(folder)
        handle, name = tempfile.mkstemp(prefix=".writable-", dir=folder)
        os.close(handle)
        Path(name).unlink()
    except OSError as error:
        setting = "log.url" if scheme == "sqlite" else "log.state_folder"
        raise FarmwatchError(
            f"{folder}: cannot be written: {error.strerror}; change its owner, or set another folder ({setting})"
        ) from error
