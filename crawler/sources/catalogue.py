"""Sources by name, as configured, with their keys.

A key comes from the environment or a file. It is never in the configuration, and never in a message.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from typing import Any

from crawler.sources.brave import Brave
from crawler.sources.commoncrawl import CommonCrawl
from crawler.sources.json_http import JsonHttp
from crawler.sources.searxng import Searxng
from crawler.sources.settings import JsonHttpSettings, KeyedSettings, SearchSettings, SourceSettings
from crawler.sources.source import MissingKey, Source, SourceError

Opener = Callable[[Any, str], Source]
SOURCES: Mapping[str, Opener] = {  # by the name of their field in SearchSettings
    "searxng": Searxng,
    "brave": Brave,
    "commoncrawl": CommonCrawl,
}
RECIPES: Mapping[str, JsonHttpSettings] = {  # of `json_http`; a table of the settings with that name replaces one
    "mojeek": JsonHttpSettings(
        url="https://api.mojeek.com/search?q={query}&fmt=json&t={count}",
        items="response.results",
        error="response.status",
        snippet="desc",
        count=100,
        key_env="MOJEEK_API_KEY",
        key_param="api_key",
    ),
    "marginalia": JsonHttpSettings(
        url="https://api2.marginalia-search.com/search?query={query}&count={count}&page={page}",
        snippet="description",
        count=20,
        rate=0.2,
        key_env="MARGINALIA_API_KEY",
        key_header="API-Key",
    ),
}
_KEY_CAP = 4096  # characters; a longer file is no key


class UnknownSource(SourceError):
    """No source has that name. The operator uses one of the names in the message."""


def configured(settings: SearchSettings, environment: Mapping[str, str]) -> list[str]:
    """The sources that are configured, by a table of settings or by a key in the environment."""
    blank = SearchSettings()

    def is_configured(name: str) -> bool:
        mine = settings_for(settings, name)
        return mine != settings_for(blank, name) or bool(environment.get(getattr(mine, "key_env", "")))

    return [*filter(is_configured, [*SOURCES, *RECIPES]), *(name for name in settings.json_http if name not in RECIPES)]


def settings_for(settings: SearchSettings, name: str) -> SourceSettings:
    """The settings of a source. Raises UnknownSource."""
    if name in SOURCES:
        mine: SourceSettings = getattr(settings, name)
        return mine
    named = {**RECIPES, **settings.json_http}
    if name in named:
        return named[name]
    known = ", ".join(["file", *SOURCES, *named])
    raise UnknownSource(f"no source is called {name[:40]!r}; there are {known}")


def open_source(settings: SearchSettings, name: str, environment: Mapping[str, str]) -> Source:
    """The source `name`, with its key. Raises MissingKey, UnknownSource."""
    mine = settings_for(settings, name)
    table = name if name in SOURCES else f"json_http.{name}"
    if not mine.url:
        raise MissingKey(f"{name} has no address: set search.{table}.url")
    opener: Opener = SOURCES.get(name) or partial(JsonHttp, name)
    if not isinstance(mine, KeyedSettings):
        return opener(mine, "")
    key = read_key(table, mine, environment)
    source = opener(mine, key)
    if not key and not source.key_is_optional:
        here = f"the environment variable {mine.key_env}, or " if mine.key_env else ""
        raise MissingKey(f"{table} needs a key: set {here}search.{table}.key_file to a file that holds it")
    return source


def read_key(table: str, settings: KeyedSettings, environment: Mapping[str, str]) -> str:
    """The key of [search.table]; "" if none is configured. Raises MissingKey if it is unusable."""
    where = f"search.{table}.key_file"
    if settings.key_file:
        try:
            with Path(settings.key_file).expanduser().open(encoding="utf-8") as file:
                key = file.read(_KEY_CAP + 1).strip()
        except (OSError, UnicodeDecodeError) as error:
            reason = error.strerror if isinstance(error, OSError) else "it is no text"
            raise MissingKey(f"{where}: {settings.key_file} cannot be read: {reason}") from None
        if not key:
            raise MissingKey(f"{where}: {settings.key_file} is empty")
    else:
        where = f"environment variable {settings.key_env}"
        key = environment.get(settings.key_env, "").strip() if settings.key_env else ""
    if len(key) > _KEY_CAP or not key.isascii() or not key.isprintable() or " " in key:
        raise MissingKey(f"{where} holds no key: it has spaces, is too long, or has characters that no key has")
    return key
