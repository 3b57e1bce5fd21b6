"""The key of a source: from the environment or a file, never from the configuration, never in a message."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from pathlib import Path

from crawler.sources.settings import SourceSettings
from crawler.sources.source import MissingKey

_CAP = 4096  # characters; a longer file is no key
_WORD = 12  # characters of a name without `_`; no key is as short


def read_key(name: str, settings: SourceSettings, environment: Mapping[str, str]) -> str:
    """The key of source `name`; "" if none is configured. Raises MissingKey if it is unusable."""
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
        where = f"environment variable {_shown(name, settings.key_env)}"
        key = environment.get(settings.key_env, "").strip() if settings.key_env else ""
    if len(key) > _CAP or not key.isascii() or not key.isprintable() or " " in key:
        raise MissingKey(f"{where} holds no key: it has spaces, is too long, or has characters that no key has")
    return key


def require_key(name: str, settings: SourceSettings, environment: Mapping[str, str]) -> str:
    """Like `read_key`; raises MissingKey if there is none, and says where to put it."""
    key = read_key(name, settings, environment)
    if not key:
        here = f"the environment variable {_shown(name, settings.key_env)}, or " if settings.key_env else ""
        raise MissingKey(f"{name} needs a key: set {here}search.{name}.key_file to a file that holds it")
    return key


def key_origin(name: str, settings: SourceSettings, environment: Mapping[str, str]) -> str:
    """Where the key of source `name` comes from, as text."""
    if settings.key_file:
        return f"the key is that of {settings.key_file}"
    if settings.key_env and environment.get(settings.key_env, "").strip():
        return f"the key is that of the environment variable {_shown(name, settings.key_env)}"
    return "no key is configured"


def key_mark(key: str) -> str:
    """An identity of a key that reveals nothing of it: 32 bits of a SHA-256; "" for none."""
    return hashlib.sha256(key.encode()).hexdigest()[:8] if key else ""


def _shown(name: str, variable: str) -> str:
    """The variable's name for messages; hidden if it might be the key itself."""
    return variable if "_" in variable or len(variable) <= _WORD else f"that search.{name}.key_env names"
