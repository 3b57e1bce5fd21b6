"""Before any role starts: the checks, and the log laid out. The supervisor would restart a role at fault for ever."""

from __future__ import annotations

import tempfile
from collections import Counter
from collections.abc import Collection, Sequence
from contextlib import closing, suppress

import structlog

from farmwatch.config.config import Config
from farmwatch.config.member_names import names_folder
from farmwatch.config.opening import check_log_url, create_topics, open_configured
from farmwatch.doctor.checks import require_fit
from farmwatch.terminal.messages import message
from filters.rules.ruleset import Ruleset
from replay.live.live_run import live_or_begun
from replay.runs.site_table import read_sites, ruleset_of, short_ruleset
from scoring.rates.canary import is_canary
from stream.log.errors import StreamError
from stream.log.private_folders import make_private
from stream.schema.records import SiteState
from stream.schema.roles import Role
from stream.schema.topics import site_memory
from stream.text.user_errors import FarmwatchError
from stream.text.wording import counted, one_line

_log = structlog.get_logger()


def prepare(config: Config, roles: Sequence[Role]) -> None:
    """Check that these roles can start, and lay out the log; the first JUDGE or TALLY ever begins the live run.

    A broker that is away is no fault of the configuration: the roles wait for it. Raises as `require_fit`, ConfigError,
    StreamError, and FarmwatchError for a folder that cannot be written.
    """
    check_log_url(config)
    require_fit(config, roles)
    _require_writable(config)
    try:
        with closing(open_configured(config)) as log:
            known = log.topics()
            create_topics(log, config)
            if known:
                _tell_missing(log.topics().keys() - known)
            live = live_or_begun(log, config) if Role.JUDGE in roles or Role.TALLY in roles else None
            require_fit(config, roles, log)
            if live is not None:
                with suppress(StreamError):  # a line to read, which stops nothing
                    _tell_other_rulesets(read_sites(log), live.ruleset)
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
    folder = names_folder(config)
    try:
        make_private(folder)
        tempfile.NamedTemporaryFile(prefix=".writable-", dir=folder).close()
    except OSError as error:
        setting = "log.url" if config.log.url.startswith("sqlite:") else "log.state_folder"
        raise FarmwatchError(
            f"{folder}: cannot be written: {error.strerror}; change its owner, or set another folder ({setting})"
        ) from error
