"""Files whose locks keep searches and imports into one log apart, on this machine."""

from __future__ import annotations

from pathlib import Path

from farmwatch.config.config import Config
from farmwatch.config.member_names import names_folder
from stream.log.private_folders import make_private
from stream.text.user_errors import FarmwatchError

IMPORTS_LOCK = "imports.lock"  # of whoever appends pages of archives, see `crawler.sources.known_hits`


def locks_folder(config: Config) -> Path:
    """The folder of such files. Raises FarmwatchError."""
    folder = names_folder(config) / "search"
    try:
        make_private(folder)
    except OSError as error:
        raise FarmwatchError(f"{folder}: cannot be made: {error.strerror}; make it writable") from error
    return folder


def imports_lock(config: Config) -> Path:
    """The file that imports hold, which can be written. Raises FarmwatchError."""
    file = locks_folder(config) / IMPORTS_LOCK
    try:
        file.open("ab").close()
    except OSError as error:
        raise FarmwatchError(f"{file}: cannot be written: {error.strerror}; make it writable") from error
    return file
