"""The command `copy`: a log into an empty one of either kind."""

from __future__ import annotations

from contextlib import closing
from typing import Annotated

import msgspec
from cyclopts import Parameter

from farmwatch.commands.options import JUST_CONFIGURED, Configured
from farmwatch.config.config import Config
from farmwatch.config.opening import log_exists, open_configured, require_broker
from farmwatch.terminal.messages import counting, message
from stream.log.contract import Log
from stream.text.user_errors import Exit, FarmwatchError, NotFound, UsageError
from stream.text.wording import counted, one_line


def copy(
    *,
    from_: Annotated[str, Parameter(name="--from", help="The log to copy: sqlite:FOLDER or kafka:HOST:PORT.")],
    to: Annotated[str, Parameter(help="An empty log: sqlite:FOLDER or kafka:HOST:PORT.")],
    to_prefix: Annotated[str | None, Parameter(help="Its prefix, if not log.prefix, which is that of --from.")] = None,
    common: Configured = JUST_CONFIGURED,
) -> int:
    """Copy a log into an empty one, between the embedded log and Kafka in either direction.

    Records keep their keys, headers, timestamps and order; the offsets of groups, runs and dead letters are translated;
    keyed state moves too. Stop farmwatch on the log first.

    An interrupted copy is no log: no command opens it, and the same `copy` begins it anew. Damaged records are left
    out and counted, with exit code 1.
    """
    from farmwatch.archive.copy import copy_log, records_in

    config = common.load().config
    prefix = config.log.prefix
    onto = prefix if to_prefix is None else to_prefix
    if (from_, prefix) == (to, onto):
        raise UsageError("--from and --to name the same log; on one broker give --to-prefix")
    with (
        closing(_open(config, from_, prefix, is_source=True)) as source,
        closing(_open(config, to, onto)) as target,
        counting(records_in(source), "of the records") as advance,
    ):
        try:
            copied = copy_log(source, target, advance)
        except NotFound as error:
            said = f"{from_}, log.prefix {prefix!r}: {error}; that of the target is --to-prefix"
            raise NotFound(one_line(said)) from error
    message(
        f"copied {counted(copied.records, 'record')} and {copied.state:,} entries of state".replace("entrys", "entries")
    )
    if copied.damaged:
        message(
            f"{counted(copied.damaged, 'damaged record')} left out; `farmwatch doctor audit` of the old log names them"
        )
    under = f" --set log.prefix={onto}" if onto else ""
    message(f"`farmwatch doctor audit --log {to}{under}` proves the copy")
    return Exit.PROBLEM if copied.damaged else Exit.OK


def _open(config: Config, url: str, prefix: str, *, is_source: bool = False) -> Log:
    config = msgspec.structs.replace(config, log=msgspec.structs.replace(config.log, url=url, prefix=prefix))
    if is_source and not log_exists(config):
        raise FarmwatchError(f"{url}: there is no log to copy")
    require_broker(config)
    return open_configured(config, read_only=is_source, is_masked=is_source)  # forgotten hosts are not copied
