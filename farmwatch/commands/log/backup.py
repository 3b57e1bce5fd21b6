"""The commands `backup` and `restore`, of the embedded log."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path
from typing import Annotated

from cyclopts import Parameter

from farmwatch.commands.options import DEFAULTS, Common
from farmwatch.config.config import Config
from farmwatch.config.opening import check_log_url, log_exists, open_configured, refuse_unfinished
from farmwatch.terminal.messages import counting, message
from stream.text.user_errors import Exit, FarmwatchError, UsageError
from stream.text.wording import counted, one_line


def backup(to: Annotated[Path, Parameter(help="A new or empty folder.")], /, *, common: Common = DEFAULTS) -> int:
    """Copy the embedded log into a folder, also while farmwatch runs.

    The copy is the log as it was at one moment, with a file of checksums, SHA256SUMS, which is written last: a folder
    without it is no backup. No file of the log changes. On Kafka use the broker's replication, or `farmwatch log copy`.
    """
    from stream.embedded.backup import back_up, size_of_log

    config = common.load().config
    folder = _folder(config)
    if not log_exists(config):
        raise FarmwatchError(f"{config.log.url}: there is no log to back up; set log.url (--log)")
    with closing(open_configured(config, read_only=True, is_masked=False)) as log:
        refuse_unfinished(log)
    with counting(size_of_log(folder), "of the log") as advance:
        missing = back_up(folder, to, advance)
    if missing:
        files = counted(len(missing), "file")
        message(one_line(f"warning: the log lacks {files} of segments/, so does the copy: see `farmwatch doctor`"))
    message(
        one_line(f"{to} is a backup of {config.log.url}: `farmwatch log restore {to} --log sqlite:FOLDER` restores it")
    )
    return Exit.PROBLEM if missing else Exit.OK


def restore(
    backup: Annotated[Path, Parameter(help="A folder that `farmwatch log backup` has written.")],
    /,
    *,
    common: Common = DEFAULTS,
) -> int:
    """Copy a backup into the folder of the embedded log, which must be new or empty.

    Every file is compared with its checksum. An interrupted restore leaves no log: empty the folder and repeat it.
    """
    from stream.embedded.backup import restore as restore_log
    from stream.embedded.backup import size_of_log

    config = common.load().config
    folder = _folder(config)
    if not backup.is_dir():
        raise UsageError(f"{backup}: no such folder")
    with counting(size_of_log(backup), "of the backup") as advance:
        restore_log(backup, folder, advance)
    message(one_line(f"restored into {config.log.url}; `farmwatch doctor audit --log {config.log.url}` proves it"))
    return Exit.OK


def _folder(config: Config) -> Path:
    check_log_url(config)
    scheme, _, place = config.log.url.partition(":")
    if scheme != "sqlite":
        raise UsageError(
            f"{config.log.url}: this command is for the embedded log. A broker keeps copies by its replication and"
            " mirroring; `farmwatch log copy` copies a log on Kafka into a folder"
        )
    return Path(place).expanduser()
