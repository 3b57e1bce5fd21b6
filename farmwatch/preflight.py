"""What no restart mends, found once before any role starts: settings that name nothing, models, the log and its layout.

The roles find the same faults by themselves, but under a supervisor each would be started again for ever.
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Sequence
from contextlib import closing
from pathlib import Path

import structlog

from farmwatch.config import Config
from farmwatch.errors import FarmwatchError
from farmwatch.role_names import Role
from farmwatch.roles import create_topics, load_configured_detector, load_configured_ruleset, open_configured
from stream.errors import StreamError

_log = structlog.get_logger()


def check_models(config: Config, roles: Sequence[Role]) -> None:
    """Load what the roles will load: ruleset, detector, extractor. Nothing is made on disk.

    Raises BadRuleset, UnknownDetector, BadWeights, MissingExtra, UnknownExtractor.
    """
    if Role.MEASURE in roles:
        from filters.extraction import extractor

        extractor(config.measure.extractor)
    if Role.JUDGE in roles or Role.TALLY in roles:
        load_configured_ruleset(config)
    if Role.SCORE in roles or Role.TALLY in roles:
        load_configured_detector(config)


def check_log(config: Config) -> None:
    """Open the log and lay it out, as each role does.

    Raises StreamError (a URL of no form, TopicMismatch, no Kafka client), and FarmwatchError for a folder that cannot
    be written. A broker that is away is no fault of the configuration: the roles wait for it.
    """
    _require_writable(config)
    try:
        with closing(open_configured(config)) as log:
            create_topics(log, config)
    except StreamError as error:
        if not (error.retriable and config.log.url.startswith("kafka:")):
            raise
        _log.warning("broker_away", url=config.log.url, error=str(error)[:300])


def _require_writable(config: Config) -> None:
    scheme, _, place = config.log.url.partition(":")
    if scheme not in ("sqlite", "kafka"):
        return  # opening it says what forms there are
    folder = Path(place).expanduser() if scheme == "sqlite" else Path(config.log.state_folder)
    try:
        folder.mkdir(parents=True, exist_ok=True)
        handle, name = tempfile.mkstemp(prefix=".writable-", dir=folder)
        os.close(handle)
        Path(name).unlink()
    except OSError as error:
        setting = "log.url" if scheme == "sqlite" else "log.state_folder"
        raise FarmwatchError(
            f"{folder}: cannot be written: {error.strerror}; change its owner, or set another folder ({setting})"
        ) from error
