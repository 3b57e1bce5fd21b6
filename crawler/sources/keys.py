"""The key of a source: from the environment or from a file, never from the configuration, never into a message."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from crawler.sources.settings import SourceSettings
from crawler.sources.source import MissingKey

_CAP = 4096  # characters; a longer file is no key


def read_key(name: str, settings: SourceSettings, environment: Mapping[str, str]) -> str:
    """The key of source `name`; "" where none is set and none is named. Raises MissingKey for one that is unusable."""
    where = f"search.{name}.key_file"
    if settings.key_file:
        try:
            with Path(settings.key_file).expanduser().open(encoding="utf-8") as file:
                key = file.read(_CAP + 1).strip()
        except (OSError, UnicodeDecodeError) as error:
            reason = error.strerror if isinstance(error, OSError) else "it is no text"
            raise MissingKey(f"{where}: {settings.key_file} cannot be read: {reason}") from None
        if not key:
            raise MissingKey(f"{where}: {settings.key_file} is empty")
    else:
        where = f"environment variable {settings.key_env}"
        key = environment.get(settings.key_env, "").strip() if settings.key_env else ""
    if len(key) > _CAP or not key.isascii() or not key.isprintable() or " " in key:
        raise MissingKey(f"{where} holds no key: it has spaces, is too long, or has characters that no key has")
    return key


def require_key(name: str, settings: SourceSettings, environment: Mapping[str, str]) -> str:
    """As `read_key`; raises MissingKey where there is none, and says where it belongs."""
    key = read_key(name, settings, environment)
    if not key:
        here = f"the environment variable {settings.key_env}, or " if settings.key_env else ""
        raise MissingKey(f"{name} needs a key: set {here}search.{name}.key_file to a file that holds it")
    return key
