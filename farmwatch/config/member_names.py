"""Names of group members: stable over restarts, and unique among living processes.

A name decides the cost of a restart. A Kafka group keeps a static member's partitions for its name until its session
ends, and local copies of state are in a folder of that name: a process that returns under another name waits for its
old session to end and reads all state again. So a name is `<host>-<n>` with the smallest free n, held by locks on files
(flock), which the kernel releases with the process.
"""

from __future__ import annotations

import os
import re
import socket
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from itertools import count
from pathlib import Path

from farmwatch.config.config import Config
from stream.log.file_lock import file_lock
from stream.log.private_folders import make_private
from stream.text.user_errors import FarmwatchError

_FOLDER = "members"
_UNFIT = re.compile(r"[^A-Za-z0-9._-]")


def names_folder(config: Config) -> Path:
    """The folder of names: the embedded log's folder; on Kafka the folder of local state."""
    scheme, _, place = config.log.url.partition(":")
    return Path(place).expanduser() if scheme == "sqlite" else Path(config.log.state_folder)


@contextmanager
def claimed_name(folder: Path, roles: Sequence[str], host: str | None = None, *, alone: bool = False) -> Iterator[str]:
    """Hold a name for these roles (or replays, with other words), `<host>-<n>`, until the block or the process ends.

    `alone`: only the first name is allowed; another process of this machine with one of the roles is an error.

    There is a lock per role and number, so that roles in separate services get the same numbers in any order of starts.
    Raises FarmwatchError if no file can be created or locked in `folder`.
    """
    machine = _UNFIT.sub("_", host or socket.gethostname()) or "host"
    try:
        place = folder / _FOLDER
        make_private(place)
        name, locks = _smallest_free(place, machine, roles, alone=alone)
    except OSError as error:
        raise FarmwatchError(
            f"{folder / _FOLDER}: cannot hold a member's name there: {error.strerror}; make it writable, or give each"
            " process a name of its own by --member"
        ) from error
    with locks:
        yield name


def running_roles(folder: Path) -> set[str]:
    """The roles that processes of this machine run on the log of the folder, by the process ids in their locks.

    To try a lock is to hold it for a moment, in which its role could not start.
    """
    return {file.name.partition("-")[0] for file in (folder / _FOLDER).glob("*.lock") if _is_alive(file)}


def _is_alive(file: Path) -> bool:
    try:
        os.kill(int(file.read_text()), 0)
    except PermissionError:  # another user's
        return True
    except (OSError, ValueError):
        return False
    return True


def _smallest_free(place: Path, machine: str, roles: Sequence[str], *, alone: bool) -> tuple[str, ExitStack]:
    for number in count(1):
        name = f"{machine}-{number}"
        with ExitStack() as locks:
            taken = next((role for role in roles if not _locked(_file(place, role, name), locks)), None)
            if taken is None:
                return name, locks.pop_all()
        if alone:
            pid = _file(place, taken, name).read_text().strip() or "?"
            raise FarmwatchError(
                f"{place.parent}: the role {taken} runs on this log already, in process {pid} ({name}): stop it, or"
                " name other roles (--role); one more process of a role needs its own --member and metrics.port"
            )
    raise AssertionError("numbers do not end")


def _file(place: Path, role: str, name: str) -> Path:
    return place / f"{role}-{name}.lock"


def _locked(file: Path, locks: ExitStack) -> bool:
    """Take the lock of a file until `locks` closes, and write the process id into it; False if it is taken."""
    held = locks.enter_context(file_lock(file, wait=False))
    if held is None:
        return False
    held.truncate(0)
    held.write(f"{os.getpid()}\n".encode())
    held.flush()
    return True
