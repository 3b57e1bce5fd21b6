"""Names of the members of groups: the same after every restart, never two living processes with one.

A name decides what a restart costs. A Kafka group keeps a static member's partitions for its name until its session
ends, and local copies of state lie in a folder of that name: a process that comes back under another name waits for the
session of its old one and reads all state anew. So a name is `<host>-<n>`, n the smallest that is free, and it is held
by locks on files (flock), which the kernel gives back however the holder ends.
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
    """Where names are held: the embedded log's folder; on Kafka the folder of local state."""
    scheme, _, place = config.log.url.partition(":")
    return Path(place).expanduser() if scheme == "sqlite" else Path(config.log.state_folder)


@contextmanager
def claimed_name(folder: Path, roles: Sequence[str], host: str | None = None, *, alone: bool = False) -> Iterator[str]:
    """Hold a name for these roles (or replays, by other words), `<host>-<n>`, until the block or the process ends.

    `alone`: only the first name will do; another process of this machine that has one of the roles is an error.

    A lock per role and number: where each role is a service of its own, they do not push each other to other numbers
    when they start in another order. Raises FarmwatchError where no file can be made or locked in `folder`.
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
    """Take the lock of a file until `locks` closes, and write the process id into it; False if it is not free."""
    held = locks.enter_context(file_lock(file, wait=False))
    if held is None:
        return False
    held.truncate(0)
    held.write(f"{os.getpid()}\n".encode())
    held.flush()
    return True
